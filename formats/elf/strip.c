/* SPDX-License-Identifier: Apache-2.0 */
/* Sections are sorted into those to keep and those to drop; what is dropped and overlaps nothing kept is left out. */
#include "formats/elf/strip.h"

#include <stdlib.h>
#include <string.h>

#include "formats/elf/machine.h"

enum {
    PIECE = 1 << 16,           /* bytes of code that are searched at a time */
    TRAMPOLINES_MAX = 1 << 16, /* a program has one; where there are more, what follows is not left out */
};

static int by_start(const void *a, const void *b)
{
    const struct elf_extent *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static bool add(struct elf_extents *e, uint64_t start, uint64_t size, uint64_t len_bytes)
{
    if (start >= len_bytes || !size)
        return true;
    struct elf_extent extent = {start, size < len_bytes - start ? start + size : len_bytes};
    return VEC_PUSH(&e->list, extent);
}

static void sort_and_join(struct elf_extents *e)
{
    size_t kept = 0;

    if (e->list.count)
        qsort(e->list.data, e->list.count, sizeof *e->list.data, by_start);
    for (size_t i = 0; i < e->list.count; i++) {
        struct elf_extent x = e->list.data[i];
        if (kept && x.start <= e->list.data[kept - 1].end) {
            if (x.end > e->list.data[kept - 1].end)
                e->list.data[kept - 1].end = x.end;
        } else {
            e->list.data[kept++] = x;
        }
    }
    e->list.count = kept;
}

/* Takes `kept` away from `dropped`; both are sorted. */
static bool subtract(const struct elf_extents *dropped, const struct elf_extents *kept, struct elf_extents *out)
{
    size_t k = 0;

    for (size_t i = 0; i < dropped->list.count; i++) {
        struct elf_extent x = dropped->list.data[i];
        while (k < kept->list.count && kept->list.data[k].end <= x.start)
            k++;
        for (size_t j = k; x.start < x.end && j < kept->list.count && kept->list.data[j].start < x.end; j++) {
            struct elf_extent y = kept->list.data[j];
            if (y.start > x.start && !VEC_PUSH(&out->list, ((struct elf_extent){x.start, y.start})))
                return false;
            x.start = y.end;
        }
        if (x.start < x.end && !VEC_PUSH(&out->list, x))
            return false;
    }
    return true;
}

/*
 * Loaded contents that neither unwinding nor naming reads: code, constants, variables, language-specific data. PLT stubs
 * stay: they are named after the slots that they jump through.
 */
static bool is_dropped(const struct elf_section *s)
{
    static const char *const kept[] = {".eh_frame", ".eh_frame_hdr", ".interp", ".note", ".plt", ".gnu_debug"};

    if (s->header.sh_type != SHT_PROGBITS || !(s->header.sh_flags & SHF_ALLOC) || !s->name || !*s->name)
        return false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!strncmp(s->name, kept[i], strlen(kept[i])))
            return false;
    }
    return true;
}

/*
 * A signal handler returns to a trampoline. If it has no call frame information, an unwinder recognises its bytes, so
 * they stay. `code` is sorted and joined, so that each byte is searched once though sections may overlap.
 */
static bool keep_trampolines(const struct elf_file *f, const struct machine *machine, const struct elf_extents *code,
                             struct elf_extents *kept)
{
    uint32_t len = machine->sigreturn_len;
    uint8_t piece[PIECE];
    size_t count = 0;

    for (size_t i = 0; i < code->list.count; i++) {
        for (uint64_t at = code->list.data[i].start, end = code->list.data[i].end; end - at >= len;) {
            size_t have = end - at < PIECE ? (size_t)(end - at) : PIECE;
            if (!elf_file_read_at(f, at, piece, have))
                break; /* it shrank, and there is nothing to keep */
            for (const uint8_t *p = piece, *hit; (hit = memmem(p, (size_t)(piece + have - p), machine->sigreturn, len));
                 p = hit + len) {
                uint64_t from = at + (uint64_t)(hit - piece);
                if (++count > TRAMPOLINES_MAX)
                    return add(kept, from, f->len_bytes, f->len_bytes);
                if (!add(kept, from, len, f->len_bytes))
                    return false;
            }
            /* One may begin at the end of this piece. */
            at += have - (len - 1);
        }
    }
    return true;
}

