/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changed mappings are written to a new place each time, because a sample that is being taken may read the old place.
 */
#include "capture/process/process_sampling.h"

#include <string.h>

#include "formats/base/clock.h"

/* How long a sample that is being taken may still read a place that was given back. */
#define GRACE_NS (50 * NS_PER_MS)

struct error *process_sampling_init(struct process_sampling *s, struct sampler *sampler, struct tables *tables)
{
    uint32_t count;

    *s = (struct process_sampling){.sampler = sampler, .tables = tables};
    if (!tables)
        return NULL;
    s->wire_mappings = sampler_mappings(sampler, &count);
    return extents_init(&s->space, count) ? NULL : error_no_memory();
}

void process_sampling_deinit(struct process_sampling *s)
{
    extents_deinit(&s->space);
    VEC_DEINIT(&s->mappings);
    VEC_DEINIT(&s->changed);
}

/* Returns the entry of a process, valid until the next call. NULL: out of memory. */
static struct sampled_mappings *note_of(struct process_sampling *s, struct process *p)
{
    if (!VEC_EXTEND_ZERO(&s->mappings, (size_t)p->slot + 1))
        return NULL;
    s->mappings.data[p->slot].process = p;
    return &s->mappings.data[p->slot];
}

/* ---- mappings ---- */

static struct error *lay_mappings(struct process_sampling *s, struct sampled_mappings *note, uint64_t time_ns)
{
    const struct process *p = note->process;
    uint32_t start, count = (uint32_t)code_mappings_count(&p->mappings);

    if (!extents_take(&s->space, count, &start))
        return NULL; /* no room: its samples will report a missing mapping */
    struct error *err = sampler_map_pages(s->sampler, s->wire_mappings + start, count * sizeof *s->wire_mappings);
    for (uint32_t i = 0; i < count && !err; i++)
        err = tables_map(s->tables, (pid_t)p->tgid, code_mappings_at(&p->mappings, i), time_ns, p->python != NULL,
                         &s->wire_mappings[start + i]);
    if (err) {
        extents_return(&s->space, start, count);
        return err;
    }
    extents_give(&s->space, note->start, note->count, time_ns);
    note->start = start;
    note->count = count;
    return NULL;
}

struct error *process_sampling_changed(struct process_sampling *s, struct process *p)
{
    if (!s->tables)
        return NULL;
    struct sampled_mappings *note = note_of(s, p);
    if (!note)
        return error_no_memory();
    if (note->changed)
        return NULL;
    /* A process maps many libraries at once, so copy the mappings once for all of them. */
    note->changed = true;
    return VEC_PUSH(&s->changed, p->slot) ? NULL : error_no_memory();
}

struct error *process_sampling_publish(struct process_sampling *s, uint64_t time_ns)
{
    if (!s->changed.count)
        return NULL;
    extents_free_after_grace(&s->space, time_ns - GRACE_NS);
    for (size_t i = 0; i < s->changed.count; i++) {
        struct sampled_mappings *note = &s->mappings.data[s->changed.data[i]];
        if (!note->changed) /* the process has ended */
            continue;
        note->changed = false;
        if (note->process->configured) {
            TRY(lay_mappings(s, note, time_ns));
            TRY(process_sampling_configure(s, note->process));
        }
    }
    s->changed.count = 0;
    return NULL;
}

/* ---- the process ---- */

static void count_python(struct process_sampling *s, struct process *p)
{
    if (p->counted || !process_has_python(p))
        return;
    p->counted = true;
    s->python_count++;
    s->python_ever++;
}

/*
 * Returns the ticks of a Python process that were lost before it was configured. Limits them to the ticks that the CPUs
 * had since its interpreter was mapped: before that it was not a Python process.
 */
static uint64_t late_ticks(struct process_sampling *s, const struct process *p)
{
    uint64_t ticks = sampler_late_ticks(s->sampler, p->tgid, p->since_ns);

    if (!ticks || !p->python_since_ns)
        return ticks;
    uint64_t most = sampler_most_ticks(s->sampler, now_ns() - p->python_since_ns);
    return ticks < most ? ticks : most;
}

struct error *process_sampling_configure(struct process_sampling *s, struct process *p)
{
    struct wire_process wire = {0}, now;

    if (!p->selected)
        return NULL;
    count_python(s, p);
    if (!s->sampler)
        return NULL;
    /* Keep what the sampler has found out about the process itself, or copied at a fork. */
    bool known = sampler_get_process(s->sampler, p->tgid, &now);
    bool inherited = known && now.flags & WIRE_PROCESS_INHERITED;
    if (known && (p->configured || inherited)) {
        wire.start_boottime_ns = now.start_boottime_ns;
        wire.exec_generation = now.exec_generation;
        wire.flags = now.flags & WIRE_PROCESS_BOUND;
    }
    if (process_python(p, &wire))
        TRY(sampler_layout(s->sampler, &p->python->python.layout, &wire.layout));
    if (p->switches_stacks)
        wire.flags |= WIRE_PROCESS_GREENLETS;
    if (p->slot < s->mappings.count) {
        wire.mapping_start = s->mappings.data[p->slot].start;
        wire.mapping_count = s->mappings.data[p->slot].count;
    }
    TRY(sampler_set_process(s->sampler, p->tgid, &wire));
    if (process_has_python(p) && !p->configured && !inherited)
        s->late_ticks += late_ticks(s, p);
    if (p->configured)
        return NULL;
    p->configured = true;
    return process_sampling_changed(s, p);
}

void process_sampling_disinherit(struct process_sampling *s, uint32_t tgid)
{
    if (s->sampler)
        sampler_remove_process(s->sampler, tgid);
}

void process_sampling_stop(struct process_sampling *s, struct process *p)
{
    if (p->configured)
        process_sampling_disinherit(s, p->tgid);
    if (p->counted)
        s->python_count--;
    p->configured = p->counted = false;
}

void process_sampling_drop(struct process_sampling *s, struct process *p)
{
    process_sampling_stop(s, p);
    if (p->slot >= s->mappings.count)
        return;
    struct sampled_mappings *note = &s->mappings.data[p->slot];
    /* From now on, not from the process's end: a sample may be under way that still looks there. */
    extents_give(&s->space, note->start, note->count, now_ns());
    *note = (struct sampled_mappings){0};
}
