/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers build, the main thread lays in. Equal tables lie in the arrays once, for containers of one image have copies of
 * the same binaries: what is compared is the finished table. That two files have one build ID, or that they were equal
 * when somebody compared them, says nothing about what was read from them before.
 */
#include "capture/binary/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "capture/binary/table_job.h"
#include "capture/binary/table_numbers.h"
#include "capture/binary/table_space.h"
#include "capture/binary/worker.h"
#include "capture/host/privileges.h"
#include "formats/base/clock.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/* A table that was used since is not taken out for another: they would take turns for ever. */
#define COLD_S 10
/* What was taken out may be read until then by a sample that had begun: samples take microseconds. */
#define GRACE_NS (50 * NS_PER_MS)

/* Files from this size on have a worker of their own, so that they do not hold up the others. */
#define LARGE_BYTES (UINT64_C(32) << 20)
/* How long a table that a sample needs is waited for, and in how much of the time: see modules.c. */
#define WAIT_ONE_NS (250 * NS_PER_MS)
#define WAIT_ALL_NS NS_PER_S
#define WAIT_PART 5

enum entry_state {
    ENTRY_OUT,     /* no table, none asked for */
    ENTRY_WAITING, /* the worker has it, or will */
    ENTRY_IN,      /* laid in */
    ENTRY_TOO_LARGE, /* it can never be laid in: --unwind-memory is too small */
    ENTRY_NONE,    /* the module has no call frame information, or cannot be read */
};

struct entry {
    struct module *module;  /* NULL: no file has the number now */
    enum entry_state state;
    uint64_t not_before_ns; /* ENTRY_OUT: there was no room */
    uint64_t hash;          /* ENTRY_IN: of the table */
    pid_t pid;              /* ENTRY_IN: the process that wanted it built */
    uint32_t place;         /* ENTRY_IN: number of the entry whose place in the arrays this one uses; its own: it holds it */
    bool stays;             /* in tables_reclaim() alone */
};

enum lane { LANE_SMALL, LANE_LARGE, LANES };

struct tables {
    struct tables_memory memory;
    struct modules *modules;
    struct table_space space;
    VEC(struct entry) entries;   /* by number */
    struct table_numbers numbers; /* of files */
    struct worker *workers[LANES];
    int poll_fd;                 /* epoll: of both workers */
    VEC(struct table_job *) ready; /* built, and not laid in yet: there may be no room */
    uint64_t waited_ns, waited_at_ns; /* how long tables were waited for, less what has been forgotten since */
};

static struct error *start_worker(struct tables *t, enum lane lane)
{
    TRY(worker_create(privileges_drop_to_read, &t->workers[lane]));
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(t->poll_fd, EPOLL_CTL_ADD, worker_fd(t->workers[lane]), &event))
        return error_os(errno, "the threads that build unwind tables cannot be waited for");
    return NULL;
}

struct error *tables_create(const struct tables_memory *memory, struct modules *modules, struct tables **out)
{
    struct tables *t = calloc(1, sizeof *t);
    struct error *err = NULL;

    if (!t)
        return error_no_memory();
    t->memory = *memory;
    t->numbers.max = memory->module_count;
    t->modules = modules;
    t->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (t->poll_fd < 0)
        err = error_os(errno, "the threads that build unwind tables cannot be waited for");
    else if (!table_space_init(&t->space, memory->row_count, memory->index_count, memory->wide_count))
        err = error_no_memory();
    for (int lane = 0; !err && lane < LANES; lane++)
        err = start_worker(t, lane);
    if (err) {
        tables_destroy(t);
        return err;
    }
    *out = t;
    return NULL;
}

void tables_destroy(struct tables *t)
{
    if (!t)
        return;
    for (int lane = 0; lane < LANES; lane++)
        worker_destroy(t->workers[lane]);
    for (size_t i = 0; i < t->ready.count; i++)
        table_job_destroy(t->ready.data[i]);
    VEC_DEINIT(&t->ready);
    table_numbers_deinit(&t->numbers);
    VEC_DEINIT(&t->entries);
    table_space_deinit(&t->space);
    if (t->poll_fd >= 0)
        close(t->poll_fd);
    free(t);
}

int tables_fd(const struct tables *t)
{
    return t->poll_fd;
}

/* What the sampler finds changes from now on, or did up to now. */
static void note_change(struct tables *t)
{
    if (t->memory.changes)
        __atomic_fetch_add(t->memory.changes, 1, __ATOMIC_SEQ_CST);
}

