/* SPDX-License-Identifier: Apache-2.0 */
/* Headers are copied when the file is opened; everything else is read when it is asked for. */
#include "formats/elf/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/base/vec.h"

/* Memory that lives as long as the file is open. */
struct elf_store {
    VEC(void *) buffers;
    VEC(struct elf_window *) windows;
    uint64_t taken_bytes;   /* by elf_file_take() */
    const char *strings;    /* of section number `strings_of`, which was asked for last; NULL: it has none */
    uint64_t strings_len;
    size_t strings_of;      /* 0: none was asked for yet */
    Elf *handle;
};

/* Memory that is freed when the file is closed; NULL: out of memory. */
static void *store_alloc(struct elf_store *s, size_t len_bytes)
{
    void *p = malloc(len_bytes);

    if (p && VEC_PUSH(&s->buffers, p))
        return p;
    free(p);
    return NULL;
}

/* Copies `count` headers of `size` bytes. NULL: out of memory; *ok is false when the file does not have them. */
static void *copy_headers(const struct elf_file *f, uint64_t offset, size_t count, size_t size, bool *ok)
{
    uint64_t len = count * size;

    *ok = count && offset <= f->len_bytes && len <= f->len_bytes - offset;
    void *to = *ok ? store_alloc(f->store, len) : NULL;
    *ok = *ok && (!to || elf_file_read_at(f, offset, to, len));
    return to;
}

static struct error *use_program_header(struct elf_file *f, const Elf64_Phdr *p)
{
    switch (p->p_type) {
    case PT_LOAD: {
        struct elf_segment s = {p->p_vaddr, p->p_offset, p->p_filesz, p->p_memsz, p->p_flags & (PF_X | PF_W | PF_R)};
        uint64_t end;
        if (f->segments.count < ELF_SEGMENTS_MAX && p->p_offset <= INT64_MAX && p->p_filesz <= INT64_MAX &&
            !__builtin_add_overflow(p->p_vaddr, p->p_filesz, &end) && !VEC_PUSH(&f->segments, s))
            return error_no_memory();
        break;
    }
    case PT_TLS:
        f->tls = *p;
        break;
    case PT_DYNAMIC:
        f->dynamic = *p;
        break;
    case PT_GNU_EH_FRAME:
        f->eh_frame_hdr = *p;
        break;
    case PT_INTERP:
        f->is_executable = true; /* position-independent: ET_DYN with an interpreter */
        break;
    default:
        break;
    }
    return NULL;
}

static struct error *read_program_headers(struct elf_file *f)
{
    const Elf64_Ehdr *h = &f->header;
    bool ok;

    if (!h->e_phnum || h->e_phentsize != sizeof(Elf64_Phdr))
        return NULL;
    const Elf64_Phdr *headers = copy_headers(f, h->e_phoff, h->e_phnum, sizeof *headers, &ok);
    if (!ok)
        return NULL;
    if (!headers)
        return error_no_memory();
    f->program_headers = headers;
    f->program_header_count = h->e_phnum;
    for (size_t i = 0; i < f->program_header_count; i++)
        TRY(use_program_header(f, &headers[i]));
    return NULL;
}

/* Numbers that do not fit into the header are in the first section's (ELF, "Extended section headers"). */
static struct error *read_sections(struct elf_file *f)
{
    const Elf64_Ehdr *h = &f->header;
    Elf64_Shdr first;
    bool ok;

    if (!h->e_shoff || h->e_shentsize != sizeof first || !elf_file_read_at(f, h->e_shoff, &first, sizeof first))
        return NULL;
    uint64_t count = h->e_shnum ? h->e_shnum : first.sh_size;
    size_t names = h->e_shstrndx == SHN_XINDEX ? first.sh_link : h->e_shstrndx;
    if (count > ELF_SECTIONS_MAX)
        return NULL;
    const Elf64_Shdr *headers = copy_headers(f, h->e_shoff, count, sizeof first, &ok);
    if (!ok)
        return NULL;
    if (!headers)
        return error_no_memory();
    f->sections = headers;
    f->section_count = count;
    if (names < count && headers[names].sh_type == SHT_STRTAB && headers[names].sh_size <= ELF_SECTION_NAMES_MAX)
        f->section_names = names;
    return NULL;
}

/* Fills the rest of `f`. */
static struct error *begin(struct elf_file *f)
{
    Elf64_Ehdr *h = &f->header;

    f->store = calloc(1, sizeof *f->store);
    if (!f->store)
        return error_no_memory();
    if (!elf_file_read_at(f, 0, h, sizeof *h) || memcmp(h->e_ident, ELFMAG, SELFMAG) ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_ident[EI_VERSION] != EV_CURRENT || h->e_phnum > ELF_PROGRAM_HEADERS_MAX) {
        *h = (Elf64_Ehdr){0};
        return NULL;
    }
    f->is_elf = true;
    f->is_executable = h->e_type == ET_EXEC;
    TRY(read_program_headers(f));
    return read_sections(f);
}

