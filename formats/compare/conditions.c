/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what runs were recorded on: a row of a table for each condition, which spells it. */
#include "formats/compare/conditions.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"

static void put_text(const struct sides *s, uint32_t text, struct buf *out)
{
    buf_put_str(out, run_set_text_get(s->set, text));
}

static void put_unit(const struct sides *s, const struct side_run *r, struct buf *out)
{
    put_text(s, r->event->unit, out);
}

static void put_rate(const struct sides *s, const struct side_run *r, struct buf *out)
{
    (void)s;
    if (r->event->frequency_hz)
        buf_printf(out, "%" PRIu64 " Hz", r->event->frequency_hz);
    else if (r->event->period)
        buf_printf(out, "every %" PRIu64, r->event->period);
}

static void put_backend(const struct sides *s, const struct side_run *r, struct buf *out)
{
    put_text(s, r->run->backend, out);
}

static void put_native(const struct sides *s, const struct side_run *r, struct buf *out)
{
    put_text(s, r->run->native, out);
}

static void put_pythons(const struct sides *s, const struct side_run *r, struct buf *out)
{
    put_text(s, r->run->pythons, out);
}

static void put_machine(const struct sides *s, const struct side_run *r, struct buf *out)
{
    put_text(s, r->run->machine, out);
}

static void put_cpu_model(const struct sides *s, const struct side_run *r, struct buf *out)
{
    put_text(s, r->run->cpu_model, out);
}

static void put_cpu_count(const struct sides *s, const struct side_run *r, struct buf *out)
{
    (void)s;
    if (r->run->cpu_count)
        buf_printf(out, "%" PRIu32, r->run->cpu_count);
}

/* "6.1" of "6.1.0-18-amd64". */
static void put_kernel(const struct sides *s, const struct side_run *r, struct buf *out)
{
    const char *release = run_set_text_get(s->set, r->run->kernel_release), *dot = strchr(release, '.');

    if (dot)
        buf_put(out, release, (size_t)(dot - release) + 1 + strspn(dot + 1, "0123456789"));
    else
        buf_put_str(out, release);
}

static void put_filters(const struct sides *s, const struct side_run *r, struct buf *out)
{
    if (r->run->filters)
        put_text(s, r->run->filters, out);
    else
        buf_put_str(out, "none");
}

struct condition {
    const char *name;
    void (*put)(const struct sides *s, const struct side_run *r, struct buf *out); /* nothing: not known */
};

static const struct condition condition_pythons = {"CPython", put_pythons};
static const struct condition conditions[] = {
    {"unit of the event", put_unit},  {"sampling rate", put_rate},     {"backend of pycap", put_backend},
    {"native stacks", put_native},    {"CPython", put_pythons},        {"architecture", put_machine},
    {"CPU model", put_cpu_model},     {"number of CPUs", put_cpu_count}, {"kernel", put_kernel},
    {"filters", put_filters},
};

/* The first run that is unlike the first one that is known; SIZE_MAX: none. *like is the latter. What is not known is
 * like everything. */
static size_t find_unlike(const struct sides *s, const struct condition *c, size_t *like, struct buf *first, struct buf *other)
{
    buf_clear(first);
    for (size_t i = 0; i < s->runs.count; i++) {
        buf_clear(other);
        c->put(s, &s->runs.data[i], other);
        if (!other->len_bytes)
            continue;
        if (!first->len_bytes) {
            *like = i;
            buf_put(first, other->data, other->len_bytes);
        } else if (strcmp(buf_cstr(first), buf_cstr(other))) {
            return i;
        }
    }
    return SIZE_MAX;
}

static struct error *add_problem(const struct sides *s, enum compare_problem_kind kind, struct buf *text, struct comparison *out)
{
    uint32_t number = run_set_text(s->set, buf_cstr(text), strlen(buf_cstr(text)));

    if (text->bad || number == RUN_SET_NONE)
        return error_no_memory();
    return VEC_PUSH(&out->problems, ((struct compare_problem){.kind = kind, .text = number})) ? NULL : error_no_memory();
}

static const char *run_name(const struct sides *s, size_t run)
{
    return run_set_text_get(s->set, s->runs.data[run].run->name);
}

/* Adds a problem for each condition that differs; `all` gets all of them as one text. */
static struct error *check_alike(const struct sides *s, struct comparison *out, struct buf *all)
{
    struct buf first = {0}, other = {0}, text = {0};
    struct error *err = NULL;

    for (size_t i = 0; i < sizeof conditions / sizeof *conditions && !err; i++) {
        size_t like = 0, unlike = find_unlike(s, &conditions[i], &like, &first, &other);
        if (unlike == SIZE_MAX)
            continue;
        buf_clear(&text);
        buf_printf(&text, "%s: %s in %s, %s in %s", conditions[i].name, buf_cstr(&first), run_name(s, like), buf_cstr(&other),
                   run_name(s, unlike));
        buf_printf(all, "%s%s", all->len_bytes ? "; " : "", buf_cstr(&text));
        err = add_problem(s, COMPARE_UNLIKE, &text, out);
    }
    if (!err && (first.bad || other.bad || all->bad))
        err = error_no_memory();
    buf_deinit(&first);
    buf_deinit(&other);
    buf_deinit(&text);
    return err;
}

/* The share of its ticks that a run lost. */
static double lost_share(const struct run_event *e)
{
    double lost = (double)e->lost, ticks = (double)e->ticks > lost ? (double)e->ticks : lost;

    return ticks > 0 ? lost / ticks : 0;
}

