/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/tally_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/proportion.h"

enum { PROGRAMS_SHOWN = 3 };
static const char note_prefix[] = "note.";

void tally_facts_deinit(struct tally_facts *f)
{
    VEC_DEINIT(&f->samples);
}

bool tally_facts_sample(struct tally_facts *f, const struct emit_model *m, const struct run_set *set, const struct emit_sample *s)
{
    uint32_t process = m->threads[s->thread].process;

    if (process >= f->samples.count && !VEC_EXTEND_COUNTED(set->limits, &f->samples, (size_t)process + 1))
        return false;
    f->samples.data[process]++;
    return true;
}

static const char *setting(const struct emit_capture *c, const char *key)
{
    for (uint32_t i = 0; i < c->setting_count; i++) {
        if (!strcmp(c->settings[i].key, key))
            return c->settings[i].value;
    }
    return "";
}

static bool put_text(struct run_set *set, const char *text, uint32_t *out)
{
    *out = run_set_text(set, text, strlen(text));
    return *out != RUN_SET_NONE;
}

static bool put_buf(struct run_set *set, struct buf *text, uint32_t *out)
{
    bool ok = !text->bad && put_text(set, buf_cstr(text), out);

    buf_deinit(text);
    return ok;
}

/* ---- who was sampled ---- */

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *na = a, *nb = b;

    return (*na > *nb) - (*na < *nb);
}

/* "3.12 3.13t": the t is for builds without a GIL. */
static bool put_pythons(const struct tally_facts *f, const struct emit_model *m, struct run_set *set, uint32_t *out)
{
    VEC(uint32_t) versions = {0}; /* major, minor, free-threaded: 8 bits each */
    struct buf text = {0};
    bool ok = true;

    for (uint32_t i = 0; ok && i < f->samples.count; i++) {
        const struct emit_process *p = &m->processes[i];
        if (f->samples.data[i] && p->python_version)
            ok = VEC_PUSH(&versions, p->python_version >> 16 << 8 | p->free_threaded);
    }
    if (versions.count)
        qsort(versions.data, versions.count, sizeof *versions.data, compare_numbers);
    for (size_t i = 0; i < versions.count; i++) {
        uint32_t v = versions.data[i];
        if (!i || v != versions.data[i - 1])
            buf_printf(&text, "%s%u.%u%s", i ? " " : "", v >> 16, v >> 8 & 0xff, v & 1 ? "t" : "");
    }
    VEC_DEINIT(&versions);
    return put_buf(set, &text, out) && ok;
}

/* The process with most samples whose name none of the chosen ones has. */
static const char *next_program(const struct tally_facts *f, const struct emit_model *m, const char *const *chosen, int count)
{
    const char *best = NULL;
    uint64_t most = 0;

    for (uint32_t i = 0; i < f->samples.count; i++) {
        const char *name = m->processes[i].name;
        bool known = f->samples.data[i] <= most;
        for (int k = 0; !known && k < count; k++)
            known = !strcmp(name, chosen[k]);
        if (known)
            continue;
        best = name;
        most = f->samples.data[i];
    }
    return best;
}

