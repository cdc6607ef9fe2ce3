/* SPDX-License-Identifier: Apache-2.0 */
/* FDEs are collected, sorted by start and run one after the other; each change of the rules becomes a row. */
#include "formats/elf/unwind_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/clock.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/elf/cfi_file.h"
#include "formats/elf/fde_ref.h"
#include "formats/elf/stack_start.h"
#include "formats/elf/unwind_program.h"

enum {
    PADDING_MAX = 63,
    ENTRY_LEN = 64, /* bytes behind e_entry that count as the program's start */
    WIDE_MAX = 65536,
    /* All programs that are run have at most so many times the section's bytes. FDEs may share bytes, so it is above 1. */
    WORK_FACTOR = 8,
    INITIALS = 64,
};

struct initial {
    uint64_t cie_offset; /* in its section, bytes */
    bool used, debug_frame, good;
    struct unwind_rules rules;
};

struct builder {
    struct cfi_file file;
    struct unwind_table *table;
    struct cfi_cies cies[2]; /* of .eh_frame and .debug_frame */
    struct initial initials[INITIALS];
    VEC(struct fde_ref) fdes;
    VEC(struct unwind_row) rows;
    struct intern wide;
    uint64_t end; /* of the code of the FDE that is being run, relative */
    uint64_t work_left; /* bytes of programs */
    size_t rows_max;    /* and functions */
    bool no_memory;
    bool too_many;      /* there would be more than rows_max */
    bool changed;       /* a function is no more what it was when it was collected, or it is time to stop */
};

/* Whether nothing more is worth doing. */
static bool given_up(const struct builder *b)
{
    return b->no_memory || b->too_many || b->changed || cfi_file_failed(&b->file);
}

static struct error *why_given_up(const struct builder *b)
{
    const char *path = b->file.elf->path;

    if (b->no_memory)
        return error_no_memory();
    if (b->too_many)
        return error_path(ERROR_LIMIT, path, "has more call frame information than fits into the memory for unwind tables");
    return given_up(b) ? error_path(ERROR_IO, path, "changed while its call frame information was read, or took too long")
                       : NULL;
}

/* ---- rows ---- */

static void put_row(struct builder *b, uint64_t pc, uint16_t cfa8, uint8_t type, int rbp8)
{
    struct unwind_row row = {.pc = (uint32_t)pc, .cfa8 = cfa8, .type = type, .rbp8 = (int8_t)rbp8};

    if (b->rows.count) {
        const struct unwind_row *last = &b->rows.data[b->rows.count - 1];
        if (last->cfa8 == cfa8 && last->type == type && last->rbp8 == row.rbp8)
            return;
    }
    if (b->rows.count >= b->rows_max)
        b->too_many = true;
    else if (!VEC_PUSH(&b->rows, row))
        b->no_memory = true;
}

static void put_other(struct builder *b, uint64_t pc, enum unwind_other why)
{
    put_row(b, pc, (uint16_t)why, UNWIND_OTHER, 0);
}

static bool rule_is(const struct unwind_rule *rule, uint8_t kind, uint8_t base, int32_t offset)
{
    return rule->kind == kind && rule->base == base && rule->offset == offset && !rule->add;
}

/* The number of the slot below the CFA where the register is saved, 1 at CFA - 8. 0: it is unchanged; -1: neither. */
static int slot_of(const struct unwind_rule *rule)
{
    if (rule->kind == UNWIND_SAME)
        return 0;
    if (rule->kind != UNWIND_MEMORY || rule->base != UNWIND_BASE_CFA || rule->add || rule->offset >= 0 ||
        rule->offset % 8 || rule->offset < -8 * 128)
        return -1;
    return -rule->offset / 8;
}

static int rbx_bits(const struct unwind_rule *rule)
{
    int slot = slot_of(rule);

    if (rule->kind == UNWIND_UNDEFINED)
        return UNWIND_RBX_LOST;
    return !slot ? 0 : slot >= 2 && slot <= UNWIND_RBX_LOST ? slot - 1 : -1;
}

