/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/waits.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"

/*
 * What all stacks together may take. One process may have as much as it leaves free: one that has thousands of threads wait
 * deep in recursion has half of it, two of them have two thirds, and for others there is always something left.
 */
#define KEPT_MAX_BYTES ((size_t)64 << 20)

enum progress { COMPLETE, UNREAD, DOUBTED };

struct pending {
    struct wire_sample *sample; /* owned; time_ns is when the wait began */
    uint32_t len_bytes;
    enum progress progress;
    uint64_t until_ns; /* handed on so far; time_ns: nothing was */
    uint64_t paid_ns;  /* the length of that, and of an earlier wait whose end was lost: its call site owes it again */
    uint64_t blamed_ns;     /* of this wait's blame, handed on so far */
    uint64_t paid_blame_ns; /* and with that of an earlier wait whose end was lost */
};

struct waits {
    waits_fn put;
    waits_blame_fn blame;
    void *ctx;
    VEC(struct pending) list;
    struct map by_tid; /* -> index of the list */
    size_t kept_bytes;
    struct map kept_of; /* tgid -> bytes */
    uint64_t refused;
};

struct error *waits_create(waits_fn put, waits_blame_fn blame, void *ctx, struct waits **out)
{
    struct waits *w = calloc(1, sizeof *w);

    if (!w)
        return error_no_memory();
    w->put = put;
    w->blame = blame;
    w->ctx = ctx;
    *out = w;
    return NULL;
}

void waits_destroy(struct waits *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->list.count; i++)
        free(w->list.data[i].sample);
    VEC_DEINIT(&w->list);
    map_deinit(&w->by_tid);
    map_deinit(&w->kept_of);
    free(w);
}

uint64_t waits_refused(const struct waits *w)
{
    return w->refused;
}

static struct pending *find(const struct waits *w, uint32_t tid)
{
    const uint64_t *at = map_get(&w->by_tid, tid);

    return at ? &w->list.data[*at] : NULL;
}

static size_t kept_of(const struct waits *w, uint32_t tgid)
{
    const uint64_t *bytes = map_get(&w->kept_of, tgid);

    return bytes ? *bytes : 0;
}

static void give_back(struct waits *w, const struct pending *p)
{
    uint32_t tgid = p->sample->tgid;
    uint64_t *of_process = map_get(&w->kept_of, tgid);

    w->kept_bytes -= p->len_bytes;
    *of_process -= p->len_bytes;
    if (!*of_process)
        map_remove(&w->kept_of, tgid);
}

void waits_forget(struct waits *w, uint32_t tid)
{
    struct pending *p = find(w, tid), *last = p ? &w->list.data[w->list.count - 1] : NULL;

    if (!p)
        return;
    give_back(w, p);
    free(p->sample);
    if (p != last) {
        *p = *last;
        *map_get(&w->by_tid, p->sample->tid) = (uint64_t)(p - w->list.data);
    }
    w->list.count--;
    map_remove(&w->by_tid, tid);
}

static struct error *keep(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes, enum progress progress)
{
    const struct pending *before = find(w, sample->tid);
    struct pending p = {.len_bytes = len_bytes, .progress = progress, .until_ns = sample->time_ns,
                        .paid_ns = before ? before->paid_ns : 0,
                        .paid_blame_ns = before ? before->paid_blame_ns : 0};

    waits_forget(w, sample->tid);
    size_t of_process = kept_of(w, sample->tgid) + len_bytes;
    if (of_process > KEPT_MAX_BYTES - w->kept_bytes) {
        w->refused++;
        return NULL;
    }
    p.sample = malloc(len_bytes);
    if (!p.sample)
        return error_no_memory();
    memcpy(p.sample, sample, len_bytes);
    if (!map_set(&w->kept_of, sample->tgid, of_process) || !VEC_PUSH(&w->list, p)) {
        free(p.sample);
        return error_no_memory();
    }
    w->kept_bytes += len_bytes;
    return map_set(&w->by_tid, sample->tid, w->list.count - 1) ? NULL : error_no_memory();
}

struct error *waits_begin(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes)
{
    return keep(w, sample, len_bytes, COMPLETE);
}

struct error *waits_begin_unread(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes)
{
    return keep(w, sample, len_bytes, UNREAD);
}

const struct wire_sample *waits_unread(const struct waits *w, uint32_t tid, uint64_t out_ns)
{
    const struct pending *p = find(w, tid);

    return p && p->progress == UNREAD && p->sample->time_ns == out_ns ? p->sample : NULL;
}

const struct wire_sample *waits_kept(const struct waits *w, uint32_t tid)
{
    const struct pending *p = find(w, tid);

    return p && p->progress == COMPLETE ? p->sample : NULL;
}

struct error *waits_complete(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes)
{
    return waits_unread(w, sample->tid, sample->time_ns) ? keep(w, sample, len_bytes, COMPLETE) : NULL;
}

void waits_doubt(struct waits *w, uint32_t tid)
{
    struct pending *p = find(w, tid);

    if (p)
        p->progress = DOUBTED;
}

