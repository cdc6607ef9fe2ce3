/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/elf/unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/elf/cfi.h"
#include "formats/elf/unwind_program.h"

#define CFI_BYTES_MAX (256ull << 20)
#define NAMES_BYTES_MAX (1ull << 20)
#define PAGE_MASK 4095ull
enum {
    SEGMENTS_MAX = 4096,
    CODE_SEGMENTS_MAX = 64,
    PADDING_MAX = 15,
    PADDING_MAX_LIBC = 8, /* less than a signal trampoline */
    ENTRY_LEN = 64, /* bytes behind e_entry that count as the program's start */
    WIDE_MAX = 65536,
    /* Programs run over at most so many times the section's bytes; more than once only where FDEs overlap each other. */
    WORK_FACTOR = 8,
    INITIALS = 64,
};

/* An FDE, waiting to be sorted. `offset` is in the section. */
struct fde_ref {
    uint32_t pc, offset;
};

struct initial {
    uint64_t offset_1; /* of the CIE, plus 1; 0: unused */
    bool good;
    struct unwind_rules rules;
};

struct builder {
    const char *path;
    uint64_t file_bytes;
    bool in_memory; /* the caller's, not to be written to */
    uint64_t entry; /* e_entry */
    uint64_t padding_max; /* bytes */
    struct unwind_table *table;
    struct cfi_section section;
    struct cfi_table by_start; /* with UNWIND_SOURCE_HDR */
    struct {
        uint64_t start, end;
    } code[CODE_SEGMENTS_MAX];
    uint32_t code_count;
    struct cfi_cies cies;
    struct initial initials[INITIALS];
    VEC(struct fde_ref) fdes;
    VEC(struct unwind_row) rows;
    struct intern wide;
    uint64_t end; /* of the code of the FDE that is being run, relative */
    uint64_t work_left; /* bytes of programs */
    bool no_memory;
};

/* ---- rows ---- */

