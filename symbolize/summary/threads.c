/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/threads.h"

#include <string.h>

#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/base/sort.h"
#include "symbolize/summary/summary_data.h"

enum { ROWS_SHOWN = 10 };

static int compare_threads(const void *a, const void *b)
{
    const struct thread_entry *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns > y->time_ns ? -1 : 1;
    if (x->sample_count != y->sample_count)
        return x->sample_count > y->sample_count ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool add_threads(struct summary *s, const struct emit_model *m, const struct process_list *processes, struct thread_list *out)
{
    for (size_t i = 0; i < s->threads.count; i++) {
        const struct thread_row *row = &s->threads.data[i];
        const uint64_t *at = row->sample_count ? map_get(&processes->of_process, m->threads[i].process) : NULL;
        if (!at)
            continue;
        const struct process_entry *process = &processes->entries.data[*at];
        struct thread_entry entry = {.pid = process->row->pid, .tid = m->threads[i].tid, .process = process,
                                     .name = printable_keep(&s->texts, m->threads[i].name),
                                     .sample_count = row->sample_count, .time_ns = row->time_ns,
                                     .duration_ns = process->duration_ns};
        if (!entry.name || !VEC_PUSH(&out->entries, entry))
            return false;
    }
    return true;
}

struct error *threads_list(struct summary *s, const struct resolver *r, const struct process_list *processes,
                           struct thread_list *out)
{
    const struct emit_model *m = resolver_model(r);

    *out = (struct thread_list){0};
    bool good = add_threads(s, m, processes, out) &&
                sort_stable(out->entries.data, out->entries.count, sizeof *out->entries.data, compare_threads);
    if (good)
        return NULL;
    threads_deinit(out);
    return error_no_memory();
}

void threads_deinit(struct thread_list *list)
{
    VEC_DEINIT(&list->entries);
}

static struct error *print_rows(const struct summary *s, const struct thread_list *list, bool all, FILE *out)
{
    size_t count = list->entries.count, shown = all || count < ROWS_SHOWN ? count : ROWS_SHOWN;
    int thread = PROCESSES_NAME_LEAST, process = PROCESSES_NAME_LEAST;
    struct buf names = {0};
    struct number n;

    for (size_t i = 0; i < shown; i++) {
        thread = processes_name_columns(list->entries.data[i].name, 0, thread);
        process = processes_name_columns(list->entries.data[i].process->name_and_title, 0, process);
    }
    fprintf(out, "Busiest threads\n  %8s  %-*s  %-*s%12s%s\n", "tid", thread, "thread", process, "process", "samples",
            s->time_event ? "      running" : "");
    for (size_t i = 0; i < shown; i++) {
        const struct thread_entry *e = &list->entries.data[i];
        buf_clear(&names);
        columns_fill(&names, e->name, (size_t)thread);
        buf_put_str(&names, "  ");
        columns_fill(&names, e->process->name_and_title, (size_t)process);
        fprintf(out, "  %8u  %s%12s", e->tid, buf_cstr(&names), grouped(e->sample_count, &n));
        if (s->time_event)
            fprintf(out, "%13s", share_text(e->time_ns, e->duration_ns, &n));
        fputc('\n', out);
    }
    if (shown < count)
        fprintf(out, "  and %s more (-v)\n", grouped(count - shown, &n));
    fputc('\n', out);
    struct error *err = names.bad ? error_no_memory() : NULL;
    buf_deinit(&names);
    return err;
}

struct error *threads_print(struct summary *s, const struct resolver *r, bool all, FILE *out)
{
    struct thread_list list = {0};
    struct process_list processes;
    bool several = false;

    TRY(processes_list(s, r, &processes));
    for (size_t i = 0; i < processes.entries.count; i++)
        several |= processes.entries.data[i].thread_count > 1;
    struct error *err = several ? threads_list(s, r, &processes, &list) : NULL;
    if (!err && several)
        err = print_rows(s, &list, all, out);
    threads_deinit(&list);
    processes_deinit(&processes);
    return err;
}
