/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/task_looks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs_task.h"
#include "formats/base/clock.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

/*
 * Shares of a CPU: of looks at one process, and of all looks unless --max-cpu says something else. One process is to cost a
 * hundredth at most: something of it is left for what comes of a look elsewhere.
 */
#define PROCESS_SHARE 0.007
#define ALL_SHARE 0.05
/* So much time the looks may be ahead of these shares: the first one at a process takes longer than those that follow. */
#define PROCESS_AHEAD_NS (2 * NS_PER_S)
#define ALL_AHEAD_NS NS_PER_S
/* The longest that one look reads, and that one call of task_looks_run() begins looks. */
#define LOOK_MOST_NS (50 * NS_PER_MS)
#define SLICE_NS (25 * NS_PER_MS)
/* What it costs to write a sample. */
#define SAMPLE_NS 2000
/* Where fewer tasks wait, it costs less to look at them than at what their loops have done. */
#define STILL_TASKS_MIN 64
/* Even where nothing runs there is a look so often: samples come of looks. */
#define STILL_MOST_NS (5 * NS_PER_S)
#define LOOPS_MAX 16
/* How long the last looks may take together. */
#define LAST_SLICE_NS (500 * NS_PER_MS)
/* How often it is found out who has ended: before the process is forgotten, a second after its end. */
#define PART_NS (250 * NS_PER_MS)
/* How soon it is found out again who is there, when another interpreter or asyncio was found. */
#define MEET_LEAST_NS (50 * NS_PER_MS)

/* What /proc says of a thread: time on a CPU, and how often it was given one. */
struct loop_state {
    uint32_t tid;
    char text[64];
};

/* A process that was met. */
struct note {
    struct task_owner owner;
    uint64_t looked_ns, due_ns;
    uint64_t paid_until_ns; /* what looks at it have taken is within its share from then on */
    uint64_t read_ns;   /* the last look that was no skip */
    uint32_t round;     /* in which it was last met */
    bool had_tasks, told; /* counted as a process with tasks; as one whose tasks cannot be read */
    bool unreadable;      /* when it was last met: its files may not have been inspected yet */
    bool incomplete;      /* there were tasks that the last look did not read */
    bool may_be_still;   /* the loops slept when they were read: `loops` says what they had done */
    uint32_t loop_count; /* of those that are known */
    struct loop_state loops[LOOPS_MAX];
};

struct task_looks {
    struct task_looks_options o;
    struct task_reader *reader;
    struct task_waits *waits;
    struct task_table table;
    VEC(struct note) notes;
    struct map note_of; /* life -> index of notes */
    uint32_t round, cursor;
    uint64_t begun_ns, due_ns;
    uint64_t met_ns, meet_ns; /* when it was found out who is there; when to do so again */
    uint64_t part_ns;         /* when to find out who has ended */
    uint64_t learned;         /* as processes_counts() said then */
    uint64_t paid_until_ns; /* the same for looks at all processes */
    uint64_t random;
    uint64_t put_count;
    uint64_t losses[LOSS_LIMIT];
    struct task_looks_counts counts;
};

static struct error *put(void *looks, const struct wire_sample *sample, uint32_t len_bytes)
{
    struct task_looks *l = looks;

    l->put_count++;
    return l->o.put(l->o.ctx, sample, len_bytes);
}

struct error *task_looks_create(const struct task_looks_options *options, struct task_looks **out)
{
    struct task_looks *l = calloc(1, sizeof *l);
    const struct task_waits_options waits = {
        .event = options->event, .piece_ns = 10 * NS_PER_S, .quotas = options->processes->quotas, .put = put, .ctx = l};

    if (!l)
        return error_no_memory();
    l->o = *options;
    l->random = now_ns() | 1;
    struct error *err = task_reader_create(&l->reader);
    if (!err)
        err = task_waits_create(&waits, &l->waits);
    if (err)
        task_looks_destroy(l);
    else
        *out = l;
    return err;
}

