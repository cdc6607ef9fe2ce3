/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "formats/compare/baseline.h"
#include "formats/compare/baseline_format.h"

bool baseline_has_magic(const uint8_t *data, size_t len_bytes)
{
    return len_bytes >= BASELINE_MAGIC_BYTES && !memcmp(data, BASELINE_MAGIC, BASELINE_MAGIC_BYTES);
}

/* ---- sections ---- */

static void put_crc(struct buf *out, size_t from)
{
    if (!out->bad)
        buf_put_u32(out, (uint32_t)crc32(0, out->data + from, (uInt)(out->len_bytes - from)));
}

static void put_header(struct buf *out)
{
    size_t from = out->len_bytes;

    buf_put(out, BASELINE_MAGIC, BASELINE_MAGIC_BYTES);
    buf_put_u32(out, BASELINE_VERSION);
    buf_put_u32(out, BASELINE_LEAST_READER);
    put_crc(out, from);
}

static void put_section(struct buf *out, enum baseline_section type, const struct buf *contents)
{
    size_t from = out->len_bytes;

    buf_put_u8(out, (uint8_t)type);
    buf_put_u32(out, (uint32_t)contents->len_bytes);
    buf_put(out, contents->data, contents->len_bytes);
    out->bad |= contents->bad || contents->len_bytes > UINT32_MAX;
    put_crc(out, from);
}

static void put_double(struct buf *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    buf_put_u64(out, bits);
}

/* ---- what all runs share ---- */

static void put_texts(const struct run_set *s, struct buf *out)
{
    buf_put_uleb(out, s->texts.count);
    for (uint32_t i = 0; i < s->texts.count; i++) {
        const struct intern_entry *text = intern_get(&s->texts, i);
        buf_put_uleb(out, text->len_bytes - 1);
        buf_put(out, text->data, text->len_bytes - 1);
    }
}

static void put_functions(const struct run_set *s, struct buf *out)
{
    buf_put_uleb(out, s->functions.count);
    for (size_t i = 0; i < s->functions.count; i++) {
        const struct run_function *f = &s->functions.data[i];
        buf_put_uleb(out, f->file);
        buf_put_uleb(out, f->name);
        buf_put_uleb(out, f->first_line);
        buf_put_u8(out, f->unqualified ? BASELINE_UNQUALIFIED : 0);
    }
}

static void put_codes(const struct run_set *s, struct buf *out)
{
    buf_put_uleb(out, s->codes.count);
    for (size_t i = 0; i < s->codes.count; i++) {
        const struct run_code *c = &s->codes.data[i];
        buf_put_uleb(out, c->function);
        buf_put_uleb(out, c->first_line);
        buf_put_uleb(out, c->table_bytes);
        buf_put_u64(out, c->fingerprint);
    }
}

/* The root, which every file has, is left out. */
static void put_nodes(const struct run_set *s, struct buf *out)
{
    buf_put_uleb(out, s->nodes.count - 1);
    for (size_t i = 1; i < s->nodes.count; i++) {
        buf_put_uleb(out, s->nodes.data[i].parent);
        buf_put_uleb(out, s->nodes.data[i].function);
    }
}

static void put_lines(const struct run_set *s, struct buf *out)
{
    buf_put_uleb(out, s->lines.count);
    for (size_t i = 0; i < s->lines.count; i++) {
        buf_put_uleb(out, s->lines.data[i].code);
        buf_put_uleb(out, s->lines.data[i].line);
    }
}

/* ---- runs ---- */

/* Sums are whole numbers as doubles hold them. */
static uint64_t whole(double value)
{
    return value > 0 ? (uint64_t)rint(fmin(value, (double)BASELINE_SUM_MAX)) : 0;
}

