/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/sleepers.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/target_memory.h"
#include "capture/proc/python_reader.h"
#include "capture/trace/late_unwind.h"
#include "formats/base/clock.h"

/* A thread has slept when it was seen asleep so long before: what is over sooner is left to the switches. */
#define NOTED_NS (100 * NS_PER_MS)
/* A pass over all threads takes less than this share of time, and comes no more often than this. */
#define PASS_SHARE 400
#define PASS_NS WIRE_WAIT_LONG_NS
/* Where each thread's stack is wanted at once. */
#define PASS_AT_ONCE_SHARE 4
#define PASS_AT_ONCE_NS (10 * NS_PER_MS)
/* At the end waits count that have lasted so long. */
#define LAST_NS (10 * NS_PER_MS)
/* Stacks are read for so long at a time; at the end for longer, since nothing comes after. */
#define SLICE_NS (20 * NS_PER_MS)
#define LAST_SLICE_NS (500 * NS_PER_MS)
/* How much of a stack is read to unwind it. */
#define STACK_MAX_BYTES (256 << 10)

/* A wait whose stacks are to be read. */
struct sleeper {
    uint32_t tid;
    uint64_t out_ns;
};

struct message {
    struct wire_sample sample;
    uint8_t bytes[WIRE_KERNEL_MAX * 8 + WIRE_PYTHON_MAX * sizeof(struct wire_python) +
                  WIRE_NATIVE_MAX * sizeof(struct native_frame) + WIRE_TASK_MAX + STACK_MAX_BYTES];
};

struct sleepers {
    struct sleepers_options o;
    struct late_unwind *unwind;
    struct python_reader reader;
    VEC(struct sleeper) todo;
    size_t done; /* of `todo`, from its beginning */
    uint64_t pass_due_ns, read_due_ns;
    uint32_t passes;
    struct message message;
    uint32_t len_bytes; /* of the message so far */
    uint8_t stack[STACK_MAX_BYTES];
    uint64_t losses[LOSS_LIMIT];
};

struct error *sleepers_create(const struct sleepers_options *options, struct sleepers **out)
{
    struct sleepers *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    s->o = *options;
    python_reader_init(&s->reader);
    struct error *err = options->native ? late_unwind_create(options->tables, &s->unwind) : NULL;
    if (err)
        free(s);
    else
        *out = s;
    return err;
}

void sleepers_destroy(struct sleepers *s)
{
    if (!s)
        return;
    late_unwind_destroy(s->unwind);
    VEC_DEINIT(&s->todo);
    free(s);
}

void sleepers_losses(const struct sleepers *s, uint64_t losses[LOSS_LIMIT])
{
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        losses[i] += s->losses[i];
}

/* ---- passes ---- */

static struct error *on_sleeper(void *ctx, const void *message, uint32_t len_bytes)
{
    struct sleepers *s = ctx;
    const struct wire_sample *m = message;

    TRY(waits_begin_unread(s->o.waits, m, len_bytes));
    return VEC_PUSH(&s->todo, ((struct sleeper){m->tid, m->time_ns})) ? NULL : error_no_memory();
}

static struct error *pass(struct sleepers *s, uint64_t time_ns, uint64_t noted_ns, uint64_t stackless_ns)
{
    TRY(sampler_sleepers(s->o.sampler, noted_ns, stackless_ns, on_sleeper, s));
    uint64_t rest_ns = (now_ns() - time_ns) * (s->o.at_once ? PASS_AT_ONCE_SHARE : PASS_SHARE);
    uint64_t least_ns = s->o.at_once ? PASS_AT_ONCE_NS : PASS_NS;
    /* The first one only notes who sleeps. */
    if (!s->passes++)
        s->pass_due_ns = time_ns + (s->o.at_once ? 0 : NOTED_NS);
    else
        s->pass_due_ns = time_ns + (rest_ns > least_ns ? rest_ns : least_ns);
    return NULL;
}

/* ---- one thread ---- */

static void add(struct sleepers *s, const void *data, size_t len_bytes)
{
    memcpy((uint8_t *)&s->message + s->len_bytes, data, len_bytes);
    s->len_bytes += (uint32_t)len_bytes;
}

