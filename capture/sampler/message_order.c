/* SPDX-License-Identifier: Apache-2.0 */
/* Messages lie behind each other in one buffer; what is sorted are their places. */
#include "capture/sampler/message_order.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"

void message_order_deinit(struct message_order *o)
{
    VEC_DEINIT(&o->messages);
    VEC_DEINIT(&o->bytes);
}

bool message_order_needs(const void *message, uint32_t len_bytes)
{
    const struct wire_sample *sample = message;
    const struct wire_wait *wait = message;
    const struct wire_thread *thread = message;

    return (len_bytes >= sizeof *sample && sample->type == WIRE_SAMPLE && sample->flags & WIRE_WAITS) ||
           (len_bytes >= sizeof *wait && wait->type == WIRE_WAIT) ||
           (len_bytes >= sizeof *thread && thread->type == WIRE_THREAD);
}

static uint64_t time_of(const void *message)
{
    const struct wire_sample *sample = message;
    const struct wire_wait *wait = message;
    const struct wire_thread *thread = message;

    return sample->type == WIRE_SAMPLE ? sample->time_ns : wait->type == WIRE_WAIT ? wait->in_ns : thread->switched_ns;
}

struct error *message_order_add(struct message_order *o, const void *message, uint32_t len_bytes)
{
    struct ordered_message item = {.time_ns = time_of(message), .at = o->bytes.count, .len_bytes = len_bytes,
                                   .ends = *(const uint32_t *)message == WIRE_THREAD};
    size_t end = o->bytes.count + ((len_bytes + 7) & ~(size_t)7);

    if (!VEC_RESERVE(&o->bytes, end) || !VEC_PUSH(&o->messages, item))
        return error_no_memory();
    memcpy(o->bytes.data + item.at, message, len_bytes);
    o->bytes.count = end;
    return NULL;
}

static int by_time(const void *a, const void *b)
{
    const struct ordered_message *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->ends != y->ends)
        return x->ends ? 1 : -1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_arrival(const void *a, const void *b)
{
    const struct ordered_message *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* Moves what is left to the front. */
static void keep_from(struct message_order *o, size_t first)
{
    size_t used = 0, kept = 0;

    qsort(o->messages.data + first, o->messages.count - first, sizeof *o->messages.data, by_arrival);
    for (size_t i = first; i < o->messages.count; i++) {
        struct ordered_message item = o->messages.data[i];
        memmove(o->bytes.data + used, o->bytes.data + item.at, item.len_bytes);
        item.at = used;
        used += (item.len_bytes + 7) & ~(size_t)7;
        o->messages.data[kept++] = item;
    }
    o->messages.count = kept;
    o->bytes.count = used;
}

struct error *message_order_run(struct message_order *o, uint64_t until_ns,
                                struct error *(*fn)(void *ctx, const void *message, uint32_t len_bytes), void *ctx)
{
    struct error *err = NULL;
    size_t done = 0;

    if (!o->messages.count)
        return NULL;
    qsort(o->messages.data, o->messages.count, sizeof *o->messages.data, by_time); /* no two are equal */
    for (; done < o->messages.count && !err && o->messages.data[done].time_ns <= until_ns; done++)
        err = fn(ctx, o->bytes.data + o->messages.data[done].at, o->messages.data[done].len_bytes);
    keep_from(o, done);
    return err;
}
