/* SPDX-License-Identifier: Apache-2.0 */
/* libelf for the headers, pread for everything else. */
#include "formats/elf/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/vec.h"
#include "formats/elf/bounds.h"

static struct error *read_program_headers(struct elf_file *f)
{
    GElf_Phdr p;

    for (size_t i = 0; i < f->program_header_count && gelf_getphdr(f->handle, (int)i, &p); i++) {
        switch (p.p_type) {
        case PT_LOAD: {
            struct elf_segment s = {p.p_vaddr, p.p_offset, p.p_filesz, p.p_memsz, p.p_flags & (PF_X | PF_W | PF_R)};
            uint64_t end;
            if (f->segments.count < ELF_SEGMENTS_MAX && p.p_offset <= INT64_MAX && p.p_filesz <= INT64_MAX &&
                !__builtin_add_overflow(p.p_vaddr, p.p_filesz, &end) && !VEC_PUSH(&f->segments, s))
                return error_no_memory();
            break;
        }
        case PT_TLS:
            f->tls = p;
            break;
        case PT_DYNAMIC:
            f->dynamic = p;
            break;
        case PT_GNU_EH_FRAME:
            f->eh_frame_hdr = p;
            break;
        case PT_INTERP:
            f->is_executable = true; /* position-independent: ET_DYN with an interpreter */
            break;
        default:
            break;
        }
    }
    return NULL;
}

static void find_section_names(struct elf_file *f)
{
    size_t count, names;
    GElf_Shdr header;

    f->has_sections = !elf_getshdrnum(f->handle, &count) && count && count <= ELF_SECTIONS_MAX;
    if (f->has_sections && !elf_getshdrstrndx(f->handle, &names) && gelf_getshdr(elf_getscn(f->handle, names), &header) &&
        header.sh_size <= ELF_SECTION_NAMES_MAX)
        f->section_names = names;
}

/* Fills `f` from libelf's handle, which it owns from here on. */
static struct error *begin(struct elf_file *f, Elf *elf)
{
    if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || !gelf_getehdr(elf, &f->header) ||
        f->header.e_ident[EI_DATA] != ELFDATA2LSB || elf_getphdrnum(elf, &f->program_header_count) ||
        f->program_header_count > ELF_PROGRAM_HEADERS_MAX) {
        elf_end(elf);
        f->header = (GElf_Ehdr){0};
        f->program_header_count = 0;
        return NULL;
    }
    f->handle = elf;
    f->is_executable = f->header.e_type == ET_EXEC;
    find_section_names(f);
    return read_program_headers(f);
}

struct error *elf_file_open(int fd, const char *path, struct elf_file *out)
{
    struct stat st;
    char magic[SELFMAG];

    *out = (struct elf_file){.path = path, .fd = fd};
    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    out->len_bytes = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode) || !elf_file_read_at(out, 0, magic, sizeof magic) || memcmp(magic, ELFMAG, SELFMAG))
        return NULL;
    elf_version(EV_CURRENT);
    return begin(out, elf_begin(fd, ELF_C_READ, NULL));
}

struct error *elf_file_open_memory(const void *image, uint64_t len_bytes, const char *path, struct elf_file *out)
{
    *out = (struct elf_file){.path = path, .fd = -1, .image = image, .len_bytes = len_bytes};
    elf_version(EV_CURRENT);
    return begin(out, image ? elf_memory((char *)image, len_bytes) : NULL);
}

void elf_file_close(struct elf_file *f)
{
    elf_end(f->handle);
    VEC_DEINIT(&f->segments);
    *f = (struct elf_file){.fd = -1};
}

/* ---- bytes ---- */

bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes)
{
    if (offset > INT64_MAX - len_bytes)
        return false;
    if (f->image) {
        if (offset > f->len_bytes || len_bytes > f->len_bytes - offset)
            return false;
        memcpy(out, f->image + offset, len_bytes);
        return true;
    }
    for (size_t done = 0; done < len_bytes;) {
        ssize_t n = pread(f->fd, (char *)out + done, len_bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

uint64_t elf_file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset)
{
    uint64_t len = elf_vaddr_to_offset(&f->segments, vaddr, offset);

    if (!len || *offset >= f->len_bytes)
        return 0;
    return len < f->len_bytes - *offset ? len : f->len_bytes - *offset;
}

bool elf_file_read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes)
{
    uint64_t offset;

    return elf_file_bytes_at(f, vaddr, &offset) >= len_bytes && elf_file_read_at(f, offset, out, len_bytes);
}

const uint8_t *elf_file_take(const struct elf_file *f, uint64_t offset, uint64_t len_bytes)
{
    if (!len_bytes || offset > f->len_bytes || len_bytes > f->len_bytes - offset)
        return NULL;
    if (f->image)
        return f->image + offset;
    Elf_Data *data = elf_getdata_rawchunk(f->handle, (int64_t)offset, len_bytes, ELF_T_BYTE);
    return data && data->d_size == len_bytes ? data->d_buf : NULL;
}

/* ---- sections ---- */

bool elf_file_next_section(const struct elf_file *f, struct elf_section *s)
{
    if (!f->has_sections)
        return false;
    while ((s->scn = elf_nextscn(f->handle, s->scn))) {
        if (!gelf_getshdr(s->scn, &s->header))
            continue;
        s->name = f->section_names ? elf_name(f->handle, f->section_names, s->header.sh_name) : NULL;
        return true;
    }
    return false;
}

bool elf_file_find_section(const struct elf_file *f, const char *name, struct elf_section *out)
{
    *out = (struct elf_section){0};
    while (elf_file_next_section(f, out)) {
        if (out->name && !strcmp(out->name, name) && out->header.sh_type != SHT_NOBITS && out->header.sh_size)
            return true;
    }
    return false;
}

struct bytes elf_section_bytes(const struct elf_section *s)
{
    const Elf_Data *data = elf_rawdata(s->scn, NULL);

    return data && data->d_buf ? bytes_of(data->d_buf, data->d_size) : (struct bytes){.bad = true};
}