/* There is no table. */
static void put_none(struct tables *t, uint32_t number, uint32_t row_start)
{
    note_change(t);
    t->memory.modules[number] = (struct wire_module){.row_start = row_start};
    note_change(t);
}

/* The number of the module's file; WIRE_MODULE_NONE when it has none. */
static struct error *number_of(struct tables *t, const struct module *m, uint32_t *number)
{
    bool added;

    *number = WIRE_MODULE_NONE;
    if ((m->kind != TRACE_MODULE_ELF && m->kind != TRACE_MODULE_VDSO) || m->unreadable)
        return NULL;
    if (!table_numbers_find(&t->numbers, m->file, number, &added) ||
        (added && !VEC_EXTEND_ZERO(&t->entries, (size_t)*number + 1)))
        return error_no_memory();
    if (!added)
        return NULL;
    t->entries.data[*number] = (struct entry){.module = modules_get(t->modules, m->file)};
    put_none(t, *number, 0);
    return NULL;
}

static void never(struct tables *t, uint32_t number)
{
    t->entries.data[number].state = ENTRY_NONE;
    put_none(t, number, WIRE_TABLE_NONE);
}

/* Has the table built, if it is neither there nor on its way. */
static struct error *want(struct tables *t, const struct module_asker *asker, const struct code_mapping *m, uint32_t number,
                          uint64_t time_ns)
{
    struct entry *e = &t->entries.data[number];

    if (e->state != ENTRY_OUT || time_ns < e->not_before_ns)
        return NULL;
    struct table_job *job = table_job_create(number, asker, m, e->module);
    if (!job)
        return error_no_memory();
    e->module->needs_file = true;
    job->rows_max = t->memory.row_count; /* a larger one could not be laid in */
    if (worker_add(t->workers[e->module->identity.file_size >= LARGE_BYTES ? LANE_LARGE : LANE_SMALL], &job->job))
        e->state = ENTRY_WAITING;
    else
        e->not_before_ns = time_ns + COLD_S * NS_PER_S;
    return NULL;
}

struct error *tables_map(struct tables *t, const struct module_asker *asker, const struct code_mapping *m,
                         uint64_t time_ns, bool at_once, struct wire_mapping *out)
{
    *out = (struct wire_mapping){.start = m->address, .end = m->address + m->length, .module = WIRE_MODULE_NONE};
    if (!m->module) {
        if (code_mapping_is_anonymous(m))
            out->flags = WIRE_MAPPING_ANONYMOUS;
        return NULL;
    }
    if (!table_base(m->module, m, &out->base))
        return NULL;
    TRY(number_of(t, m->module, &out->module));
    return at_once && out->module != WIRE_MODULE_NONE ? want(t, asker, m, out->module, time_ns) : NULL;
}

/* The sampler finds no table from now on. */
static void hide(struct tables *t, uint32_t number)
{
    __atomic_store_n(&t->memory.modules[number].row_count, 0, __ATOMIC_RELEASE);
}

/* Call behind hide(): who sees the new generation finds no table there (bpf/native_rows.h). */
static void new_generation(struct tables *t)
{
    if (t->memory.generation)
        __atomic_fetch_add(t->memory.generation, 1, __ATOMIC_RELEASE);
}

/* Takes a place out: the sampler finds no table there from now on, and the space is free a little later. */
static bool take_out(struct tables *t, uint32_t number, uint64_t time_ns)
{
    struct wire_module old = t->memory.modules[number];

    note_change(t);
    for (uint32_t i = 0; i < t->entries.count; i++) {
        struct entry *e = &t->entries.data[i];
        if (e->state != ENTRY_IN || e->place != number)
            continue;
        hide(t, i);
        e->state = ENTRY_OUT;
    }
    new_generation(t);
    note_change(t);
    return table_space_give(&t->space, &old, time_ns);
}

/* A place is used when one of those that share it is. */
static void note_uses(struct tables *t)
{
    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct entry *e = &t->entries.data[i];
        if (e->state == ENTRY_IN && t->memory.modules[e->place].used_s < t->memory.modules[i].used_s)
            t->memory.modules[e->place].used_s = t->memory.modules[i].used_s;
    }
}

/* Rows of the tables that were built because a process wanted them. */
static uint64_t rows_of(const struct tables *t, pid_t pid)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct entry *e = &t->entries.data[i];
        if (e->state == ENTRY_IN && e->place == i && e->pid == pid)
            rows += t->memory.modules[i].row_count;
    }
    return rows;
}

