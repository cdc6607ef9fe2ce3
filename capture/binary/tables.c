/* SPDX-License-Identifier: Apache-2.0 */
/* A worker builds, the main thread lays in: only the lists of jobs that both see are under the lock. */
#include "capture/binary/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "capture/binary/extents.h"
#include "capture/host/privileges.h"
#include "capture/host/procfs.h"
#include "formats/base/clock.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/* A table that was used since is not taken out for another: they would take turns for ever. */
#define COLD_S 10
/* What was taken out may be read until then by a sample that had begun: samples take microseconds. */
#define GRACE_NS (50 * NS_PER_MS)

enum entry_state {
    ENTRY_OUT,     /* no table, none asked for */
    ENTRY_WAITING, /* the worker has it, or will */
    ENTRY_IN,      /* laid in */
    ENTRY_NONE,    /* the module has no call frame information, or cannot be read */
};

struct entry {
    const struct module *module;
    enum entry_state state;
    uint64_t not_before_ns; /* ENTRY_OUT: there was no room */
    int fd; /* kept, so that a table can be built again when the file is gone; -1: not opened yet, or an image in memory */
};

struct job {
    uint32_t number;
    int fd;
    const uint8_t *image;
    uint64_t image_len_bytes;
    const char *path;
    struct unwind_table *table; /* the answer; NULL when it failed */
};

struct tables {
    struct tables_memory memory;
    struct extents rows, index, wide;
    VEC(struct entry) entries;   /* by number */
    VEC(uint32_t) number_of;     /* by module index: WIRE_MODULE_NONE where none was given yet */
    /* shared with the worker */
    pthread_mutex_t lock;
    pthread_cond_t wake, finished;
    pthread_t worker;
    bool started, stop, ready_to_work;
    VEC(struct job) todo, done;
    uint32_t building; /* number of the table that the worker is at, or WIRE_MODULE_NONE */
    int event_fd;
    /* of the main thread alone again */
    VEC(struct job) ready; /* built, and not laid in yet: there may be no room */
};

/* A table with more rows than there is memory for could not be laid in. */
static void build(const struct tables *t, struct job *job)
{
    const struct unwind_limits limits = {.rows_max = t->memory.row_count};
    struct error *err = job->fd >= 0 ? unwind_table_build(job->fd, job->path, &limits, &job->table)
                                     : unwind_table_build_memory(job->image, job->image_len_bytes, job->path, &job->table);

    error_destroy(err); /* a file that breaks its format has no table, and its samples say so */
}

static void *work(void *ctx)
{
    struct tables *t = ctx;

    privileges_leave_root();
    privileges_drop_all(); /* it parses what others made, in files that are open */
    pthread_mutex_lock(&t->lock);
    t->ready_to_work = true;
    pthread_cond_signal(&t->finished);
    for (;;) {
        while (!t->todo.count && !t->stop)
            pthread_cond_wait(&t->wake, &t->lock);
        if (t->stop)
            break;
        struct job job = t->todo.data[0];
        memmove(t->todo.data, t->todo.data + 1, --t->todo.count * sizeof job);
        t->building = job.number;
        pthread_mutex_unlock(&t->lock);
        build(t, &job);
        pthread_mutex_lock(&t->lock);
        t->building = WIRE_MODULE_NONE;
        pthread_cond_signal(&t->finished);
        if (!VEC_PUSH(&t->done, job))
            unwind_table_destroy(job.table);
        else if (eventfd_write(t->event_fd, 1))
            continue; /* the draining timer comes by anyway */
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct error *tables_create(const struct tables_memory *memory, struct tables **out)
{
    struct tables *t = calloc(1, sizeof *t);
    int e;

    if (!t)
        return error_no_memory();
    t->memory = *memory;
    t->event_fd = -1;
    t->building = WIRE_MODULE_NONE;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->finished, NULL);
    if (!extents_init(&t->rows, memory->row_count) || !extents_init(&t->index, memory->index_count) ||
        !extents_init(&t->wide, memory->wide_count)) {
        tables_destroy(t);
        return error_no_memory();
    }
    t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->event_fd < 0) {
        struct error *err = error_os(errno, "the event for the thread that builds unwind tables cannot be created");
        tables_destroy(t);
        return err;
    }
    e = pthread_create(&t->worker, NULL, work, t);
    if (e) {
        tables_destroy(t);
        return error_os(e, "the thread that builds unwind tables cannot be started");
    }
    t->started = true;
    /* The list of system calls that comes later lets no thread change its user. */
    pthread_mutex_lock(&t->lock);
    while (!t->ready_to_work)
        pthread_cond_wait(&t->finished, &t->lock);
    pthread_mutex_unlock(&t->lock);
    *out = t;
    return NULL;
}

