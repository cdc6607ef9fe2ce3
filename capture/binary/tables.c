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

#include "capture/binary/tables_parts.h"
#include "capture/host/privileges.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"

/* Rows of one table: those of 48 MB of .eh_frame. While it is built it takes 8 bytes each, and 16 for each function. */
#define ROWS_MAX (UINT32_C(8) << 20)
/* What was taken out may be read until then by a sample that had begun: samples take microseconds. */
#define GRACE_NS (50 * NS_PER_MS)

/* Files from this size on have a worker of their own, so that they do not hold up the others. */
#define LARGE_BYTES (UINT64_C(32) << 20)
/* How long a table that a sample needs is waited for, and in how much of the time: see modules.c. */
#define WAIT_ONE_NS (250 * NS_PER_MS)
#define WAIT_ALL_NS NS_PER_S
#define WAIT_PART 5

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
    else if (!table_space_init(&t->space, &memory->words))
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
    table_wants_deinit(&t->wants);
    if (t->poll_fd >= 0)
        close(t->poll_fd);
    free(t);
}

int tables_fd(const struct tables *t)
{
    return t->poll_fd;
}

/* There is no table. */
static void put_none(struct tables *t, uint32_t number, uint32_t row_start)
{
    tables_note_change(t);
    t->memory.modules[number] = (struct wire_module){.row_start = row_start};
    tables_note_change(t);
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
    t->entries.data[*number] = (struct table_entry){.module = modules_get(t->modules, m->file)};
    put_none(t, *number, 0);
    return NULL;
}

static void never(struct tables *t, uint32_t number)
{
    tables_lack_no_more(t, number);
    t->entries.data[number].state = ENTRY_NONE;
    put_none(t, number, WIRE_TABLE_NONE);
}

/* Of one that is a little too large it is to be said how large it is. */
static uint32_t rows_max(const struct tables *t)
{
    uint32_t max = t->space.words.max;

    return max < ROWS_MAX / 2 ? 2 * max : max / 4 > ROWS_MAX ? max / 4 : ROWS_MAX;
}