/* Hands on a sample that ends at `time_ns`. What it says of the call site is for this one alone. */
static struct error *hand_on(struct waits *w, struct pending *p, uint64_t time_ns, uint64_t weight_ns)
{
    struct wire_sample *m = p->sample;
    uint64_t began_ns = m->time_ns;

    m->time_ns = time_ns;
    m->taken_ns = began_ns;
    m->period = weight_ns;
    struct error *err = w->put(w->ctx, m, p->len_bytes);
    m->time_ns = began_ns;
    m->flags |= WIRE_CONTINUES;
    m->waited_ns = m->owed_ns = m->blame_ns = m->owed_blame_ns = 0;
    p->until_ns = time_ns;
    return err;
}

/* What is left of `weight_ns`, of which `*paid_ns` was handed on before. */
static uint64_t rest_of(uint64_t weight_ns, uint64_t *paid_ns)
{
    uint64_t paid = *paid_ns < weight_ns ? *paid_ns : weight_ns;

    *paid_ns -= paid;
    return weight_ns - paid;
}

struct error *waits_end(struct waits *w, const struct wire_wait *end)
{
    struct pending *p = find(w, end->tid);

    if (!p || p->sample->time_ns != end->out_ns || end->in_ns < end->out_ns || end->queue_ns > end->in_ns - end->out_ns)
        return NULL;
    uint64_t woken_ns = end->in_ns - end->queue_ns;
    uint64_t weight_ns = rest_of(woken_ns - end->out_ns, &p->paid_ns);
    uint64_t queue_ns = rest_of(end->queue_ns, &p->paid_ns);
    /* Normally nothing was handed on yet; it was only if the message of an earlier end got lost. */
    p->sample->waited_ns = woken_ns > end->out_ns ? woken_ns - end->out_ns : 1; /* 0: it is not the last one */
    p->sample->waker_kind = end->waker_kind;
    p->sample->waker_tgid = end->waker_tgid;
    p->sample->waker_tid = end->waker_tid;
    p->sample->owed_ns = rest_of(end->owed_ns, &p->paid_ns);
    p->sample->blame_ns = rest_of(end->blame_ns, &p->paid_blame_ns);
    p->sample->owed_blame_ns = rest_of(end->owed_blame_ns, &p->paid_blame_ns);
    struct error *err = hand_on(w, p, woken_ns > p->until_ns ? woken_ns : p->until_ns, weight_ns);
    if (!err && (queue_ns || end->owed_queue_ns)) {
        p->sample->wait_kind = WIRE_WAIT_RUN_QUEUE;
        p->sample->waited_ns = end->queue_ns;
        p->sample->owed_ns = rest_of(end->owed_queue_ns, &p->paid_ns);
        err = hand_on(w, p, end->in_ns, queue_ns);
    }
    waits_forget(w, end->tid);
    return err;
}

/* What is new of the blame of a wait that lasts, which is the piece's. */
static void add_blame(struct waits *w, struct pending *p)
{
    uint64_t all_ns = w->blame ? w->blame(w->ctx, p->sample) : 0;

    if (all_ns <= p->blamed_ns)
        return;
    p->sample->blame_ns = all_ns - p->blamed_ns;
    p->paid_blame_ns += p->sample->blame_ns;
    p->blamed_ns = all_ns;
}

static struct error *put_piece(struct waits *w, struct pending *p, uint64_t time_ns)
{
    uint64_t len_ns = time_ns - p->until_ns;

    p->paid_ns += len_ns;
    add_blame(w, p);
    p->sample->flags |= WIRE_LASTS;
    struct error *err = hand_on(w, p, time_ns, len_ns);
    p->sample->flags &= ~(uint32_t)WIRE_LASTS;
    return err;
}

struct error *waits_piece(struct waits *w, uint32_t tid, uint64_t time_ns)
{
    struct pending *p = find(w, tid);

    return p && time_ns > p->until_ns ? put_piece(w, p, time_ns) : NULL;
}

/* Hands on a piece up to `time_ns`, if nothing has been handed on since `piece_ns` before, or with `cut` since it began. */
static struct error *hand_on_pieces(struct waits *w, uint64_t time_ns, uint64_t piece_ns, bool cut)
{
    for (size_t i = 0; i < w->list.count; i++) {
        struct pending *p = &w->list.data[i];
        uint64_t since_ns = cut ? p->sample->time_ns : p->until_ns;
        if (p->progress == DOUBTED || (p->progress == UNREAD && piece_ns))
            continue;
        if (time_ns <= p->until_ns || time_ns - since_ns < piece_ns)
            continue;
        TRY(put_piece(w, p, time_ns));
    }
    return NULL;
}

struct error *waits_pieces(struct waits *w, uint64_t time_ns, uint64_t piece_ns)
{
    return hand_on_pieces(w, time_ns, piece_ns, false);
}

struct error *waits_cut(struct waits *w, uint64_t time_ns, uint64_t piece_ns)
{
    return hand_on_pieces(w, time_ns, piece_ns, true);
}