void task_looks_destroy(struct task_looks *l)
{
    if (!l)
        return;
    task_waits_destroy(l->waits);
    task_reader_destroy(l->reader);
    task_table_deinit(&l->table);
    VEC_DEINIT(&l->notes);
    map_deinit(&l->note_of);
    free(l);
}

void task_looks_set_period(struct task_looks *l, uint64_t period_ns)
{
    l->o.period_ns = period_ns;
}

void task_looks_begin(struct task_looks *l, uint64_t time_ns)
{
    l->begun_ns = l->due_ns = time_ns;
}

/* The period, a quarter more or less. */
static uint64_t next_wait_ns(struct task_looks *l)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return l->o.period_ns - l->o.period_ns / 4 + l->random % (l->o.period_ns / 2 + 1);
}

/* ---- whether the loops have slept ---- */

static bool read_state(uint32_t tgid, struct loop_state *loop)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", tgid, loop->tid);
    return procfs_read_at(AT_FDCWD, path, loop->text, sizeof loop->text);
}

/* Reads what the known loops have done so far. */
static bool read_states(struct note *n)
{
    for (uint32_t i = 0; i < n->loop_count; i++) {
        if (!read_state(n->owner.tgid, &n->loops[i]))
            return false;
    }
    return n->loop_count;
}

/* Whether the known loops have done nothing since their states were read. */
static bool loops_slept(const struct note *n)
{
    for (uint32_t i = 0; i < n->loop_count; i++) {
        struct loop_state now = {.tid = n->loops[i].tid};
        if (!read_state(n->owner.tgid, &now) || strcmp(now.text, n->loops[i].text))
            return false;
    }
    return n->loop_count;
}

/* Whether the loops of a table are those whose states are known. If not, they are so from the next look on. */
static bool same_loops(struct note *n, const struct task_table *table)
{
    bool same = n->loop_count == table->loops.count;

    if (table->tasks.count < STILL_TASKS_MIN || table->loops.count > LOOPS_MAX || table->unread || table->changed) {
        n->loop_count = 0;
        return false;
    }
    n->loop_count = (uint32_t)table->loops.count;
    for (uint32_t i = 0; i < n->loop_count; i++) {
        same &= n->loops[i].tid == table->loops.data[i].tid && table->loops.data[i].thread_handle; /* 0: nobody knows who runs it */
        n->loops[i].tid = table->loops.data[i].tid;
    }
    return same;
}

/* ---- one process ---- */

static struct note *note_of(struct task_looks *l, const struct process *p)
{
    const uint64_t *known = map_get(&l->note_of, p->life);
    struct note first = {
        .owner = {.tgid = p->tgid, .slot = p->slot, .life = p->life},
        .looked_ns = p->since_ns > l->begun_ns ? p->since_ns : l->begun_ns,
    };

    if (known)
        return &l->notes.data[*known];
    if (!VEC_PUSH(&l->notes, first))
        return NULL;
    if (!map_set(&l->note_of, p->life, l->notes.count - 1)) {
        l->notes.count--;
        return NULL;
    }
    return &l->notes.data[l->notes.count - 1];
}

static struct error *forget(struct task_looks *l, size_t index, uint64_t time_ns)
{
    uint64_t life = l->notes.data[index].owner.life;

    map_remove(&l->note_of, life);
    task_reader_forget(l->reader, life);
    l->notes.data[index] = l->notes.data[--l->notes.count];
    if (index < l->notes.count)
        *map_get(&l->note_of, l->notes.data[index].owner.life) = index;
    return task_waits_end(l->waits, life, time_ns);
}

/* Reads the tasks of a process, and hands on what is to be. */
static struct error *read_tasks(struct task_looks *l, struct note *n, const struct process *p)
{
    uint64_t since_ns = n->looked_ns;
    bool known = read_states(n);

    TRY(task_reader_read(l->reader, p, LOOK_MOST_NS, &l->table));
    n->looked_ns = n->read_ns = l->table.time_ns;
    known &= same_loops(n, &l->table);
    n->may_be_still = known && loops_slept(n);
    n->incomplete = l->table.unread;
    l->losses[LOSS_task_unread] += l->table.unread;
    l->losses[LOSS_task_changed] += l->table.changed;
    if (l->table.tasks.count && !n->had_tasks) {
        n->had_tasks = true;
        l->counts.processes++;
    }
    return task_waits_look(l->waits, &n->owner, &l->table, since_ns);
}

