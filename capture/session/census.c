/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/census.h"

#include <stdlib.h>

#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"
#include "formats/base/clock.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/* Whether threads that have no stack yet have ended is looked up this often, for so many of them. */
#define ENDED_NS (20 * NS_PER_MS)
#define ENDED_MAX 256

enum sight { UNSEEN, POOR, GOOD };

struct listed {
    uint32_t tgid, tid;
};

struct census {
    const struct waits *waits;
    struct map sights; /* tid -> enum sight, of each thread that was listed */
    VEC(struct listed) missing;
    uint64_t begun_ns, ended_due_ns;
    size_t ended_next; /* of `missing`: whose turn it is */
};

struct error *census_create(const struct waits *waits, struct census **out)
{
    struct census *c = calloc(1, sizeof *c);

    if (!c)
        return error_no_memory();
    c->waits = waits;
    *out = c;
    return NULL;
}

void census_destroy(struct census *c)
{
    if (!c)
        return;
    map_deinit(&c->sights);
    VEC_DEINIT(&c->missing);
    free(c);
}

void census_begin(struct census *c, uint64_t time_ns)
{
    c->begun_ns = time_ns;
    c->ended_due_ns = time_ns + ENDED_NS;
}

struct error *census_list(struct census *c, uint32_t tgid)
{
    struct procfs_pids threads = {0};
    struct error *err = procfs_threads((pid_t)tgid, &threads);

    error_destroy(err); /* it has ended */
    err = NULL;
    for (size_t i = 0; !err && i < threads.list.count && c->missing.count < CENSUS_MAX; i++) {
        struct listed thread = {tgid, (uint32_t)threads.list.data[i]};
        if (!VEC_PUSH(&c->missing, thread) || !map_set(&c->sights, thread.tid, UNSEEN))
            err = error_no_memory();
    }
    VEC_DEINIT(&threads.list);
    return err;
}

static enum sight sight_of(const struct wire_sample *sample)
{
    return sample->python_end > LOSS_complete ? POOR : GOOD;
}

void census_saw(struct census *c, const struct wire_sample *sample)
{
    enum sight now = sight_of(sample);
    uint64_t *sight = map_get(&c->sights, sample->tid);

    if (sight && *sight < now)
        *sight = now;
}

static bool is_seen(const struct census *c, const struct listed *thread, enum sight wanted)
{
    const uint64_t *sight = map_get(&c->sights, thread->tid);
    const struct wire_sample *wait = waits_kept(c->waits, thread->tid);

    return (sight && *sight >= wanted) || (wait && sight_of(wait) >= wanted);
}

static bool has_ended(const struct listed *thread)
{
    struct procfs_stat stat;

    return !procfs_stat((pid_t)thread->tgid, (pid_t)thread->tid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

/* Strikes out threads that have ended, as many as one look may take. */
static void strike_ended(struct census *c)
{
    for (size_t i = 0; i < ENDED_MAX && c->missing.count; i++) {
        if (c->ended_next >= c->missing.count)
            c->ended_next = 0;
        if (has_ended(&c->missing.data[c->ended_next]))
            c->missing.data[c->ended_next] = c->missing.data[--c->missing.count];
        else
            c->ended_next++;
    }
}

bool census_is_complete(struct census *c, uint64_t time_ns)
{
    enum sight wanted = time_ns < c->begun_ns + CENSUS_BETTER_NS ? GOOD : POOR;
    size_t left = 0;

    for (size_t i = 0; i < c->missing.count; i++) {
        if (!is_seen(c, &c->missing.data[i], wanted))
            c->missing.data[left++] = c->missing.data[i];
    }
    c->missing.count = left;
    if (left && time_ns >= c->ended_due_ns) {
        strike_ended(c);
        c->ended_due_ns = time_ns + ENDED_NS;
    }
    return !c->missing.count;
}

uint32_t census_missing(const struct census *c)
{
    return (uint32_t)c->missing.count;
}
