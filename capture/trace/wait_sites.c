/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/trace/wait_sites.h"

#include "capture/trace/blame.h"
#include "capture/trace/sample_labels.h"

/* Of how many stacks is what is usual at a site. */
#define SITE_MEMORY 128
/* How many stacks there may be at all sites together; then all are forgotten. */
#define ALL_STACKS_MAX 262144

static struct site_note *find_site(struct trace_builder *b, uint64_t site)
{
    const uint64_t *known = map_get(&b->site_of, site);

    return known ? &b->sites.data[*known] : NULL;
}

/* A number below `limit`, which is at least 1 (splitmix64). It is not meant to be the same in each capture, nor to be secret. */
static uint64_t below(struct trace_builder *b, uint64_t limit)
{
    uint64_t z = b->chance += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % limit;
}

/* ---- who gets what is owed ---- */

/* Adds what is known to have been waited, or less than nothing, to what the stacks are to get: to each in its usual share. */
static void share_out(struct site_note *site, int debt, double ns)
{
    double all_ns = 0;

    for (size_t i = 0; i < site->stacks.count; i++)
        all_ns += site->stacks.data[i].usual_ns[debt];
    if (all_ns <= 0)
        site->undivided_ns[debt] += ns;
    for (size_t i = 0; i < site->stacks.count && all_ns > 0; i++)
        site->stacks.data[i].lacks_ns[debt] += ns * site->stacks.data[i].usual_ns[debt] / all_ns;
}

/* Older stacks count for less: a program may have done something else then. */
static void add_usual(struct site_note *site, int debt, double ns)
{
    for (size_t i = 0; i < site->stacks.count; i++)
        site->stacks.data[i].usual_ns[debt] *= 1 - 1.0 / SITE_MEMORY;
    site->stacks.data[site->last].usual_ns[debt] += ns;
}

/*
 * The stack that lacks most is paid. All together lack what is owed. If it were one of them by chance, the errors of many
 * payments would add up.
 */
static struct site_stack *pay(struct site_note *site, int debt, uint64_t owed_ns)
{
    struct site_stack *best = &site->stacks.data[site->last];

    for (size_t i = 0; i < site->stacks.count; i++) {
        if (site->stacks.data[i].lacks_ns[debt] > best->lacks_ns[debt])
            best = &site->stacks.data[i];
    }
    best->lacks_ns[debt] -= (double)owed_ns;
    return best;
}

/* A sample with the time of waits at the site, with one of its stacks, which was taken of another. */
static struct trace_sample owed_sample(struct trace_builder *b, const struct site_note *site, const struct site_stack *stack,
                                       uint32_t kind, uint64_t time_ns)
{
    /* Where a thread was preempted is not part of the site, so it may have been in another system call, or in none. */
    int call = kind == WIRE_WAIT_PREEMPTED ? WIRE_NO_SYSTEM_CALL : site->system_call;
    const struct wire_sample like = {.wait_kind = kind, .system_call = call, .thread_handle = 1,
                                     .interpreter_id = site->interpreter_id};

    return (struct trace_sample){.time_ns = time_ns, .thread = site->thread, .tuple = stack->tuple,
                                 .flags = stack->flags | TRACE_SAMPLE_VALUE | TRACE_SAMPLE_CONTINUES | TRACE_SAMPLE_OWED |
                                          TRACE_SAMPLE_LABELS,
                                 .label_set = sample_labels(b, NULL, &like, NULL, stack->waker)};
}

/* Writes what the site owes of a kind: of the waits themselves, or as `debt` says. */
static void write_owed(struct trace_builder *b, struct site_note *site, int debt, uint64_t owed_ns, uint64_t time_ns)
{
    struct builder_event *event = &b->events[event_list_wait(&b->o.events)];
    uint32_t kind = debt == SITE_QUEUED ? WIRE_WAIT_RUN_QUEUE : site->kind;

    if (!owed_ns)
        return;
    struct trace_sample sample = owed_sample(b, site, pay(site, debt, owed_ns), kind, time_ns);
    if (debt == SITE_BLAME) {
        blame_put(b, &sample, owed_ns);
        return;
    }
    sample.value = owed_ns;
    trace_writer_sample(b->o.writer, event->trace_id, &sample);
    if (trace_writer_full(b->o.writer) || trace_writer_epoch_full(b->o.writer))
        return; /* the time is among what was not written */
    event->value += owed_ns;
    event->samples++;
    b->counts.samples++;
    b->file_samples++;
}

/* The note of a site, made where there is none; NULL: out of memory. */
static struct site_note *note_site(struct trace_builder *b, const struct wire_sample *m, uint32_t thread)
{
    struct site_note *site = find_site(b, m->wait_site);
    const struct site_note first = {.thread = thread, .kind = m->wait_kind, .system_call = m->system_call,
                                    .interpreter_id = m->interpreter_id};

    if (site)
        return site;
    if (!VEC_PUSH(&b->sites, first) || !map_set(&b->site_of, m->wait_site, b->sites.count - 1))
        return NULL;
    return &b->sites.data[b->sites.count - 1];
}

/*
 * Finds the stack, or a place for it. Where there are too many the one that is least usual gives way, with such a chance that
 * on average neither loses ("unbiased space saving", Daniel Ting, 2018).
 */