void tables_destroy(struct tables *t)
{
    if (!t)
        return;
    if (t->started) {
        pthread_mutex_lock(&t->lock);
        t->stop = true;
        pthread_cond_signal(&t->wake);
        pthread_mutex_unlock(&t->lock);
        pthread_join(t->worker, NULL);
    }
    for (size_t i = 0; i < t->done.count; i++)
        unwind_table_destroy(t->done.data[i].table);
    for (size_t i = 0; i < t->ready.count; i++)
        unwind_table_destroy(t->ready.data[i].table);
    for (size_t i = 0; i < t->entries.count; i++) {
        if (t->entries.data[i].fd >= 0)
            close(t->entries.data[i].fd);
    }
    VEC_DEINIT(&t->todo);
    VEC_DEINIT(&t->done);
    VEC_DEINIT(&t->ready);
    VEC_DEINIT(&t->number_of);
    VEC_DEINIT(&t->entries);
    extents_deinit(&t->rows);
    extents_deinit(&t->index);
    extents_deinit(&t->wide);
    if (t->event_fd >= 0)
        close(t->event_fd);
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->finished);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

int tables_fd(const struct tables *t)
{
    return t->event_fd;
}

/* The module's number, given when it is first asked for; WIRE_MODULE_NONE when it never gets one. */
static struct error *number_of(struct tables *t, const struct module *m, uint32_t *number)
{
    while (t->number_of.count <= m->index) {
        if (!VEC_PUSH(&t->number_of, WIRE_MODULE_NONE))
            return error_no_memory();
    }
    *number = t->number_of.data[m->index];
    if (*number != WIRE_MODULE_NONE)
        return NULL;
    if ((m->kind != TRACE_MODULE_ELF && m->kind != TRACE_MODULE_VDSO) || m->unreadable || t->entries.count >= t->memory.module_count)
        return NULL;
    struct entry entry = {.module = m, .fd = -1};
    if (!VEC_PUSH(&t->entries, entry))
        return error_no_memory();
    *number = t->number_of.data[m->index] = (uint32_t)t->entries.count - 1;
    return NULL;
}

static void never(struct tables *t, uint32_t number)
{
    t->entries.data[number].state = ENTRY_NONE;
    t->memory.modules[number] = (struct wire_module){.row_start = WIRE_TABLE_NONE};
}

/* Has the table built, if it is neither there nor on its way. */
static struct error *want(struct tables *t, pid_t pid, const struct code_mapping *m, uint32_t number, uint64_t time_ns)
{
    struct entry *e = &t->entries.data[number];

    if (e->state != ENTRY_OUT || time_ns < e->not_before_ns)
        return NULL;
    struct procfs_file file = code_mapping_file(m);
    if (e->fd < 0 && !e->module->image)
        e->fd = procfs_open_mapping(pid, m->address, m->address + m->length, m->path, &file);
    if (e->fd < 0 && !e->module->image)
        return NULL; /* the process is gone: the next one that maps it has it opened */
    struct job job = {
        .number = number,
        .fd = e->fd,
        .image = e->module->image,
        .image_len_bytes = e->module->image_len_bytes,
        .path = e->module->path,
    };

