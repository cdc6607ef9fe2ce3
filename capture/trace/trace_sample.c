/* SPDX-License-Identifier: Apache-2.0 */
/* Writes samples: finds the owner of each, finds the ids of its stacks, and writes one record. */
#include <string.h>

#include "capture/process/process.h"
#include "capture/trace/blame.h"
#include "capture/trace/kernel_cut.h"
#include "capture/trace/sample_labels.h"
#include "capture/trace/stacks.h"
#include "capture/trace/trace_builder.h"
#include "capture/trace/trace_define.h"
#include "capture/trace/trace_memory.h"
#include "capture/trace/trace_parts.h"
#include "capture/trace/wait_sites.h"

/*
 * Counts a sample of a process that is not recorded: its tick counts as one in other processes, and what its hit counted as
 * theirs. A wait counts once.
 */
static void count_unwanted(struct trace_builder *b, const struct wire_sample *m)
{
    if (m->flags & WIRE_CONTINUES)
        return;
    uint32_t cpu = m->cpu < CPUS_MAX ? m->cpu : 0;
    b->events[m->event].unwanted[cpu]++;
    b->events[m->event].unwanted_value[cpu] += m->period;
}

static void count_unread(struct trace_builder *b, const struct wire_sample *m)
{
    b->events[m->event].reader_slow++;
    if (b->o.events.list[m->event].source->kind == EVENT_GROWTH)
        b->events[m->event].unread_bytes += m->period;
}

/* The parts of a sample's message. The pointers point into the message. */
struct parts {
    const struct wire_sample *m;
    const uint64_t *kernel;
    const struct wire_python *python;
    uint32_t python_count;
    struct late_unwind_result native;
    const uint8_t *task, *stack;
};

static struct error *parse(const struct trace_builder *b, const struct wire_sample *m, uint32_t len_bytes, struct parts *out)
{
    if (len_bytes < sizeof *m || m->event >= b->o.events.count || m->kernel_count > WIRE_KERNEL_MAX ||
        m->python_count > WIRE_PYTHON_MAX ||
        m->native_count > WIRE_NATIVE_MAX ||
        len_bytes - sizeof *m <
            m->kernel_count * UINT64_C(8) + m->python_count * sizeof(struct wire_python) +
                m->native_count * sizeof(struct native_frame) + (uint64_t)m->task_len_bytes + m->stack_len_bytes)
        return error_create(ERROR_FORMAT, "the sampler sent a malformed message");
    out->m = m;
    out->kernel = (const uint64_t *)(m + 1);
    out->python = (const struct wire_python *)(out->kernel + m->kernel_count);
    out->python_count = m->python_count;
    out->native = (struct late_unwind_result){
        .frames = (const struct native_frame *)(out->python + m->python_count),
        .count = m->native_count,
        .end = m->native_end,
        .last_cfa = m->native_last_cfa,
    };
    out->task = (const uint8_t *)(out->native.frames + m->native_count);
    out->stack = out->task + m->task_len_bytes;
    return NULL;
}

/* The process of a task that was looked at, if it is still the program that it was. */
static struct process *process_of_task(const struct trace_builder *b, const struct wire_sample *m)
{
    struct process *p = processes_find(b->o.processes, m->tgid);

    return p && p->life == m->wait_site ? p : NULL;
}

/* Finds the process of a sample. When the sample is not to be recorded, counts it and stores NULL in `*note`. */
static struct error *find_owner(struct trace_builder *b, const struct wire_sample *m, struct process_note **note,
                                struct thread **thread)
{
    struct process *p;

    *note = NULL;
    if (m->flags & WIRE_TASK)
        p = process_of_task(b, m);
    else
        TRY(processes_of_sample(b->o.processes, m, &p));
    if (!p) {
        /*
         * No event announced the process, so we do not follow it. With whole_host it may have been a Python process, and
         * the sample counts as lost.
         */
        if (m->flags & WIRE_UNCONFIGURED && !b->o.whole_host)
            count_unwanted(b, m);
        else
            b->events[m->event].process_gone++;
        return NULL;
    }
    /* It was sampled because it might have been Python, or it has called exec since. */
    if (!processes_wants(b->o.processes, p)) {
        count_unwanted(b, m);
        return NULL;
    }
    if (trace_writer_full(b->o.writer)) {
        b->events[m->event].file_full++;
        return NULL;
    }
    if (b->drops_samples) {
        count_unread(b, m);
        return NULL;
    }
    if (!p->configured && b->o.include_non_python)
        TRY(processes_configure(b->o.processes, p));
    *thread = process_thread(p, m->tid);
    *note = *thread ? trace_notes_process(&b->notes, p) : NULL;
    return *note ? NULL : error_no_memory();
}