/* Adds what was spent to an account; the time from when on it is within its share again. */
static void add_cost(uint64_t *paid_until_ns, uint64_t now, uint64_t spent_ns, double share)
{
    if (*paid_until_ns < now)
        *paid_until_ns = now;
    *paid_until_ns += (uint64_t)((double)spent_ns / share);
}

static double all_share(const struct task_looks *l)
{
    return l->o.max_cpu > 0 ? l->o.max_cpu : ALL_SHARE;
}

/* Accounts for a look that began at these times, of the wall and of pycap's CPUs, and says when the next one is due. */
static void pay(struct task_looks *l, struct note *n, uint64_t began_ns, uint64_t cpu_began_ns)
{
    uint64_t spent_ns = now_ns() - began_ns, cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_began_ns;

    /* It may have waited for a CPU, or others of its threads may have worked: not both are this look's. */
    spent_ns = (cpu_ns < spent_ns ? cpu_ns : spent_ns) + l->put_count * SAMPLE_NS;
    quota_owe(l->o.processes->quotas, n->owner.slot, QUOTA_task_us, spent_ns / NS_PER_US, began_ns);
    add_cost(&n->paid_until_ns, began_ns, spent_ns, PROCESS_SHARE);
    add_cost(&l->paid_until_ns, began_ns, spent_ns, all_share(l));
    n->due_ns = began_ns + next_wait_ns(l);
    if (n->paid_until_ns > n->due_ns + PROCESS_AHEAD_NS)
        n->due_ns = n->paid_until_ns - PROCESS_AHEAD_NS;
    l->counts.spent_ns += spent_ns;
    l->counts.looks++;
}

static struct error *look(struct task_looks *l, struct note *n, const struct process *p)
{
    uint64_t began_ns = now_ns(), cpu_began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    l->put_count = 0;
    if (n->may_be_still && began_ns - n->read_ns < STILL_MOST_NS && loops_slept(n)) {
        n->looked_ns = began_ns;
        task_waits_still(l->waits, n->owner.life, began_ns);
        l->counts.still++;
    } else if (quota_take(l->o.processes->quotas, n->owner.slot, QUOTA_task_us, 1, began_ns)) {
        TRY(read_tasks(l, n, p));
    }
    pay(l, n, began_ns, cpu_began_ns);
    return NULL;
}

/* Whether the tasks of a process can be read. Counts it, if they never can. */
static bool is_readable(struct task_looks *l, struct note *n, const struct process *p)
{
    enum task_support support = task_reader_support(p);

    if (!n->told && (support == TASKS_TOO_OLD || support == TASKS_UNKNOWN)) {
        n->told = true;
        *(support == TASKS_TOO_OLD ? &l->counts.too_old : &l->counts.unknown) += 1;
        l->losses[LOSS_task_unsupported]++;
    }
    return support == TASKS_READABLE;
}

/* ---- all processes ---- */

/* Hands on what tasks of processes that have ended have waited, as long as it is known whose they were. */
static struct error *part(struct task_looks *l, uint64_t time_ns)
{
    l->part_ns = time_ns + PART_NS;
    for (size_t i = 0; i < l->notes.count;) {
        const struct note *n = &l->notes.data[i];
        const struct process *p = processes_find(l->o.processes, n->owner.tgid);
        if (p && p->life == n->owner.life && !p->ended_ns)
            i++;
        else
            TRY(forget(l, i, time_ns));
    }
    return NULL;
}

/* Finds out who is there, and notes when to look at the first. Hands on what tasks of processes that have ended have waited. */
static struct error *meet(struct task_looks *l, uint64_t time_ns)
{
    uint32_t cursor = 0;

