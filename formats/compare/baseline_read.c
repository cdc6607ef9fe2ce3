/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/base/bytes.h"
#include "formats/compare/baseline.h"
#include "formats/compare/baseline_format.h"

/* A baseline as it is read: its own numbers are those of `own`. */
struct baseline_reader {
    const char *path;
    struct bytes b;
    struct run_set own;
};

static const char *const section_names[] = {
    [BASELINE_END] = "END",     [BASELINE_TEXTS] = "TEXTS", [BASELINE_FUNCTIONS] = "FUNCTIONS", [BASELINE_CODES] = "CODES",
    [BASELINE_NODES] = "NODES", [BASELINE_LINES] = "LINES", [BASELINE_RUN] = "RUN"};

static double take_double(struct bytes *b)
{
    uint64_t bits = bytes_u64(b);
    double value;

    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value) || value < 0)
        b->bad = true;
    return b->bad ? 0 : value;
}

/* A number below `limit`. */
static uint32_t take_below(struct bytes *b, uint64_t limit)
{
    uint64_t number = bytes_uleb(b);

    if (number >= limit)
        b->bad = true;
    return b->bad ? 0 : (uint32_t)number;
}

static uint32_t take_u32(struct bytes *b)
{
    return take_below(b, UINT64_C(1) << 32);
}

static uint32_t take_text(struct baseline_reader *r, struct bytes *b)
{
    return take_below(b, r->own.texts.count);
}

/* How many items of at least `least_bytes` follow. */
static uint64_t take_count(struct bytes *b, uint64_t least_bytes)
{
    uint64_t count = bytes_uleb(b);

    if (count > bytes_left(b) / least_bytes)
        b->bad = true;
    return b->bad ? 0 : count;
}

/*
 * Was what was read added as the next number of its table? If not, memory ran out, or the file has it twice, which makes
 * the section bad.
 */
static bool is_next(struct bytes *b, uint32_t number, uint64_t expected, struct error **err)
{
    if (number == RUN_SET_NONE)
        *err = error_no_memory();
    else if (number != expected)
        b->bad = true;
    return !*err && !b->bad;
}

/* ---- what all runs share: each table is empty before but for text 0 and the root ---- */

static struct error *take_texts(struct baseline_reader *r, struct bytes *b)
{
    struct error *err = NULL;
    uint64_t count = take_count(b, 1);

    for (uint64_t i = 0; i < count && !b->bad; i++) {
        uint64_t len_bytes = bytes_uleb(b);
        const uint8_t *text = bytes_take(b, len_bytes);
        if (b->bad || (len_bytes && memchr(text, 0, len_bytes)) || (!i && len_bytes)) {
            b->bad = true;
            break;
        }
        if (!is_next(b, run_set_text(&r->own, (const char *)text, len_bytes), i, &err))
            break;
    }
    return err;
}

static struct error *take_functions(struct baseline_reader *r, struct bytes *b)
{
    struct error *err = NULL;
    uint64_t count = take_count(b, 4);

    for (uint64_t i = 0; i < count && !b->bad; i++) {
        struct run_function f = {0};
        f.file = take_text(r, b);
        f.name = take_text(r, b);
        f.first_line = take_u32(b);
        f.unqualified = bytes_u8(b) & BASELINE_UNQUALIFIED;
        if (b->bad || !is_next(b, run_set_function(&r->own, &f), i, &err))
            break;
    }
    return err;
}

static struct error *take_codes(struct baseline_reader *r, struct bytes *b)
{
    struct error *err = NULL;
    uint64_t count = take_count(b, 11);

    for (uint64_t i = 0; i < count && !b->bad; i++) {
        struct run_code c = {0};
        c.function = take_below(b, r->own.functions.count);
        c.first_line = take_u32(b);
        c.table_bytes = take_u32(b);
        c.fingerprint = bytes_u64(b);
        if (b->bad || !is_next(b, run_set_code(&r->own, &c), i, &err))
            break;
    }
    return err;
}

static struct error *take_nodes(struct baseline_reader *r, struct bytes *b)
{
    struct error *err = NULL;
    uint64_t count = take_count(b, 2);

    for (uint64_t i = 1; i <= count && !b->bad; i++) {
        uint32_t parent = take_below(b, i), function = take_below(b, r->own.functions.count);
        if (b->bad || !is_next(b, run_set_node(&r->own, parent, function), i, &err))
            break;
    }
    return err;
}

static struct error *take_lines(struct baseline_reader *r, struct bytes *b)
{
    struct error *err = NULL;
    uint64_t count = take_count(b, 2);

    for (uint64_t i = 0; i < count && !b->bad; i++) {
        struct run_line line;
        line.code = take_below(b, r->own.codes.count);
        line.line = take_u32(b);
        if (b->bad || !is_next(b, run_set_line(&r->own, &line), i, &err))
            break;
    }
    return err;
}

/* ---- runs ---- */

/* A sum of the event: so many times its unit. */
static double take_value(struct bytes *b, uint64_t unit)
{
    uint64_t value;

    if (__builtin_mul_overflow(bytes_uleb(b), unit, &value) || value > BASELINE_SUM_MAX)
        b->bad = true;
    return b->bad ? 0 : (double)value;
}

