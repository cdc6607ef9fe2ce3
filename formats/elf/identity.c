/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of the segments first, then of the sections; without a build ID all of the file is hashed. */
#include "formats/elf/identity.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

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

static bool take_build_id(struct elf_identity *out, Elf_Data *data)
{
    GElf_Nhdr note;
    size_t name_at, desc_at;

    for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0;) {
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || !note.n_descsz ||
            note.n_descsz > ELF_BUILD_ID_MAX || memcmp((char *)data->d_buf + name_at, "GNU", 4))
            continue;
        out->id_kind = ELF_ID_BUILD_ID;
        out->build_id_len = note.n_descsz;
        memcpy(out->build_id, (char *)data->d_buf + desc_at, note.n_descsz);
        return true;
    }
    return false;
}

static void find_build_id(const struct elf_file *f, struct elf_identity *out)
{
    uint64_t notes_left = NOTES_MAX;
    struct elf_section s = {0};
    GElf_Phdr p;

    for (size_t i = 0; i < f->program_header_count && !out->build_id_len; i++) {
        if (gelf_getphdr(f->handle, (int)i, &p) && p.p_type == PT_NOTE && elf_take_budget(&notes_left, p.p_filesz))
            take_build_id(out, elf_getdata_rawchunk(f->handle, (int64_t)p.p_offset, p.p_filesz,
                                                    p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
    }
    /* A debug file keeps its notes in sections; the program headers may point nowhere. */
    while (!out->build_id_len && elf_file_next_section(f, &s)) {
        if (s.header.sh_type == SHT_NOTE && elf_take_budget(&notes_left, s.header.sh_size))
            take_build_id(out, elf_getdata(s.scn, NULL));
    }
}

static struct error *hash_contents(int fd, const char *path, struct elf_identity *out)
{
    static const size_t chunk = 1 << 16;
    XXH3_state_t *state = XXH3_createState();
    uint8_t *buffer = malloc(chunk);
    struct error *err = NULL;
    off_t at = 0;

    if (!state || !buffer) {
        err = error_no_memory();
        goto out;
    }
    XXH3_128bits_reset(state);
    for (;;) {
        ssize_t n = pread(fd, buffer, chunk, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err = error_file(errno, path, "cannot be read");
            goto out;
        }
        if (!n)
            break;
        XXH3_128bits_update(state, buffer, (size_t)n);
        at += n;
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    out->id_kind = ELF_ID_CONTENT_HASH;
    out->build_id_len = sizeof canonical.digest;
    memcpy(out->build_id, canonical.digest, sizeof canonical.digest);
out:
    free(buffer);
    XXH3_freeState(state);
    return err;
}

struct error *elf_identity_of_headers(const struct elf_file *f, struct elf_identity *out)
{
    *out = (struct elf_identity){.is_elf = f->handle != NULL, .file_size = f->len_bytes};
    for (size_t i = 0; i < f->segments.count; i++) {
        if (!VEC_PUSH(&out->segments, f->segments.data[i]))
            return error_no_memory();
    }
    if (f->handle)
        find_build_id(f, out);
    return NULL;
}

struct error *elf_identity_of(const struct elf_file *f, struct elf_identity *out)
{
    TRY(elf_identity_of_headers(f, out));
    return out->build_id_len || f->image ? NULL : hash_contents(f->fd, f->path, out);
}

struct error *elf_identity_read(int fd, const char *path, struct elf_identity *out)
{
    struct elf_file f;

    *out = (struct elf_identity){0};
    struct error *err = elf_file_open(fd, path, &f);
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
