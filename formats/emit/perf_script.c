/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that `perf script` prints, for stackcollapse-perf.pl, inferno, speedscope and the Firefox Profiler:
 *
 *     python3      100/101     [003]    10.000001:          1 cpu-clock:
 *     <tab>    7f0000001000 py::C.run:/srv/x.py:42 (/usr/bin/python3.12)
 *     <tab>ffffffff81000000 do_syscall_64+0x5c ([kernel.kallsyms])
 *     <an empty line>
 *
 * Samples are written as they come; only the text of each frame is kept. The shape suits its readers:
 *
 *  - Two spaces after comm, and no white space in it: they look for a name of two characters and then for a number.
 *  - An empty line ends every sample, the last one too: stackcollapse-perf.pl drops a sample without one.
 *  - The period is 1, since stackcollapse-perf.pl adds it up as the count. Where samples differ in weight, counts would
 *    give wrong shares; then the period is the weight in the event's unit, as perf has it. Which of the two it is must
 *    be known when the first sample is written. For an event that counts occurrences, such as page faults, it is always
 *    that count.
 *  - The header line has a space behind the event's colon, as perf's own.
 *  - Python functions are spelled as in the maps that CPython writes for perf; `(inlined)` is perf's own mark.
 *  - No other lines: a comment at the start hides the file's format from the Firefox Profiler.
 *
 * Readers keep only the samples of the first event. With --threads the comm is the thread's name, as perf has it for
 * native threads; else it is the process's, so that flame graphs show a process as one tower.
 */
#include "formats/base/arena.h"
#include "formats/base/clock.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"
#include "formats/emit/text_write.h"
#include "formats/emit/weights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct text {
    const char *data; /* NULL: not made yet */
    size_t len_bytes;
};

struct perf_script {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct weights weights;
    struct arena arena;
    VEC(struct text) frames, events; /* by id */
    VEC(struct text) comms;
    struct map comm_of; /* index of a thread in `comms`; a map, since a part of a split output holds few of all threads */
    struct buf scratch, lines; /* `lines`: of the sample, until they are written */
};

static struct error *perf_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                void **state)
{
    struct perf_script *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    *p = (struct perf_script){.model = model, .options = *options, .out = out, .arena.limits = options->limits,
                              .comm_of.limits = options->limits};
    *state = p;
    return NULL;
}

static bool keep_text(struct perf_script *p, struct text *t)
{
    t->data = p->scratch.bad ? NULL : arena_dup(&p->arena, p->scratch.data, p->scratch.len_bytes);
    t->len_bytes = p->scratch.len_bytes;
    buf_clear(&p->scratch);
    return t->data;
}

/* NULL when memory ran out, as below. */
static const struct text *frame_text(struct perf_script *p, uint32_t id)
{
    while (id >= p->frames.count) {
        if (!limits_take(p->options.limits, sizeof(struct text)))
            return NULL;
        if (!VEC_PUSH(&p->frames, ((struct text){0}))) {
            limits_give(p->options.limits, sizeof(struct text));
            return NULL;
        }
    }
    struct text *t = &p->frames.data[id];
    if (t->data)
        return t;
    buf_printf(&p->scratch, "\t%16" PRIx64 " ", p->model->frames[id].address);
    name_perf(&p->model->frames[id], &p->options, &p->scratch);
    buf_put_u8(&p->scratch, '\n');
    return keep_text(p, t) ? t : NULL;
}

/* Comm, pid and tid. */
static const struct text *comm_text(struct perf_script *p, uint32_t id)
{
    const struct emit_thread *thread = &p->model->threads[id];
    const struct emit_process *process = &p->model->processes[thread->process];

    const uint64_t *known = map_get(&p->comm_of, id);
    if (known)
        return &p->comms.data[*known];
    if (!VEC_PUSH(&p->comms, ((struct text){0})) || !map_set(&p->comm_of, id, p->comms.count - 1))
        return NULL;
    struct text *t = &p->comms.data[p->comms.count - 1];
    name_word(p->options.threads && *thread->name ? thread->name : process->comm, &p->scratch);
    buf_printf(&p->scratch, "  %7u/%-7u ", process->pid, thread->tid);
    return keep_text(p, t) ? t : NULL;
}

