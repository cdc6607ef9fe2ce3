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

#include <string.h>

#include "formats/elf/cfi_file.h"
#include "symbolize/binary/binaries.h"

/* A section that is too long to be read counts as missing. */
static struct error *find_section(const struct elf_file *f, bool debug_frame, struct cfi_section *out)
{
    struct error *err = cfi_find_section(f, debug_frame, out);

    if (!err || err->code == ERROR_NO_MEMORY)
        return err;
    error_destroy(err);
    return NULL;
}

static struct error *find_eh_frame(struct unwind_module *m)
{
    uint64_t offset, len = 0;
    struct cfi_section section;

    if (cfi_find_table(&m->elf, &m->table))
        len = elf_file_bytes_at(&m->elf, m->table.eh_frame_vaddr, &offset);
    if (len)
        m->eh_frame = (struct cfi_section){elf_file_take(&m->elf, offset, len), len, m->table.eh_frame_vaddr,
                                           m->table.hdr_vaddr, false, NULL};
    /* Use the section: it says where it ends, which the segment does not; and the file may have only the section. */
    TRY(find_section(&m->elf, false, &section));
    if (section.data && (!m->eh_frame.data || section.vaddr == m->eh_frame.vaddr)) {
        section.hdr_vaddr = m->table.hdr_vaddr;
        m->eh_frame = section;
    }
    if (!m->eh_frame.data)
        m->table.count = 0;
    return NULL;
}

static struct error *read_image(struct unwind_module *m, const char *path)
{
    TRY(elf_file_open_memory(m->image.data, m->image.len_bytes, path, &m->elf));
    m->machine = machine_by_elf(m->elf.header.e_machine);
    if (!m->elf.is_elf || !m->machine) {
        /* Nothing in it can be unwound, and its memory cannot be read reliably either. */
        elf_file_close(&m->elf);
        return NULL;
    }
    m->stack_start = stack_start_find(&m->elf);
    TRY(find_eh_frame(m));
    TRY(elf_file_open_memory(m->debug_image.data, m->debug_image.len_bytes, path, &m->debug_elf));
    TRY(find_section(&m->debug_elf, true, &m->debug_frame));
    return m->debug_frame.data ? NULL : find_section(&m->elf, true, &m->debug_frame);
}

struct error *unwind_module_open_files(const struct binary_files *files, struct unwind_module **out)
{
    const char *path = files->binary, *debug = files->debug;
    struct unwind_module *m = calloc(1, sizeof *m);
    struct error *err = NULL;

    if (!m)
        return error_no_memory();
    if (path) {
        err = image_read_open(files->binary_fd, path, &m->image);
        /* Without a debug file something may be missing; that shows where it is. */
        if (!err && debug && strcmp(debug, path))
            error_destroy(image_read_open(files->debug_fd, debug, &m->debug_image));
        if (!err && m->image.data)
            err = read_image(m, path);
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
        err = read_image(m, "[vdso]");
    if (err) {
        unwind_module_close(m);
        return err;
    }
    *out = m;
    return NULL;
}

void unwind_module_close(struct unwind_module *m)
{
    if (!m)
        return;
    elf_file_close(&m->elf);
    elf_file_close(&m->debug_elf);
    image_deinit(&m->image);
    image_deinit(&m->debug_image);
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
        /* Functions that the linker dropped have address 0. */
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

    if (m->eh_frame.data) {
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
    return m->machine && elf_load_bias(&m->elf.segments, mapping->address, mapping->file_offset, mapping->length,
                                       m->machine->page_bytes, bias);
}

bool unwind_module_read(const struct unwind_module *m, uint64_t vaddr, void *out, uint64_t len_bytes)
{
    const struct elf_segment *s = elf_segment_at(&m->elf.segments, vaddr);
    uint64_t offset, have = elf_file_bytes_at(&m->elf, vaddr, &offset);

    if (!have || (s->flags & PF_W))
        return false;
    uint64_t n = len_bytes < have ? len_bytes : have;
    memcpy(out, m->image.data + offset, n);
    memset((uint8_t *)out + n, 0, len_bytes - n);
    return true;
}
