/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of the segments first, then of the sections; without a build ID all of an ELF file is hashed. */
#include "formats/elf/identity.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/base/vec.h"
#include "formats/elf/bounds.h"

enum { NOTES_MAX = 1 << 20 /* bytes; real files have some kilobytes. A bound, since many headers may point to the same notes */ };

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

/* Leaves `out` without an identity when the file cannot be read to its end. */
static struct error *hash_contents(const struct elf_file *f, struct elf_identity *out)
{
    static const size_t chunk = 1 << 16;
    XXH3_state_t *state = XXH3_createState();
    uint8_t *buffer = malloc(chunk);
    bool ok = true;

    if (!state || !buffer) {
        free(buffer);
        XXH3_freeState(state);
        return error_no_memory();
    }
    XXH3_128bits_reset(state);
    for (uint64_t at = 0; ok && at < f->len_bytes; at += chunk) {
        size_t len = f->len_bytes - at < chunk ? (size_t)(f->len_bytes - at) : chunk;
        ok = elf_file_read_at(f, at, buffer, len);
        if (ok)
            XXH3_128bits_update(state, buffer, len);
    }
    if (ok) {
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
        out->id_kind = ELF_ID_CONTENT_HASH;
        out->build_id_len = sizeof canonical.digest;
        memcpy(out->build_id, canonical.digest, sizeof canonical.digest);
    }
    free(buffer);
    XXH3_freeState(state);
    return NULL;
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
    if (out->build_id_len || !f->is_elf || f->image || f->len_bytes > ELF_HASHED_BYTES_MAX)
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
