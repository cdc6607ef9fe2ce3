/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/cpython/stripped.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"

enum {
    SCAN_MAX = 64 << 20, /* bytes of a file that are read, of each kind; the static CPythons that are known have 2 MiB */
    PIECE_BYTES = 16 << 10,
    TEXT_MAX = 24,       /* of a version or a tag, with the byte before it and the NUL */
    CANDIDATES_MAX = 4096,
    RELOCS_MAX = 4000000,
};

/* ---- the version ---- */

struct version_search {
    uint32_t minors[2], versions[8]; /* different ones; a full list is too many */
    uint32_t minor_count, version_count;
};

static void note(uint32_t *list, uint32_t *count, uint32_t most, uint32_t value)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (list[i] == value)
            return;
    }
    if (*count < most)
        list[(*count)++] = value;
}

/* A number of at most two digits; advances *text. False: there is none. */
static bool take_number(const char **text, uint32_t *out)
{
    const char *digits = *text;

    for (*out = 0; **text >= '0' && **text <= '9'; (*text)++)
        *out = *out * 10 + (uint32_t)(**text - '0');
    return *text > digits && *text - digits <= 2;
}

/* PY_VERSION: "3.11.2", "3.12.0rc1", with "+" behind it if it is no release; 0: the text is something else. */
static uint32_t version_of(const char *text)
{
    uint32_t minor, patch, level = 0xf, serial = 0;

    text += 2;
    if (!take_number(&text, &minor) || *text++ != '.' || !take_number(&text, &patch))
        return 0;
    if (*text == 'a' || *text == 'b' || (text[0] == 'r' && text[1] == 'c')) {
        level = *text == 'a' ? 0xa : *text == 'b' ? 0xb : 0xc;
        text += *text == 'r' ? 2 : 1;
        if (!take_number(&text, &serial) || serial > 0xf)
            return 0;
    }
    text += *text == '+';
    return *text ? 0 : UINT32_C(3) << 24 | minor << 16 | patch << 8 | level << 4 | serial;
}

/* `text` is what begins at some byte of the constants, `before` the byte before it. */
static void look_at_text(struct version_search *s, char before, const char *text)
{
    static const char tag[] = "cpython-3";
    uint32_t minor, version;

    if (!before && !strncmp(text, tag, sizeof tag - 1)) {
        text += sizeof tag - 1;
        if (take_number(&text, &minor) && !*text)
            note(s->minors, &s->minor_count, 2, minor);
    } else if (text[0] == '3' && text[1] == '.' && before != '.' && !(before >= '0' && before <= '9')) {
        version = version_of(text);
        if (version)
            note(s->versions, &s->version_count, 8, version);
    }
}

static void scan_texts(const struct elf_file *f, uint64_t offset, uint64_t len_bytes, struct version_search *s)
{
    char piece[PIECE_BYTES + 1], before = 0;

    while (len_bytes) {
        size_t len = len_bytes < PIECE_BYTES ? (size_t)len_bytes : PIECE_BYTES;
        size_t looked_at = len == len_bytes ? len : len - TEXT_MAX;
        if (!elf_file_read_at(f, offset, piece, len))
            return;
        piece[len] = 'x'; /* no text ends there */
        for (size_t i = 0; i < looked_at; i++) {
            char text[TEXT_MAX] = {0};
            if (piece[i] == '3' || piece[i] == 'c') {
                memcpy(text, piece + i, len + 1 - i < sizeof text - 1 ? len + 1 - i : sizeof text - 1);
                look_at_text(s, before, text);
            }
            before = piece[i];
        }
        offset += looked_at;
        len_bytes -= looked_at;
    }
}

/* Calls for the parts of the file that sections hold as constants, or as data. */
static bool next_part(const struct elf_file *f, bool writable, uint64_t *budget, struct elf_section *s)
{
    while (elf_file_next_section(f, s)) {
        const Elf64_Shdr *h = &s->header;
        if (h->sh_type != SHT_PROGBITS || !(h->sh_flags & SHF_ALLOC) || h->sh_flags & SHF_EXECINSTR ||
            writable != ((h->sh_flags & SHF_WRITE) != 0) || !h->sh_size || h->sh_size > *budget)
            continue;
        *budget -= h->sh_size;
        return true;
    }
    return false;
}

