/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/perf_maps.h"

#include <string.h>
#include <sys/stat.h>

void perf_maps_deinit(struct perf_maps *all)
{
    for (size_t i = 0; i < all->maps.count; i++)
        perf_map_deinit(&all->maps.data[i]);
    VEC_DEINIT(&all->maps);
    intern_deinit(&all->ids);
}

struct perf_map *perf_maps_get(struct perf_maps *all, const uint8_t *id, uint32_t id_len)
{
    bool added;
    uint32_t index = intern_id(&all->ids, id, id_len, &added);

    if (index == INTERN_NONE ||
        (added && !VEC_PUSH(&all->maps, ((struct perf_map){.names.limits = all->limits}))))
        return NULL;
    return &all->maps.data[index];
}

struct error *perf_maps_record(struct perf_maps *all, const struct epoch *e, const struct trace_perf_map *rec)
{
    const struct trace_module *def = &e->modules.data[rec->module].def;

    if (def->kind != TRACE_MODULE_ANONYMOUS || !def->build_id.len_bytes)
        return NULL;
    struct perf_map *m = perf_maps_get(all, def->build_id.data, (uint32_t)def->build_id.len_bytes);
    return m && perf_map_add(m, rec->text.data, rec->text.len_bytes) ? NULL : error_no_memory();
}

static struct error *read_records(struct perf_maps *all, struct trace_reader *reader, struct epoch *e)
{
    struct trace_record rec;
    bool more;

    for (;;) {
        TRY(trace_reader_next(reader, &rec, &more));
        if (!more)
            return NULL;
        TRY(epoch_load(e, &rec));
        if (rec.type == TRACE_perf_map)
            TRY(perf_maps_record(all, e, &rec.perf_map));
    }
}

struct error *perf_maps_read(struct perf_maps *all, const char *path)
{
    struct epoch e = {.left_out = ~EPOCH_PART(module), .limits = all->limits};
    struct trace_reader *reader;
    struct stat st;

    if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
        return NULL;
    TRY(trace_reader_open(path, &reader));
    struct error *err = read_records(all, reader, &e);
    trace_reader_close(reader);
    epoch_deinit(&e);
    return err;
}
