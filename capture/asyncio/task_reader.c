/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look: pages that the last one needed are read at once, and the tasks are found in them. If the threads of their loops
 * slept all the time, that is it. Else the pages are read again. Where nothing in them has changed, nothing did while the
 * tasks were read. Otherwise the tasks are found once more, and those that are the same both times were read well: a task
 * that waits does not change.
 */
#include "capture/asyncio/task_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "capture/asyncio/loop_threads.h"
#include "capture/asyncio/task_memory.h"
#include "capture/asyncio/task_walk.h"
#include "capture/host/target_memory.h"
#include "formats/base/clock.h"

#define TORN_TRIES 2 /* how often a list that changed is read again */
#define FIRST_FIFTHS 3 /* share of the time limit for the first search; the second one needs as long again */
#define KNOWN_PAGES_MAX (1u << 20) /* of all processes that are remembered: 8 MiB */

/* What is known of a process from its last look. */
struct known {
    uint64_t life; /* of the process */
    uint64_t *pages;
    uint32_t count;
    struct task_hints hints;
    struct loop_threads loops;
};

struct task_reader {
    pid_t pid;
    struct task_memory memory;
    struct task_walk walk;
    struct py_walk frames;
    struct task_table first; /* the tasks as they were found before the pages were read again */
    struct map by_address;   /* of a task in `first`: its index */
    VEC(struct known) known;
    uint64_t known_pages;
};

static uint64_t read_ranges(void *ctx, const struct iovec *ranges, uint32_t count, void *out)
{
    const struct task_reader *r = ctx;

    return target_read_ranges(r->pid, ranges, count, out);
}

static bool is_late(void *memory)
{
    return task_memory_is_late(memory);
}

static int frames_memory(void *memory, void *out, uint32_t len, uint64_t address)
{
    return !task_memory_read(memory, address, out, len);
}

struct error *task_reader_create(struct task_reader **out)
{
    struct task_reader *r = calloc(1, sizeof *r);

    *out = r;
    if (!r)
        return error_no_memory();
    r->memory.fn = read_ranges;
    r->memory.ctx = r;
    r->frames.memory = (struct walk_memory){frames_memory, &r->memory};
    r->walk.objects.read = task_memory_read;
    r->walk.objects.ctx = &r->memory;
    r->walk.is_late = is_late;
    r->walk.walk = &r->frames;
    return NULL;
}

void task_reader_destroy(struct task_reader *r)
{
    if (!r)
        return;
    task_memory_deinit(&r->memory);
    task_walk_deinit(&r->walk);
    task_table_deinit(&r->first);
    map_deinit(&r->by_address);
    for (size_t i = 0; i < r->known.count; i++)
        free(r->known.data[i].pages);
    VEC_DEINIT(&r->known);
    free(r);
}

enum task_support task_reader_support(const struct process *p)
{
    if (!p->python)
        return TASKS_NO_ASYNCIO;
    if (!process_has_python(p))
        return TASKS_UNKNOWN;
    const struct py_image *image = &p->python->python;
    if (image->behaviour->awaits == PY_AWAITS_NONE)
        return TASKS_TOO_OLD;
    if (image->behaviour->asyncio_offsets && !p->asyncio.running_task)
        return TASKS_NO_ASYNCIO;
    if (!image->str_type_vaddr || !image->int_type_vaddr)
        return TASKS_UNKNOWN;
    return task_walk_possible(&image->layout, image->behaviour, &p->asyncio) ? TASKS_READABLE : TASKS_UNKNOWN;
}