static void put_wide(struct builder *b, uint64_t pc, const struct unwind_wide *wide)
{
    if ((wide->cfa.kind != UNWIND_VALUE && wide->cfa.kind != UNWIND_MEMORY) || wide->cfa.base == UNWIND_BASE_CFA) {
        put_other(b, pc, UNWIND_OTHER_CFA);
        return;
    }
    if (wide->ra.kind != UNWIND_VALUE && wide->ra.kind != UNWIND_MEMORY) {
        put_other(b, pc, UNWIND_OTHER_RETURN);
        return;
    }
    uint32_t id = intern_find(&b->wide, wide, sizeof *wide);
    if (id == INTERN_NONE && b->wide.count < WIDE_MAX) {
        id = intern_id(&b->wide, wide, sizeof *wide, NULL);
        if (id == INTERN_NONE) {
            b->no_memory = true;
            return;
        }
    }
    if (id == INTERN_NONE)
        put_other(b, pc, UNWIND_OTHER_FULL);
    else
        put_row(b, pc, (uint16_t)id, UNWIND_WIDE, 0);
}

/* Does the rule read the register from where the kernel saves it for a signal handler? */
static bool is_saved(const struct machine *machine, const struct unwind_rule *rule, uint8_t number)
{
    uint32_t i = 0;

    while (machine->signal_registers[i] != number)
        i++;
    return rule_is(rule, UNWIND_MEMORY, machine->sp, (int32_t)(machine->signal_registers_at + 8 * i));
}

static bool is_rt_sigframe(const struct machine *machine, const struct unwind_rules *rules)
{
    const struct unwind_wide *w = &rules->wide;

    return is_saved(machine, &w->cfa, machine->sp) && is_saved(machine, &w->ra, machine->pc) &&
           is_saved(machine, &w->rbp, machine->fp) && is_saved(machine, &w->rbx, machine->base) &&
           is_saved(machine, &rules->rsp, machine->sp);
}

static bool put_rules(void *ctx, uint64_t vaddr, const struct unwind_rules *rules, bool signal_frame)
{
    struct builder *b = ctx;
    const struct machine *machine = b->file.machine;
    struct unwind_wide w = rules->wide;
    uint64_t pc = vaddr - b->table->base_vaddr;

    if (pc >= b->end)
        return true;
    if (w.ra.kind == UNWIND_UNDEFINED) {
        put_row(b, pc, 0, UNWIND_END, 0);
        return true;
    }
    if (signal_frame) {
        if (is_rt_sigframe(machine, rules))
            put_row(b, pc, 0, UNWIND_SIGNAL, 0);
        else
            put_other(b, pc, UNWIND_OTHER_SIGNAL);
        return !given_up(b);
    }
    if (rules->rsp.kind != UNWIND_SAME && !rule_is(&rules->rsp, UNWIND_VALUE, UNWIND_BASE_CFA, 0)) {
        put_other(b, pc, UNWIND_OTHER_STACK);
        return !given_up(b);
    }
    /* The caller's frame can be found without these: they count as lost from there on. */
    if (w.rbp.kind == RULE_OTHER)
        w.rbp = (struct unwind_rule){.kind = UNWIND_UNDEFINED};
    if (w.rbx.kind == RULE_OTHER)
        w.rbx = (struct unwind_rule){.kind = UNWIND_UNDEFINED};
    b->table->stats.rbp_lost += w.rbp.kind == UNWIND_UNDEFINED;
    b->table->stats.rbx_lost += w.rbx.kind == UNWIND_UNDEFINED;

    int rbp = slot_of(&w.rbp), rbx = rbx_bits(&w.rbx);
    bool plain = rule_is(&w.ra, UNWIND_MEMORY, UNWIND_BASE_CFA, machine->return_address) && rbp >= 0 && rbx >= 0;
    bool of_sp = w.cfa.base == machine->sp, of_fp = w.cfa.base == machine->fp;
    uint8_t bits = plain ? (uint8_t)(rbx << 4) : 0;
    if (plain && w.cfa.kind == RULE_PLT && (machine->row_kinds & 1u << UNWIND_PLT))
        put_row(b, pc, (uint16_t)w.cfa.offset, UNWIND_PLT | bits, -rbp);
    else if (plain && w.cfa.kind == UNWIND_VALUE && (of_sp || of_fp) && w.cfa.offset >= 0 && w.cfa.offset % 8 == 0 &&
             w.cfa.offset / 8 <= UINT16_MAX)
        put_row(b, pc, (uint16_t)(w.cfa.offset / 8), (of_sp ? UNWIND_RSP : UNWIND_RBP) | bits, -rbp);
    else
        put_wide(b, pc, &w);
    return !given_up(b);
}