static void put_row(struct builder *b, uint64_t pc, uint16_t cfa8, uint8_t type, int rbp8)
{
    struct unwind_row row = {.pc = (uint32_t)pc, .cfa8 = cfa8, .type = type, .rbp8 = (int8_t)rbp8};

    if (b->rows.count) {
        const struct unwind_row *last = &b->rows.data[b->rows.count - 1];
        if (last->cfa8 == cfa8 && last->type == type && last->rbp8 == row.rbp8)
            return;
    }
    if (!VEC_PUSH(&b->rows, row))
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

/* Saved in a slot below the CFA: its number, 1 at CFA - 8. 0: the same as before; -1: neither. */
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

static bool is_rt_sigframe(const struct unwind_rules *rules)
{
    const struct unwind_wide *w = &rules->wide;

    return rule_is(&w->cfa, UNWIND_MEMORY, 7, UNWIND_SIGNAL_RSP) && rule_is(&w->ra, UNWIND_MEMORY, 7, UNWIND_SIGNAL_RIP) &&
           rule_is(&w->rbp, UNWIND_MEMORY, 7, UNWIND_SIGNAL_RBP) && rule_is(&w->rbx, UNWIND_MEMORY, 7, UNWIND_SIGNAL_RBX) &&
           rule_is(&rules->rsp, UNWIND_MEMORY, 7, UNWIND_SIGNAL_RSP);
}

static bool put_rules(void *ctx, uint64_t vaddr, const struct unwind_rules *rules, bool signal_frame)
{
    struct builder *b = ctx;
    struct unwind_wide w = rules->wide;
    uint64_t pc = vaddr - b->table->base_vaddr;

    if (pc >= b->end)
        return true;
    if (w.ra.kind == UNWIND_UNDEFINED) {
        put_row(b, pc, 0, UNWIND_END, 0);
        return true;
    }
    if (signal_frame) {
        if (is_rt_sigframe(rules))
            put_row(b, pc, 0, UNWIND_SIGNAL, 0);
        else
            put_other(b, pc, UNWIND_OTHER_SIGNAL);
        return !b->no_memory;
    }
    if (rules->rsp.kind != UNWIND_SAME && !rule_is(&rules->rsp, UNWIND_VALUE, UNWIND_BASE_CFA, 0)) {
        put_other(b, pc, UNWIND_OTHER_STACK);
        return !b->no_memory;
    }
    /* The caller's frame can be found without these; they are lost from there on. */
    if (w.rbp.kind == RULE_OTHER)
        w.rbp = (struct unwind_rule){.kind = UNWIND_UNDEFINED};
    if (w.rbx.kind == RULE_OTHER)
        w.rbx = (struct unwind_rule){.kind = UNWIND_UNDEFINED};
    b->table->stats.rbp_lost += w.rbp.kind == UNWIND_UNDEFINED;
    b->table->stats.rbx_lost += w.rbx.kind == UNWIND_UNDEFINED;

    int rbp = slot_of(&w.rbp), rbx = rbx_bits(&w.rbx);
    bool plain = rule_is(&w.ra, UNWIND_MEMORY, UNWIND_BASE_CFA, -8) && rbp >= 0 && rbx >= 0;
    uint8_t bits = plain ? (uint8_t)(rbx << 4) : 0;
    if (plain && w.cfa.kind == RULE_PLT)
        put_row(b, pc, (uint16_t)w.cfa.offset, UNWIND_PLT | bits, -rbp);
    else if (plain && w.cfa.kind == UNWIND_VALUE && (w.cfa.base == 7 || w.cfa.base == 6) && w.cfa.offset >= 0 &&
             w.cfa.offset % 8 == 0 && w.cfa.offset / 8 <= UINT16_MAX)
        put_row(b, pc, (uint16_t)(w.cfa.offset / 8), (w.cfa.base == 7 ? UNWIND_RSP : UNWIND_RBP) | bits, -rbp);
    else
        put_wide(b, pc, &w);
    return !b->no_memory;
}

static bool put_code(void *ctx, uint64_t vaddr, const struct unwind_rules *rules)
{
    return put_rules(ctx, vaddr, rules, false);
}

static bool put_signal(void *ctx, uint64_t vaddr, const struct unwind_rules *rules)
{
    return put_rules(ctx, vaddr, rules, true);
}

static const struct initial *find_initial(struct builder *b, const struct cfi_fde *fde)
{
    struct initial *initial = &b->initials[fde->cie_offset / 4 % INITIALS];

    if (initial->offset_1 != fde->cie_offset + 1) {
        initial->offset_1 = fde->cie_offset + 1;
        initial->good = fde->cie_program_len <= b->work_left && unwind_program_initial(&b->section, fde, &initial->rules);
        b->work_left -= fde->cie_program_len <= b->work_left ? fde->cie_program_len : b->work_left;
    }
    return initial;
}

/* The code segment that `vaddr` is in. */
static bool find_code(const struct builder *b, uint64_t vaddr, uint64_t *end)
{
    for (uint32_t i = 0; i < b->code_count; i++) {
        if (vaddr >= b->code[i].start && vaddr < b->code[i].end) {
            *end = b->code[i].end;
            return true;
        }
    }
    return false;
}

/* The rows of one FDE. `limit`: where the next one starts, or UINT64_MAX. */
static void put_fde(struct builder *b, const struct cfi_fde *fde, uint64_t limit)
{
    uint64_t base = b->table->base_vaddr, start = fde->start - base, code_end = 0, broken_pc = fde->start;
    const struct initial *initial = find_initial(b, fde);
    enum unwind_program_result result = UNWIND_PROGRAM_BROKEN;

    find_code(b, fde->start, &code_end);
    b->end = (fde->end < code_end ? fde->end : code_end) - base;
    if (b->end > limit) {
        b->end = limit;
        b->table->stats.fde_overlapping++;
    }
    b->table->stats.fde_count++;
    if (initial->good && fde->fde_program_len <= b->work_left) {
        b->work_left -= fde->fde_program_len;
        result = unwind_program_run(&b->section, fde, &initial->rules, fde->signal_frame ? put_signal : put_code, b,
                                    &broken_pc);
    }
    if (result == UNWIND_PROGRAM_BROKEN && broken_pc - base < b->end)
        put_other(b, broken_pc == fde->start ? start : broken_pc - base, UNWIND_OTHER_PROGRAM);
    if (limit == UINT64_MAX || limit - b->end > b->padding_max)
        put_row(b, b->end, 0, UNWIND_NONE, 0);
}

/* ---- FDEs in order ---- */

static void note_fde(struct builder *b, const struct cfi_fde *fde)
{
    uint64_t end;

    if (!find_code(b, fde->start, &end))
        b->table->stats.fde_outside++;
    else if (!VEC_PUSH(&b->fdes, ((struct fde_ref){(uint32_t)(fde->start - b->table->base_vaddr), (uint32_t)fde->offset})))
        b->no_memory = true;
}

static void collect_fdes(struct builder *b)
{
    struct unwind_stats *stats = &b->table->stats;
    struct cfi_fde fde;
    uint64_t offset = 0;

    if (stats->source != UNWIND_SOURCE_HDR) {
        while (!b->no_memory && cfi_next_cached(&b->section, &offset, &b->cies, &fde, &stats->fde_unreadable))
            note_fde(b, &fde);
        return;
    }
    for (uint64_t i = 0; i < b->by_start.count && !b->no_memory; i++) {
        int32_t row[2];
        memcpy(row, b->by_start.rows + i * 8, sizeof row);
        offset = b->by_start.hdr_vaddr + (uint64_t)(int64_t)row[1] - b->section.vaddr;
        if (cfi_read_cached(&b->section, offset, &b->cies, &fde))
            note_fde(b, &fde);
        else
            stats->fde_unreadable++;
    }
}

/* By pc, those of one pc in the order they were found; a byte at a time, lowest first. */
static bool sort_fdes(struct builder *b)
{
    size_t n = b->fdes.count;
    bool sorted = true;

    for (size_t i = 1; i < n && sorted; i++)
        sorted = b->fdes.data[i - 1].pc <= b->fdes.data[i].pc;
    if (sorted)
        return true;
    struct fde_ref *from = b->fdes.data, *to = malloc(n * sizeof *to);
    if (!to)
        return false;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        size_t at[256] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++)
            at[from[i].pc >> shift & 255]++;
        for (size_t i = 0; i < 256; i++) {
            size_t count = at[i];
            at[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[at[from[i].pc >> shift & 255]++] = from[i];
        struct fde_ref *swap = from;
        from = to;
        to = swap;
    }
    /* An even number of rounds: the result is where it came from. */
    free(to);
    return true;
}

static struct error *build_index(struct builder *b)
{
    struct unwind_table *t = b->table;
    const struct unwind_row *rows = t->rows;

    if (!t->row_count)
        return NULL;
    t->index_first = rows[0].pc >> UNWIND_PAGE_SHIFT;
    t->index_count = (rows[t->row_count - 1].pc >> UNWIND_PAGE_SHIFT) - t->index_first + 1;
    if ((uint64_t)t->index_count * sizeof *t->index > b->file_bytes + (1 << 20))
        return error_path(ERROR_LIMIT, b->path, "its code is spread too widely for an unwind table");
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

/* A program's start may be assembly without information; it is no function that returns. */
static void put_entry(struct builder *b)
{
    uint64_t code_end, pc = b->entry - b->table->base_vaddr;
    size_t next = 0, n = b->rows.count;

    if (!b->entry || !find_code(b, b->entry, &code_end) || !VEC_RESERVE(&b->rows, n + 2))
        return;
    struct unwind_row *rows = b->rows.data;
    while (next < n && rows[next].pc <= pc)
        next++;
    if (next && rows[next - 1].type != UNWIND_NONE)
        return;
    uint64_t end = pc + ENTRY_LEN, last = code_end - b->table->base_vaddr;
    end = end < last ? end : last;
    if (next && rows[next - 1].pc == pc)
        next--;
    else
        memmove(rows + next + 1, rows + next, (n++ - next) * sizeof *rows);
    rows[next] = (struct unwind_row){.pc = (uint32_t)pc, .type = UNWIND_END};
    next++;
    if (next == n || end < rows[next].pc) {
        memmove(rows + next + 1, rows + next, (n++ - next) * sizeof *rows);
        rows[next] = (struct unwind_row){.pc = (uint32_t)end, .type = UNWIND_NONE};
    }
    b->rows.count = n;
}

/* From FDEs to rows; none if the section turns out to have none. */
static struct error *collect_rows(struct builder *b)
{
    struct unwind_table *t = b->table;
    struct cfi_fde fde;

    b->work_left = b->section.len_bytes * WORK_FACTOR;
    collect_fdes(b);
    if (b->no_memory || !sort_fdes(b))
        return error_no_memory();
    /* Rows are about a quarter of the bytes they come from. */
    if (b->fdes.count && !VEC_RESERVE(&b->rows, b->section.len_bytes / 4 + 16))
        return error_no_memory();
    for (size_t i = 0; i < b->fdes.count && !b->no_memory;) {
        size_t next = i + 1;
        while (next < b->fdes.count && b->fdes.data[next].pc == b->fdes.data[i].pc)
            next++;
        /* Of several with one start the first counts, as it does for those who search .eh_frame. */
        t->stats.fde_repeated += next - i - 1;
        if (cfi_read_cached(&b->section, b->fdes.data[i].offset, &b->cies, &fde))
            put_fde(b, &fde, next < b->fdes.count ? b->fdes.data[next].pc : UINT64_MAX);
        i = next;
    }
    return b->no_memory ? error_no_memory() : NULL;
}

/* Moves what was made into the table, and counts it. */
static struct error *finish_table(struct builder *b)
{
    struct unwind_table *t = b->table;

    put_entry(b);
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

/* ---- where the file keeps it ---- */

/* Bytes of the file, copied or in place; NULL where there are none. They live as long as `elf`. */
static const uint8_t *take_bytes(Elf *elf, uint64_t offset, uint64_t len_bytes)
{
    if (!len_bytes || len_bytes > CFI_BYTES_MAX || offset > INT64_MAX - len_bytes)
        return NULL;
    Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)offset, len_bytes, ELF_T_BYTE);
    return data && data->d_size == len_bytes ? data->d_buf : NULL;
}

/*
 * musl's signal trampoline is ten bytes without information, which must not pass for padding. Such code is in what
 * needs no other library: musl itself, and static programs.
 */
static bool needs_libraries(Elf *elf, const GElf_Phdr *dynamic)
{
    const uint8_t *data = dynamic->p_filesz < NAMES_BYTES_MAX ? take_bytes(elf, dynamic->p_offset, dynamic->p_filesz) : NULL;
    struct bytes all = bytes_of(data, data ? dynamic->p_filesz : 0);

    while (bytes_left(&all)) {
        if (bytes_u64(&all) == DT_NEEDED)
            return true;
        bytes_u64(&all);
    }
    return false;
}

static struct error *read_segments(struct builder *b, Elf *elf, GElf_Phdr *hdr)
{
    uint64_t lowest = UINT64_MAX;
    size_t count = 0;
    GElf_Phdr p;

    *hdr = (GElf_Phdr){0};
    b->padding_max = PADDING_MAX_LIBC;
    if (elf_getphdrnum(elf, &count) || count > SEGMENTS_MAX)
        return error_path(ERROR_FORMAT, b->path, "its program headers cannot be read");
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &p); i++) {
        if (p.p_type == PT_GNU_EH_FRAME)
            *hdr = p;
        if (p.p_type == PT_DYNAMIC && needs_libraries(elf, &p))
            b->padding_max = PADDING_MAX;
        if (p.p_type != PT_LOAD)
            continue;
        lowest = p.p_vaddr < lowest ? p.p_vaddr : lowest;
        uint64_t len = p.p_filesz < b->file_bytes ? p.p_filesz : b->file_bytes;
        if ((p.p_flags & PF_X) && len && p.p_vaddr <= UINT64_MAX - len && b->code_count < CODE_SEGMENTS_MAX) {
            b->code[b->code_count].start = p.p_vaddr;
            b->code[b->code_count++].end = p.p_vaddr + len;
        }
    }
    b->table->base_vaddr = lowest & ~PAGE_MASK;
    for (uint32_t i = 0; i < b->code_count; i++)
        if (b->code[i].end - b->table->base_vaddr > UINT32_MAX)
            return error_path(ERROR_LIMIT, b->path, "its code is spread over more than 4 GiB");
    return NULL;
}