    pthread_mutex_lock(&t->lock);
    bool ok = VEC_PUSH(&t->todo, job);
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (!ok)
        return error_no_memory();
    e->state = ENTRY_WAITING;
    return NULL;
}

/* Where a module's pc 0 lies. False when the mapping holds no code of it. */
static bool base_of(const struct module *module, const struct code_mapping *m, uint64_t *base)
{
    uint64_t bias;

    if (module->kind == TRACE_MODULE_VDSO)
        bias = m->address - (module->identity.segments.count ? module->identity.segments.data[0].vaddr : 0);
    else if (!elf_load_bias(&module->identity.segments, m->address, m->file_offset, m->length, ARCH_PAGE_BYTES, &bias))
        return false;
    *base = bias + elf_base_vaddr(&module->identity.segments, ARCH_PAGE_BYTES);
    return true;
}

struct error *tables_map(struct tables *t, pid_t pid, const struct code_mapping *m, uint64_t time_ns, bool at_once,
                         struct wire_mapping *out)
{
    *out = (struct wire_mapping){.start = m->address, .end = m->address + m->length, .module = WIRE_MODULE_NONE};
    if (!m->module) {
        if (code_mapping_is_anonymous(m))
            out->flags = WIRE_MAPPING_ANONYMOUS;
        return NULL;
    }
    if (!base_of(m->module, m, &out->base))
        return NULL;
    TRY(number_of(t, m->module, &out->module));
    return at_once && out->module != WIRE_MODULE_NONE ? want(t, pid, m, out->module, time_ns) : NULL;
}

/* Takes a table out: the sampler finds none from now on, and the space is free a little later. */
static bool take_out(struct tables *t, uint32_t number, uint64_t time_ns)
{
    struct wire_module *place = &t->memory.modules[number], old = *place;

    __atomic_store_n(&place->row_count, 0, __ATOMIC_RELEASE);
    t->entries.data[number].state = ENTRY_OUT;
    return extents_give(&t->rows, old.row_start, old.row_count, time_ns) &&
           extents_give(&t->index, old.index_start, old.index_count, time_ns) &&
           extents_give(&t->wide, old.wide_start, old.wide_count, time_ns);
}

static bool take_space(struct tables *t, const struct unwind_table *table, struct wire_module *place)
{
    if (extents_take(&t->rows, table->row_count, &place->row_start)) {
        if (extents_take(&t->index, table->index_count, &place->index_start)) {
            if (extents_take(&t->wide, table->wide_count, &place->wide_start))
                return true;
            extents_return(&t->index, place->index_start, table->index_count);
        }
        extents_return(&t->rows, place->row_start, table->row_count);
    }
    return false;
}

