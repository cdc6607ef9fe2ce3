/* SPDX-License-Identifier: Apache-2.0 */
/* By section headers where the file has them, else by way of PT_GNU_EH_FRAME. */
#include "formats/elf/cfi_file.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/elf/unpack.h"

#define CFI_BYTES_MAX (256ull << 20)
#define HDR_BYTES_MAX (8ull << 20) /* of .eh_frame_hdr that are read of a file */

/* The file's bytes at `vaddr`, up to the segment's end but `limit` at most; NULL: it has none. */
static const uint8_t *take_vaddr(const struct elf_file *f, uint64_t vaddr, uint64_t limit, uint64_t *len_bytes)
{
    uint64_t offset, len = elf_file_bytes_at(f, vaddr, &offset);

    *len_bytes = len < limit ? len : limit;
    return *len_bytes ? elf_file_take(f, offset, *len_bytes) : NULL;
}

bool cfi_find_table(const struct elf_file *f, struct cfi_table *out)
{
    const Elf64_Phdr *hdr = &f->eh_frame_hdr;
    uint64_t limit = f->image ? CFI_BYTES_MAX : HDR_BYTES_MAX, len;

    *out = (struct cfi_table){0};
    const uint8_t *data = take_vaddr(f, hdr->p_vaddr, hdr->p_filesz < limit ? hdr->p_filesz : limit, &len);
    return data && cfi_table_read(data, len, hdr->p_vaddr, out);
}

/* Bytes of the file as a section: of an image in place, of a file through a window. */
static void use_bytes(const struct elf_file *f, uint64_t offset, uint64_t len_bytes, struct cfi_section *out)
{
    out->window = elf_file_window(f, offset, len_bytes);
    out->data = out->window ? out->window->base : f->image ? elf_file_take(f, offset, len_bytes) : NULL;
    out->len_bytes = out->data ? len_bytes : 0;
}

static struct error *use_section(const struct elf_file *f, const struct elf_section *s, bool packed,
                                 struct cfi_section *out)
{
    uint64_t len = s->header.sh_size;
    struct elf_packed in = {0};

    if (packed && len <= CFI_BYTES_MAX) {
        in = elf_packed_read(f, s);
        len = in.type ? in.len_bytes : 0;
    }
    if (len > CFI_BYTES_MAX)
        return error_path(ERROR_LIMIT, f->path, "has %llu bytes of call frame information, and at most %llu are read",
                          (unsigned long long)len, (unsigned long long)CFI_BYTES_MAX);
    if (packed) {
        struct bytes all = elf_unpack(f, &in);
        out->data = all.start;
        out->len_bytes = bytes_left(&all);
    } else {
        use_bytes(f, s->header.sh_offset, len, out);
    }
    out->vaddr = s->header.sh_addr;
    return NULL;
}

struct error *cfi_find_section(const struct elf_file *f, bool debug_frame, struct cfi_section *out)
{
    const char *name = debug_frame ? ".debug_frame" : ".eh_frame";
    struct elf_section s = {0};

    *out = (struct cfi_section){.debug_frame = debug_frame};
    while (!out->data && elf_file_next_section(f, &s)) {
        bool gnu = debug_frame && s.name && !strcmp(s.name, ".zdebug_frame");
        bool packed = gnu || (s.header.sh_flags & SHF_COMPRESSED);
        if (!s.name || s.header.sh_type == SHT_NOBITS || !s.header.sh_size || (!gnu && strcmp(s.name, name)))
            continue;
        /* Sections that are loaded are never packed. */
        if (!packed || debug_frame)
            TRY(use_section(f, &s, packed, out));
    }
    return NULL;
}

/* Without section headers: .eh_frame_hdr, which the loader maps, has the address of .eh_frame and a table of its FDEs. */
static void use_table(struct cfi_file *f)
{
    uint64_t offset;

    if (!cfi_find_table(f->elf, &f->table))
        return;
    uint64_t len = elf_file_bytes_at(f->elf, f->table.eh_frame_vaddr, &offset);
    use_bytes(f->elf, offset, len < CFI_BYTES_MAX ? len : CFI_BYTES_MAX, &f->eh_frame);
    if (!f->eh_frame.data)
        return;
    f->eh_frame.vaddr = f->table.eh_frame_vaddr;
    f->eh_frame.hdr_vaddr = f->table.hdr_vaddr;
    f->by_table = f->table.count;
    if (!f->by_table)
        f->eh_frame.len_bytes = cfi_terminator(&f->eh_frame);
}