/* Has the table built, if it is neither there nor on its way. One that has had no room is not built in vain again. */
static struct error *want(struct tables *t, const struct module_asker *asker, const struct code_mapping *m, uint32_t number,
                          uint64_t time_ns)
{
    struct table_entry *e = &t->entries.data[number];

    if (e->state != ENTRY_OUT || time_ns < e->not_before_ns)
        return NULL;
    if (e->gave) {
        e->gave = false;
        e->returns += e->returns < COLD_DOUBLINGS;
        tables_lack(t, number);
    }
    if (e->lacks) {
        bool room;
        TRY(tables_find_room(t, e->words, asker->pid, time_ns, false, &room));
        if (!room) {
            e->not_before_ns = time_ns + COLD_S * NS_PER_S;
            return NULL;
        }
    }
    struct table_job *job = table_job_create(number, asker, m, e->module);
    if (!job)
        return error_no_memory();
    e->module->needs_file = true;
    job->rows_max = rows_max(t);
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

/* Whether a table that is laid in is equal to one that was built. */
static bool is_equal(const struct tables *t, uint32_t number, const struct table_job *job)
{
    const struct table_entry *e = &t->entries.data[number];

    return e->state == ENTRY_IN && e->place == number && e->hash == job->hash &&
           table_space_equals(&t->space, &t->memory.modules[number], job->table);
}

static void enter(struct tables *t, const struct table_job *job, uint32_t place, const struct wire_module *at,
                  uint64_t time_ns)
{
    struct wire_module *to = &t->memory.modules[job->job.number], entry = *at;
    struct table_entry *e = &t->entries.data[job->job.number];

    entry.used_s = (uint32_t)(time_ns / NS_PER_S);
    entry.row_count = 0;
    tables_note_change(t);
    *to = entry;
    /* The count last: it says that the rest is there. */
    __atomic_store_n(&to->row_count, job->table->row_count, __ATOMIC_RELEASE);
    tables_note_change(t);
    e->state = ENTRY_IN;
    e->place = place;
    e->pid = job->pid;
    tables_lack_no_more(t, job->job.number);
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

/* Makes room, which is there at one of the next draining times. Without any to make, `*coming` is false. */
static struct error *make_room(struct tables *t, const struct table_job *job, uint64_t time_ns, bool *coming)
{
    *coming = table_space_is_coming(&t->space);
    return *coming ? NULL : tables_find_room(t, table_words_of(job->table), job->pid, time_ns, true, coming);
}

/* There can be no room for it, or is none now. */
static void lay_out(struct tables *t, const struct table_job *job, uint64_t time_ns)
{
    struct table_entry *e = &t->entries.data[job->job.number];

    e->state = job->table && table_words_of(job->table) <= t->space.words.max ? ENTRY_OUT : ENTRY_TOO_LARGE;
    e->not_before_ns = time_ns + COLD_S * NS_PER_S;
    tables_lack(t, job->job.number);
}

/* What is known of a table from now on. */
static void remember(struct tables *t, const struct table_job *job, uint64_t hash, uint64_t words)
{
    struct table_entry *e = &t->entries.data[job->job.number];

    if (e->hash == hash && e->words == words)
        return;
    tables_lack_no_more(t, job->job.number);
    e->hash = hash;
    e->words = words;
    e->at_least = !job->table;
}

static struct error *lay_in(struct tables *t, const struct table_job *job, uint64_t time_ns, bool *later)
{
    struct table_entry *e = &t->entries.data[job->job.number];
    const struct unwind_table *table = job->table;
    struct wire_module place;
    bool there;

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
    if (job->too_large) { /* how large is not known */
        remember(t, job, UINT64_C(1) << 63 | job->job.number, job->rows_max);
        lay_out(t, job, time_ns);
        return NULL;
    }
    if (!table || !table->row_count) {
        never(t, job->job.number);
        return NULL;
    }
    remember(t, job, job->hash, table_words_of(table));
    if (share(t, job, time_ns))
        return NULL;
    TRY(table_space_put(&t->space, table, &place, &there));
    if (!there) {
        if (table_words_of(table) <= t->space.words.max)
            TRY(make_room(t, job, time_ns, later));
        if (!*later)
            lay_out(t, job, time_ns);
        return NULL;
    }
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

    if (!extents_free_after_grace(&t->space.extents, before_ns))
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
    struct table_entry *e = &t->entries.data[number];
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

const struct table_wants *tables_wants(const struct tables *t)
{
    return &t->wants;
}

const struct table_words *tables_words(const struct tables *t)
{
    return &t->space.words;
}

uint64_t tables_lacked(const struct tables *t)
{
    return t->numbers.lacked;
}

/* Those that are used, or will be, and those whose place one of these uses. Returns whether there are others. */
static bool mark_those_that_stay(struct tables *t, bool (*is_used)(void *ctx, uint32_t number), void *ctx)
{
    for (uint32_t i = 0; i < t->entries.count; i++) {
        struct table_entry *e = &t->entries.data[i];
        e->stays = !e->module || e->state == ENTRY_WAITING || is_used(ctx, i);
    }
    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct table_entry *e = &t->entries.data[i];
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
    tables_note_change(t);
    for (uint32_t i = 0; i < t->entries.count; i++) {
        struct table_entry *e = &t->entries.data[i];
        if (e->stays)
            continue;
        struct wire_module old = t->memory.modules[i];
        tables_hide(t, i);
        if (e->state == ENTRY_IN && e->place == i && !table_space_give(&t->space, &old, time_ns))
            return error_no_memory();
        tables_lack_no_more(t, i);
        table_numbers_release(&t->numbers, e->module->file);
        *e = (struct table_entry){0};
        ++*count;
    }
    tables_new_generation(t);
    tables_note_change(t);
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
    const struct table_entry *e = &t->entries.data[number];
    if (e->state != ENTRY_IN) {
        *reason = e->state == ENTRY_NONE  ? LOSS_no_unwind_info
                  : e->state == ENTRY_WAITING || !e->lacks ? LOSS_table_missing
                                                           : LOSS_table_no_room;
        return NULL;
    }
    place->used_s = (uint32_t)(time_ns / NS_PER_S);
    *view = table_space_view(&t->space, place);
    *reason = 0;
    return NULL;
}
