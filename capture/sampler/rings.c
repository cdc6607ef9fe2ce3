/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/sampler/rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "formats/base/clock.h"

static int on_message(void *ctx, void *data, size_t len)
{
    struct ring_reader *reader = ctx;
    struct rings *r = reader->rings;

    r->err = r->count > 1 && message_order_needs(data, (uint32_t)len) ? message_order_add(&r->order, data, (uint32_t)len)
                                                                      : r->fn(r->ctx, data, (uint32_t)len);
    reader->drained_bytes += len + BPF_RINGBUF_HDR_SZ;
    return r->err || reader->drained_bytes >= r->bytes ? -ECANCELED : 0;
}

static struct error *open_reader(struct rings *r, struct ring_reader *reader)
{
    /* Edge-triggered: reports only wake-ups, not that the ring holds something. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    reader->rings = r;
    reader->buffer = ring_buffer__new(reader->fd, on_message, reader, NULL);
    if (!reader->buffer || epoll_ctl(r->wake_fd, EPOLL_CTL_ADD, reader->fd, &event))
        return error_os(errno, "the ring buffer cannot be mapped");
    return NULL;
}

/* All at once, where the kernel can: after each call it waits until no program runs that may know what was there before. */
static struct error *put_in(const struct rings *r, int outer_fd)
{
    uint32_t keys[r->count], fds[r->count], count = r->count;

    for (uint32_t i = 0; i < r->count; i++) {
        keys[i] = i;
        fds[i] = (uint32_t)r->all[i].fd;
    }
    if (!bpf_map_update_batch(outer_fd, keys, fds, &count, NULL))
        return NULL;
    for (uint32_t i = 0; i < r->count; i++) {
        if (bpf_map_update_elem(outer_fd, &keys[i], &fds[i], BPF_ANY))
            return error_os(errno, "the sampler cannot be told of its ring buffers");
    }
    return NULL;
}

struct error *rings_open(struct rings *r, int first_fd, int outer_fd, uint32_t count, uint32_t bytes)
{
    *r = (struct rings){.bytes = bytes, .all = calloc(count, sizeof *r->all)};
    if (!r->all)
        return error_no_memory();
    r->wake_fd = epoll_create1(EPOLL_CLOEXEC);
    if (r->wake_fd < 0)
        return error_os(errno, "the ring buffer cannot be waited for");
    for (uint32_t i = 0; i < count; i++) {
        r->all[i].fd = i ? bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, bytes, NULL) : first_fd;
        if (r->all[i].fd < 0)
            return error_os(errno, "there is no memory for %u ring buffers of %u bytes (a smaller --ring-size takes less)", count,
                            bytes);
        r->count = i + 1;
        TRY(open_reader(r, &r->all[i]));
    }
    return outer_fd < 0 ? NULL : put_in(r, outer_fd);
}

void rings_close(struct rings *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        ring_buffer__free(r->all[i].buffer);
        if (i)
            close(r->all[i].fd);
    }
    if (r->all && r->wake_fd >= 0)
        close(r->wake_fd);
    free(r->all);
    message_order_deinit(&r->order);
    *r = (struct rings){0};
}

struct error *rings_drain(struct rings *r, bool last, struct error *(*fn)(void *ctx, const void *message, uint32_t len_bytes),
                          void *ctx)
{
    struct epoll_event event;

    r->ordered_ns = last || r->count == 1 ? UINT64_MAX : now_ns();
    r->fn = fn;
    r->ctx = ctx;
    r->err = NULL;
    while (epoll_wait(r->wake_fd, &event, 1, 0) > 0)
        ; /* resets the wake-ups */
    for (uint32_t i = 0; i < r->count; i++) {
        r->all[i].drained_bytes = 0;
        int n = ring_buffer__consume(r->all[i].buffer);
        if (r->err)
            return r->err;
        if (n < 0 && n != -ECANCELED)
            return error_os(-n, "the ring buffer cannot be read");
    }
    return message_order_run(&r->order, r->ordered_ns, fn, ctx);
}
