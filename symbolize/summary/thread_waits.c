/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/thread_waits.h"

#include <stdlib.h>

#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "symbolize/summary/processes.h"
#include "symbolize/summary/summary_data.h"

enum { THREADS_SHOWN = 10 };

/* The times of one thread. */
struct thread_waits {
    uint32_t thread;
    uint64_t off_cpu_ns;
    const struct emit_exact_time *kinds[EMIT_WAITS]; /* NULL: none */
};
struct thread_waits_list {
    VEC(struct thread_waits) rows;
};

const char *thread_waits_name(enum emit_wait wait)
{
    const char *name = wait == EMIT_WAIT_NONE ? "on-CPU" : trace_value_meaning(TRACE_ENUM_wait_kind, wait);

    return name ? name : "";
}

static uint64_t key_of(uint32_t thread, enum emit_wait wait)
{
    return (uint64_t)thread << 32 | wait;
}

struct error *thread_waits_sum(const struct summary *s, const struct emit_model *m, struct map *out)
{
    *out = (struct map){.limits = s->limits};
    for (uint64_t i = 0; i < s->waited.slot_count; i++) {
        const struct map_slot *slot = &s->waited.slots[i];
        if (!slot->used)
            continue;
        uint64_t key = key_of((uint32_t)(slot->key >> 32), m->label_sets[(uint32_t)slot->key].wait);
        const uint64_t *known = map_get(out, key);
        if (!map_set(out, key, (known ? *known : 0) + slot->value))
            return error_no_memory();
    }
    return NULL;
}

static uint64_t sum_of(const struct map *sums, uint32_t thread, enum emit_wait wait)
{
    const uint64_t *ns = map_get(sums, key_of(thread, wait));

    return ns ? *ns : 0;
}

uint64_t thread_waits_sampled(const struct map *sums, const struct emit_exact_time *row)
{
    uint64_t sum = sum_of(sums, row->thread, row->wait);

    if (row->wait != EMIT_WAIT_ASLEEP)
        return sum;
    /* Exact times do not say for what the thread slept, but samples do. */
    for (int wait = EMIT_WAIT_NONE + 1; wait < EMIT_WAIT_ASLEEP; wait++)
        sum += wait == EMIT_WAIT_RUN_QUEUE || wait == EMIT_WAIT_PREEMPTED ? 0 : sum_of(sums, row->thread, (enum emit_wait)wait);
    return sum;
}

/* The rows of a thread do not stand side by side in the model. */
static bool list_threads(const struct emit_model *m, struct limits *limits, struct thread_waits_list *out)
{
    struct map known = {.limits = limits};
    bool good = true;

    for (uint32_t i = 0; good && i < m->exact_time_count; i++) {
        const struct emit_exact_time *time = &m->exact_times[i];
        const uint64_t *at = map_get(&known, time->thread);
        if (!at) {
            good = limits_take(limits, sizeof *out->rows.data) && map_set(&known, time->thread, out->rows.count) &&
                   VEC_PUSH(&out->rows, (struct thread_waits){.thread = time->thread});
            at = good ? map_get(&known, time->thread) : NULL;
        }
        if (at) {
            struct thread_waits *row = &out->rows.data[*at];
            row->kinds[time->wait] = time;
            row->off_cpu_ns += time->wait == EMIT_WAIT_NONE ? 0 : time->ns;
        }
    }
    map_deinit(&known);
    return good;
}

static int compare_threads(const void *a, const void *b)
{
    const struct thread_waits *x = a, *y = b;

    if (x->off_cpu_ns != y->off_cpu_ns)
        return x->off_cpu_ns > y->off_cpu_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static int compare_kinds(const void *a, const void *b)
{
    const struct emit_exact_time *x = *(const struct emit_exact_time *const *)a, *y = *(const struct emit_exact_time *const *)b;

    if (!x || !y)
        return (x == NULL) - (y == NULL);
    return x->ns != y->ns ? x->ns > y->ns ? -1 : 1 : (x->wait > y->wait) - (x->wait < y->wait);
}

static struct error *print_row(const struct emit_model *m, const struct map *sampled, const struct thread_waits *row, int columns,
                               FILE *out)
{
    const struct emit_exact_time *waits[EMIT_WAITS - 1], *on_cpu = row->kinds[EMIT_WAIT_NONE];
    struct buf name = {0}, text = {0};

    for (int i = 1; i < EMIT_WAITS; i++)
        waits[i - 1] = row->kinds[i];
    qsort(waits, EMIT_WAITS - 1, sizeof *waits, compare_kinds);
    printable_put(&name, m->threads[row->thread].name);
    columns_fill(&text, buf_cstr(&name), (size_t)columns);
    buf_printf(&text, "%12.3f ", on_cpu ? (double)on_cpu->ns / 1e9 : 0);
    for (int i = 0; i < EMIT_WAITS - 1 && waits[i]; i++) {
        const char *kind = thread_waits_name(waits[i]->wait);
        buf_printf(&text, "%s %s %.3f (%.3f)", i ? "," : "", *kind ? kind : "of a newer kind", (double)waits[i]->ns / 1e9,
                   (double)thread_waits_sampled(sampled, waits[i]) / 1e9);
    }
    fprintf(out, "  %8u  %s\n", m->threads[row->thread].tid, buf_cstr(&text));
    struct error *err = name.bad || text.bad ? error_no_memory() : NULL;
    buf_deinit(&name);
    buf_deinit(&text);
    return err;
}

struct error *thread_waits_print(const struct summary *s, const struct resolver *r, bool all, FILE *out)
{
    const struct emit_model *m = resolver_model(r);
    struct thread_waits_list list = {0};
    struct map sampled;
    struct error *err = thread_waits_sum(s, m, &sampled);

    if (!err && !list_threads(m, s->limits, &list))
        err = error_no_memory();
    size_t count = list.rows.count, shown = all || count < THREADS_SHOWN ? count : THREADS_SHOWN;
    int columns = PROCESSES_NAME_LEAST;
    struct number n;

    if (count)
        qsort(list.rows.data, count, sizeof *list.rows.data, compare_threads);
    for (size_t i = 0; i < shown; i++)
        columns = processes_name_columns(m->threads[list.rows.data[i].thread].name, 0, columns);
    if (count && !err)
        fprintf(out, "Time of threads in s, exactly; in brackets what the samples of waits add up to\n  %8s  %-*s%12s  %s\n", "tid",
                columns, "thread", "on a CPU", "waiting");
    for (size_t i = 0; !err && i < shown; i++)
        err = print_row(m, &sampled, &list.rows.data[i], columns, out);
    if (shown < count && !err)
        fprintf(out, "  and %s more (-v)\n", grouped(count - shown, &n));
    if (count && !err)
        fputc('\n', out);
    limits_give(s->limits, list.rows.count * sizeof *list.rows.data);
    VEC_DEINIT(&list.rows);
    map_deinit(&sampled);
    return err;
}