static void add_python(struct sleepers *s, const struct module *python, const struct wire_process *wire, uint64_t thread_pointer)
{
    struct wire_sample *m = &s->message.sample;
    struct py_walk *w = &s->reader.walk;

    w->config.layout = python->python.layout;
    w->config.process = *wire;
    w->config.thread_pointer = thread_pointer;
    w->config.stack_pointer = m->registers[ARCH_SP];
    s->reader.pid = (pid_t)m->tid; /* the first thread may have ended, and has no memory then */
    s->reader.read_errno = 0;
    python_reader_find(&s->reader);
    if (!w->result.tstate) {
        /* Python does not know this thread, unless it could not be read what it knows. */
        m->flags |= wire->tls_kind != PY_TLS_NONE ? w->result.gil : 0;
        m->python_end = w->result.ambiguous ? LOSS_interpreter_unsure : s->reader.read_errno ? LOSS_thread_state_fault : 0;
        return;
    }
    m->flags |= w->result.gil;
    python_reader_walk(&s->reader, w->result.tstate, m, (struct wire_python *)((uint8_t *)m + s->len_bytes));
    m->thread_handle = thread_pointer;
    s->len_bytes += m->python_count * (uint32_t)sizeof(struct wire_python);
}

/* Reads the live part of the stack into s->stack, with the red zone; the sample says how much. */
static void read_stack(struct sleepers *s, struct wire_sample *m)
{
    uint64_t len = STACK_MAX_BYTES;

    if (m->stack_size && m->stack_size + ARCH_RED_ZONE_BYTES < len)
        len = m->stack_size + ARCH_RED_ZONE_BYTES;
    m->flags |= WIRE_STACK_BELOW;
    m->stack_len_bytes = (uint32_t)target_read_some((pid_t)m->tid, wire_stack_address(m), s->stack, len);
}

/* Leaves of the stack what the sample is to have: a copy for pysym, or all of it if unwinding is to be tried again. */
static void keep_stack(struct sleepers *s, struct wire_sample *m)
{
    uint32_t most = native_needs_help(m->native_end) ? STACK_MAX_BYTES : s->o.snapshot_bytes;

    if (m->stack_len_bytes > most)
        m->stack_len_bytes = most;
    if (!m->stack_len_bytes)
        m->flags &= ~(uint32_t)WIRE_STACK_BELOW;
}

static struct error *add_native(struct sleepers *s, const struct process *p)
{
    struct wire_sample *m = &s->message.sample;
    struct late_unwind_result native;

    read_stack(s, m);
    if (s->unwind) {
        TRY(late_unwind_run(s->unwind, p, m, s->stack, &native));
        m->native_count = native.count;
        m->native_end = native.end;
        m->native_last_cfa = native.last_cfa;
        add(s, native.frames, native.count * sizeof *native.frames);
    }
    keep_stack(s, m);
    return NULL;
}

static void add_task(struct sleepers *s)
{
    struct wire_sample *m = &s->message.sample;
    struct py_walk *w = &s->reader.walk;

    if (!m->thread_handle || !w->config.process.running_task)
        return;
    walk_task(w);
    m->task_len_bytes = w->result.task_len_bytes;
    add(s, w->result.task, m->task_len_bytes);
}

/* Whether the thread has slept from when the wait began until now. */
static bool slept(const struct sleepers *s, const struct sleeper *sleeper)
{
    struct wire_thread t;

    return sampler_get_thread(s->o.sampler, sleeper->tid, &t) && t.switched_ns == sleeper->out_ns && !t.runs && t.has_stack;
}

/* The process that a wait belongs to, if it is still the program that it was. */
static struct process *process_of(const struct sleepers *s, const struct wire_sample *m)
{
    struct process *p = processes_find(s->o.processes, m->tgid);

    if (!p || (p->bound && (p->start_boottime_ns != m->start_boottime_ns || p->exec_generation != m->exec_generation)))
        return NULL;
    return p;
}

static struct error *read_stacks(struct sleepers *s, const struct process *p)
{
    struct wire_sample *m = &s->message.sample;
    uint64_t thread_pointer = m->thread_handle;
    struct wire_process wire = {0}, rival;