static bool put_code(void *ctx, uint64_t vaddr, const struct unwind_rules *rules)
{
    return put_rules(ctx, vaddr, rules, false);
}

static bool put_signal(void *ctx, uint64_t vaddr, const struct unwind_rules *rules)
{
    return put_rules(ctx, vaddr, rules, true);
}

static const struct initial *find_initial(struct builder *b, const struct cfi_section *section, const struct cfi_fde *fde)
{
    struct initial *initial = &b->initials[fde->cie_offset / 4 % INITIALS];

    if (initial->used && initial->cie_offset == fde->cie_offset && initial->debug_frame == section->debug_frame)
        return initial;
    initial->used = true;
    initial->cie_offset = fde->cie_offset;
    initial->debug_frame = section->debug_frame;
    initial->good = fde->cie_program_len <= b->work_left &&
                    unwind_program_initial(b->file.machine, section, fde, &initial->rules);
    b->work_left -= fde->cie_program_len <= b->work_left ? fde->cie_program_len : b->work_left;
    return initial;
}

/* The rows of one FDE. `limit`: where the next one starts, or UINT64_MAX. */
static void put_fde(struct builder *b, const struct cfi_section *section, const struct cfi_fde *fde, uint64_t limit)
{
    uint64_t base = b->table->base_vaddr, start = fde->start - base, code_end = 0, broken_pc = fde->start;
    const struct initial *initial = find_initial(b, section, fde);
    enum unwind_program_result result = UNWIND_PROGRAM_BROKEN;

    cfi_file_code(&b->file, fde->start, &code_end);
    b->end = (fde->end < code_end ? fde->end : code_end) - base;
    if (b->end > limit) {
        b->end = limit;
        b->table->stats.fde_overlapping++;
    }
    b->table->stats.fde_count++;
    b->table->stats.fde_debug += section->debug_frame;
    if (initial->good && fde->fde_program_len <= b->work_left) {
        b->work_left -= fde->fde_program_len;
        result = unwind_program_run(b->file.machine, section, fde, &initial->rules, fde->signal_frame ? put_signal : put_code, b,
                                    &broken_pc);
    }
    if (result == UNWIND_PROGRAM_BROKEN && broken_pc - base < b->end)
        put_other(b, broken_pc == fde->start ? start : broken_pc - base, UNWIND_OTHER_PROGRAM);
    /* Code without information may be as short as padding: musl's signal trampoline has ten bytes. */
    if (limit == UINT64_MAX || limit - b->end > PADDING_MAX ||
        (limit > b->end && !cfi_file_is_padding(&b->file, base + b->end, limit - b->end)))
        put_row(b, b->end, 0, UNWIND_NONE, 0);
}

/* ---- FDEs in order ---- */

static const struct cfi_section *section_of(struct builder *b, bool debug)
{
    return debug ? &b->file.debug_frame : &b->file.eh_frame;
}

static bool read_fde(struct builder *b, const struct fde_ref *ref, struct cfi_fde *out)
{
    bool debug = ref->offset & FDE_DEBUG;

    return cfi_read_cached(section_of(b, debug), ref->offset & ~FDE_DEBUG, &b->cies[debug], out);
}

