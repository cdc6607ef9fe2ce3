/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/trace/trace_memory.h"

#include "capture/trace/trace_define.h"
#include "formats/base/clock.h"

/* A process that has new samples is read this often, so that little is unknown of one that ends; others less often. */
#define BUSY_NS (200 * NS_PER_MS)
#define QUIET_NS (10 * NS_PER_S)
/* Where there are hundreds of processes, those with new samples are read less often: one of them in this time. */
#define EACH_NS NS_PER_MS

void trace_memory_init(struct trace_memory *m, const struct event_list *events)
{
    m->file = 1;
    for (uint32_t i = 0; i < events->count; i++)
        m->wanted |= event_is_of_memory(events->list[i].source);
}

void trace_memory_deinit(struct trace_memory *m)
{
    VEC_DEINIT(&m->processes);
}

/* The note of a process, which may be that of one that had its slot before; NULL: out of memory. */
static struct memory_note *note_of(struct trace_builder *b, const struct process *p)
{
    if (!VEC_EXTEND_ZERO(&b->memory.processes, (size_t)p->slot + 1))
        return NULL;
    struct memory_note *n = &b->memory.processes.data[p->slot];
    if (n->life != p->life)
        *n = (struct memory_note){.life = p->life};
    return n;
}

static void write_reading(struct trace_builder *b, struct process_note *n, struct memory_note *m)
{
    const struct procfs_memory *now = &m->last;
    struct trace_process_memory record = {
        .process = trace_name_process(b, n),
        .time_ns = now->time_ns,
        .anonymous_bytes = now->anonymous_bytes,
        .file_bytes = now->file_bytes,
        .shared_bytes = now->shared_bytes,
        .swap_bytes = now->swap_bytes,
        .data_bytes = now->data_bytes,
        .minor_faults = now->minor_faults,
        .major_faults = now->major_faults,
    };

    trace_writer_put(b->o.writer, TRACE_process_memory, &record);
    m->file = b->memory.file;
    m->news = false;
}

/*
 * Reads a process, unless it has ended, runs another program by now, or more are read than the limit. What could not be
 * read is tried when it is due again.
 */
static bool read_process(struct trace_builder *b, const struct process *p, struct memory_note *m, uint64_t time_ns)
{
    struct procfs_memory now;

    m->tried_ns = time_ns;
    if (!quota_take(b->o.processes->quotas, p->slot, QUOTA_memory_readings, 1, time_ns) || !procfs_memory((pid_t)p->tgid, &now))
        return false;
    if (m->last.time_ns && m->last.image != now.image)
        return false;
    m->last = now;
    return true;
}

/* The same of a process that was never read: it may be gone, and have thousands of samples. */
static bool read_first(struct trace_builder *b, const struct process *p, struct memory_note *m, uint64_t time_ns)
{
    bool waits = m->tried_ns && time_ns - m->tried_ns < BUSY_NS;

    return !waits && !p->ended_ns && read_process(b, p, m, time_ns);
}

void trace_memory_sampled(struct trace_builder *b, struct process_note *n, uint32_t event)
{
    if (!b->memory.wanted || !event_is_of_memory(b->o.events.list[event].source))
        return;
    struct memory_note *m = note_of(b, n->process);
    if (!m) {
        b->no_memory = true;
        return;
    }
    if (m->file != b->memory.file && (m->last.time_ns || read_first(b, n->process, m, now_ns())))
        write_reading(b, n, m);
    m->news = true;
}

static uint64_t interval_ns(const struct trace_memory *memory, const struct memory_note *m)
{
    uint64_t all_ns = memory->processes.count * EACH_NS, busy_ns = all_ns > BUSY_NS ? all_ns : BUSY_NS;

    return m->news && busy_ns < QUIET_NS ? busy_ns : QUIET_NS;
}

static bool is_due(const struct trace_builder *b, const struct process *p, const struct memory_note *m, uint64_t time_ns)
{
    if (p->ended_ns || !processes_wants(b->o.processes, p))
        return false;
    if (!m->tried_ns)
        return true;
    return m->file == b->memory.file && time_ns - m->tried_ns >= interval_ns(&b->memory, m);
}

static struct error *read_memory(struct trace_builder *b, uint64_t time_ns, bool all)
{
    uint32_t cursor = 0;

    if (!b->memory.wanted)
        return NULL;
    for (struct process *p; (p = processes_next(b->o.processes, &cursor));) {
        struct memory_note *m = note_of(b, p);
        if (!m)
            return error_no_memory();
        bool in_file = m->file == b->memory.file;
        if (!(all && in_file && !p->ended_ns) && !is_due(b, p, m, time_ns))
            continue;
        if (!read_process(b, p, m, time_ns) || !in_file)
            continue;
        struct process_note *n = trace_notes_process(&b->notes, p);
        if (!n)
            return error_no_memory();
        write_reading(b, n, m);
    }
    return NULL;
}

struct error *trace_builder_read_memory(struct trace_builder *b, uint64_t time_ns)
{
    return read_memory(b, time_ns, false);
}

struct error *trace_builder_read_all_memory(struct trace_builder *b, uint64_t time_ns)
{
    return read_memory(b, time_ns, true);
}