static float take_dispersion(struct bytes *b)
{
    return 1 + (float)take_below(b, (RUN_DISPERSION_MAX - 1) * RUN_DISPERSION_STEPS + 1) / RUN_DISPERSION_STEPS;
}

static bool take_cells(struct baseline_reader *r, struct bytes *b, struct baseline_list list, uint64_t limit, uint64_t unit,
                       struct run_cells *out)
{
    uint64_t next = 0, count = take_count(b, 2);

    if (!limits_take(r->own.limits, count * sizeof *out->data) || !VEC_RESERVE(out, count))
        return false;
    for (uint64_t i = 0; i < count && !b->bad; i++) {
        struct run_cell c = {.dispersion = 1, .self_dispersion = 1};
        c.id = take_below(b, limit > next ? limit - next : 0) + (uint32_t)next;
        c.total = take_value(b, unit);
        c.self = list.has_self ? take_value(b, unit) : c.total;
        if (list.has_dispersion) {
            c.dispersion = take_dispersion(b);
            c.self_dispersion = take_dispersion(b);
        }
        if (!(c.total > 0) || c.self > c.total)
            b->bad = true;
        next = (uint64_t)c.id + 1;
        out->data[out->count++] = c;
    }
    return true;
}

/* What the flags of an event say: less than the kinds tell apart, as comparisons ask for no more. */
static enum event_value kind_of(uint8_t flags)
{
    if (flags & BASELINE_IS_TIME)
        return flags & BASELINE_IS_TASK      ? EVENT_TASK_WAIT
               : flags & BASELINE_IS_WAITING ? EVENT_OFF_CPU
               : flags & BASELINE_IS_COUNTED ? EVENT_COUNTED_TIME
                                             : EVENT_CPU_TIME;
    return flags & BASELINE_IS_COUNTED ? EVENT_COUNT : EVENT_AMOUNT;
}

/* `b` has the event alone; what a newer version has behind it is left alone. */
static bool take_event(struct baseline_reader *r, struct bytes *b, struct run_event *e)
{
    const struct run_set *s = &r->own;

    e->name = take_text(r, b);
    e->unit = take_text(r, b);
    e->kind = kind_of(bytes_u8(b));
    e->frequency_hz = bytes_uleb(b);
    e->period = bytes_uleb(b);
    e->samples = bytes_uleb(b);
    e->ticks = bytes_uleb(b);
    e->lost = bytes_uleb(b);
    e->weight = take_double(b);
    uint64_t unit = bytes_uleb(b);
    e->total = take_value(b, unit);
    if (!unit || (e->total > 0) != (e->weight > 0))
        b->bad = true;
    const struct baseline_list both = {.has_self = true, .has_dispersion = true}, self = {.has_self = true}, plain = {0};
    return take_cells(r, b, both, s->nodes.count, unit, &e->nodes) &&
           take_cells(r, b, both, s->functions.count, unit, &e->functions) &&
           take_cells(r, b, self, s->codes.count, unit, &e->codes) && take_cells(r, b, plain, s->lines.count, unit, &e->lines) &&
           take_cells(r, b, plain, s->texts.count, unit, &e->modules);
}

static struct error *take_events(struct baseline_reader *r, struct bytes *b, struct run *run)
{
    uint64_t count = take_count(b, 2);

    if (!limits_take(r->own.limits, count * sizeof *run->events.data) || !VEC_RESERVE(&run->events, count))
        return error_no_memory();
    for (uint64_t i = 0; i < count && !b->bad; i++) {
        uint64_t len_bytes = bytes_uleb(b);
        struct bytes event = bytes_of(bytes_take(b, len_bytes), len_bytes);
        if (b->bad)
            break;
        run->events.data[run->events.count] = (struct run_event){0};
        if (!take_event(r, &event, &run->events.data[run->events.count++]))
            return error_no_memory();
        b->bad |= event.bad;
    }
    return NULL;
}

static struct error *take_run(struct baseline_reader *r, struct bytes *b)
{
    struct run *run = run_set_add(&r->own);

    if (!run)
        return error_no_memory();
    uint32_t *const texts[] = {&run->name,    &run->kernel_release, &run->machine, &run->cpu_model, &run->recorder,
                               &run->backend, &run->native,         &run->pythons, &run->programs,  &run->filters};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = take_text(r, b);
    run->cpu_count = take_u32(b);
    run->start_realtime_ns = bytes_uleb(b);
    run->duration_ns = bytes_uleb(b);
    run->has_command = bytes_u8(b);
    run->command_wall_ns = bytes_uleb(b);
    run->work = take_double(b);
    uint64_t notes = take_count(b, 2);
    if (!limits_take(r->own.limits, notes * sizeof(struct run_note)))
        return error_no_memory();
    for (uint64_t i = 0; i < notes && !b->bad; i++) {
        struct run_note note;
        note.key = take_text(r, b);
        note.value = take_text(r, b);
        if (!VEC_PUSH(&run->notes, note))
            return error_no_memory();
    }
    return take_events(r, b, run);
}

/* ---- the file ---- */

