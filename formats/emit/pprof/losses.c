/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/losses.h"

#include "formats/emit/pprof/fields.h"
#include "formats/emit/pprof/samples.h"
#include "formats/emit/pprof/tables.h"
#include "formats/emit/pprof/types.h"
#include "formats/emit/protobuf.h"

static struct error *write_head(const struct emit_part *part, struct pprof_tables *tables, struct gzip *out)
{
    uint32_t lost = pprof_plain_string(tables, "lost"), unit = pprof_plain_string(tables, "count");
    uint32_t incomplete = pprof_plain_string(tables, "incomplete");
    uint64_t begin_ns = part->end_ns ? part->begin_ns : part->window_begin_ns, end_ns = part->end_ns ? part->end_ns : part->window_end_ns;
    struct buf fields = {0};

    pprof_put_value_type(&fields, PPROF_SAMPLE_TYPE, lost, unit);
    pprof_put_value_type(&fields, PPROF_SAMPLE_TYPE, incomplete, unit);
    pprof_put_value_type(&fields, PPROF_PERIOD_TYPE, lost, unit);
    protobuf_put_u64(&fields, PPROF_PERIOD, 1);
    protobuf_put_u64(&fields, PPROF_TIME_NANOS, begin_ns <= INT64_MAX ? begin_ns : 0);
    protobuf_put_u64(&fields, PPROF_DURATION_NANOS, pprof_sum(0, end_ns - begin_ns));
    struct error *err = lost == PPROF_NONE || incomplete == PPROF_NONE || unit == PPROF_NONE ? error_no_memory() : pprof_write(out, &fields);
    buf_deinit(&fields);
    return err;
}

/* A location that has a name and no address. PPROF_NONE: out of memory. */
static uint32_t location_of(struct pprof_tables *tables, const char *name)
{
    uint32_t mapping = pprof_named_mapping(tables, "[pycap]");
    const struct pprof_function function = {.name = pprof_plain_string(tables, name)};

    if (mapping == PPROF_NONE || function.name == PPROF_NONE)
        return PPROF_NONE;
    tables->mappings.data[mapping - 1].has_functions = true;
    const struct pprof_line line = {.function = pprof_function(tables, &function)};
    return line.function == PPROF_NONE ? PPROF_NONE : pprof_location(tables, mapping, 0, &line, 1);
}

static struct error *write_loss(const struct emit_loss *loss, struct pprof_tables *tables, struct gzip *out)
{
    uint64_t locations[2] = {location_of(tables, loss->name)}, values[2] = {0};
    struct buf row = {0}, field = {0};
    size_t depth = 1;

    values[loss->is_sample ? 0 : 1] = pprof_sum(0, loss->count);
    if (*loss->event)
        locations[depth++] = location_of(tables, loss->event);
    bool ok = locations[0] != PPROF_NONE && locations[1] != PPROF_NONE;
    protobuf_put_packed(&row, PPROF_SAMPLE_LOCATIONS, locations, depth);
    protobuf_put_packed(&row, PPROF_SAMPLE_VALUES, values, 2);
    protobuf_put_message(&field, PPROF_SAMPLE, &row);
    struct error *err = ok ? pprof_write(out, &field) : error_no_memory();
    buf_deinit(&row);
    buf_deinit(&field);
    return err;
}

struct error *pprof_losses_write(const struct emit_part *part, const struct emit_loss *losses, uint32_t count, struct limits *limits,
                                 FILE *out, uint64_t *raw_bytes)
{
    static const struct emit_model none = {0};
    struct pprof_tables tables;
    struct gzip gzip = {0};

    struct error *err = pprof_tables_init(&tables, &none, limits);
    if (!err)
        err = gzip_begin(&gzip, out);
    if (!err)
        err = write_head(part, &tables, &gzip);
    for (uint32_t i = 0; !err && i < count; i++)
        err = write_loss(&losses[i], &tables, &gzip);
    if (!err)
        err = pprof_tables_write(&tables, &gzip);
    if (!err)
        err = gzip_end(&gzip);
    *raw_bytes = gzip.stream.total_in;
    gzip_deinit(&gzip);
    pprof_tables_deinit(&tables);
    return err;
}