uint32_t py_stripped_version(const struct elf_file *f)
{
    struct version_search s = {0};
    struct elf_section part = {0};
    uint64_t budget = SCAN_MAX;
    uint32_t found = 0;

    while (next_part(f, false, &budget, &part))
        scan_texts(f, part.header.sh_offset, part.header.sh_size, &s);
    if (s.minor_count != 1 || s.version_count == 8)
        return 0;
    for (uint32_t i = 0; i < s.version_count; i++) {
        if ((s.versions[i] >> 16 & 0xff) != s.minors[0])
            continue;
        if (found)
            return 0;
        found = s.versions[i];
    }
    return found;
}

/* ---- types ---- */

/* Where a type's tp_name may be: its sizes are behind it. In the order of addresses, if sections are. */
struct candidate {
    uint64_t vaddr, value; /* of the pointer to the name; what the file has there */
    uint32_t type;
};
struct candidates {
    VEC(struct candidate) list;
    uint32_t counts[8]; /* by type */
};

static bool scan_sizes(const struct elf_file *f, const Elf64_Shdr *h, const struct py_stripped_type *types, uint32_t count,
                       struct candidates *out)
{
    uint64_t words[PIECE_BYTES / 8], at = h->sh_addr % 8 ? 8 - h->sh_addr % 8 : 0;

    for (; at < h->sh_size && h->sh_size - at >= 24; at += sizeof words - 16) {
        size_t n = (h->sh_size - at) / 8 < PIECE_BYTES / 8 ? (size_t)((h->sh_size - at) / 8) : PIECE_BYTES / 8;
        if (!elf_file_read_at(f, h->sh_offset + at, words, n * 8))
            return true;
        for (size_t i = 0; i + 2 < n; i++) {
            for (uint32_t t = 0; t < count; t++) {
                if (words[i + 1] != types[t].basic_bytes || words[i + 2] != types[t].item_bytes ||
                    out->counts[t] == CANDIDATES_MAX)
                    continue;
                out->counts[t]++;
                if (!VEC_PUSH(&out->list, ((struct candidate){h->sh_addr + at + 8 * i, words[i], t})))
                    return false;
            }
        }
    }
    return true;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* What the linker leaves to the start of a program that may lie anywhere. */
static void relocate(const struct elf_file *f, const struct elf_dynamic *d, struct candidates *c)
{
    Elf64_Rela rela[256];
    uint64_t offset, count = d->relocs_bytes / sizeof *rela;

    if (!d->relocs || count > RELOCS_MAX || elf_file_bytes_at(f, d->relocs, &offset) < d->relocs_bytes)
        return;
    while (count) {
        size_t n = count < 256 ? (size_t)count : 256;
        if (!elf_file_read_at(f, offset, rela, n * sizeof *rela))
            return;
        for (size_t i = 0; i < n; i++) {
            const struct candidate key = {.vaddr = rela[i].r_offset};
            struct candidate *found =
                ELF64_R_SYM(rela[i].r_info) ? NULL : bsearch(&key, c->list.data, c->list.count, sizeof key, compare_candidates);
            if (found)
                found->value = (uint64_t)rela[i].r_addend;
        }
        offset += n * sizeof *rela;
        count -= n;
    }
}

static bool is_name(const struct elf_file *f, uint64_t vaddr, const char *name)
{
    char text[TEXT_MAX];
    size_t len = strlen(name) + 1;

    return vaddr && len <= sizeof text && elf_file_read_vaddr(f, vaddr, text, len) && !memcmp(text, name, len);
}

void py_stripped_types(const struct elf_file *f, const struct elf_dynamic *d, uint64_t header_bytes, struct py_stripped_type *types,
                       uint32_t count)
{
    struct candidates c = {0};
    struct elf_section part = {0};
    uint64_t budget = SCAN_MAX;
    bool twice[8] = {false}, ok = count <= 8;

    for (uint32_t t = 0; t < count; t++)
        types[t].vaddr = 0;
    while (ok && next_part(f, true, &budget, &part))
        ok = scan_sizes(f, &part.header, types, count, &c);
    if (ok && c.list.count) {
        qsort(c.list.data, c.list.count, sizeof *c.list.data, compare_candidates);
        relocate(f, d, &c);
    }
    for (size_t i = 0; ok && i < c.list.count; i++) {
        const struct candidate *at = &c.list.data[i];
        struct py_stripped_type *type = &types[at->type];
        if (at->vaddr < header_bytes || !is_name(f, at->value, type->name) || type->vaddr == at->vaddr - header_bytes)
            continue;
        twice[at->type] |= type->vaddr != 0;
        type->vaddr = at->vaddr - header_bytes;
    }
    for (uint32_t t = 0; ok && t < count; t++)
        types[t].vaddr = twice[t] ? 0 : types[t].vaddr;
    VEC_DEINIT(&c.list);
}