/* Of sums that doubles have rounded, a self may come out above its total. */
static uint64_t whole_total(const struct run_cell *cell)
{
    return whole(fmax(cell->total, cell->self));
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t divisor_of_cells(const struct run_cells *cells, uint64_t divisor)
{
    for (size_t i = 0; divisor != 1 && i < cells->count; i++)
        divisor = common_divisor(common_divisor(divisor, whole_total(&cells->data[i])), whole(cells->data[i].self));
    return divisor;
}

static uint64_t steps_of(float dispersion)
{
    return (uint64_t)((fmin(fmax((double)dispersion, 1), RUN_DISPERSION_MAX) - 1) * RUN_DISPERSION_STEPS + 0.5);
}

/* A list ends where its count says; numbers are told by how far they are from the one before. */
static void put_cells(const struct run_cells *cells, struct baseline_list list, uint64_t unit, struct buf *out)
{
    uint32_t next = 0;

    buf_put_uleb(out, cells->count);
    for (size_t i = 0; i < cells->count; i++) {
        const struct run_cell *c = &cells->data[i];
        buf_put_uleb(out, c->id - next);
        buf_put_uleb(out, whole_total(c) / unit);
        if (list.has_self)
            buf_put_uleb(out, whole(c->self) / unit);
        if (list.has_dispersion) {
            buf_put_uleb(out, steps_of(c->dispersion));
            buf_put_uleb(out, steps_of(c->self_dispersion));
        }
        next = c->id + 1;
    }
}

static void put_event(const struct run_event *e, struct buf *out)
{
    const struct run_cells *const lists[] = {&e->nodes, &e->functions, &e->codes, &e->lines, &e->modules};
    uint64_t unit = whole(e->total);

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        unit = divisor_of_cells(lists[i], unit);
    unit += !unit;
    buf_put_uleb(out, e->name);
    buf_put_uleb(out, e->unit);
    buf_put_u8(out, (uint8_t)((event_is_time(e->kind) ? BASELINE_IS_TIME : 0) | (event_is_waiting(e->kind) ? BASELINE_IS_WAITING : 0) |
                              (event_is_counted(e->kind) ? BASELINE_IS_COUNTED : 0) | (e->kind == EVENT_TASK_WAIT ? BASELINE_IS_TASK : 0)));
    buf_put_uleb(out, e->frequency_hz);
    buf_put_uleb(out, e->period);
    buf_put_uleb(out, e->samples);
    buf_put_uleb(out, e->ticks);
    buf_put_uleb(out, e->lost);
    put_double(out, e->weight);
    buf_put_uleb(out, unit);
    buf_put_uleb(out, whole(e->total) / unit);
    put_cells(&e->nodes, (struct baseline_list){.has_self = true, .has_dispersion = true}, unit, out);
    put_cells(&e->functions, (struct baseline_list){.has_self = true, .has_dispersion = true}, unit, out);
    put_cells(&e->codes, (struct baseline_list){.has_self = true}, unit, out);
    put_cells(&e->lines, (struct baseline_list){0}, unit, out);
    put_cells(&e->modules, (struct baseline_list){0}, unit, out);
}

static void put_run(const struct run *r, struct buf *out)
{
    const uint32_t texts[] = {r->name,    r->kernel_release, r->machine,  r->cpu_model, r->recorder,
                              r->backend, r->native,         r->pythons, r->programs,  r->filters};
    struct buf event = {0};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        buf_put_uleb(out, texts[i]);
    buf_put_uleb(out, r->cpu_count);
    buf_put_uleb(out, r->start_realtime_ns);
    buf_put_uleb(out, r->duration_ns);
    buf_put_u8(out, r->has_command);
    buf_put_uleb(out, r->command_wall_ns);
    put_double(out, r->work);
    buf_put_uleb(out, r->notes.count);
    for (size_t i = 0; i < r->notes.count; i++) {
        buf_put_uleb(out, r->notes.data[i].key);
        buf_put_uleb(out, r->notes.data[i].value);
    }
    buf_put_uleb(out, r->events.count);
    for (size_t i = 0; i < r->events.count; i++) {
        buf_clear(&event);
        put_event(&r->events.data[i], &event);
        buf_put_uleb(out, event.len_bytes);
        buf_put(out, event.data, event.len_bytes);
        out->bad |= event.bad;
    }
    buf_deinit(&event);
}

/* All of a set whose numbers are those of the file. */
static void put_set(const struct run_set *s, struct buf *out)
{
    static void (*const tables[])(const struct run_set *, struct buf *) = {[BASELINE_TEXTS] = put_texts,
                                                                            [BASELINE_FUNCTIONS] = put_functions,
                                                                            [BASELINE_CODES] = put_codes,
                                                                            [BASELINE_NODES] = put_nodes,
                                                                            [BASELINE_LINES] = put_lines};
    struct buf contents = {0};

    put_header(out);
    for (enum baseline_section type = BASELINE_TEXTS; type <= BASELINE_LINES; type++) {
        buf_clear(&contents);
        tables[type](s, &contents);
        put_section(out, type, &contents);
    }
    for (size_t i = 0; i < s->runs.count; i++) {
        buf_clear(&contents);
        put_run(&s->runs.data[i], &contents);
        put_section(out, BASELINE_RUN, &contents);
    }
    buf_clear(&contents);
    put_section(out, BASELINE_END, &contents);
    buf_deinit(&contents);
}

/* ---- what fits ---- */

/* The most samples that each number has in a run. */
struct most {
    VEC(double) nodes, lines, functions;
};

static bool find_most(const struct run_set *s, struct most *m)
{
    if (!VEC_EXTEND_ZERO(&m->nodes, s->nodes.count) || !VEC_EXTEND_ZERO(&m->lines, s->lines.count) ||
        !VEC_EXTEND_ZERO(&m->functions, s->functions.count))
        return false;
    for (size_t run = 0; run < s->runs.count; run++) {
        for (size_t i = 0; i < s->runs.data[run].events.count; i++) {
            const struct run_event *e = &s->runs.data[run].events.data[i];
            const struct run_cells *const lists[] = {&e->nodes, &e->lines, &e->functions};
            double *const most[] = {m->nodes.data, m->lines.data, m->functions.data};
            for (int k = 0; k < 3; k++) {
                for (size_t c = 0; c < lists[k]->count; c++) {
                    const struct run_cell *cell = &lists[k]->data[c];
                    double samples = e->weight > 0 ? cell->total / e->weight : 0;
                    most[k][cell->id] = fmax(most[k][cell->id], samples);
                }
            }
        }
    }
    return true;
}

static uint64_t count_below(const double *most, size_t count, double least)
{
    uint64_t below = 0;

    for (size_t i = 0; i < count; i++)
        below += most[i] > 0 && most[i] < least;
    return below;
}

/* Encodes what has `least` samples in some run. Functions, by which new ones are told, are left out last. */
static struct error *encode_from(const struct run_set *set, const struct most *most, double least, struct buf *out,
                                 struct baseline_written *what)
{
    const double functions_from = 16;
    const struct run_choice choice = {.nodes = most->nodes.data,
                                      .functions = most->functions.data,
                                      .lines = most->lines.data,
                                      .least_nodes = least,
                                      .least_functions = least < functions_from ? 0 : least,
                                      .least_lines = least,
                                      .no_host = true};
    struct run_set kept;
    struct error *err = run_set_init(&kept, set->limits) ? NULL : error_no_memory();

    for (uint32_t run = 0; !err && run < set->runs.count; run++)
        err = run_set_copy_chosen(&kept, set, run, &choice);
    if (!err)
        put_set(&kept, out);
    run_set_deinit(&kept);
    what->least_samples = least;
    what->left_out = count_below(most->nodes.data, most->nodes.count, choice.least_nodes) +
                     count_below(most->lines.data, most->lines.count, choice.least_lines) +
                     count_below(most->functions.data, most->functions.count, choice.least_functions);
    return !err && out->bad ? error_no_memory() : err;
}

struct error *baseline_encode(const struct run_set *set, uint64_t max_bytes, struct buf *out, struct baseline_written *what)
{
    struct most most = {0};
    size_t start = out->len_bytes;
    struct error *err = find_most(set, &most) ? NULL : error_no_memory();
    bool fits = false;

    *what = (struct baseline_written){0};
    for (double least = 0; !err && !fits && least < 1e6; least = least > 0 ? 2 * least : 1) {
        out->len_bytes = start;
        err = encode_from(set, &most, least, out, what);
        what->len_bytes = out->len_bytes - start;
        fits = what->len_bytes <= max_bytes;
    }
    VEC_DEINIT(&most.nodes);
    VEC_DEINIT(&most.lines);
    VEC_DEINIT(&most.functions);
    if (!err && !fits)
        err = error_create(ERROR_LIMIT, "a baseline of %zu runs is longer than %llu bytes: give it fewer runs", set->runs.count,
                           (unsigned long long)max_bytes);
    return err;
}

struct error *baseline_write(const struct run_set *set, FILE *out, struct baseline_written *what)
{
    struct buf bytes = {0};
    struct error *err = baseline_encode(set, BASELINE_MAX_BYTES, &bytes, what);

    if (!err && fwrite(bytes.data, 1, bytes.len_bytes, out) != bytes.len_bytes)
        err = error_os(errno, "cannot write the baseline");
    buf_deinit(&bytes);
    return err;
}