    m->thread_handle = 0;
    if (!(m->flags & WIRE_REGISTERS_OK))
        return NULL;
    if (process_has_python(p) && sampler_get_process(s->o.sampler, m->tgid, &wire) && wire.runtime)
        add_python(s, p->python, &wire, thread_pointer);
    if (!m->thread_handle && wire.flags & WIRE_PROCESS_RIVAL && p->rival && sampler_get_rival(s->o.sampler, m->tgid, &rival)) {
        m->python_end = 0;
        add_python(s, p->rival, &rival, thread_pointer);
        m->flags |= m->thread_handle ? WIRE_RIVAL : 0;
    }
    TRY(add_native(s, p));
    add_task(s);
    add(s, s->stack, m->stack_len_bytes);
    return NULL;
}

/* Reads the stacks of a thread that sleeps, unless it has run since. */
static struct error *read_sleeper(struct sleepers *s, const struct sleeper *sleeper)
{
    const struct wire_sample *found = waits_unread(s->o.waits, sleeper->tid, sleeper->out_ns);
    struct wire_sample *m = &s->message.sample;
    struct process *p = found ? process_of(s, found) : NULL;
    uint64_t began_ns = now_ns();

    if (!found)
        return NULL;
    s->len_bytes = 0;
    add(s, found, sizeof *found + found->kernel_count * sizeof(uint64_t));
    m->flags &= ~(uint32_t)WIRE_STACK_UNREAD;
    if (!p) {
        m->thread_handle = 0;
    } else if (!quota_take(s->o.processes->quotas, p->slot, QUOTA_sleeper_us, 1, began_ns)) {
        m->thread_handle = 0;
        m->python_end = LOSS_sleeper_quota;
    } else {
        TRY(read_stacks(s, p));
        quota_owe(s->o.processes->quotas, p->slot, QUOTA_sleeper_us, (now_ns() - began_ns) / NS_PER_US, began_ns);
    }
    if (!slept(s, sleeper)) {
        /* Where each thread is wanted as it was seen last, one without a stack would take the place of the one before. */
        if (s->o.at_once)
            waits_forget(s->o.waits, sleeper->tid);
        else
            waits_doubt(s->o.waits, sleeper->tid);
        return NULL;
    }
    if (m->python_end > LOSS_complete)
        s->losses[m->python_end]++;
    return waits_complete(s->o.waits, m, s->len_bytes);
}

/* Reads stacks until the slice is over. */
static struct error *read_some(struct sleepers *s, uint64_t time_ns, uint64_t slice_ns)
{
    uint64_t began_ns = now_ns();

    if (s->done == s->todo.count || time_ns < s->read_due_ns)
        return NULL;
    while (s->done < s->todo.count && now_ns() - began_ns < slice_ns)
        TRY(read_sleeper(s, &s->todo.data[s->done++]));
    if (s->done == s->todo.count)
        s->done = s->todo.count = 0;
    uint64_t spent_ns = s->o.at_once ? 0 : now_ns() - began_ns;
    s->read_due_ns = now_ns() + (s->o.max_cpu > 0 ? (uint64_t)((double)spent_ns * (1 / s->o.max_cpu - 1)) : spent_ns);
    return NULL;
}

struct error *sleepers_run(struct sleepers *s, uint64_t time_ns)
{
    if (time_ns >= s->pass_due_ns)
        TRY(s->o.at_once ? pass(s, time_ns, 0, 0) : pass(s, time_ns, NOTED_NS, WIRE_WAIT_LONG_NS));
    return read_some(s, time_ns, SLICE_NS);
}

uint64_t sleepers_due(const struct sleepers *s)
{
    bool waits = s->done < s->todo.count;

    return waits && s->read_due_ns < s->pass_due_ns ? s->read_due_ns : s->pass_due_ns;
}

struct error *sleepers_finish(struct sleepers *s, uint64_t time_ns)
{
    TRY(pass(s, time_ns, 0, LAST_NS));
    s->read_due_ns = 0;
    return read_some(s, time_ns, LAST_SLICE_NS);
}