static bool note_stack(struct trace_builder *b, struct site_note *site, const struct site_stack *stack, double usual_ns)
{
    size_t least = 0;

    for (size_t i = 0; i < site->stacks.count; i++) {
        const struct site_stack *s = &site->stacks.data[i];
        site->last = i;
        if (s->tuple == stack->tuple && s->waker == stack->waker)
            return true;
        if (s->usual_ns[SITE_WAITING] < site->stacks.data[least].usual_ns[SITE_WAITING])
            least = i;
    }
    if (site->stacks.count < SITE_STACKS) {
        site->last = site->stacks.count;
        b->site_stacks++;
        return VEC_PUSH(&site->stacks, *stack);
    }
    struct site_stack *s = &site->stacks.data[site->last = least];
    if ((double)below(b, UINT32_MAX) * (s->usual_ns[SITE_WAITING] + usual_ns) < usual_ns * UINT32_MAX) {
        s->tuple = stack->tuple;
        s->flags = stack->flags;
        s->waker = stack->waker;
    }
    return true;
}

void wait_sites_clear(struct trace_builder *b)
{
    for (size_t i = 0; i < b->sites.count; i++)
        VEC_DEINIT(&b->sites.data[i].stacks);
    b->sites.count = b->site_stacks = 0;
    map_clear(&b->site_of);
}

/*
 * How many of those that have no stack at first never get one, among waits of this length: 1 to 0. A long wait is read
 * while it lasts (capture/session/sleepers.h), at some time within as long again as it takes a wait to be long.
 */
static double never_read(uint64_t waited_ns)
{
    if (waited_ns <= WIRE_WAIT_LONG_NS)
        return 1;
    return waited_ns < 2 * WIRE_WAIT_LONG_NS ? 2 - (double)waited_ns / WIRE_WAIT_LONG_NS : 0;
}

/*
 * For how many waits a wait stands that had a stack, itself included: a chance of 1 in 4 stands for four like it. Of those
 * that are read while they last none is owed.
 */
static double stands_for(const struct wire_sample *m)
{
    double chance = m->wait_chance ? (double)m->wait_chance / WIRE_CHANCE_ALL : 1;

    return never_read(m->waited_ns) / chance;
}

/*
 * Divides what is owed since the last wait that had a stack; of this one it would be `own_ns`. Its stack gets what the wait
 * stands for without itself: on average that is what is owed. What it is more or less goes to all stacks, by what was usual
 * before. That does not depend on this wait, so no stack gains or loses by it on average. (In shares in which this wait counts,
 * its length would be above the line and below: such a ratio is too small for those that wait seldom and long.)
 */
static void divide(struct site_note *site, int debt, const struct wire_sample *m, uint64_t own_ns, uint64_t owed_ns)
{
    double chance = m->wait_chance ? (double)m->wait_chance / WIRE_CHANCE_ALL : 1;
    double all_ns = (double)own_ns * stands_for(m), others_ns = all_ns * (1 - chance);

    site->stacks.data[site->last].lacks_ns[debt] += others_ns + site->undivided_ns[debt];
    site->undivided_ns[debt] = 0;
    share_out(site, debt, (double)owed_ns - others_ns);
    add_usual(site, debt, all_ns);
}

bool wait_sites_pay(struct trace_builder *b, const struct wire_sample *m, const struct trace_sample *sample)
{
    bool queue = m->wait_kind == WIRE_WAIT_RUN_QUEUE;
    int debt = queue ? SITE_QUEUED : SITE_WAITING;
    struct site_note *site = queue ? find_site(b, m->wait_site) : NULL; /* it was noted with the wait before */

    if (!queue) {
        const struct site_stack stack = {.tuple = sample->tuple, .flags = sample->flags & ~(uint32_t)TRACE_SAMPLE_LASTS, .waker = sample_waker(b, m)};
        if (b->site_stacks >= ALL_STACKS_MAX)
            wait_sites_clear(b);
        site = note_site(b, m, sample->thread);
        if (!site || !note_stack(b, site, &stack, (double)m->waited_ns * stands_for(m)))
            return false;
        divide(site, SITE_BLAME, m, m->blame_ns, m->owed_blame_ns);
    }
    if (!site)
        return true;
    divide(site, debt, m, m->waited_ns, m->owed_ns);
    write_owed(b, site, debt, m->owed_ns, m->time_ns);
    write_owed(b, site, SITE_BLAME, m->owed_blame_ns, m->time_ns);
    return true;
}

/* What is owed since the last wait that had a stack. */
static void pay_rest(struct trace_builder *b, struct site_note *site, int debt, uint64_t owed_ns, uint64_t time_ns)
{
    share_out(site, debt, (double)owed_ns);
    write_owed(b, site, debt, owed_ns, time_ns);
}

void trace_builder_owed(struct trace_builder *b, uint64_t site, const struct wire_wait_site *owed, uint64_t time_ns)
{
    struct site_note *known = find_site(b, site);

    if (!known || trace_writer_full(b->o.writer))
        return;
    pay_rest(b, known, SITE_WAITING, owed->owed_ns, time_ns);
    pay_rest(b, known, SITE_QUEUED, owed->owed_queue_ns, time_ns);
    pay_rest(b, known, SITE_BLAME, owed->owed_blame_ns, time_ns);
}
