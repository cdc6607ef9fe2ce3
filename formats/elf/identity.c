/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of the segments first, then of the sections; without a build ID an ELF file is hashed, all of it or parts. */
#include "formats/elf/identity.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/base/sha256.h"
#include "formats/base/vec.h"
#include "formats/elf/bounds.h"

enum {
    NOTES_MAX = 1 << 20, /* bytes; real files have some kilobytes. A bound, since many headers may point to the same notes */
    /* Of a hash of parts, as docs/trace-format.md has it. */
    PIECE_BYTES = 16 << 10,
    PIECES = 256,
    HTLHASH_PART_BYTES = 4096,
};

const char *elf_id_kind_text(uint32_t id_kind)
{
    return id_kind == ELF_ID_CONTENT_HASH ? "content hash" : id_kind == ELF_ID_PARTS_HASH ? "hash of parts" : "build ID";
}

void elf_identity_deinit(struct elf_identity *id)
{
    VEC_DEINIT(&id->segments);
    *id = (struct elf_identity){0};
}

struct error *elf_identity_copy(const struct elf_identity *from, struct elf_identity *to)
{
    *to = *from;
    to->segments = (struct elf_segments){0};
    for (size_t i = 0; i < from->segments.count; i++) {
        if (!VEC_PUSH(&to->segments, from->segments.data[i]))
            return error_no_memory();
    }
    return NULL;
}

bool elf_identity_is(const struct elf_identity *id, uint32_t kind, const uint8_t *bytes, uint32_t len_bytes)
{
    return len_bytes && id->id_kind == kind && id->build_id_len == len_bytes && !memcmp(id->build_id, bytes, len_bytes);
}

static uint64_t align_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}

/* Names and descriptors are padded to `align` bytes, 8 in notes of GNU properties and 4 in all others. */
static bool take_build_id(struct elf_identity *out, struct bytes notes, uint64_t align)
{
    while (bytes_left(&notes)) {
        uint32_t name_len = bytes_u32(&notes), desc_len = bytes_u32(&notes), type = bytes_u32(&notes);
        const uint8_t *name = bytes_take(&notes, name_len);
        bytes_seek(&notes, align_up(bytes_offset(&notes), align));
        const uint8_t *desc = bytes_take(&notes, desc_len);
        if (!notes.bad && type == NT_GNU_BUILD_ID && name_len == sizeof "GNU" && !memcmp(name, "GNU", sizeof "GNU") &&
            desc_len && desc_len <= ELF_BUILD_ID_MAX) {
            out->id_kind = ELF_ID_BUILD_ID;
            out->build_id_len = desc_len;
            memcpy(out->build_id, desc, desc_len);
            return true;
        }
        /* The last one need not be padded. */
        uint64_t next = align_up(bytes_offset(&notes), align);
        if (next >= (uint64_t)(notes.end - notes.start))
            return false;
        bytes_seek(&notes, next);
    }
    return false;
}

static void find_build_id(const struct elf_file *f, struct elf_identity *out)
{
    uint64_t notes_left = NOTES_MAX;
    struct elf_section s = {0};

    for (size_t i = 0; i < f->program_header_count && !out->build_id_len; i++) {
        const Elf64_Phdr *p = &f->program_headers[i];
        if (p->p_type != PT_NOTE || !elf_take_budget(&notes_left, p->p_filesz))
            continue;
        const uint8_t *notes = elf_file_take(f, p->p_offset, p->p_filesz);
        if (notes)
            take_build_id(out, bytes_of(notes, p->p_filesz), p->p_align == 8 ? 8 : 4);
    }
    /* A debug file keeps its notes in sections; the program headers may point nowhere. */
    while (!out->build_id_len && elf_file_next_section(f, &s)) {
        if (s.header.sh_type == SHT_NOTE && elf_take_budget(&notes_left, s.header.sh_size))
            take_build_id(out, elf_section_bytes(f, &s), s.header.sh_addralign == 8 ? 8 : 4);
    }
}

/* A hash that is being made, of bytes of a file. */
struct hashing {
    const struct elf_file *f;
    XXH3_state_t *state;
    uint8_t *buffer;
    bool failed; /* the file does not have the bytes, or it is time to stop */
};
enum { BUFFER_BYTES = 1 << 16 };

static void add_range(struct hashing *h, uint64_t at, uint64_t len_bytes)
{
    for (uint64_t end = at + len_bytes; at < end && !h->failed;) {
        size_t len = end - at < BUFFER_BYTES ? (size_t)(end - at) : BUFFER_BYTES;
        h->failed = !elf_file_read_at(h->f, at, h->buffer, len);
        if (!h->failed)
            XXH3_128bits_update(h->state, h->buffer, len);
        at += len;
    }
}

/* All of a range, or of a long one the pieces: one at its end, the others from its start on at the same distance. */
static void add_pieces(struct hashing *h, uint64_t at, uint64_t len_bytes)
{
    if (len_bytes <= (uint64_t)PIECES * PIECE_BYTES) {
        add_range(h, at, len_bytes);
        return;
    }
    uint64_t last = len_bytes - PIECE_BYTES, distance = last / (PIECES - 1);
    for (uint64_t i = 0; i < PIECES - 1; i++)
        add_range(h, at + i * distance, PIECE_BYTES);
    add_range(h, at + last, PIECE_BYTES);
}

