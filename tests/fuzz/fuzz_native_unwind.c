/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table unwinder of the kernel, built for the host, over hostile tables, registers and stacks: it ends, stays
 * within its arrays, makes no more frames than there is room for, and reads little for each.
 *
 * The input, read by struct input: registers, call frame information (as the table builder accepts it from a file),
 * a table that no builder would make, and the words of the stack. Words are written as two bits and a number, so that
 * a mutation makes another address of the stack or of code, not noise.
 *
 * Address space: the stack, then three modules of ELF_AROUND_CODE bytes: the built table's, the made-up one's, and
 * code without tables, which holds the epilogues and the signal trampoline that the unwinder knows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/native_unwind.h"
#include "tests/fuzz/check_table.h"
#include "tests/fuzz/elf_around.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { STACK = 0x10000, STACK_LEN = 0x6000, CODE = 0x100000, CODE_LEN = 3 * ELF_AROUND_CODE, READS_PER_STEP = 16 };

struct input {
    const uint8_t *at;
    size_t left;
};

static uint32_t take(struct input *in, unsigned len_bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < len_bytes; i++, in->at++, in->left--) {
        if (!in->left)
            return value;
        value |= (uint32_t)*in->at << 8 * i;
    }
    return value;
}

static uint64_t take_word(struct input *in)
{
    uint64_t number = take(in, 2), value = number & 0x3fff;

    switch (number >> 14) {
    case 0:
        return STACK + 8 * (value & (STACK_LEN / 8 - 1)) + (value >> 13);
    case 1:
        return CODE + value;
    case 2:
        return value;
    default:
        return value << 49 | value;
    }
}

struct space {
    uint64_t stack[STACK_LEN / 8];
    uint64_t fault_from, fault_to; /* reading here fails */
    uint64_t reads;
    const struct unwind_table *built, *made;
};

static uint8_t code_at(uint64_t offset)
{
    static const uint8_t tile[64] = {
        [0] = 0x5d, 0xc3, [16] = 0x48, 0x83, 0xc4, 8, 0xc3, [32] = 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05,
    };

    return tile[offset % sizeof tile];
}

static int read_space(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct space *s = ctx;
    uint8_t *to = out;

    s->reads++;
    if (address < s->fault_to && address + len_bytes > s->fault_from)
        return -1;
    if (address >= STACK && address - STACK < STACK_LEN && len_bytes <= STACK + STACK_LEN - address) {
        memcpy(out, (const uint8_t *)s->stack + (address - STACK), len_bytes);
        return 0;
    }
    if (address < CODE || address - CODE >= CODE_LEN || len_bytes > CODE + CODE_LEN - address)
        return -1;
    for (uint32_t i = 0; i < len_bytes; i++)
        to[i] = code_at(address - CODE + i);
    return 0;
}

static __u32 find_mapping(void *ctx, __u64 address, struct native_mapping *mapping, const struct unwind_table **table)
{
    const struct space *s = ctx;

    if (address < CODE || address - CODE >= CODE_LEN)
        return LOSS_no_mapping;
    uint64_t number = (address - CODE) / ELF_AROUND_CODE, start = CODE + number * ELF_AROUND_CODE;
    *mapping = (struct native_mapping){.start = start, .end = start + ELF_AROUND_CODE, .base = start};
    *table = number == 0 ? s->built : number == 1 ? s->made : NULL;
    if (!*table) {
        mapping->flags = NATIVE_NO_TABLE;
        return 0;
    }
    mapping->row_count = (*table)->row_count;
    mapping->index_first = (*table)->index_first;
    mapping->index_count = (*table)->index_count;
    mapping->wide_count = (*table)->wide_count;
    return 0;
}

static void *take_array(struct input *in, uint32_t count, unsigned each)
{
    uint8_t *p = malloc(count * each + !count);

    if (!p)
        abort();
    for (uint32_t i = 0; i < count * each; i++)
        p[i] = (uint8_t)take(in, 1);
    return p;
}