/* Parts of the file. `types`: the file offsets of the types of dropped sections. */
struct plan {
    struct elf_extents dropped, kept, code;
    VEC(uint64_t) types;
};

static bool plan_sections(const struct elf_file *f, struct plan *plan)
{
    const Elf64_Ehdr *header = &f->header;
    struct elf_section s = {0};
    uint64_t count = 1, len = f->len_bytes;
    bool ok = true;

    while (ok && elf_file_next_section(f, &s)) {
        uint64_t at = header->e_shoff + s.index * sizeof(Elf64_Shdr);
        count++;
        if (s.header.sh_type == SHT_NOBITS || s.header.sh_type == SHT_NULL)
            continue;
        if (is_dropped(&s) && at < len && len - at >= sizeof(Elf64_Shdr))
            ok = add(&plan->dropped, s.header.sh_offset, s.header.sh_size, len) &&
                 VEC_PUSH(&plan->types, at + offsetof(Elf64_Shdr, sh_type)) &&
                 (!(s.header.sh_flags & SHF_EXECINSTR) || add(&plan->code, s.header.sh_offset, s.header.sh_size, len));
        else
            ok = add(&plan->kept, s.header.sh_offset, s.header.sh_size, len);
    }
    return ok && add(&plan->kept, 0, sizeof *header, len) &&
           add(&plan->kept, header->e_phoff, f->program_header_count * sizeof(Elf64_Phdr), len) &&
           add(&plan->kept, header->e_shoff, count * sizeof(Elf64_Shdr), len);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

struct error *elf_strip(const struct elf_file *f, struct elf_strip *out)
{
    struct plan plan = {0};

    *out = (struct elf_strip){0};
    const struct machine *machine = machine_by_elf(f->header.e_machine);
    bool ok = plan_sections(f, &plan);
    sort_and_join(&plan.code);
    ok = ok && (!machine || keep_trampolines(f, machine, &plan.code, &plan.kept));
    sort_and_join(&plan.dropped);
    sort_and_join(&plan.kept);
    ok = ok && subtract(&plan.dropped, &plan.kept, &out->left_out);
    if (plan.types.count)
        qsort(plan.types.data, plan.types.count, sizeof *plan.types.data, by_value);
    out->types.data = plan.types.data;
    out->types.count = plan.types.count;
    out->types.cap = plan.types.cap;
    VEC_DEINIT(&plan.dropped.list);
    VEC_DEINIT(&plan.kept.list);
    VEC_DEINIT(&plan.code.list);
    return ok ? NULL : error_no_memory();
}

/* The index of the first extent that ends after `offset`; below, of the first type. */
static size_t first_extent(const struct elf_extents *e, uint64_t offset)
{
    size_t low = 0, high = e->list.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->list.data[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static size_t first_type(const struct elf_strip *s, uint64_t offset)
{
    size_t low = 0, high = s->types.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->types.data[middle] + sizeof(Elf64_Word) > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void elf_strip_apply(const struct elf_strip *s, uint64_t offset, uint8_t *data, size_t len_bytes)
{
    static const Elf64_Word nobits = SHT_NOBITS;
    uint64_t end = offset + len_bytes;

    for (size_t i = first_extent(&s->left_out, offset); i < s->left_out.list.count; i++) {
        const struct elf_extent *e = &s->left_out.list.data[i];
        if (e->start >= end)
            break;
        uint64_t from = e->start > offset ? e->start : offset, to = e->end < end ? e->end : end;
        memset(data + (from - offset), 0, (size_t)(to - from));
    }
    /* A type may lie in two pieces. */
    for (size_t i = first_type(s, offset); i < s->types.count && s->types.data[i] < end; i++) {
        for (uint64_t k = 0; k < sizeof nobits; k++) {
            uint64_t at = s->types.data[i] + k;
            if (at >= offset && at < end)
                data[at - offset] = ((const uint8_t *)&nobits)[k];
        }
    }
}

void elf_strip_deinit(struct elf_strip *s)
{
    VEC_DEINIT(&s->left_out.list);
    VEC_DEINIT(&s->types);
}