/* "gunicorn, celery and others" */
static bool put_programs(const struct tally_facts *f, const struct emit_model *m, struct run_set *set, uint32_t *out)
{
    const char *chosen[PROGRAMS_SHOWN + 1];
    struct buf text = {0};
    int count = 0;

    while (count <= PROGRAMS_SHOWN && (chosen[count] = next_program(f, m, chosen, count)))
        count++;
    for (int i = 0; i < count && i < PROGRAMS_SHOWN; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", chosen[i]);
    if (count > PROGRAMS_SHOWN)
        buf_put_str(&text, " and others");
    return put_buf(set, &text, out);
}

/* ---- the recording ---- */

static double positive_number(const char *text)
{
    char *end;
    double number = strtod(text, &end);

    return end > text && !*end && isfinite(number) && number > 0 ? number : 0;
}

static bool take_notes(const struct emit_capture *c, struct run_set *set, struct run *out)
{
    const size_t prefix = sizeof note_prefix - 1;
    struct run_note note;

    for (uint32_t i = 0; i < c->setting_count; i++) {
        if (strncmp(c->settings[i].key, note_prefix, prefix) != 0)
            continue;
        if (!put_text(set, c->settings[i].key + prefix, &note.key) || !put_text(set, c->settings[i].value, &note.value) ||
            !limits_take(set->limits, sizeof note) || !VEC_PUSH(&out->notes, note))
            return false;
    }
    out->work = positive_number(setting(c, "note.work"));
    return true;
}

bool tally_facts_run(struct tally_facts *f, const struct emit_model *m, struct run_set *set, uint32_t capture, struct run *out)
{
    const struct emit_capture *c = &m->captures[capture];

    out->cpu_count = c->cpu_count;
    out->start_realtime_ns = c->start_realtime_ns;
    out->duration_ns = c->duration_ns;
    out->has_command = !strcmp(setting(c, "scope"), "command");
    out->command_wall_ns = strtoull(setting(c, "command.wall_ns"), NULL, 10);
    bool ok = put_text(set, c->name, &out->name) && put_text(set, c->hostname, &out->host) &&
              put_text(set, c->kernel_release, &out->kernel_release) && put_text(set, c->machine, &out->machine) &&
              put_text(set, c->cpu_model, &out->cpu_model) && put_text(set, c->recorder, &out->recorder) &&
              put_text(set, setting(c, "backend"), &out->backend) && put_text(set, setting(c, "unwind"), &out->native) &&
              put_text(set, m->filters, &out->filters) && put_pythons(f, m, set, &out->pythons) &&
              put_programs(f, m, set, &out->programs) && take_notes(c, set, out);
    limits_give(set->limits, f->samples.count * sizeof *f->samples.data);
    f->samples.count = 0;
    return ok && limits_work(set->limits, 10 * (uint64_t)m->process_count + c->setting_count);
}

/* ---- events ---- */

static const struct emit_rate *rate_of(const struct emit_model *m, uint32_t capture, uint32_t event)
{
    const struct emit_capture *c = &m->captures[capture];

    for (uint32_t i = 0; i < c->rate_count; i++) {
        if (c->rates[i].event == event)
            return &c->rates[i];
    }
    return NULL;
}

bool tally_facts_has_event(const struct emit_model *m, uint32_t capture, uint32_t event)
{
    return rate_of(m, capture, event);
}

/*
 * Samples of no event in particular that were lost count for all: they may have been any one's. `rate` may be NULL.
 */
static uint64_t lost_of(const struct emit_capture *c, const struct emit_rate *rate, const char *event)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; i < c->loss_count; i++) {
        const struct emit_loss *loss = &c->losses[i];
        if (!loss->is_sample || (*loss->event && strcmp(loss->event, event)))
            continue;
        lost += rate && loss->is_everywhere ? proportion_up(loss->count, rate->own_ticks, rate->busy_ticks) : loss->count;
    }
    return lost;
}

bool tally_facts_event(const struct emit_model *m, struct run_set *set, uint32_t capture, uint32_t event, struct run_event *out)
{
    const struct emit_rate *rate = rate_of(m, capture, event);
    const struct emit_event *e = &m->events[event];

    out->kind = e->kind;
    out->lost = lost_of(&m->captures[capture], rate, e->name);
    out->ticks = out->samples + out->lost;
    if (rate) {
        out->frequency_hz = rate->frequency_hz;
        out->period = rate->period;
        out->ticks = (rate->samples > out->samples ? rate->samples : out->samples) + out->lost;
    }
    return put_text(set, e->name, &out->name) && put_text(set, e->unit, &out->unit) &&
           limits_work(set->limits, 10 * (uint64_t)(m->captures[capture].rate_count + m->captures[capture].loss_count));
}