static void note_fde(struct builder *b, const struct cfi_fde *fde, uint32_t where)
{
    uint64_t end;

    if (!cfi_file_code(&b->file, fde->start, &end))
        b->table->stats.fde_outside++;
    else if (b->fdes.count >= b->rows_max)
        b->too_many = true;
    else if (!VEC_PUSH(&b->fdes, ((struct fde_ref){(uint32_t)(fde->start - b->table->base_vaddr), (uint32_t)fde->offset | where})))
        b->no_memory = true;
}

static void collect_section(struct builder *b, bool debug)
{
    struct cfi_fde fde;
    uint64_t offset = 0;

    while (!given_up(b) &&
           cfi_next_cached(section_of(b, debug), &offset, &b->cies[debug], &fde, &b->table->stats.fde_unreadable))
        note_fde(b, &fde, debug ? FDE_DEBUG : 0);
}

static void collect_by_table(struct builder *b)
{
    const struct cfi_table *table = &b->file.table;
    struct cfi_fde fde;

    for (uint64_t i = 0; i < table->count && !given_up(b); i++) {
        uint64_t start, fde_vaddr;
        cfi_table_row(table, i, &start, &fde_vaddr);
        if (cfi_read_cached(&b->file.eh_frame, fde_vaddr - b->file.eh_frame.vaddr, &b->cies[0], &fde))
            note_fde(b, &fde, 0);
        else
            b->table->stats.fde_unreadable++;
    }
}

static struct error *build_index(struct builder *b)
{
    struct unwind_table *t = b->table;
    const struct unwind_row *rows = t->rows;

    if (!t->row_count)
        return NULL;
    t->index_first = rows[0].pc >> UNWIND_PAGE_SHIFT;
    t->index_count = (rows[t->row_count - 1].pc >> UNWIND_PAGE_SHIFT) - t->index_first + 1;
    if ((uint64_t)t->index_count * sizeof *t->index > b->file.elf->len_bytes + (1 << 20))
        return error_path(ERROR_LIMIT, b->file.elf->path, "has code spread too widely for an unwind table");
    t->index = malloc(t->index_count * sizeof *t->index);
    if (!t->index)
        return error_no_memory();
    uint32_t at = 0; /* the first row not before the page */
    for (uint32_t i = 0; i < t->index_count; i++) {
        uint64_t start = (uint64_t)(t->index_first + i) << UNWIND_PAGE_SHIFT, end = start + (1 << UNWIND_PAGE_SHIFT);
        uint32_t low = at && (at == t->row_count || rows[at].pc > start) ? at - 1 : at;
        while (at < t->row_count && rows[at].pc < end)
            at++;
        t->index[i] = (uint64_t)at << 32 | low;
    }
    return NULL;
}

/* Makes code an end of stacks; what holds behind it stays. */
static void put_end(struct builder *b, uint64_t from, uint64_t to)
{
    struct unwind_row after = {.type = UNWIND_NONE};
    size_t first = 0, next, n = b->rows.count;

    if (!VEC_RESERVE(&b->rows, n + 2))
        return;
    struct unwind_row *rows = b->rows.data;
    while (first < n && rows[first].pc < from)
        first++;
    for (next = first; next < n && rows[next].pc <= to;)
        next++;
    if (next)
        after = rows[next - 1];
    after.pc = (uint32_t)to;
    memmove(rows + first + 2, rows + next, (n - next) * sizeof *rows);
    rows[first] = (struct unwind_row){.pc = (uint32_t)from, .type = UNWIND_END};
    rows[first + 1] = after;
    b->rows.count = first + 2 + n - next;
}

/* A program's entry point may be assembly without call frame information; it never returns. */
static void put_entry(struct builder *b)
{
    uint64_t entry = b->file.elf->header.e_entry, code_end, pc = entry - b->table->base_vaddr;
    size_t next = 0;

    if (!entry || !cfi_file_code(&b->file, entry, &code_end))
        return;
    const struct unwind_row *rows = b->rows.data;
    while (next < b->rows.count && rows[next].pc <= pc)
        next++;
    if (next && rows[next - 1].type != UNWIND_NONE)
        return;
    uint64_t end = pc + ENTRY_LEN, last = code_end - b->table->base_vaddr;
    end = end < last ? end : last;
    put_end(b, pc, next < b->rows.count && rows[next].pc < end ? rows[next].pc : end);
}