static void add_section(struct hashing *h, const Elf64_Shdr *s)
{
    if (s->sh_offset <= h->f->len_bytes && s->sh_size <= h->f->len_bytes - s->sh_offset)
        add_pieces(h, s->sh_offset, s->sh_size);
}

/* The first table of symbols of that type, and its strings. */
static void add_symbols(struct hashing *h, uint32_t type)
{
    const struct elf_file *f = h->f;

    for (size_t i = 1; i < f->section_count; i++) {
        const Elf64_Shdr *s = &f->sections[i];
        if (s->sh_type != type)
            continue;
        add_section(h, s);
        if (s->sh_link < f->section_count && f->sections[s->sh_link].sh_type == SHT_STRTAB)
            add_section(h, &f->sections[s->sh_link]);
        return;
    }
}

static void add_parts(struct hashing *h)
{
    const struct elf_file *f = h->f;
    uint8_t size[8];

    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)(f->len_bytes >> (8 * i));
    XXH3_128bits_update(h->state, size, sizeof size);
    add_pieces(h, 0, f->len_bytes);
    XXH3_128bits_update(h->state, f->sections, f->section_count * sizeof *f->sections);
    add_symbols(h, SHT_SYMTAB);
    add_symbols(h, SHT_DYNSYM);
}

/* Leaves `out` without an identity when the file cannot be read to its end. */
static struct error *hash_contents(const struct elf_file *f, struct elf_identity *out)
{
    struct hashing h = {.f = f, .state = XXH3_createState(), .buffer = malloc(BUFFER_BYTES)};
    bool large = f->len_bytes > ELF_HASHED_BYTES_MAX, made = h.state && h.buffer;

    if (made) {
        XXH3_128bits_reset(h.state);
        if (large)
            add_parts(&h);
        else
            add_range(&h, 0, f->len_bytes);
    }
    if (made && !h.failed) {
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(h.state));
        out->id_kind = large ? ELF_ID_PARTS_HASH : ELF_ID_CONTENT_HASH;
        out->build_id_len = sizeof canonical.digest;
        memcpy(out->build_id, canonical.digest, sizeof canonical.digest);
    }
    free(h.buffer);
    XXH3_freeState(h.state);
    return made ? NULL : error_no_memory();
}

uint64_t elf_identity_hashed_bytes(uint32_t kind, uint64_t file_size)
{
    return kind == ELF_ID_CONTENT_HASH ? file_size : kind == ELF_ID_PARTS_HASH ? ELF_PARTS_BYTES_MAX : 0;
}

void elf_identity_add_htlhash(const struct elf_file *f, struct elf_identity *out)
{
    size_t part = f->len_bytes < HTLHASH_PART_BYTES ? (size_t)f->len_bytes : HTLHASH_PART_BYTES;
    uint8_t bytes[2 * HTLHASH_PART_BYTES + 8], hash[SHA256_BYTES];

    out->htlhash_len = 0;
    if (!elf_file_read_at(f, 0, bytes, part) || !elf_file_read_at(f, f->len_bytes - part, bytes + part, part))
        return;
    for (unsigned i = 0; i < 8; i++)
        bytes[2 * part + i] = (uint8_t)(f->len_bytes >> (56 - 8 * i));
    sha256(bytes, 2 * part + 8, hash);
    memcpy(out->htlhash, hash, sizeof out->htlhash);
    out->htlhash_len = sizeof out->htlhash;
}

struct error *elf_identity_of_headers(const struct elf_file *f, struct elf_identity *out)
{
    *out = (struct elf_identity){.is_elf = f->is_elf, .file_size = f->len_bytes};
    for (size_t i = 0; i < f->segments.count; i++) {
        if (!VEC_PUSH(&out->segments, f->segments.data[i]))
            return error_no_memory();
    }
    find_build_id(f, out);
    return NULL;
}

struct error *elf_identity_of(const struct elf_file *f, struct elf_identity *out)
{
    TRY(elf_identity_of_headers(f, out));
    if (out->build_id_len || !f->is_elf || f->image)
        return NULL;
    return hash_contents(f, out);
}

struct error *elf_identity_read(int fd, const char *path, struct elf_identity *out)
{
    struct elf_file f;

    *out = (struct elf_identity){0};
    struct error *err = elf_file_open(fd, path, NULL, &f);
    if (!err)
        err = elf_identity_of(&f, out);
    elf_file_close(&f);
    return err;
}

struct error *elf_identity_read_memory(const void *image, uint64_t len_bytes, const char *path,
                                       struct elf_identity *out)
{
    struct elf_file f;

    *out = (struct elf_identity){0};
    struct error *err = elf_file_open_memory(image, len_bytes, path, &f);
    if (!err)
        err = elf_identity_of(&f, out);
    elf_file_close(&f);
    return err;
}