/* The table that was used longest ago, or none. */
static bool coldest(const struct tables *t, uint32_t *number)
{
    bool found = false;

    for (uint32_t i = 0; i < t->entries.count; i++) {
        if (t->entries.data[i].state == ENTRY_IN &&
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

static struct error *lay_in(struct tables *t, const struct job *job, uint64_t time_ns, bool *later)
{
    struct entry *e = &t->entries.data[job->number];
    const struct unwind_table *table = job->table;
    struct wire_module place = {0}, *to = &t->memory.modules[job->number];
    uint32_t cold = 0;

    *later = false;
    if (!table || !table->row_count) {
        never(t, job->number);
        return NULL;
    }
    if (table->row_count > t->memory.row_count || table->index_count > t->memory.index_count ||
        table->wide_count > t->memory.wide_count) {
        never(t, job->number);
        return NULL;
    }
    if (!take_space(t, table, &place)) {
        bool coming = t->rows.waiting.count || t->index.waiting.count || t->wide.waiting.count;
        /* Make room, which is there at one of the next draining times; or do without for a while. */
        if (!coming && coldest(t, &cold) && t->memory.modules[cold].used_s + COLD_S <= time_ns / NS_PER_S) {
            if (!take_out(t, cold, time_ns))
                return error_no_memory();
            coming = true;
        }
        *later = coming;
        if (!coming) {
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
    place.used_s = (uint32_t)(time_ns / NS_PER_S);
    *to = place;
    /* The count last: it says that the rest is there. */
    __atomic_store_n(&to->row_count, table->row_count, __ATOMIC_RELEASE);
    e->state = ENTRY_IN;
    return NULL;
}

/* Moves what has been built to where only the main thread looks. */
static struct error *take_done(struct tables *t)
{
    bool ok = true;

    pthread_mutex_lock(&t->lock);
    size_t moved = 0;
    while (moved < t->done.count && (ok = VEC_PUSH(&t->ready, t->done.data[moved])))
        moved++;
    t->done.count -= moved;
    if (moved)
        memmove(t->done.data, t->done.data + moved, t->done.count * sizeof *t->done.data);
    pthread_mutex_unlock(&t->lock);
    return ok ? NULL : error_no_memory();
}

struct error *tables_poll(struct tables *t, uint64_t time_ns)
{
    uint64_t before_ns = time_ns - GRACE_NS;
    eventfd_t count;

    (void)eventfd_read(t->event_fd, &count);
    if (!extents_free_after_grace(&t->rows, before_ns) || !extents_free_after_grace(&t->index, before_ns) ||
        !extents_free_after_grace(&t->wide, before_ns))
        return error_no_memory();
    TRY(take_done(t));
    struct error *err = NULL;
    size_t laid = 0;
    bool later = false;
    while (!err && laid < t->ready.count) {
        err = lay_in(t, &t->ready.data[laid], time_ns, &later);
        if (later)
            break;
        unwind_table_destroy(t->ready.data[laid++].table);
    }
    t->ready.count -= laid;
    if (laid)
        memmove(t->ready.data, t->ready.data + laid, t->ready.count * sizeof *t->ready.data);
    return err;
}

/* The table is wanted now: what is waiting is built here, what the worker is at is waited for. */
static struct error *finish(struct tables *t, uint32_t number, uint64_t time_ns)
{
    struct job job = {0};
    bool found = false;

    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; !found && i < t->todo.count; i++) {
        if (t->todo.data[i].number != number)
            continue;
        job = t->todo.data[i];
        memmove(t->todo.data + i, t->todo.data + i + 1, (--t->todo.count - i) * sizeof job);
        found = true;
    }
    while (!found && t->building == number)
        pthread_cond_wait(&t->finished, &t->lock);
    pthread_mutex_unlock(&t->lock);
    if (found) {
        build(t, &job);
        if (!VEC_PUSH(&t->ready, job)) {
            unwind_table_destroy(job.table);
            return error_no_memory();
        }
    }
    return tables_poll(t, time_ns);
}

struct error *tables_view(struct tables *t, pid_t pid, const struct code_mapping *m, uint64_t time_ns,
                          struct unwind_table *view, uint64_t *base, uint32_t *reason)
{
    uint32_t number = WIRE_MODULE_NONE;

    *reason = LOSS_no_module;
    if (m->module && base_of(m->module, m, base))
        TRY(number_of(t, m->module, &number));
    if (number == WIRE_MODULE_NONE)
        return NULL;
    TRY(want(t, pid, m, number, time_ns));
    if (t->entries.data[number].state == ENTRY_WAITING)
        TRY(finish(t, number, time_ns));
    /* One that waits for room serves meanwhile as it is. */
    for (size_t i = 0; t->entries.data[number].state == ENTRY_WAITING && i < t->ready.count; i++) {
        if (t->ready.data[i].number == number && t->ready.data[i].table) {
            *view = *t->ready.data[i].table;
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