/* Whether it is of a thread of Python that slept, and that has no stack because its turn to be read did not come. */
static bool is_unread(const struct wire_sample *m, const struct process *p)
{
    return m->flags & WIRE_STACK_UNREAD && process_has_python(p);
}

/* An interpreter that has not begun has no states: of what it has not touched there are no pages that could be read. */
static bool may_have_state(const struct process *p)
{
    return !p->since_ns || p->ran_python;
}

/* Whether the thread is in the eval loop of an interpreter that is not the one whose frames are read. */
static bool is_in_rival(const struct process *p, const struct late_unwind_result *native)
{
    for (uint32_t i = 0; p->rival && i < native->count; i++) {
        if (py_image_in_eval(&p->rival->python, native_frame_code(&native->frames[i]) - p->rival_bias))
            return true;
    }
    return false;
}

/* Returns how the walk of the Python frames ended; corrects the sampler's answer where user space knows more. */
static uint32_t end_of_python(struct trace_builder *b, const struct parts *s, const struct process *p)
{
    const struct wire_sample *m = s->m;
    uint32_t end = m->python_end;

    if (m->flags & WIRE_IN_EXEC)
        end = LOSS_in_exec;
    else if (m->flags & WIRE_STALE)
        end = LOSS_stale_config;
    else if (m->flags & WIRE_UNCONFIGURED && p->python)
        end = LOSS_not_yet_known;
    else if (is_unread(m, p))
        end = LOSS_sleeper_unread;
    else if (m->flags & WIRE_STATE_UNREAD)
        end = may_have_state(p) ? LOSS_thread_state_fault : end;
    else if (!end && is_in_rival(p, &s->native))
        end = LOSS_other_python;
    if (end != m->python_end)
        b->losses[end]++;
    return end;
}

/* Completes the native stack, and stores why it ends where it does. */
static struct error *complete_native(struct trace_builder *b, const struct process *p, struct parts *s, uint32_t python_end)
{
    struct late_unwind_result *native = &s->native;

    TRY(late_unwind_complete(b->o.late_unwind, p, s->m, s->stack, native));
    if (native->end > LOSS_complete)
        b->losses[native->end]++;
    /*
     * When not all processes are recorded, the sampler does not unwind one that may turn out not to be wanted. Of a thread whose
     * turn did not come no stack was read.
     */
    if ((python_end == LOSS_not_yet_known || python_end == LOSS_sleeper_unread || python_end == LOSS_in_exec) && !native->end &&
        b->o.late_unwind)
        native->end = python_end;
    return NULL;
}

/* The stack bytes up to the first page that could not be read: a SNAPSHOT has no holes. */
static uint32_t snapshot_bytes(const struct wire_sample *m)
{
    if (!m->stack_holes)
        return m->stack_len_bytes;
    uint64_t first_page = wire_stack_address(m) / ARCH_PAGE_BYTES, hole = first_page + (uint32_t)__builtin_ctz(m->stack_holes);

    return hole > first_page ? (uint32_t)(hole * ARCH_PAGE_BYTES - wire_stack_address(m)) : 0;
}

static void put_snapshot(struct trace_builder *b, const struct process_note *n, const struct parts *s,
                         struct trace_tuple *tuple)
{
    const struct wire_sample *m = s->m;
    uint64_t registers[WIRE_REGISTERS];

    memcpy(registers, m->registers, sizeof registers);
    struct trace_snapshot snapshot = {
        .process = n->record.id,
        .stack_address = wire_stack_address(m),
        .stack_size = m->stack_size ? m->stack_size + wire_stack_below(m) : 0,
        .registers = {registers, WIRE_REGISTERS},
        .stack = {s->stack, snapshot_bytes(m)},
    };
    trace_writer_put(b->o.writer, TRACE_snapshot, &snapshot);
    tuple->snapshot = snapshot.id;
}

/*
 * Joins the Python runs with the native frames, and returns the id of the JOIN record; 0 when there is nothing to join.
 */