/* The bytes of the file behind `vaddr`, up to the segment's end. */
static uint64_t bytes_behind(Elf *elf, uint64_t vaddr, uint64_t *offset)
{
    size_t count = 0;
    GElf_Phdr p;

    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && i < SEGMENTS_MAX && gelf_getphdr(elf, (int)i, &p); i++) {
        if (p.p_type != PT_LOAD || vaddr < p.p_vaddr || vaddr - p.p_vaddr >= p.p_filesz)
            continue;
        *offset = p.p_offset + (vaddr - p.p_vaddr);
        return p.p_filesz - (vaddr - p.p_vaddr);
    }
    return 0;
}

static struct error *use_section(struct builder *b, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, bool debug_frame,
                                 uint64_t hdr_vaddr)
{
    const uint8_t *data;
    uint64_t len = sh->sh_size;
    GElf_Chdr compressed;

    if (sh->sh_flags & SHF_COMPRESSED) {
        /* Sections that are loaded never are; and libelf writes to the header of one that it decompresses. */
        if (!debug_frame || b->in_memory || !gelf_getchdr(scn, &compressed))
            return NULL;
        len = compressed.ch_size;
    }
    if (len > CFI_BYTES_MAX || sh->sh_size > CFI_BYTES_MAX)
        return error_path(ERROR_LIMIT, b->path, "it has %llu bytes of call frame information",
                          (unsigned long long)(len > sh->sh_size ? len : sh->sh_size));
    if (sh->sh_flags & SHF_COMPRESSED) {
        Elf_Data *all = elf_compress(scn, 0, 0) >= 0 ? elf_getdata(scn, NULL) : NULL;
        data = all ? all->d_buf : NULL;
        len = all ? all->d_size : 0;
    } else {
        data = take_bytes(elf, sh->sh_offset, len);
    }
    if (!data || !len)
        return NULL;
    b->section = (struct cfi_section){data, len, sh->sh_addr, hdr_vaddr, debug_frame};
    b->table->stats.source = debug_frame ? UNWIND_SOURCE_DEBUG_FRAME : UNWIND_SOURCE_EH_FRAME;
    return NULL;
}

