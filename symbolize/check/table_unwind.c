/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/check/table_unwind.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf/native_unwind.h"
#include "formats/base/vec.h"
#include "formats/elf/unwind_table.h"

struct module_table {
    bool tried;
    struct unwind_table *table; /* NULL: it has no table */
};

struct table_unwinder {
    struct modcache *modules;
    VEC(struct module_table) tables; /* by number in the module cache */
    struct native_unwind unwind;
    struct native_frame frames[NATIVE_MAX];
    /* State of the current run. */
    const struct epoch *epoch;
    const struct trace_snapshot *shot;
    const struct unwind_mapping *mappings;
    uint32_t mapping_count;
    struct error *err;
};

struct error *table_unwinder_create(struct modcache *modules, struct table_unwinder **out)
{
    struct table_unwinder *t = calloc(1, sizeof *t);

    if (!t)
        return error_no_memory();
    t->modules = modules;
    *out = t;
    return NULL;
}

void table_unwinder_destroy(struct table_unwinder *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->tables.count; i++)
        unwind_table_destroy(t->tables.data[i].table);
    VEC_DEINIT(&t->tables);
    free(t);
}

/* If no table can be made of a file, it has none; only running out of memory is an error. */
static struct error *build(const struct modcache_entry *m, struct unwind_table **out)
{
    struct error *err = NULL;

    if (m->image_len) {
        err = unwind_table_build_memory(m->image, m->image_len, m->path, out);
    } else if (m->files.binary) {
        int fd = binary_open(m->files.binary, m->files.binary_fd);
        if (fd < 0)
            return NULL;
        err = unwind_table_build(fd, m->files.binary, NULL, out);
        close(fd);
    }
    if (err && err->code != ERROR_NO_MEMORY) {
        error_destroy(err);
        err = NULL;
    }
    return err;
}

static struct error *table_of(struct table_unwinder *t, uint32_t module, const struct unwind_table **out)
{
    uint32_t index;

    TRY(modcache_index(t->modules, t->epoch, module, &index));
    if (!VEC_EXTEND_ZERO(&t->tables, index + 1))
        return error_no_memory();
    struct module_table *m = &t->tables.data[index];
    if (!m->tried) {
        m->tried = true;
        TRY(build(modcache_get(t->modules, index), &m->table));
    }
    *out = m->table;
    return NULL;
}

static __u32 find_mapping(void *ctx, __u64 address, struct native_mapping *out, const struct unwind_table **table)
{
    struct table_unwinder *t = ctx;
    const struct unwind_mapping *m = witness_mapping(t->mappings, t->mapping_count, address);
    uint64_t bias;

    if (!m)
        return LOSS_no_mapping;
    *out = (struct native_mapping){.start = m->address, .end = m->address + m->length};
    *table = NULL;
    if (!m->module_id) {
        out->flags = NATIVE_NO_TABLE;
        return 0;
    }
    if (!t->err)
        t->err = table_of(t, m->module_id, table);
    if (!*table || !m->module || !unwind_module_bias(m->module, m, &bias))
        return LOSS_no_module;
    out->base = bias + (*table)->base_vaddr;
    out->row_count = (*table)->row_count;
    out->index_first = (*table)->index_first;
    out->index_count = (*table)->index_count;
    out->wide_count = (*table)->wide_count;
    return 0;
}

static int read_memory(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct table_unwinder *t = ctx;

    return witness_read(t->shot, t->mappings, t->mapping_count, address, out, len_bytes) ? 0 : -1;
}

struct error *table_unwinder_run(struct table_unwinder *t, const struct epoch *e, const struct trace_snapshot *shot,
                                 const struct unwind_mapping *mappings, uint32_t count, struct witness_stack *out)
{
    struct native_unwind *u = &t->unwind;

    t->epoch = e;
    t->shot = shot;
    t->mappings = mappings;
    t->mapping_count = count;
    t->err = NULL;
    memcpy(u->registers, shot->registers.values, sizeof u->registers);
    u->memory = (struct walk_memory){read_memory, t};
    u->host = (struct native_host){find_mapping, t, NULL};
    native_begin(u);
    while (!native_step(u, t->frames))
        ;
    for (uint32_t i = 0; i < u->count; i++)
        out->frames[i] = (struct witness_frame){t->frames[i].ip & NATIVE_ADDRESS, !(t->frames[i].ip & NATIVE_EXACT)};
    out->count = u->count;
    out->end = u->end;
    out->trouble = NULL;
    return t->err;
}