static bool lost_too_much(const struct side_run *r)
{
    return lost_share(r->event) > CONDITIONS_LOST_MOST;
}

static double run_samples(const struct side_run *r)
{
    return side_samples(r, r->event->total);
}

/* Runs that must not count, and whether enough are left without them. */
struct unusable {
    uint8_t *is; /* enum compare_problem_kind by run; UNUSABLE_NOT */
    bool leave;
};
enum { UNUSABLE_NOT = COMPARE_UNLIKE };

static bool find_unusable(const struct sides *s, struct unusable *out)
{
    size_t left[SIDE_COUNT] = {0};
    double mean = 0;

    out->is = calloc(s->runs.count, 1);
    for (size_t i = 0; i < s->runs.count; i++)
        mean += run_samples(&s->runs.data[i]) / (double)s->runs.count;
    for (size_t i = 0; i < s->runs.count && out->is; i++) {
        const struct side_run *r = &s->runs.data[i];
        bool small = run_samples(r) < fmin(CONDITIONS_SAMPLES_LEAST, CONDITIONS_SIZE_LEAST * mean);
        out->is[i] = lost_too_much(r) ? COMPARE_LOSSY : small ? COMPARE_SMALL : UNUSABLE_NOT;
        left[side_of(s, i)] += out->is[i] == UNUSABLE_NOT;
    }
    out->leave = left[SIDE_OLD] && left[SIDE_NEW] && left[SIDE_OLD] + left[SIDE_NEW] >= CONDITIONS_RUNS_LEAST;
    return out->is;
}

static void leave_out(struct sides *s, const struct unusable *u)
{
    size_t kept = 0, old = 0;

    for (size_t i = 0; i < s->runs.count; i++) {
        if (u->is[i] != UNUSABLE_NOT)
            continue;
        old += side_of(s, i) == SIDE_OLD;
        s->runs.data[kept++] = s->runs.data[i];
    }
    s->runs.count = kept;
    s->old_count = old;
}

static struct error *add_unusable(const struct sides *s, size_t run, const struct unusable *u, struct comparison *out)
{
    const struct side_run *r = &s->runs.data[run];
    struct buf text = {0};

    if (u->is[run] == COMPARE_LOSSY)
        buf_printf(&text, "%s lost %.1f %% of its samples, over %.0f %%", run_name(s, run), 100 * lost_share(r->event),
                   100 * CONDITIONS_LOST_MOST);
    else
        buf_printf(&text, "%s has hardly any samples (%.0f)", run_name(s, run), run_samples(r));
    if (u->leave)
        buf_put_str(&text, ": it is left out");
    out->conclusive &= u->leave;
    struct error *err = add_problem(s, u->is[run], &text, out);
    buf_deinit(&text);
    return err;
}

static struct error *check_usable(struct sides *s, struct comparison *out)
{
    struct unusable u;
    struct error *err = find_unusable(s, &u) ? NULL : error_no_memory();

    for (size_t i = 0; i < s->runs.count && !err; i++)
        if (u.is[i] != UNUSABLE_NOT)
            err = add_unusable(s, i, &u, out);
    if (!err && u.leave)
        leave_out(s, &u);
    free(u.is);
    return err;
}

static struct error *check_count(const struct sides *s, struct comparison *out)
{
    size_t new_count = s->runs.count - s->old_count;
    struct buf text = {0};
    struct error *err = NULL;

    if (s->runs.count < CONDITIONS_RUNS_LEAST) {
        buf_printf(&text, "%zu old and %zu new %s: at least three of each, or five against one, are needed to conclude anything",
                   s->old_count, new_count, new_count == 1 ? "run" : "runs");
        out->conclusive = false;
        err = add_problem(s, COMPARE_FEW, &text, out);
    }
    buf_deinit(&text);
    return err;
}

/* By work if all runs have it; without, the totals of commands that ran from start to end can be compared all the same. */
static struct error *check_work(const struct sides *s, struct comparison *out)
{
    bool work = true, command = true;
    struct buf text = {0};
    struct error *err = NULL;

    for (size_t i = 0; i < s->runs.count; i++) {
        double units = s->runs.data[i].run->work;
        work &= units >= RUN_WORK_LEAST && units <= RUN_WORK_MOST;
        command &= s->runs.data[i].run->has_command;
    }
    out->by_work = work;
    if (!work && !command) {
        buf_put_str(&text, "nothing says how much work the runs did: shares are compared, the total is not");
        err = add_problem(s, COMPARE_NO_WORK, &text, out);
    }
    buf_deinit(&text);
    return err;
}

struct error *conditions_check(struct sides *s, bool force, struct comparison *out)
{
    struct buf unlike = {0};

    out->conclusive = true;
    struct error *err = check_alike(s, out, &unlike);
    if (!err && unlike.len_bytes && !force)
        err = error_create(ERROR_UNSUPPORTED, "the captures are not alike (%s)", buf_cstr(&unlike));
    buf_deinit(&unlike);
    TRY(err);
    TRY(check_count(s, out));
    TRY(check_usable(s, out));
    return check_work(s, out);
}

bool conditions_same_pythons(const struct sides *s)
{
    struct buf first = {0}, other = {0};
    size_t like;
    bool same = find_unlike(s, &condition_pythons, &like, &first, &other) == SIZE_MAX;

    buf_deinit(&first);
    buf_deinit(&other);
    return same;
}