static struct error *use_sections(struct builder *b, Elf *elf, const char *wanted, uint64_t hdr_vaddr)
{
    size_t names;
    GElf_Shdr sh;

    if (elf_getshdrstrndx(elf, &names) || !gelf_getshdr(elf_getscn(elf, names), &sh) || sh.sh_size > NAMES_BYTES_MAX)
        return NULL;
    for (Elf_Scn *scn = NULL; !b->table->stats.source && (scn = elf_nextscn(elf, scn));) {
        if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS || !sh.sh_size)
            continue;
        const char *name = elf_strptr(elf, names, sh.sh_name);
        if (name && !strcmp(name, wanted))
            TRY(use_section(b, elf, scn, &sh, !strcmp(wanted, ".debug_frame"), hdr_vaddr));
    }
    return NULL;
}

/* Without section headers the header that the loader maps tells where .eh_frame starts, and its table where each FDE is. */
static void use_hdr(struct builder *b, Elf *elf, const GElf_Phdr *hdr)
{
    uint64_t offset, len;
    const uint8_t *data = take_bytes(elf, hdr->p_offset, hdr->p_filesz);

    if (!data || !cfi_table_read(data, hdr->p_filesz, hdr->p_vaddr, &b->by_start))
        return;
    len = bytes_behind(elf, b->by_start.eh_frame_vaddr, &offset);
    len = len < CFI_BYTES_MAX ? len : CFI_BYTES_MAX;
    data = take_bytes(elf, offset, len);
    if (!data)
        return;
    b->section = (struct cfi_section){data, len, b->by_start.eh_frame_vaddr, hdr->p_vaddr, false};
    b->table->stats.source = UNWIND_SOURCE_HDR;
    if (!b->by_start.count) {
        /* No table either: from its start up to the terminator. */
        struct bytes all = bytes_of(data, len);
        for (uint64_t entry = bytes_u32(&all); entry && !all.bad; entry = bytes_u32(&all))
            bytes_skip(&all, entry == UINT32_MAX ? bytes_u64(&all) : entry);
        b->section.len_bytes = all.bad ? len : bytes_offset(&all);
        b->table->stats.source = UNWIND_SOURCE_EH_FRAME;
    }
}