/* The process whose tables have the most rows. 0: there are no tables. */
static pid_t largest_holder(const struct tables *t)
{
    struct map rows = {0};
    uint64_t most = 0;
    pid_t largest = 0;

    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct entry *e = &t->entries.data[i];
        if (e->state != ENTRY_IN || e->place != i)
            continue;
        const uint64_t *before = map_get(&rows, (uint64_t)e->pid);
        uint64_t sum = (before ? *before : 0) + t->memory.modules[i].row_count;
        if (!map_set(&rows, (uint64_t)e->pid, sum))
            break;
        if (sum > most) {
            most = sum;
            largest = e->pid;
        }
    }
    map_deinit(&rows);
    return largest;
}

/* The table that was used longest ago, of one process or of all (0). False: there is none. */
static bool coldest(struct tables *t, pid_t pid, uint32_t *number)
{
    bool found = false;

    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct entry *e = &t->entries.data[i];
        if (e->state == ENTRY_IN && e->place == i && (!pid || e->pid == pid) &&
            (!found || t->memory.modules[i].used_s < t->memory.modules[*number].used_s)) {
            *number = i;
            found = true;
        }
    }
    return found;
}

/* Maps the parts of the arrays that the table is to lie in. */
static struct error *map_place(struct tables *t, const struct wire_module *place, const struct unwind_table *table)
{
    const struct tables_memory *m = &t->memory;

    if (!m->map_pages)
        return NULL;
    TRY(m->map_pages(m->ctx, m->rows + place->row_start, table->row_count * sizeof *m->rows));
    TRY(m->map_pages(m->ctx, m->index + place->index_start, table->index_count * sizeof *m->index));
    return m->map_pages(m->ctx, m->wide + place->wide_start, table->wide_count * sizeof *m->wide);
}

/* Whether a table that is laid in is equal to one that was built. */
static bool is_equal(const struct tables *t, uint32_t number, const struct table_job *job)
{
    const struct wire_module *in = &t->memory.modules[number];
    const struct entry *e = &t->entries.data[number];
    const struct unwind_table *table = job->table;

    return e->state == ENTRY_IN && e->place == number && e->hash == job->hash && in->row_count == table->row_count &&
           in->index_count == table->index_count && in->index_first == table->index_first &&
           in->wide_count == table->wide_count &&
           !memcmp(t->memory.rows + in->row_start, table->rows, table->row_count * sizeof *table->rows) &&
           !memcmp(t->memory.index + in->index_start, table->index, table->index_count * sizeof *table->index) &&
           (!table->wide_count ||
            !memcmp(t->memory.wide + in->wide_start, table->wide, table->wide_count * sizeof *table->wide));
}

static void enter(struct tables *t, const struct table_job *job, uint32_t place, const struct wire_module *at,
                  uint64_t time_ns)
{
    struct wire_module *to = &t->memory.modules[job->job.number], entry = *at;
    struct entry *e = &t->entries.data[job->job.number];

    entry.used_s = (uint32_t)(time_ns / NS_PER_S);
    entry.row_count = 0;
    note_change(t);
    *to = entry;
    /* The count last: it says that the rest is there. */
    __atomic_store_n(&to->row_count, job->table->row_count, __ATOMIC_RELEASE);
    note_change(t);
    e->state = ENTRY_IN;
    e->place = place;
    e->hash = job->hash;
    e->pid = job->pid;
}

/* Uses the place of an equal table, if there is one. */
static bool share(struct tables *t, const struct table_job *job, uint64_t time_ns)
{
    for (uint32_t i = 0; i < t->entries.count; i++) {
        if (!is_equal(t, i, job))
            continue;
        enter(t, job, i, &t->memory.modules[i], time_ns);
        return true;
    }
    return false;
}

/*
 * The table that makes room for another. Whoever has the most gives, even what is in use, as long as it has more than the
 * one that asks will have; else what nobody has used lately goes. A process with half of the memory gives of its own.
 */
static bool find_victim(struct tables *t, const struct table_job *job, uint64_t time_ns, uint32_t *number)
{
    uint64_t own = rows_of(t, job->pid);
    pid_t largest = largest_holder(t);

    note_uses(t);
    if (largest != job->pid && rows_of(t, largest) > own + job->table->row_count)
        return coldest(t, largest, number);
    return coldest(t, own >= t->memory.row_count / 2 ? job->pid : 0, number) &&
           t->memory.modules[*number].used_s + COLD_S <= time_ns / NS_PER_S;
}