struct error *elf_file_open(int fd, const char *path, const struct elf_stop *stop, struct elf_file *out)
{
    struct stat st;

    *out = (struct elf_file){.path = path, .fd = fd, .stop = stop};
    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    out->len_bytes = (uint64_t)st.st_size;
    return S_ISREG(st.st_mode) ? begin(out) : NULL;
}

struct error *elf_file_open_memory(const void *image, uint64_t len_bytes, const char *path, struct elf_file *out)
{
    *out = (struct elf_file){.path = path, .fd = -1, .image = image, .len_bytes = len_bytes};
    return image ? begin(out) : NULL;
}

void elf_file_close(struct elf_file *f)
{
    struct elf_store *s = f->store;

    if (s) {
        elf_end(s->handle);
        for (size_t i = 0; i < s->windows.count; i++)
            elf_window_destroy(s->windows.data[i]);
        for (size_t i = 0; i < s->buffers.count; i++)
            free(s->buffers.data[i]);
        VEC_DEINIT(&s->windows);
        VEC_DEINIT(&s->buffers);
        free(s);
    }
    VEC_DEINIT(&f->segments);
    *f = (struct elf_file){.fd = -1};
}

/* libelf allocates an array of all sections, so it does not see a file with too many. */
Elf *elf_file_handle(const struct elf_file *f)
{
    if (!f->is_elf || !f->image || (f->header.e_shoff && !f->sections))
        return NULL;
    if (!f->store->handle) {
        elf_version(EV_CURRENT);
        f->store->handle = elf_memory((char *)f->image, f->len_bytes);
    }
    return f->store->handle;
}

/* ---- bytes ---- */

bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes)
{
    if (!f->image)
        return elf_read(f->fd, f->stop, offset, out, len_bytes);
    if (offset > f->len_bytes || len_bytes > f->len_bytes - offset)
        return false;
    memcpy(out, f->image + offset, len_bytes);
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

void *elf_file_alloc(const struct elf_file *f, uint64_t len_bytes)
{
    if (!f->store || (!f->image && len_bytes > ELF_TAKE_MAX - f->store->taken_bytes))
        return NULL;
    void *p = store_alloc(f->store, len_bytes);
    if (p && !f->image)
        f->store->taken_bytes += len_bytes;
    return p;
}

const uint8_t *elf_file_take(const struct elf_file *f, uint64_t offset, uint64_t len_bytes)
{
    if (!len_bytes || offset > f->len_bytes || len_bytes > f->len_bytes - offset)
        return NULL;
    if (f->image)
        return f->image + offset;
    uint8_t *bytes = elf_file_alloc(f, len_bytes);
    return bytes && elf_file_read_at(f, offset, bytes, len_bytes) ? bytes : NULL;
}

struct elf_window *elf_file_window(const struct elf_file *f, uint64_t offset, uint64_t len_bytes)
{
    if (f->image || !f->store || !len_bytes || offset > f->len_bytes || len_bytes > f->len_bytes - offset)
        return NULL;
    struct elf_window *w = elf_window_create(f->fd, f->stop, offset, len_bytes);
    if (w && !VEC_PUSH(&f->store->windows, w)) {
        elf_window_destroy(w);
        w = NULL;
    }
    return w;
}

/* ---- sections ---- */

bool elf_file_next_section(const struct elf_file *f, struct elf_section *s)
{
    if (s->index + 1 >= f->section_count)
        return false;
    s->index++;
    s->header = f->sections[s->index];
    s->name = f->section_names ? elf_file_string(f, f->section_names, s->header.sh_name) : NULL;
    return true;
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

struct bytes elf_section_bytes(const struct elf_file *f, const struct elf_section *s)
{
    const uint8_t *data =
        s->header.sh_type == SHT_NOBITS ? NULL : elf_file_take(f, s->header.sh_offset, s->header.sh_size);

    return data ? bytes_of(data, s->header.sh_size) : (struct bytes){.bad = true};
}

/* The table is kept: many strings are asked for of one. */
static void find_strings(const struct elf_file *f, size_t table)
{
    const struct elf_section section = {.index = table, .header = f->sections[table]};
    struct bytes b = section.header.sh_type == SHT_STRTAB ? elf_section_bytes(f, &section) : (struct bytes){.bad = true};

    f->store->strings_of = table;
    f->store->strings_len = bytes_left(&b);
    f->store->strings = f->store->strings_len && !b.end[-1] ? (const char *)b.start : NULL;
}

const char *elf_file_string(const struct elf_file *f, size_t table, uint64_t at)
{
    if (!table || table >= f->section_count)
        return NULL;
    if (f->store->strings_of != table)
        find_strings(f, table);
    return f->store->strings && at < f->store->strings_len ? f->store->strings + at : NULL;
}