static struct error *build(struct builder *b, Elf *elf)
{
    struct unwind_stats *stats = &b->table->stats;
    GElf_Ehdr header;
    GElf_Phdr hdr;

    if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || !gelf_getehdr(elf, &header) ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
        return error_path(ERROR_FORMAT, b->path, "is no 64-bit ELF executable or shared library");
    if (header.e_machine != EM_X86_64)
        return error_path(ERROR_UNSUPPORTED, b->path, "is for machine %u, not x86-64", header.e_machine);
    b->entry = header.e_entry;
    TRY(read_segments(b, elf, &hdr));
    TRY(use_sections(b, elf, ".eh_frame", hdr.p_vaddr));
    if (!stats->source && hdr.p_filesz)
        use_hdr(b, elf, &hdr);
    if (stats->source)
        TRY(collect_rows(b));
    if (!b->rows.count) {
        stats->source = UNWIND_SOURCE_NONE;
        memset(&b->cies, 0, sizeof b->cies);
        memset(b->initials, 0, sizeof b->initials);
        b->fdes.count = 0;
        TRY(use_sections(b, elf, ".debug_frame", 0));
        if (stats->source)
            TRY(collect_rows(b));
    }
    stats->cfi_bytes = b->section.len_bytes;
    return finish_table(b);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct error *build_from(Elf *elf, bool in_memory, const char *path, uint64_t file_bytes, uint64_t started_ns,
                                struct unwind_table **out)
{
    struct builder *b = calloc(1, sizeof *b);
    struct unwind_table *table = calloc(1, sizeof *table);
    struct error *err = NULL;