bool cfi_file_failed(const struct cfi_file *f)
{
    return (f->eh_frame.window && f->eh_frame.window->failed) || (f->debug_frame.window && f->debug_frame.window->failed);
}

/* Where the code of a segment ends, limited by the file's size; the segment's start if it is not executable. */
static uint64_t code_end(const struct cfi_file *f, const struct elf_segment *s)
{
    if (!(s->flags & PF_X))
        return s->vaddr;
    return s->vaddr + (s->file_size < f->elf->len_bytes ? s->file_size : f->elf->len_bytes);
}

struct error *cfi_file_read(const struct elf_file *elf, struct cfi_file *f)
{
    const Elf64_Ehdr *header = &elf->header;

    *f = (struct cfi_file){.elf = elf, .machine = machine_by_elf(header->e_machine)};
    if (!elf->is_elf || (header->e_type != ET_EXEC && header->e_type != ET_DYN))
        return error_path(ERROR_FORMAT, elf->path, "is not a 64-bit ELF executable or shared library");
    if (!f->machine)
        return error_path(ERROR_UNSUPPORTED, elf->path, "is for ELF machine %u, which is not supported", header->e_machine);
    f->base_vaddr = elf_base_vaddr(&elf->segments, f->machine->page_bytes);
    for (size_t i = 0; i < elf->segments.count; i++) {
        const struct elf_segment *s = &elf->segments.data[i];
        if ((s->flags & PF_X) && code_end(f, s) - f->base_vaddr > UINT32_MAX)
            return error_path(ERROR_LIMIT, elf->path,
                              "has code spread over more than 4 GiB, which an unwind table cannot cover");
    }
    TRY(cfi_find_section(elf, false, &f->eh_frame));
    f->eh_frame.hdr_vaddr = elf->eh_frame_hdr.p_vaddr;
    if (!f->eh_frame.data && elf->eh_frame_hdr.p_filesz)
        use_table(f);
    return cfi_find_section(elf, true, &f->debug_frame);
}

static const struct elf_segment *code_segment(const struct cfi_file *f, uint64_t vaddr)
{
    for (size_t i = 0; i < f->elf->segments.count; i++) {
        const struct elf_segment *s = &f->elf->segments.data[i];
        if (vaddr >= s->vaddr && vaddr < code_end(f, s))
            return s;
    }
    return NULL;
}

bool cfi_file_code(const struct cfi_file *f, uint64_t vaddr, uint64_t *end)
{
    const struct elf_segment *s = code_segment(f, vaddr);

    if (s)
        *end = code_end(f, s);
    return s != NULL;
}

/* Code, through a window that suits ascending addresses; NULL: the file has none. Valid until the next call. */
static const uint8_t *code_bytes(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes)
{
    const struct elf_segment *s = code_segment(f, vaddr);

    if (!s || len_bytes > code_end(f, s) - vaddr || len_bytes > sizeof f->window)
        return NULL;
    uint64_t offset = s->offset + (vaddr - s->vaddr);
    if (offset > f->elf->len_bytes || len_bytes > f->elf->len_bytes - offset)
        return NULL;
    if (f->elf->image)
        return f->elf->image + offset;
    if (offset < f->window_offset || offset + len_bytes > f->window_offset + f->window_len) {
        uint64_t left = f->elf->len_bytes - offset;
        f->window_offset = offset;
        f->window_len = left < sizeof f->window ? left : sizeof f->window;
        if (!elf_file_read_at(f->elf, offset, f->window, f->window_len)) {
            f->window_len = 0;
            return NULL;
        }
    }
    return f->window + (offset - f->window_offset);
}

bool cfi_file_is_padding(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes)
{
    const uint8_t *p = code_bytes(f, vaddr, len_bytes);
    size_t len = 0;

    if (!p)
        return false;
    for (size_t at = 0; at < len_bytes; at += len) {
        len = f->machine->padding_len(p + at, len_bytes - at);
        if (!len)
            return false;
    }
    return true;
}
