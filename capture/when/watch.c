/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/when/watch.h"

#include <stdlib.h>
#include <unistd.h>

#include "capture/when/cpu_clocks.h"
#include "capture/when/gil_waits.h"
#include "capture/when/judge.h"
#include "formats/base/clock.h"

/* Looking takes less than this share of time: on a host with very many threads it is done less often. */
#define LOOK_SHARE 400
/* When a look is tried again that failed. */
#define AGAIN_NS NS_PER_S

struct when_watch {
    struct when_watch_options o;
    struct when_judge judge;
    struct cpu_clocks clocks;
    struct gil_waits gils;
    uint64_t due_ns;
    struct buf why;
};

void when_watch_destroy(struct when_watch *w)
{
    if (!w)
        return;
    cpu_clocks_deinit(&w->clocks);
    gil_waits_deinit(&w->gils);
    buf_deinit(&w->why);
    free(w);
}

/* The totals that the conditions need; the others stay 0. */
static struct error *read_facts(struct when_watch *w, struct when_look *look)
{
    if (when_list_has(w->o.conditions, WHEN_CPU)) {
        TRY(cpu_clocks_look(&w->clocks, w->o.processes, look->time_ns));
        look->total_ns[WHEN_CPU] = w->clocks.total_ns;
    }
    if (when_list_has(w->o.conditions, WHEN_GIL)) {
        TRY(sampler_gils(w->o.sampler, gil_waits_add, &w->gils));
        gil_waits_end_look(&w->gils);
        look->total_ns[WHEN_GIL] = w->gils.total_ns;
    }
    if (when_list_has(w->o.conditions, WHEN_RUNQ))
        TRY(sampler_queued_ns(w->o.sampler, &look->total_ns[WHEN_RUNQ]));
    return NULL;
}

struct error *when_watch_create(const struct when_watch_options *options, struct when_watch **out)
{
    struct when_watch *w = calloc(1, sizeof *w);
    const char *why;

    if (!w)
        return error_no_memory();
    w->o = *options;
    if (when_list_has(options->conditions, WHEN_RUNQ) && access("/proc/self/schedstat", F_OK)) {
        free(w);
        return error_create(ERROR_UNSUPPORTED, "--when runq: this kernel does not count how long threads wait for a CPU "
                                               "(it is built without CONFIG_SCHED_INFO)");
    }
    when_judge_init(&w->judge, options->conditions->list, options->conditions->count);
    struct error *err = when_watch_look(w, now_ns(), &why); /* the first one says nothing yet, but whether it can be done */
    if (err)
        when_watch_destroy(w);
    else
        *out = w;
    return err;
}

uint64_t when_watch_due_ns(const struct when_watch *w)
{
    return w ? w->due_ns : UINT64_MAX;
}

struct error *when_watch_look(struct when_watch *w, uint64_t time_ns, const char **why)
{
    struct when_look look = {0};
    double level;

    *why = NULL;
    if (!w || time_ns < w->due_ns)
        return NULL;
    look.time_ns = now_ns(); /* the time of the figures, not of who asks for them */
    struct error *err = read_facts(w, &look);
    if (err && w->due_ns && err->code != ERROR_NO_MEMORY) {
        /* The kernel had no room for it, and will have: the next look covers this time, too. */
        error_destroy(err);
        w->due_ns = time_ns + AGAIN_NS;
        return NULL;
    }
    TRY(err);
    uint64_t rest_ns = (now_ns() - look.time_ns) * LOOK_SHARE, interval_ns = when_judge_interval_ns(&w->judge);
    w->due_ns = look.time_ns + (rest_ns > interval_ns ? rest_ns : interval_ns);
    uint32_t found = when_judge_look(&w->judge, &look, &level);
    if (found == WHEN_NONE)
        return NULL;
    w->why.len_bytes = 0;
    when_put_reason(&w->o.conditions->list[found], level, &w->why);
    buf_put_u8(&w->why, 0);
    if (w->why.bad)
        return error_no_memory();
    *why = (const char *)w->why.data;
    return NULL;
}