    if (b && table) {
        b->path = path;
        b->in_memory = in_memory;
        b->file_bytes = file_bytes;
        b->table = table;
        err = build(b, elf);
        VEC_DEINIT(&b->fdes);
        VEC_DEINIT(&b->rows);
        intern_deinit(&b->wide);
    } else {
        err = error_no_memory();
    }
    free(b);
    elf_end(elf);
    if (err) {
        unwind_table_destroy(table);
        return err;
    }
    table->stats.build_ns = now_ns() - started_ns;
    *out = table;
    return NULL;
}

struct error *unwind_table_build(int fd, const char *path, struct unwind_table **out)
{
    uint64_t started_ns = now_ns();
    struct stat st;

    *out = NULL;
    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    if (!S_ISREG(st.st_mode))
        return error_path(ERROR_FORMAT, path, "is no regular file");
    elf_version(EV_CURRENT);
    return build_from(elf_begin(fd, ELF_C_READ, NULL), false, path, (uint64_t)st.st_size, started_ns, out);
}

struct error *unwind_table_build_memory(const void *image, uint64_t len_bytes, const char *path,
                                        struct unwind_table **out)
{
    uint64_t started_ns = now_ns();

    *out = NULL;
    elf_version(EV_CURRENT);
    return build_from(elf_memory((char *)image, len_bytes), true, path, len_bytes, started_ns, out);
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