static void put_stack_start(struct builder *b)
{
    struct stack_start s = stack_start_find(b->file.elf);
    uint64_t code_end;

    if (s.end && cfi_file_code(&b->file, s.start, &code_end) && s.end <= code_end)
        put_end(b, s.start - b->table->base_vaddr, s.end - b->table->base_vaddr);
}

/* .debug_frame counts only where .eh_frame has nothing, as in unwinders that search one and then the other. */
static void drop_covered(struct builder *b)
{
    uint64_t covered = 0; /* relative, exclusive */
    size_t kept = 0;
    struct cfi_fde fde;

    for (size_t i = 0; i < b->fdes.count; i++) {
        const struct fde_ref ref = b->fdes.data[i];
        bool debug = ref.offset & FDE_DEBUG;
        if (debug && ref.pc < covered) {
            b->table->stats.fde_covered++;
            continue;
        }
        if (!debug && read_fde(b, &ref, &fde) && fde.end - b->table->base_vaddr > covered)
            covered = fde.end - b->table->base_vaddr;
        b->fdes.data[kept++] = ref;
    }
    b->fdes.count = kept;
}

/* From FDEs to rows. */
static struct error *collect_rows(struct builder *b)
{
    struct unwind_table *t = b->table;
    struct cfi_fde fde;

    if (b->file.by_table)
        collect_by_table(b);
    else if (b->file.eh_frame.data)
        collect_section(b, false);
    size_t of_eh_frame = b->fdes.count;
    if (b->file.debug_frame.data)
        collect_section(b, true);
    b->no_memory = b->no_memory || (!given_up(b) && !fde_refs_sort(b->fdes.data, b->fdes.count));
    TRY(why_given_up(b));
    if (!b->fdes.count)
        return NULL;
    t->stats.source = !of_eh_frame ? UNWIND_SOURCE_DEBUG_FRAME : b->file.by_table ? UNWIND_SOURCE_HDR : UNWIND_SOURCE_EH_FRAME;
    if (of_eh_frame && of_eh_frame < b->fdes.count)
        drop_covered(b);
    t->stats.cfi_bytes = (of_eh_frame ? b->file.eh_frame.len_bytes : 0) + b->file.debug_frame.len_bytes;
    b->work_left = t->stats.cfi_bytes * WORK_FACTOR;
    /* There are fewer of them than a quarter of the bytes they come from. */
    size_t expected = t->stats.cfi_bytes / 4 + 16;
    if (!VEC_RESERVE(&b->rows, expected < b->rows_max ? expected : b->rows_max))
        return error_no_memory();
    for (size_t i = 0, done = 0; i < b->fdes.count && !given_up(b); done++) {
        const struct fde_ref *ref = &b->fdes.data[i];
        size_t next = i + 1;
        while (next < b->fdes.count && b->fdes.data[next].pc == ref->pc)
            next++;
        /* Of several with one start the first counts, as in unwinders that search .eh_frame. */
        t->stats.fde_repeated += next - i - 1;
        /* The file may be written to between the two times that it is read: rows must ascend all the same. */
        if (read_fde(b, ref, &fde) && fde.start - t->base_vaddr == ref->pc)
            put_fde(b, section_of(b, ref->offset & FDE_DEBUG), &fde,
                    next < b->fdes.count ? b->fdes.data[next].pc : UINT64_MAX);
        else
            b->changed = true;
        /* What is in memory is read without a look at the clock. */
        if (done % 64 == 0 && elf_stop_reached(b->file.elf->stop))
            b->changed = true;
        i = next;
    }
    return why_given_up(b);
}

/* Moves the rows into the table, counts them and builds the index. */
static struct error *finish_table(struct builder *b)
{
    struct unwind_table *t = b->table;