/* What the file says of itself before anything else. */
static struct error *take_header(struct baseline_reader *r)
{
    const uint8_t *data = r->b.pos;

    if (!baseline_has_magic(data, bytes_left(&r->b)))
        return error_path(ERROR_FORMAT, r->path, "not a baseline: pysym baseline makes them");
    bytes_skip(&r->b, BASELINE_MAGIC_BYTES);
    uint32_t version = bytes_u32(&r->b), least_reader = bytes_u32(&r->b), crc = bytes_u32(&r->b);
    if (r->b.bad)
        return error_path(ERROR_TRUNCATED, r->path, "the baseline ends in its header");
    if (crc != crc32(0, data, BASELINE_HEADER_BYTES - sizeof crc))
        return error_path(ERROR_FORMAT, r->path, "the baseline's header is damaged");
    if (least_reader > BASELINE_VERSION)
        return error_path(ERROR_VERSION, r->path,
                          "the baseline is of version %u: this pysym reads up to version %d, a newer one is needed", version,
                          BASELINE_VERSION);
    return NULL;
}

/* The next section; its bytes are whole and not damaged. */
static struct error *take_section(struct baseline_reader *r, uint8_t *type, struct bytes *contents)
{
    uint64_t at = bytes_offset(&r->b);
    const uint8_t *data = r->b.pos;

    *type = bytes_u8(&r->b);
    uint32_t len_bytes = bytes_u32(&r->b);
    const uint8_t *start = bytes_take(&r->b, len_bytes);
    uint32_t crc = bytes_u32(&r->b);
    if (r->b.bad)
        return error_at(ERROR_TRUNCATED, r->path, at, "the baseline ends too early");
    if (!limits_work(r->own.limits, 10 * (uint64_t)len_bytes))
        return error_no_memory();
    if (crc != crc32(0, data, (uInt)(len_bytes + BASELINE_SECTION_BYTES - sizeof crc)))
        return error_at(ERROR_FORMAT, r->path, at, "the baseline is damaged here");
    *contents = bytes_of(start, len_bytes);
    return NULL;
}

static struct error *take_sections(struct baseline_reader *r)
{
    static struct error *(*const readers[])(struct baseline_reader *, struct bytes *) = {
        [BASELINE_TEXTS] = take_texts, [BASELINE_FUNCTIONS] = take_functions, [BASELINE_CODES] = take_codes,
        [BASELINE_NODES] = take_nodes, [BASELINE_LINES] = take_lines,         [BASELINE_RUN] = take_run};
    struct bytes contents;
    uint8_t type, before = BASELINE_END;

    for (;;) {
        uint64_t at = bytes_offset(&r->b);
        TRY(take_section(r, &type, &contents));
        if (type > BASELINE_RUN)
            continue; /* of a newer version, which says that it can be left out */
        bool follows = type == before + 1 || (type == BASELINE_RUN && before == BASELINE_RUN) ||
                       (type == BASELINE_END && before >= BASELINE_LINES);
        if (!follows)
            return error_at(ERROR_FORMAT, r->path, at, "a section %s of the baseline where none belongs", section_names[type]);
        if (type == BASELINE_END)
            break;
        TRY(readers[type](r, &contents));
        if (contents.bad)
            return error_at(ERROR_FORMAT, r->path, at, "a section %s of the baseline breaks the format", section_names[type]);
        before = type;
    }
    if (bytes_left(&r->b))
        return error_at(ERROR_FORMAT, r->path, bytes_offset(&r->b), "there is something behind the baseline's end");
    return NULL;
}

struct error *baseline_decode(const char *path, const void *data, size_t len_bytes, struct run_set *into)
{
    struct baseline_reader r = {.path = path, .b = bytes_of(data, len_bytes)};
    struct error *err = run_set_init(&r.own, into->limits) ? NULL : error_no_memory();

    if (!err)
        err = take_header(&r);
    if (!err)
        err = take_sections(&r);
    for (uint32_t run = 0; !err && run < r.own.runs.count; run++)
        err = run_set_copy(into, &r.own, run);
    run_set_deinit(&r.own);
    return err;
}

/* As far as a baseline may be long, and a byte more. */
static struct error *read_bytes(const char *path, int fd, struct buf *out)
{
    for (;;) {
        uint8_t *end = buf_reserve(out, 1 << 16);
        if (!end)
            return error_no_memory();
        ssize_t n = read(fd, end, 1 << 16);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_file(errno, path, "cannot read");
        if (!n)
            return NULL;
        out->len_bytes += (size_t)n;
        if (out->len_bytes > BASELINE_READ_MAX_BYTES)
            return error_path(ERROR_LIMIT, path, "longer than a baseline may be: %d bytes", BASELINE_READ_MAX_BYTES);
    }
}

struct error *baseline_read(const char *path, struct run_set *into)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct buf bytes = {0};

    if (fd < 0)
        return error_file(errno, path, "cannot open");
    struct error *err = read_bytes(path, fd, &bytes);
    if (!err)
        err = baseline_decode(path, bytes.data, bytes.len_bytes, into);
    buf_deinit(&bytes);
    close(fd);
    return err;
}
