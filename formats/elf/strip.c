/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/elf/strip.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* mov $15, %rax; syscall: a signal handler returns to it, and an unwinder knows it by these bytes where it has no rules. */
static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

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

/* A table of names ends with a NUL. One that does not names nothing: to search it for the end of each name takes too long. */
static const char *name_of(const uint8_t *image, uint64_t len_bytes, const Elf64_Shdr *names, uint32_t at)
{
    if (names->sh_offset >= len_bytes || names->sh_size > len_bytes - names->sh_offset || at >= names->sh_size ||
        image[names->sh_offset + names->sh_size - 1])
        return "";
    return (const char *)image + names->sh_offset + at;
}

/*
 * Loaded contents that nobody needs who only unwinds and names: code, constants, variables, language-specific data.
 * Stubs of the PLT stay: they get their names from the slots that they jump through.
 */
static bool is_dropped(const Elf64_Shdr *s, const char *name)
{
    static const char *const kept[] = {".eh_frame", ".eh_frame_hdr", ".interp", ".note", ".plt", ".gnu_debug"};

    if (s->sh_type != SHT_PROGBITS || !(s->sh_flags & SHF_ALLOC) || !*name)
        return false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!strncmp(name, kept[i], strlen(kept[i])))
            return false;
    }
    return true;
}

/* `code` is sorted and joined: sections may overlap, and each byte is searched once. */
static bool keep_trampolines(const uint8_t *image, uint64_t len_bytes, const struct elf_extents *code,
                             struct elf_extents *kept)
{
    for (size_t i = 0; i < code->list.count; i++) {
        const uint8_t *p = image + code->list.data[i].start, *end = image + code->list.data[i].end;
        for (const uint8_t *hit; (hit = memmem(p, (size_t)(end - p), sigreturn, sizeof sigreturn));) {
            p = hit + sizeof sigreturn;
            if (!add(kept, (uint64_t)(hit - image), sizeof sigreturn, len_bytes))
                return false;
        }
    }
    return true;
}

struct error *elf_strip(uint8_t *image, uint64_t len_bytes, struct elf_extents *out)
{
    struct elf_extents dropped = {0}, kept = {0}, code = {0};
    Elf64_Ehdr header;
    Elf64_Shdr names, s;
    bool ok;

    *out = (struct elf_extents){0};
    if (len_bytes < sizeof header)
        return NULL;
    memcpy(&header, image, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof s || header.e_shoff >= len_bytes ||
        header.e_shnum > (len_bytes - header.e_shoff) / sizeof s || header.e_shstrndx >= header.e_shnum)
        return NULL;
    uint8_t *table = image + header.e_shoff;
    memcpy(&names, table + header.e_shstrndx * sizeof names, sizeof names);

    ok = add(&kept, 0, sizeof header, len_bytes) &&
         add(&kept, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize, len_bytes) &&
         add(&kept, header.e_shoff, header.e_shnum * sizeof s, len_bytes);
    for (uint32_t i = 0; ok && i < header.e_shnum; i++) {
        memcpy(&s, table + i * sizeof s, sizeof s);
        if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL)
            continue;
        if (is_dropped(&s, name_of(image, len_bytes, &names, s.sh_name)))
            ok = add(&dropped, s.sh_offset, s.sh_size, len_bytes) &&
                 (!(s.sh_flags & SHF_EXECINSTR) || add(&code, s.sh_offset, s.sh_size, len_bytes));
        else
            ok = add(&kept, s.sh_offset, s.sh_size, len_bytes);
    }
    sort_and_join(&code);
    ok = ok && keep_trampolines(image, len_bytes, &code, &kept);
    sort_and_join(&dropped);
    sort_and_join(&kept);
    ok = ok && subtract(&dropped, &kept, out);
    /* Only now: sections may overlap the table of a file that was made to deceive. */
    for (uint32_t i = 0; ok && i < header.e_shnum; i++) {
        Elf64_Word nobits = SHT_NOBITS;
        memcpy(&s, table + i * sizeof s, sizeof s);
        if (is_dropped(&s, name_of(image, len_bytes, &names, s.sh_name)))
            memcpy(table + i * sizeof s + offsetof(Elf64_Shdr, sh_type), &nobits, sizeof nobits);
    }
    VEC_DEINIT(&dropped.list);
    VEC_DEINIT(&kept.list);
    VEC_DEINIT(&code.list);
    return ok ? NULL : error_no_memory();
}