/* Points the walk at the process. */
static void begin(struct task_reader *r, const struct process *p, struct known *known, uint64_t budget_ns)
{
    const struct py_image *image = &p->python->python;
    struct task_walk *w = &r->walk;

    r->pid = (pid_t)p->tgid;
    r->frames.config.layout = image->layout;
    memset(&r->frames.config.process, 0, sizeof r->frames.config.process);
    process_python(p, &r->frames.config.process);
    w->objects.layout = &r->frames.config.layout;
    w->objects.str_type = image->str_type_vaddr + p->python_bias;
    w->objects.int_type = image->int_type_vaddr + p->python_bias;
    w->asyncio = image->behaviour->asyncio_offsets ? p->asyncio : (struct py_asyncio){0};
    w->runtime = r->frames.config.process.runtime;
    w->tgid = p->tgid;
    w->hints = &known->hints;
    r->memory.budget_ns = budget_ns / 5 * FIRST_FIFTHS;
    task_memory_start_clock(&r->memory);
    loop_threads_look(&known->loops, p->tgid);
    task_memory_begin(&r->memory, known->pages, known->count);
}

/* What is known of a process; adds it. NULL: out of memory. */
static struct known *know(struct task_reader *r, const struct process *p)
{
    struct known new = {.life = p->life};

    for (size_t i = 0; i < r->known.count; i++) {
        if (r->known.data[i].life == p->life)
            return &r->known.data[i];
    }
    return VEC_PUSH(&r->known, new) ? &r->known.data[r->known.count - 1] : NULL;
}

/* Remembers which pages this look needed, unless those of others leave no room. */
static bool remember(struct task_reader *r, struct known *k)
{
    uint32_t count = task_memory_used(&r->memory, NULL, 0);

    if (r->known_pages - k->count + count > KNOWN_PAGES_MAX)
        count = 0;
    uint64_t *pages = realloc(k->pages, (count ? count : 1) * sizeof *pages);

    if (!pages)
        return false;
    r->known_pages += (uint64_t)count - k->count;
    k->pages = pages;
    k->count = count;
    task_memory_used(&r->memory, pages, count);
    return true;
}

/* ---- tasks that did not change ---- */

static bool is_same(const struct task_table *a, const struct task *x, const struct task_table *b, const struct task *y)
{
    return x->coroutine == y->coroutine && x->awaits == y->awaits && x->state == y->state &&
           x->frame_count == y->frame_count && x->name_len_bytes == y->name_len_bytes &&
           !memcmp(a->names.data + x->name, b->names.data + y->name, x->name_len_bytes) &&
           (!x->frame_count || !memcmp(a->frames.data + x->first_frame, b->frames.data + y->first_frame,
                                       x->frame_count * sizeof *a->frames.data));
}

/* Marks tasks of `out` that were another way in `first`. Drops those that are new there: they have not waited yet. */
static bool compare_with_first(struct task_reader *r, struct task_table *out)
{
    uint32_t kept = 0, *moved = malloc((out->tasks.count ? out->tasks.count : 1) * sizeof *moved);

    map_clear(&r->by_address);
    for (size_t i = 0; moved && i < r->first.tasks.count; i++) {
        if (!map_set(&r->by_address, r->first.tasks.data[i].address, i)) {
            free(moved);
            return false;
        }
    }
    if (!moved)
        return false;
    for (size_t i = 0; i < out->tasks.count; i++) {
        struct task *t = &out->tasks.data[i];
        const uint64_t *before = map_get(&r->by_address, t->address);
        bool keep = before || t->state == TASK_RUNNING;
        if (t->state != TASK_RUNNING && before && !is_same(&r->first, &r->first.tasks.data[*before], out, t)) {
            t->state = TASK_CHANGED;
            out->changed++;
        }
        moved[i] = keep ? kept : TASK_NONE;
        if (keep)
            out->tasks.data[kept++] = *t;
    }
    out->tasks.count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        struct task *t = &out->tasks.data[i];
        if (t->awaiter != TASK_NONE)
            t->awaiter = moved[t->awaiter];
    }
    free(moved);
    return true;
}

/*
 * The interpreter knows the number that a thread has in its own pid namespace. Where that is another one, the thread is
 * known by its handle, from its samples; one that has none counts as not known.
 */
