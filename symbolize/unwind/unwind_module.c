/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the FDE of an address in a file.
 *
 * A linked file brings a sorted table of its FDEs in .eh_frame_hdr, which costs
 * nothing to open and a binary search to use. Files without one (linked with
 * --no-eh-frame-hdr), and .debug_frame, which never has one, are read through once
 * at the first address that asks, into a table of our own.
 */
#include "symbolize/unwind/unwind_module.h"

#include <elf.h>
#include <gelf.h>
#include <string.h>

#include "formats/elf/bounds.h"
#include "symbolize/binary/binaries.h"

/* The bytes of the file from a virtual address to the end of its segment. */
static const uint8_t *bytes_at(const struct unwind_module *m, uint64_t vaddr, uint64_t *len_bytes, uint32_t *flags)
{
    for (size_t i = 0; i < m->identity.segments.count; i++) {
        const struct elf_segment *s = &m->identity.segments.data[i];
        if (vaddr < s->vaddr || vaddr - s->vaddr >= s->file_size || s->offset > m->image.len_bytes)
            continue;
        uint64_t into = vaddr - s->vaddr, have = m->image.len_bytes - s->offset;
        uint64_t size = s->file_size < have ? s->file_size : have;
        if (into >= size)
            continue;
        *len_bytes = size - into;
        if (flags)
            *flags = s->flags;
        return m->image.data + s->offset + into;
    }
    return NULL;
}

/* A section by name, decompressed if need be. */
static bool find_section(Elf *elf, const char *wanted, GElf_Shdr *header, Elf_Data **data)
{
    size_t names;

    if (!elf || elf_getshdrstrndx(elf, &names))
        return false;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        const char *name;
        if (!gelf_getshdr(scn, header) || !(name = elf_name(elf, names, header->sh_name)) || strcmp(name, wanted) ||
            header->sh_type == SHT_NOBITS)
            continue;
        if ((header->sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
            return false;
        *data = elf_rawdata(scn, NULL);
        return *data && (*data)->d_buf && (*data)->d_size;
    }
    return false;
}

static void find_eh_frame(struct unwind_module *m)
{
    uint64_t len, hdr_vaddr = 0;
    const uint8_t *p;
    GElf_Shdr header;
    GElf_Phdr segment;
    Elf_Data *data;
    size_t count = 0;

    elf_getphdrnum(m->elf, &count);
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(m->elf, (int)i, &segment) || segment.p_type != PT_GNU_EH_FRAME)
            continue;
        p = bytes_at(m, segment.p_vaddr, &len, NULL);
        if (p && cfi_table_read(p, len < segment.p_memsz ? len : segment.p_memsz, segment.p_vaddr, &m->table)) {
            hdr_vaddr = segment.p_vaddr;
            p = bytes_at(m, m->table.eh_frame_vaddr, &len, NULL);
            m->has_eh_frame = p != NULL;
            m->eh_frame = (struct cfi_section){p, p ? len : 0, m->table.eh_frame_vaddr, hdr_vaddr, false};
        }
        break;
    }
    /* The section says where it ends, which the segment does not; and it may be all there is. */
    if (find_section(m->elf, ".eh_frame", &header, &data) && (header.sh_flags & SHF_ALLOC)) {
        if (!m->has_eh_frame || header.sh_addr == m->eh_frame.vaddr)
            m->eh_frame = (struct cfi_section){data->d_buf, data->d_size, header.sh_addr, hdr_vaddr, false};
        m->has_eh_frame = true;
    }
    if (!m->has_eh_frame)
        m->table.count = 0;
}

static void read_image(struct unwind_module *m)
{
    GElf_Ehdr header;
    GElf_Shdr section;
    Elf_Data *data;

    elf_version(EV_CURRENT);
    m->elf = elf_memory((char *)m->image.data, m->image.len_bytes);
    if (!m->identity.is_elf || !gelf_getehdr(m->elf, &header) || header.e_machine != EM_X86_64) {
        /* Nothing of it can be unwound; reading its memory would be a guess as well. */
        elf_identity_deinit(&m->identity);
        return;
    }
    m->entry = header.e_entry;
    find_eh_frame(m);
    if (m->debug_image.data)
        m->debug_elf = elf_memory((char *)m->debug_image.data, m->debug_image.len_bytes);
    if (find_section(m->debug_elf, ".debug_frame", &section, &data) ||
        find_section(m->elf, ".debug_frame", &section, &data))
        m->debug_frame = (struct cfi_section){data->d_buf, data->d_size, 0, 0, true};
}

struct error *unwind_module_open_files(const struct binary_files *files, struct unwind_module **out)
{
    const char *path = files->binary, *debug = files->debug;
    struct unwind_module *m = calloc(1, sizeof *m);
    struct error *err = NULL;