/* Makes room, which is there at one of the next draining times. Without any to make, `*coming` is false. */
static struct error *make_room(struct tables *t, const struct table_job *job, uint64_t time_ns, bool *coming)
{
    uint32_t cold = 0;

    *coming = table_space_is_coming(&t->space);
    if (!*coming && find_victim(t, job, time_ns, &cold)) {
        if (!take_out(t, cold, time_ns))
            return error_no_memory();
        *coming = true;
    }
    return NULL;
}

static bool is_too_large(const struct tables *t, const struct unwind_table *table)
{
    return table->row_count > t->memory.row_count || table->index_count > t->memory.index_count ||
           table->wide_count > t->memory.wide_count;
}

static struct error *lay_in(struct tables *t, const struct table_job *job, uint64_t time_ns, bool *later)
{
    struct entry *e = &t->entries.data[job->job.number];
    const struct unwind_table *table = job->table;
    struct wire_module place = {0};

    *later = false;
    if (job->job.undone) { /* others may want it later */
        e->state = ENTRY_OUT;
        e->not_before_ns = time_ns + COLD_S * NS_PER_S;
        return NULL;
    }
    if (!table && job->fd < 0 && !job->image) { /* the process is gone: the next one that maps it has it opened */
        e->state = ENTRY_OUT;
        return NULL;
    }
    if (job->too_large || (table && is_too_large(t, table))) {
        e->state = ENTRY_TOO_LARGE;
        return NULL;
    }
    if (!table || !table->row_count) {
        never(t, job->job.number);
        return NULL;
    }
    if (share(t, job, time_ns))
        return NULL;
    if (!table_space_take(&t->space, table, &place)) {
        TRY(make_room(t, job, time_ns, later));
        if (!*later) { /* do without for a while */
            e->state = ENTRY_OUT;
            e->not_before_ns = time_ns + COLD_S * NS_PER_S;
        }
        return NULL;
    }
    TRY(map_place(t, &place, table));
    memcpy(t->memory.rows + place.row_start, table->rows, table->row_count * sizeof *table->rows);
    memcpy(t->memory.index + place.index_start, table->index, table->index_count * sizeof *table->index);
    if (table->wide_count)
        memcpy(t->memory.wide + place.wide_start, table->wide, table->wide_count * sizeof *table->wide);
    place.index_first = table->index_first;
    place.index_count = table->index_count;
    place.wide_count = table->wide_count;
    enter(t, job, job->job.number, &place, time_ns);
    return NULL;
}

/* Moves what has been built to `ready`, and keeps its file, so that it can be built again when the file is gone. */
static struct error *take_done(struct tables *t)
{
    for (int lane = 0; lane < LANES; lane++) {
        for (struct worker_job *done; (done = worker_take(t->workers[lane]));) {
            struct table_job *job = table_job_of(done);
            if (job->fd_is_own && modules_keep_file(t->modules, t->entries.data[done->number].module, job->fd))
                job->fd_is_own = false;
            if (!VEC_PUSH(&t->ready, job)) {
                table_job_destroy(job);
                return error_no_memory();
            }
        }
    }
    return NULL;
}

/* Those whose files do not answer have no table. */
static void give_up(struct tables *t)
{
    uint64_t now = now_ns();
    uint32_t number;

    for (int lane = 0; lane < LANES; lane++) {
        if (worker_give_up(t->workers[lane], now, &number))
            never(t, number);
    }
}

struct error *tables_poll(struct tables *t, uint64_t time_ns)
{
    uint64_t before_ns = time_ns - GRACE_NS;

    if (!table_space_free_after_grace(&t->space, before_ns))
        return error_no_memory();
    give_up(t);
    TRY(take_done(t));
    struct error *err = NULL;
    size_t laid = 0;
    bool later = false;
    while (!err && laid < t->ready.count) {
        err = lay_in(t, t->ready.data[laid], time_ns, &later);
        if (later)
            break;
        table_job_destroy(t->ready.data[laid++]);
    }
    t->ready.count -= laid;
    if (laid)
        memmove(t->ready.data, t->ready.data + laid, t->ready.count * sizeof *t->ready.data);
    return err;
}

static bool is_ready(const struct tables *t, uint32_t number)
{
    for (size_t i = 0; i < t->ready.count; i++) {
        if (t->ready.data[i]->job.number == number)
            return true;
    }
    return false;
}