    l->round++;
    l->met_ns = time_ns;
    l->meet_ns = time_ns + l->o.period_ns / 2;
    l->learned = processes_counts(l->o.processes).learned;
    for (const struct process *p; (p = processes_next(l->o.processes, &cursor));) {
        if (p->ended_ns || !processes_wants(l->o.processes, p) || !process_has_python(p))
            continue;
        struct note *n = note_of(l, p);
        if (!n)
            return error_no_memory();
        n->round = l->round;
        bool was_unreadable = n->unreadable;
        n->unreadable = !is_readable(l, n, p);
        if (n->unreadable) {
            n->looked_ns = time_ns;
            n->due_ns = time_ns + l->o.period_ns;
        } else if (was_unreadable) {
            n->due_ns = time_ns;
        }
    }
    for (size_t i = 0; i < l->notes.count;) {
        if (l->notes.data[i].round == l->round)
            i++;
        else
            TRY(forget(l, i, time_ns));
    }
    return NULL;
}

/* Looks at who is due, one after the other, until the slice is over. */
static struct error *look_at_some(struct task_looks *l, uint64_t time_ns)
{
    l->due_ns = time_ns + l->o.period_ns;
    for (size_t i = 0; i < l->notes.count; i++) {
        struct note *n = &l->notes.data[(l->cursor + i) % l->notes.count];
        const struct process *p = processes_find(l->o.processes, n->owner.tgid);
        if (n->due_ns <= time_ns && p && p->life == n->owner.life && is_readable(l, n, p)) {
            bool spent = l->paid_until_ns > time_ns + ALL_AHEAD_NS;
            if (spent || now_ns() - time_ns > SLICE_NS) {
                /* This one is the first of the next time. */
                l->cursor = (uint32_t)((l->cursor + i) % l->notes.count);
                l->due_ns = spent ? l->paid_until_ns - ALL_AHEAD_NS : time_ns;
                return NULL;
            }
            TRY(look(l, n, p));
        }
        if (n->due_ns < l->due_ns)
            l->due_ns = n->due_ns;
    }
    return NULL;
}

struct error *task_looks_run(struct task_looks *l, uint64_t time_ns)
{
    /* What is found in a process once its files were inspected is not to wait for a period: the recording may be shorter. */
    if (l->due_ns > l->met_ns + MEET_LEAST_NS && processes_counts(l->o.processes).learned != l->learned)
        l->due_ns = l->meet_ns = l->met_ns + MEET_LEAST_NS;
    if (time_ns >= l->part_ns)
        TRY(part(l, time_ns));
    if (time_ns < l->due_ns)
        return NULL;
    if (time_ns >= l->meet_ns) /* which takes its time, where there are thousands of processes */
        TRY(meet(l, time_ns));
    return look_at_some(l, time_ns);
}

uint64_t task_looks_due(const struct task_looks *l)
{
    return l->due_ns;
}

struct error *task_looks_cut(struct task_looks *l, uint64_t time_ns)
{
    l->put_count = 0;
    struct error *err = task_waits_cut(l->waits, time_ns);
    add_cost(&l->paid_until_ns, time_ns, l->put_count * SAMPLE_NS, all_share(l));
    return err;
}

struct error *task_looks_finish(struct task_looks *l, uint64_t time_ns)
{
    TRY(meet(l, time_ns));
    for (size_t i = 0; i < l->notes.count && now_ns() - time_ns < LAST_SLICE_NS; i++) {
        struct note *n = &l->notes.data[i];
        const struct process *p = processes_find(l->o.processes, n->owner.tgid);
        if ((n->had_tasks || n->incomplete || !n->read_ns) && p && p->life == n->owner.life && is_readable(l, n, p))
            TRY(look(l, n, p));
    }
    return task_waits_cut(l->waits, now_ns());
}

void task_looks_losses(const struct task_looks *l, uint64_t losses[LOSS_LIMIT])
{
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        losses[i] += l->losses[i];
}

struct task_looks_counts task_looks_counts(const struct task_looks *l)
{
    struct task_looks_counts counts = l->counts;

    counts.waiting = task_waits_count(l->waits);
    counts.most = task_waits_most(l->waits);
    return counts;
}