static const struct text *event_text(struct perf_script *p, uint32_t id)
{
    while (id >= p->events.count) {
        if (!VEC_PUSH(&p->events, ((struct text){0})))
            return NULL;
    }
    struct text *t = &p->events.data[id];
    if (t->data)
        return t;
    buf_put_u8(&p->scratch, ' ');
    name_word(p->model->events[id].name, &p->scratch);
    buf_put_str(&p->scratch, ": \n");
    return keep_text(p, t) ? t : NULL;
}

static void put_text(struct perf_script *p, const struct text *t)
{
    buf_put(&p->lines, t->data, t->len_bytes);
    text_write_piece(&p->lines, p->out);
}

static uint64_t period_of(const struct perf_script *p, const struct emit_sample *s)
{
    const struct emit_event *event = &p->model->events[s->event];

    if (s->faults)
        return s->faults;
    return event_is_counted(event->kind) || p->options.weights_differ ? s->value : 1;
}

/* The CPU, the time in seconds and the period. */
static void put_numbers(struct perf_script *p, const struct emit_sample *s)
{
    buf_put_u8(&p->lines, '[');
    buf_put_decimal(&p->lines, s->cpu, 3, '0');
    buf_put_str(&p->lines, "] ");
    buf_put_decimal(&p->lines, s->time_ns / NS_PER_S, 5, ' ');
    buf_put_u8(&p->lines, '.');
    buf_put_decimal(&p->lines, s->time_ns % NS_PER_S / NS_PER_US, 6, '0');
    buf_put_str(&p->lines, ": ");
    buf_put_decimal(&p->lines, period_of(p, s), 10, ' ');
}

static struct error *perf_sample(void *state, const struct emit_sample *s)
{
    struct perf_script *p = state;
    const struct text *comm = comm_text(p, s->thread), *event = event_text(p, s->event);

    if (!comm || !event || !weights_add(&p->weights, weights_class_of(p->model, s->event), s->value))
        return error_no_memory();
    put_text(p, comm);
    put_numbers(p, s);
    put_text(p, event);
    for (uint32_t stack = s->stack; stack != EMIT_NO_STACK; stack = p->model->stacks[stack].parent) {
        const struct text *frame = frame_text(p, p->model->stacks[stack].frame);
        if (!frame)
            return error_no_memory();
        put_text(p, frame);
    }
    if (s->stack == EMIT_NO_STACK)
        buf_put_str(&p->lines, "\t               0 " NAME_NO_FRAMES " ([unknown])\n");
    buf_put_u8(&p->lines, '\n');
    if (p->lines.bad)
        return error_no_memory();
    fwrite(p->lines.data, 1, p->lines.len_bytes, p->out);
    buf_clear(&p->lines);
    if (p->options.part) /* there may be thousands */
        buf_deinit(&p->lines);
    return ferror(p->out) ? error_os(errno, "cannot write the samples") : NULL;
}

static struct error *perf_end(void *state)
{
    (void)state;
    return NULL;
}

static const char *perf_remark(const void *state)
{
    const struct perf_script *p = state;

    if (p->options.weights_differ)
        return "samples weigh differently: periods are weights";
    return p->weights.differ ? "samples weigh differently, but every period is 1, since the trace grew while it was read: "
                               "run pysym again"
                             : NULL;
}

static void perf_destroy(void *state)
{
    struct perf_script *p = state;

    if (!p)
        return;
    weights_deinit(&p->weights);
    arena_deinit(&p->arena);
    limits_give(p->options.limits, p->frames.count * sizeof(struct text));
    VEC_DEINIT(&p->frames);
    VEC_DEINIT(&p->comms);
    map_deinit(&p->comm_of);
    VEC_DEINIT(&p->events);
    buf_deinit(&p->scratch);
    buf_deinit(&p->lines);
    free(p);
}

const struct emitter emitter_perf_script = {
    .name = "perf-script",
    .description = "every sample as `perf script` prints it, for the Firefox Profiler and stackcollapse-perf",
    .extension = ".perf.txt",
    .time_order = true,
    .writes_each_sample = true,
    .wants_weights = true,
    .begin = perf_begin,
    .sample = perf_sample,
    .end = perf_end,
    .remark = perf_remark,
    .destroy = perf_destroy,
};
