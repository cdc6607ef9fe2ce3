/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads facts off the machine code of well-known functions.
 *
 * Up to 3.10 no exported constant has the version, and up to 3.6 the list of interpreters and the
 * number of the pthread key are local variables. A function that only returns or uses such a
 * variable shows its address. Its bytes are searched for the few instructions that compilers make
 * of such a load. Nothing is disassembled, so a find is checked by what it points to.
 *
 * The split-off part of a function has no symbol in a stripped file, but call frame information of
 * its own. Function and part jump into the middle of each other, whereas calls and tail calls go to
 * where a function begins; so the part is the FDE that most such jumps lead to and come back from.
 */
#include "formats/cpython/machine_code.h"

#include <stdlib.h>
#include <string.h>

#include "formats/elf/cfi_file.h"
#include "formats/elf/machine.h"

#define FUNCTION_MAX_BYTES (1u << 20)
#define FDES_MAX (1u << 20)
#define SMALL_BYTES 128 /* bytes of a small function that are searched */
#define JUMPS_LEAST 8 /* fewer jumps than that, either way, may be stray bytes that look like jumps */

static int32_t number_at(const uint8_t *p)
{
    int32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t read_number(const char **p, uint32_t most)
{
    uint32_t v = 0;

    if (**p < '0' || **p > '9')
        return UINT32_MAX;
    while (**p >= '0' && **p <= '9' && v <= most)
        v = v * 10 + (uint32_t)(*(*p)++ - '0');
    return v <= most ? v : UINT32_MAX;
}

/* "3.9.18", "2.7.18+", "3.7.0rc1" */
static uint32_t version_of_text(const char *p)
{
    uint32_t major = read_number(&p, 3), minor, patch, level = 0xf, serial = 0;

    if (major == UINT32_MAX || *p++ != '.' || (minor = read_number(&p, 20)) == UINT32_MAX || *p++ != '.' ||
        (patch = read_number(&p, 99)) == UINT32_MAX)
        return 0;
    if (*p == 'a' || *p == 'b' || *p == 'c' || (*p == 'r' && p[1] == 'c')) {
        level = *p == 'a' ? 0xa : *p == 'b' ? 0xb : 0xc;
        p += *p == 'r' ? 2 : 1;
        serial = read_number(&p, 15);
        if (serial == UINT32_MAX)
            return 0;
    }
    if (*p == '+')
        p++;
    return *p || major < 2 ? 0 : major << 24 | minor << 16 | patch << 8 | level << 4 | serial;
}

static uint32_t version_at(const struct elf_file *f, uint64_t vaddr)
{
    char text[17] = {0};
    uint64_t offset, have = elf_file_bytes_at(f, vaddr, &offset);
    size_t n = have < sizeof text - 1 ? (size_t)have : sizeof text - 1;

    return n && elf_file_read_at(f, offset, text, n) ? version_of_text(text) : 0;
}

/* Reads a small function's code, with zeros behind it. Returns its length, or 0. */
static size_t read_small(const struct elf_file *f, const struct machine *machine, const Elf64_Sym *function,
                         uint8_t code[SMALL_BYTES + MACHINE_CODE_SLACK])
{
    size_t len = function->st_size && function->st_size < SMALL_BYTES ? (size_t)function->st_size : SMALL_BYTES;

    memset(code, 0, SMALL_BYTES + MACHINE_CODE_SLACK);
    if (function->st_shndx == SHN_UNDEF || !machine || !elf_file_read_vaddr(f, function->st_value, code, len))
        return 0;
    return len;
}

uint32_t py_machine_version(const struct elf_file *f, const Elf64_Sym *get_version)
{
    const struct machine *machine = machine_by_elf(f->header.e_machine);
    uint8_t code[SMALL_BYTES + MACHINE_CODE_SLACK];
    size_t len = read_small(f, machine, get_version, code);
    uint32_t version = 0;
    uint64_t address;

    for (size_t i = 0; i < len && !version; i += machine->code_step) {
        if (machine->address_at(code + i, get_version->st_value + i, &address))
            version = version_at(f, address);
    }
    return version;
}

uint64_t py_machine_variable(const struct elf_file *f, const Elf64_Sym *function, bool argument, bool wide)
{
    const struct machine *machine = machine_by_elf(f->header.e_machine);
    uint8_t code[SMALL_BYTES + MACHINE_CODE_SLACK];
    size_t len = read_small(f, machine, function, code);
    uint64_t address;

    for (size_t i = 0; i < len; i += machine->code_step) {
        if (machine->load_at(code + i, function->st_value + i, argument, wide, &address))
            return address;
    }
    return 0;
}

/* ---- the split-off part ---- */

static uint64_t start_of(const struct cfi_table *table, uint64_t i)
{
    uint64_t start, fde_vaddr;

    cfi_table_row(table, i, &start, &fde_vaddr);
    return start;
}

/* The code that FDE number `i` covers; false when it has not the usual form (pc-relative, four bytes). */
static bool range_of(const struct elf_file *f, const struct cfi_table *table, uint64_t i, struct py_range *out)
{
    uint64_t start, at;
    uint8_t fde[16];

    cfi_table_row(table, i, &start, &at);
    if (!elf_file_read_vaddr(f, at, fde, sizeof fde) || at + 8 + (uint64_t)(int64_t)number_at(fde + 8) != start)
        return false;
    uint32_t len = (uint32_t)number_at(fde + 12);
    *out = (struct py_range){start, start + len};
    return len != 0;
}

static bool holds(struct py_range r, uint64_t vaddr)
{
    return vaddr > r.start && vaddr < r.end; /* not its start, where calls go */
}

/* Calls `met` with the target of everything in `range` that looks like a long jump. */
static bool each_jump(const struct elf_file *f, const struct machine *machine, struct py_range range,
                      void (*met)(void *ctx, uint64_t target), void *ctx)
{
    uint64_t len = range.end - range.start, target;
    uint8_t *code = len && len <= FUNCTION_MAX_BYTES ? calloc(1, len + MACHINE_CODE_SLACK) : NULL;
    bool ok = code && elf_file_read_vaddr(f, range.start, code, len);

    for (uint64_t i = 0; ok && i < len; i += machine->code_step) {
        if (machine->jump_at(code + i, range.start + i, &target))
            met(ctx, target);
    }
    free(code);
    return ok;
}

struct votes {
    const struct cfi_table *table;
    struct py_range function;
    uint32_t *count; /* by row of the table */
};

static void vote(void *ctx, uint64_t target)
{
    struct votes *v = ctx;

    if (target >= v->function.start && target < v->function.end)
        return;
    uint64_t i = cfi_table_search(v->table, target);
    if (i && start_of(v->table, i - 1) != target)
        v->count[i - 1]++;
}

struct returns {
    struct py_range function;
    uint32_t count;
};

static void count_return(void *ctx, uint64_t target)
{
    struct returns *r = ctx;

    r->count += holds(r->function, target);
}

bool py_machine_cold_part(const struct elf_file *f, struct py_range function, struct py_range *out)
{
    struct cfi_table table;
    bool found = false;
    const struct machine *machine = machine_by_elf(f->header.e_machine);

    if (!machine || !cfi_find_table(f, &table) || !table.count || table.count > FDES_MAX)
        return false;
    struct votes votes = {.table = &table, .function = function, .count = calloc(table.count, sizeof *votes.count)};
    if (votes.count && each_jump(f, machine, function, vote, &votes)) {
        uint64_t best = 0;
        for (uint64_t i = 1; i < table.count; i++) {
            if (votes.count[i] > votes.count[best])
                best = i;
        }
        struct returns back = {.function = function};
        found = votes.count[best] >= JUMPS_LEAST && range_of(f, &table, best, out) && out->start != function.start &&
                each_jump(f, machine, *out, count_return, &back) && back.count >= JUMPS_LEAST;
    }
    free(votes.count);
    return found;
}