    put_entry(b);
    put_stack_start(b);
    t->row_count = (uint32_t)b->rows.count;
    t->rows = b->rows.data;
    b->rows.data = NULL;
    if (t->row_count) {
        struct unwind_row *less = realloc(t->rows, t->row_count * sizeof *t->rows);
        t->rows = less ? less : t->rows;
    }
    for (uint32_t i = 0; i < t->row_count; i++) {
        t->stats.rows[UNWIND_TYPE(t->rows[i].type)]++;
        if (t->rows[i].type == UNWIND_OTHER)
            t->stats.other[t->rows[i].cfa8]++;
    }
    if (b->wide.count) {
        t->wide = malloc(b->wide.count * sizeof *t->wide);
        if (!t->wide)
            return error_no_memory();
        for (uint32_t i = 0; i < b->wide.count; i++)
            memcpy(&t->wide[i], intern_get(&b->wide, i)->data, sizeof *t->wide);
        t->wide_count = b->wide.count;
    }
    return build_index(b);
}

static struct error *build(struct builder *b, const struct elf_file *elf)
{
    TRY(cfi_file_read(elf, &b->file));
    b->table->base_vaddr = b->file.base_vaddr;
    TRY(collect_rows(b));
    return finish_table(b);
}

/* Closes `elf`. */
static struct error *build_from(struct elf_file *elf, const struct unwind_limits *limits, uint64_t started_ns,
                                struct unwind_table **out)
{
    struct builder *b = calloc(1, sizeof *b);
    struct unwind_table *table = calloc(1, sizeof *table);
    struct error *err = NULL;
    bool over = false;

    if (b && table) {
        b->table = table;
        b->rows_max = limits && limits->rows_max ? limits->rows_max : UINT32_MAX;
        err = build(b, elf);
        over = b->too_many;
        VEC_DEINIT(&b->fdes);
        VEC_DEINIT(&b->rows);
        intern_deinit(&b->wide);
    } else {
        err = error_no_memory();
    }
    free(b);
    elf_file_close(elf);
    if (err) {
        if (over && limits && limits->over_rows_max)
            *limits->over_rows_max = true;
        unwind_table_destroy(table);
        return err;
    }
    table->stats.build_ns = now_ns() - started_ns;
    *out = table;
    return NULL;
}

struct error *unwind_table_build(int fd, const char *path, const struct unwind_limits *limits, struct unwind_table **out)
{
    uint64_t started_ns = now_ns();
    struct elf_file elf;

    *out = NULL;
    struct error *err = elf_file_open(fd, path, limits ? limits->stop : NULL, &elf);
    if (!err)
        return build_from(&elf, limits, started_ns, out);
    elf_file_close(&elf);
    return err;
}

struct error *unwind_table_build_memory(const void *image, uint64_t len_bytes, const char *path,
                                        struct unwind_table **out)
{
    uint64_t started_ns = now_ns();
    struct elf_file elf;

    *out = NULL;
    struct error *err = elf_file_open_memory(image, len_bytes, path, &elf);
    if (!err)
        return build_from(&elf, NULL, started_ns, out);
    elf_file_close(&elf);
    return err;
}

void unwind_table_destroy(struct unwind_table *t)
{
    if (!t)
        return;
    free(t->rows);
    free(t->wide);
    free(t->index);
    free(t);
}

/* ---- lookup ---- */

struct unwind_row unwind_table_lookup(const struct unwind_table *t, uint64_t vaddr)
{
    static const struct unwind_row none = {.type = UNWIND_NONE};
    uint64_t pc = vaddr - t->base_vaddr, page = (pc >> UNWIND_PAGE_SHIFT) - t->index_first;

    if (vaddr < t->base_vaddr || pc >> UNWIND_PAGE_SHIFT < t->index_first || page >= t->index_count)
        return none;
    uint32_t low = UNWIND_PAGE_LOW(t->index[page]), high = UNWIND_PAGE_HIGH(t->index[page]);
    if (low >= high || t->rows[low].pc > pc)
        return none;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (t->rows[middle].pc <= pc)
            low = middle;
        else
            high = middle;
    }
    return t->rows[low];
}