/* Rows in any order and of any type, an index that leads anywhere. */
static void make_table(struct input *in, struct unwind_table *t)
{
    uint32_t wild = take(in, 1);

    t->row_count = take(in, 1) & 63;
    t->rows = take_array(in, t->row_count, sizeof *t->rows);
    for (uint32_t i = 0; i < t->row_count && !(wild & 1); i++)
        t->rows[i].pc &= ELF_AROUND_CODE - 1;
    t->wide_count = take(in, 1) & 15;
    t->wide = take_array(in, t->wide_count, sizeof *t->wide);
    t->index_first = wild & 2 ? take(in, 4) : 0;
    t->index_count = take(in, 1) & 31;
    t->index = malloc(t->index_count * sizeof *t->index + !t->index_count);
    for (uint32_t i = 0; i < t->index_count; i++) {
        uint64_t low = take(in, 1), high = take(in, 1);
        t->index[i] = wild & 4 ? low << 56 | high << 24 | low : high << 32 | low;
    }
}

/* The unwinder's search and the table's own agree, where a builder made the table. */
static void check_search(struct native_unwind *u, struct space *s)
{
    check(!find_mapping(s, CODE, &u->mapping, &u->host.table));
    for (uint32_t pc = 0; pc < ELF_AROUND_CODE; pc += 13) {
        struct unwind_row wanted = unwind_table_lookup(s->built, s->built->base_vaddr + pc);
        bool found = !native_search(u, pc) && u->low < s->built->row_count && s->built->rows[u->low].pc <= pc;
        check(found ? !memcmp(&wanted, &s->built->rows[u->low], sizeof wanted) : wanted.type == UNWIND_NONE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static struct native_unwind u;
    static struct space s;
    struct unwind_table *built = NULL, made = {0};
    struct input in = {data, len_bytes};
    struct native_frame *frames = malloc(NATIVE_MAX * sizeof *frames);
    size_t around_len;

    if (!frames)
        abort();
    for (int i = 0; i < ARCH_REGISTERS; i++)
        u.registers[i] = take_word(&in);
    uint32_t choices = take(&in, 1), fault = take(&in, 1);
    size_t cfi_len = take(&in, 2);
    cfi_len = cfi_len < in.left ? cfi_len : in.left;
    uint8_t *around = elf_around(in.at, cfi_len, choices & 1, &around_len);
    in.at += cfi_len;
    in.left -= cfi_len;
    error_destroy(unwind_table_build_memory(around, around_len, "fuzz", &built));
    free(around);
    if (built)
        check_table(built);
    make_table(&in, &made);
    for (size_t i = 0; i < STACK_LEN / 8; i++)
        s.stack[i] = in.left ? take_word(&in) : choices & 2 ? CODE + 1 + i % 3 * ELF_AROUND_CODE : 0;
    s.fault_from = choices & 4 ? STACK + 0x100 * fault : 0;
    s.fault_to = choices & 4 ? s.fault_from + 0x1000 : 0;
    s.built = built && built->row_count ? built : NULL;
    s.made = &made;

    u.memory = (struct walk_memory){read_space, &s};
    u.host = (struct native_host){find_mapping, &s, NULL};
    native_begin(&u);
    if (s.built)
        check_search(&u, &s);
    native_begin(&u);
    bool ended = false;
    for (uint32_t steps = 0; !ended; steps++) {
        check(steps <= NATIVE_MAX);
        s.reads = 0;
        ended = native_step(&u, frames);
        check(s.reads <= READS_PER_STEP);
    }
    check(u.end && u.end < LOSS_LIMIT && u.count && u.count <= NATIVE_MAX && u.guesses <= u.count);
    /* Callers lie above, except what a signal interrupted. */
    for (uint32_t i = 1; i < u.count; i++)
        check(frames[i].sp > frames[i - 1].sp || frames[i].ip & NATIVE_EXACT);
    unwind_table_destroy(built);
    free(made.rows);
    free(made.wide);
    free(made.index);
    free(frames);
    return 0;
}