static uint32_t join_of(struct trace_builder *b, const struct process *p, const struct parts *s, uint32_t run_count, bool by_count,
                        bool snapshot)
{
    bool in_sub = s->m->interpreter_id && s->m->interpreter_id != WIRE_INTERPRETER_ID_NONE;

    struct trace_join by_counting = {.kind = TRACE_JOIN_COUNT};
    struct trace_join by_record = {.kind = TRACE_JOIN_RECORD, .runs = {b->runs, run_count}};

    if (!run_count || (!s->native.count && !snapshot))
        return 0;
    if (by_count && in_sub && s->native.count && !p->switches_stacks)
        return stacks_join_innermost(b, p, &s->native, run_count);
    if (by_count)
        return trace_writer_intern(b->o.writer, TRACE_join, &by_counting);
    return s->native.count ? stacks_join(b, &s->native, run_count) : trace_writer_intern(b->o.writer, TRACE_join, &by_record);
}

/* The frames of a sample's Python stack, as they are put into b->entries and b->runs. */
struct split {
    uint32_t frame_count, run_count;
    bool by_count; /* runs are joined with native frames by counting */
};

static struct split split_python(struct trace_builder *b, const struct process *p, const struct parts *s)
{
    struct split split = {0};

    uint64_t bias;
    const struct py_image *image = stacks_interpreter(b, p, &bias);

    if (image && image->layout.frame_kind == PY_FRAMES_OBJECT) {
        /* Greenlet adds records of its own to the chain. One at the outer end would hide that another is missing. */
        split.by_count = !stacks_split_objects(b, s->python, s->python_count, &split.frame_count) || p->switches_stacks;
        split.run_count = split.frame_count;
    } else {
        split.frame_count = stacks_split(b, s->python, s->python_count, &split.run_count);
    }
    return split;
}

/* Frames that stay of each stack of a process whose new stacks take too much. */
#define FRAMES_KEPT 32

/* Cuts the outer frames off. The reasons say so in the sample; how many samples that were is counted for the process. */
static void cut_stacks(struct parts *s, struct trace_tuple *tuple)
{
    struct late_unwind_result *native = &s->native;

    if (s->python_count > FRAMES_KEPT) {
        s->python_count = FRAMES_KEPT;
        tuple->python_end = LOSS_python_too_deep;
    }
    if (native->count > FRAMES_KEPT) {
        native->last_cfa = native->frames[FRAMES_KEPT].sp;
        native->count = FRAMES_KEPT;
        native->end = LOSS_native_too_deep;
    }
    tuple->native_end = native->end;
}

/* Writes the sample's stacks and their join as a tuple. */
static struct error *put_tuple(struct trace_builder *b, struct process_note *n, struct parts *s, uint32_t *id)
{
    const struct wire_sample *m = s->m;
    const struct process *p = n->process;
    struct trace_tuple tuple = {.python_end = end_of_python(b, s, p)};

    n->process->ran_python |= m->python_count != 0;
    /* Without native frames nothing tells that it is in another interpreter. */
    bool in_other = tuple.python_end == LOSS_other_python || (!m->python_count && !s->native.count);
    if (in_other && processes_choose_python(b->o.processes, n->process))
        TRY(processes_configure(b->o.processes, n->process));
    if (m->native_end == LOSS_no_module)
        TRY(processes_open_again(b->o.processes, n->process, m->time_ns));
    TRY(complete_native(b, p, s, tuple.python_end));
    tuple.native_end = s->native.end;
    if (m->kernel_count) {
        uint32_t cut = 0;
        if (m->flags & WIRE_WAITS)
            TRY(kernel_cut_switch(b, s->kernel, m->kernel_count, m->time_ns, &cut));
        else if (b->o.events.list[m->event].source->kind == EVENT_TRACEPOINT)
            TRY(kernel_cut_tracepoint(b, s->kernel, m->kernel_count, m->time_ns, &cut));
        TRY(stacks_kernel(b, s->kernel + cut, m->kernel_count - cut, m->time_ns, &tuple.kernel_stack));
    }
    struct split split = split_python(b, p, s);
    if (stacks_are_over(b, n, split.frame_count, s->native.frames, s->native.count, m->time_ns)) {
        cut_stacks(s, &tuple);
        split = split_python(b, p, s);
    }
    uint64_t bytes = trace_writer_epoch_bytes(b->o.writer);
    b->code_bytes = 0;
    TRY(stacks_python(b, n, split.frame_count, &tuple.python_stack));
    TRY(stacks_native(b, n, s->native.frames, s->native.count, &tuple.native_stack));
    bool snapshot = b->o.snapshots && snapshot_bytes(m);
    tuple.join = join_of(b, p, s, split.run_count, split.by_count, snapshot);
    stacks_charge(b, n, bytes, m->time_ns);
    if (snapshot)
        put_snapshot(b, n, s, &tuple);
    /* A snapshot never repeats, so neither does the tuple that holds it: interning it would only cost memory. */
    if (snapshot)
        trace_writer_put(b->o.writer, TRACE_tuple, &tuple);
    else
        tuple.id = trace_writer_intern(b->o.writer, TRACE_tuple, &tuple);
    *id = tuple.id;
    return NULL;
}