/* The table is wanted now: waits for it, if much was not waited lately. */
static struct error *wait_a_little(struct tables *t, uint32_t number, uint64_t time_ns)
{
    struct entry *e = &t->entries.data[number];
    struct worker *worker = t->workers[e->module->identity.file_size >= LARGE_BYTES ? LANE_LARGE : LANE_SMALL];
    uint64_t now = now_ns(), flown = (now - t->waited_at_ns) / WAIT_PART;

    TRY(tables_poll(t, time_ns));
    t->waited_ns -= flown < t->waited_ns ? flown : t->waited_ns;
    t->waited_at_ns = now;
    uint64_t left = t->waited_ns < WAIT_ALL_NS ? WAIT_ALL_NS - t->waited_ns : 0;
    uint64_t until = now + (left < WAIT_ONE_NS ? left : WAIT_ONE_NS);
    while (e->state == ENTRY_WAITING && !is_ready(t, number) && worker_wait(worker, until))
        TRY(tables_poll(t, time_ns));
    t->waited_ns += now_ns() - now;
    return NULL;
}

uint64_t tables_lacked(const struct tables *t)
{
    return t->numbers.lacked;
}

/* Those that are used, or will be, and those whose place one of these uses. Returns whether there are others. */
static bool mark_those_that_stay(struct tables *t, bool (*is_used)(void *ctx, uint32_t number), void *ctx)
{
    for (uint32_t i = 0; i < t->entries.count; i++) {
        struct entry *e = &t->entries.data[i];
        e->stays = !e->module || e->state == ENTRY_WAITING || is_used(ctx, i);
    }
    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct entry *e = &t->entries.data[i];
        if (e->module && e->state == ENTRY_IN && e->stays)
            t->entries.data[e->place].stays = true;
    }
    for (uint32_t i = 0; i < t->entries.count; i++) {
        if (!t->entries.data[i].stays)
            return true;
    }
    return false;
}

struct error *tables_reclaim(struct tables *t, bool (*is_used)(void *ctx, uint32_t number), void *ctx, uint64_t time_ns,
                             uint32_t *count)
{
    *count = 0;
    if (!mark_those_that_stay(t, is_used, ctx))
        return NULL;
    note_change(t);
    for (uint32_t i = 0; i < t->entries.count; i++) {
        struct entry *e = &t->entries.data[i];
        if (e->stays)
            continue;
        struct wire_module old = t->memory.modules[i];
        hide(t, i);
        if (e->state == ENTRY_IN && e->place == i && !table_space_give(&t->space, &old, time_ns))
            return error_no_memory();
        table_numbers_release(&t->numbers, e->module->file);
        *e = (struct entry){0};
        ++*count;
    }
    new_generation(t);
    note_change(t);
    return NULL;
}

struct error *tables_view(struct tables *t, const struct module_asker *asker, const struct code_mapping *m,
                          uint64_t time_ns, struct unwind_table *view, uint64_t *base, uint32_t *reason)
{
    uint32_t number = WIRE_MODULE_NONE;

    *reason = LOSS_no_module;
    if (m->module && table_base(m->module, m, base))
        TRY(number_of(t, m->module, &number));
    if (number == WIRE_MODULE_NONE)
        return NULL;
    TRY(want(t, asker, m, number, time_ns));
    if (t->entries.data[number].state == ENTRY_WAITING)
        TRY(wait_a_little(t, number, time_ns));
    /* One that waits for room serves meanwhile as it is. */
    for (size_t i = 0; t->entries.data[number].state == ENTRY_WAITING && i < t->ready.count; i++) {
        if (t->ready.data[i]->job.number == number && t->ready.data[i]->table) {
            *view = *t->ready.data[i]->table;
            *reason = 0;
            return NULL;
        }
    }
    struct wire_module *place = &t->memory.modules[number];
    if (t->entries.data[number].state != ENTRY_IN) {
        *reason = t->entries.data[number].state == ENTRY_NONE ? LOSS_no_unwind_info : LOSS_table_missing;
        return NULL;
    }
    place->used_s = (uint32_t)(time_ns / NS_PER_S);
    *view = (struct unwind_table){
        .rows = t->memory.rows + place->row_start,
        .wide = t->memory.wide + place->wide_start,
        .index = t->memory.index + place->index_start,
        .row_count = place->row_count,
        .wide_count = place->wide_count,
        .index_first = place->index_first,
        .index_count = place->index_count,
    };
    *reason = 0;
    return NULL;
}