    if (!m)
        return error_no_memory();
    if (path) {
        err = image_map_open(files->binary_fd, path, &m->image);
        /* Without a debug file something may be missing; that shows where it is. */
        if (!err && debug && strcmp(debug, path))
            error_destroy(image_map_open(files->debug_fd, debug, &m->debug_image));
        if (!err && m->image.data)
            err = elf_identity_read_memory(m->image.data, m->image.len_bytes, path, &m->identity);
        if (!err && m->image.data)
            read_image(m);
    }
    if (err) {
        unwind_module_close(m);
        return err;
    }
    *out = m;
    return NULL;
}

struct error *unwind_module_open(const char *path, const char *debug, struct unwind_module **out)
{
    /* Only read. */
    const struct binary_files files = {.binary = (char *)path, .debug = (char *)debug};

    return unwind_module_open_files(&files, out);
}

struct error *unwind_module_open_memory(const void *image, uint64_t len_bytes, struct unwind_module **out)
{
    struct unwind_module *m = calloc(1, sizeof *m);

    if (!m)
        return error_no_memory();
    struct error *err = image_copy(image, len_bytes, &m->image);
    if (!err)
        err = elf_identity_read_memory(m->image.data, len_bytes, "[vdso]", &m->identity);
    if (err) {
        unwind_module_close(m);
        return err;
    }
    if (m->image.data)
        read_image(m);
    *out = m;
    return NULL;
}

void unwind_module_close(struct unwind_module *m)
{
    if (!m)
        return;
    elf_end(m->elf);
    elf_end(m->debug_elf);
    image_unmap(&m->image);
    image_unmap(&m->debug_image);
    elf_identity_deinit(&m->identity);
    VEC_DEINIT(&m->eh_frame_index.rows);
    VEC_DEINIT(&m->debug_frame_index.rows);
    free(m);
}

static int by_start(const void *a, const void *b)
{
    const struct unwind_index_row *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void build_index(const struct cfi_section *s, struct unwind_index *index)
{
    struct cfi_fde fde;
    uint64_t offset = 0;

    index->built = true;
    while (cfi_next(s, &offset, &fde)) {
        struct unwind_index_row row = {fde.start, fde.end, fde.offset};
        /* Functions that the linker dropped stand at address 0. */
        if (fde.start && !VEC_PUSH(&index->rows, row))
            break;
    }
    if (index->rows.count)
        qsort(index->rows.data, index->rows.count, sizeof *index->rows.data, by_start);
}

static bool index_find(const struct cfi_section *s, struct unwind_index *index, uint64_t vaddr, struct cfi_fde *out)
{
    if (!index->built)
        build_index(s, index);
    size_t low = 0, high = index->rows.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (vaddr < index->rows.data[middle].start)
            high = middle;
        else
            low = middle + 1;
    }
    if (!low || vaddr >= index->rows.data[low - 1].end)
        return false;
    return cfi_read(s, index->rows.data[low - 1].offset, out);
}

bool unwind_module_fde(struct unwind_module *m, uint64_t vaddr, struct cfi_fde *out)
{
    uint64_t fde_vaddr;

    if (m->has_eh_frame) {
        if (m->table.count) {
            if (cfi_table_find(&m->table, vaddr, &fde_vaddr) && fde_vaddr >= m->eh_frame.vaddr &&
                cfi_read(&m->eh_frame, fde_vaddr - m->eh_frame.vaddr, out) && vaddr >= out->start && vaddr < out->end)
                return true;
        } else if (index_find(&m->eh_frame, &m->eh_frame_index, vaddr, out)) {
            return true;
        }
    }
    return m->debug_frame.data && index_find(&m->debug_frame, &m->debug_frame_index, vaddr, out);
}

bool unwind_module_bias(const struct unwind_module *m, const struct unwind_mapping *mapping, uint64_t *bias)
{
    const struct elf_segment *best = NULL;

    for (size_t i = 0; i < m->identity.segments.count; i++) {
        const struct elf_segment *s = &m->identity.segments.data[i];
        uint64_t page = s->offset & ~(uint64_t)0xfff, end = s->offset + s->file_size;
        /* Segments may share a page of the file; the executable one is meant. */
        if (mapping->file_offset >= page && mapping->file_offset < end && (!best || (s->flags & PF_X)))
            best = s;
    }
    if (!best)
        return false;
    *bias = mapping->address - mapping->file_offset + best->offset - best->vaddr;
    return true;
}

bool unwind_module_read(const struct unwind_module *m, uint64_t vaddr, void *out, uint64_t len_bytes)
{
    uint64_t have;
    uint32_t flags;
    const uint8_t *p = bytes_at(m, vaddr, &have, &flags);

    if (!p || (flags & PF_W))
        return false;
    uint64_t n = len_bytes < have ? len_bytes : have;
    memcpy(out, p, n);
    memset((uint8_t *)out + n, 0, len_bytes - n);
    return true;
}