/* A process that has executed another program is still the one that it was. */
static void count_process(struct trace_builder *b, struct process_note *n)
{
    const struct process *p = n->process;
    const uint64_t *known = map_get(&b->sampled, p->tgid);

    n->sampled = true;
    if (known && *known == p->start_boottime_ns)
        return;
    b->counts.processes++;
    if (!map_set(&b->sampled, p->tgid, p->start_boottime_ns))
        b->no_memory = true;
}

static void count_sample(struct trace_builder *b, struct process_note *n, const struct wire_sample *m, uint64_t value)
{
    if (!n->sampled)
        count_process(b, n);
    b->events[m->event].value += value;
    b->events[m->event].samples++;
    b->counts.newest_ns = m->time_ns > b->counts.newest_ns ? m->time_ns : b->counts.newest_ns;
    b->counts.samples++;
    b->file_samples++;
    if (m->python_end == LOSS_complete)
        b->counts.python_complete++;
    else if (m->python_end || is_unread(m, n->process))
        b->counts.python_cut++;
    else
        b->counts.no_python++;
}

struct error *trace_builder_sample(struct trace_builder *b, const struct wire_sample *m, uint32_t len_bytes)
{
    struct trace_writer *w = b->o.writer;
    struct process_note *n;
    struct thread *t;
    struct parts parts;

    TRY(parse(b, m, len_bytes, &parts));
    struct trace_sample sample = {
        .time_ns = m->time_ns,
        .cpu = m->cpu,
        .flags = (m->flags & WIRE_IN_KERNEL ? TRACE_SAMPLE_KERNEL : 0) |
                 (m->flags & WIRE_GIL_KNOWN ? TRACE_SAMPLE_GIL_KNOWN : 0) |
                 (m->flags & WIRE_GIL ? TRACE_SAMPLE_GIL : 0) | (m->flags & WIRE_CONTINUES ? TRACE_SAMPLE_CONTINUES : 0) |
                 (m->flags & WIRE_LASTS ? TRACE_SAMPLE_LASTS : 0),
    };
    if (!(m->flags & WIRE_CONTINUES))
        b->events[m->event].handled[m->cpu < CPUS_MAX ? m->cpu : 0]++;
    TRY(find_owner(b, m, &n, &t));
    if (!n)
        return NULL;
    b->time_ns = m->time_ns;
    b->of_rival = m->flags & WIRE_RIVAL;
    quota_refuse(b->o.processes->quotas, n->process->slot, QUOTA_ring_bytes, m->flags & WIRE_CUT ? 1 : 0);
    trace_define_process(b, n);
    blame_define(b, n->process);
    trace_memory_sampled(b, n, m->event);
    TRY(put_tuple(b, n, &parts, &sample.tuple));
    TRY(trace_define_thread(b, n, t, m, &sample.thread));
    if ((sample.label_set = sample_labels(b, n->process, m, parts.task, sample_waker(b, m))))
        sample.flags |= TRACE_SAMPLE_LABELS;
    if (m->period != b->events[m->event].period || m->flags & WIRE_WAITS) {
        sample.flags |= TRACE_SAMPLE_VALUE;
        sample.value = m->period;
    }
    if ((m->waited_ns || m->owed_ns) && !wait_sites_pay(b, m, &sample))
        return error_no_memory();
    trace_writer_sample(w, b->events[m->event].trace_id, &sample);
    if (b->no_memory)
        return error_no_memory();
    if (trace_writer_full(w))
        b->events[m->event].file_full++;
    else if (trace_writer_epoch_full(w))
        b->events[m->event].epoch_full++;
    else
        count_sample(b, n, m, sample.flags & TRACE_SAMPLE_VALUE ? sample.value : m->period);
    blame_write(b, m, &sample);
    return NULL;
}
