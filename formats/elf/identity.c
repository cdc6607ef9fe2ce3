/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/elf/identity.h"

#define XXH_INLINE_ALL
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/elf/bounds.h"

enum {
    SEGMENTS_MAX = 4096,
    NOTES_MAX = 1 << 20, /* bytes; real ones have some kilobytes, and many headers may name the same */
};

void elf_identity_deinit(struct elf_identity *id)
{
    VEC_DEINIT(&id->segments);
    *id = (struct elf_identity){0};
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

/* The build ID and the segments of an opened ELF. */
static struct error *read_elf(Elf *elf, struct elf_identity *out)
{
    uint64_t notes_left = NOTES_MAX;
    size_t count = 0;
    GElf_Ehdr header;

    if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || !gelf_getehdr(elf, &header) ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || elf_getphdrnum(elf, &count) || count > SEGMENTS_MAX)
        return NULL;
    out->is_elf = true;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(elf, (int)i, &p))
            continue;
        if (p.p_type == PT_LOAD) {
            struct elf_segment s = {p.p_vaddr, p.p_offset, p.p_filesz, p.p_memsz, p.p_flags & 7};
            if (!VEC_PUSH(&out->segments, s))
                return error_no_memory();
        } else if (p.p_type == PT_NOTE && !out->build_id_len && elf_take_budget(&notes_left, p.p_filesz)) {
            take_build_id(out, elf_getdata_rawchunk(elf, (int64_t)p.p_offset, p.p_filesz,
                                                    p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
        }
    }
    /* A debug file keeps its notes in sections; the program headers may point nowhere. */
    for (Elf_Scn *scn = NULL; !out->build_id_len && (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr s;
        if (gelf_getshdr(scn, &s) && s.sh_type == SHT_NOTE && elf_take_budget(&notes_left, s.sh_size))
            take_build_id(out, elf_getdata(scn, NULL));
    }
    return NULL;
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

struct error *elf_identity_read(int fd, const char *path, struct elf_identity *out)
{
    struct stat st;

    *out = (struct elf_identity){0};
    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    out->file_size = (uint64_t)st.st_size;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    struct error *err = read_elf(elf, out);
    elf_end(elf);
    if (!err && !out->build_id_len)
        err = hash_contents(fd, path, out);
    return err;
}

struct error *elf_identity_read_memory(const void *image, uint64_t len_bytes, const char *path,
                                       struct elf_identity *out)
{
    (void)path;
    *out = (struct elf_identity){.file_size = len_bytes};
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)image, len_bytes);
    struct error *err = read_elf(elf, out);
    elf_end(elf);
    return err;
}

struct error *elf_defines(int fd, const char *path, const char *symbol, bool *defined)
{
    (void)path;
    *defined = false;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!elf)
        return NULL;
    bool seen = false; /* a file has one table of dynamic symbols */
    for (Elf_Scn *scn = NULL; !seen && (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_DYNSYM || !header.sh_entsize)
            continue;
        seen = true;
        Elf_Data *data = elf_getdata(scn, NULL);
        GElf_Sym sym;
        for (size_t i = 0; data && i < header.sh_size / header.sh_entsize && gelf_getsym(data, (int)i, &sym); i++) {
            if (sym.st_shndx == SHN_UNDEF)
                continue;
            const char *name = elf_name(elf, header.sh_link, sym.st_name);
            if (name && !strcmp(name, symbol)) {
                *defined = true;
                break;
            }
        }
    }
    elf_end(elf);
    return NULL;
}
