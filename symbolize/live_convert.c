/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live_convert.h"

#include "formats/base/clock.h"
#include "symbolize/confine.h"
#include "symbolize/live/live.h"

struct work {
    const struct options *options;
    struct convert_outcome *outcome;
};

/* What convert_run() has to say for people is in the view: it stands for all samples, and damage is in its head. */
static struct error *read_trace(void *own, struct live_feed *feed)
{
    const struct work *w = own;

    return convert_run(w->options, &(struct convert_output){.live = feed}, stderr, w->outcome);
}

struct error *live_convert(struct options *o, struct convert_outcome *outcome)
{
    struct live_view view = {.table = o->emit.threads ? LIVE_THREADS : LIVE_FUNCTIONS,
                             .sort = o->emit.sort == EMIT_SORT_TOTAL ? LIVE_SORT_TOTAL : LIVE_SORT_SELF,
                             .by_line = o->emit.by == EMIT_BY_LINE,
                             .interval_ns = NS_PER_S};
    /* Not on the stack: a thread that was abandoned still writes there. */
    static struct convert_outcome read;
    static struct work work;
    struct live_screen *screen = NULL;
    bool abandoned = false;

    work = (struct work){.options = o, .outcome = &read};
    struct error *err = live_screen_open(&screen);
    if (!err)
        err = confine(o);
    if (!err)
        err = live_run(screen, &view, read_trace, &work, &abandoned);
    live_screen_close(screen);
    outcome->abandoned = abandoned;
    return err;
}