static void name_threads(const struct process *p, struct task_table *t)
{
    bool elsewhere = p->ns_tgid && p->ns_tgid != p->tgid;

    for (size_t i = 0; i < t->loops.count; i++) {
        struct task_loop *loop = &t->loops.data[i];
        uint32_t tid = 0;
        for (size_t j = 0; loop->thread_handle && j < p->threads.count; j++) {
            if (p->threads.data[j].handle == loop->thread_handle)
                tid = p->threads.data[j].tid;
        }
        if (!tid && elsewhere) {
            tid = p->tgid;
            if (loop->tid != p->ns_tgid)
                loop->thread_handle = 0;
        }
        loop->tid = tid ? tid : loop->tid;
    }
}

/* Whether no loop of the tasks in `t` ran since the look began. Remembers their threads for the next one. */
static bool loops_slept(struct known *known, const struct process *p, const struct task_table *t)
{
    struct loop_threads now = {.count = 0};
    bool unknown = false;

    for (size_t i = 0; i < t->loops.count; i++) {
        unknown = unknown || !t->loops.data[i].thread_handle;
        loop_threads_add(&now, t->loops.data[i].tid);
    }
    bool slept = t->loops.count && !unknown && loop_threads_slept(&known->loops, &now, p->tgid);
    known->loops = now;
    return slept;
}

/* Where a list breaks off, or the time was over, nobody knows how many tasks are behind that: one at least. */
static void run(struct task_reader *r, struct task_table *out)
{
    r->walk.out = out;
    task_walk_run(&r->walk);
    out->unread += (r->walk.torn || r->memory.late) && !out->unread;
}

/* Whether the process that is read has memory still. */
static bool is_there(struct task_reader *r)
{
    uint64_t word;
    const struct iovec range = {.iov_base = (void *)(uintptr_t)r->walk.runtime, .iov_len = sizeof word};

    return r->memory.fn(r->memory.ctx, &range, 1, &word) == sizeof word;
}

struct error *task_reader_read(struct task_reader *r, const struct process *p, uint64_t budget_ns, struct task_table *out)
{
    struct known *known = know(r, p);
    bool good = known != NULL;

    if (!good)
        return error_no_memory();
    begin(r, p, known, budget_ns);
    out->tasks.count = out->frames.count = out->loops.count = 0;
    buf_clear(&out->names);
    out->unread = out->changed = 0;
    if (py_objects_begin(&r->walk.objects)) {
        run(r, &r->first);
        for (int i = 0; i < TORN_TRIES && r->walk.torn && task_memory_changed(&r->memory); i++)
            run(r, &r->first);
        name_threads(p, &r->first);
        if (!loops_slept(known, p, &r->first) && task_memory_changed(&r->memory)) {
            r->memory.budget_ns = budget_ns;
            r->memory.late = false;
            run(r, out);
            name_threads(p, out);
            good = compare_with_first(r, out);
            out->unread = out->unread > r->first.unread ? out->unread : r->first.unread;
        } else {
            const struct task_table empty = *out;
            *out = r->first;
            r->first = empty;
        }
    } else {
        out->unread = r->memory.late;
    }
    out->time_ns = now_ns();
    if (out->unread && !is_there(r))
        out->unread = 0; /* what is not there is not missed */
    good = good && remember(r, known) && !r->walk.no_memory && !r->memory.no_memory;
    return good ? NULL : error_no_memory();
}

void task_reader_forget(struct task_reader *r, uint64_t life)
{
    for (size_t i = 0; i < r->known.count; i++) {
        if (r->known.data[i].life != life)
            continue;
        r->known_pages -= r->known.data[i].count;
        free(r->known.data[i].pages);
        r->known.data[i] = r->known.data[--r->known.count];
        return;
    }
}

uint64_t task_reader_bytes(const struct task_reader *r)
{
    const struct task_memory *m = &r->memory;

    return sizeof *r + (m->bytes_pages + (uint64_t)(m->again ? TASK_MEMORY_CALL_PAGES : 0)) * 4096 + r->known_pages * 8 +
           r->first.tasks.cap * sizeof *r->first.tasks.data + r->first.frames.cap * sizeof *r->first.frames.data;
}
