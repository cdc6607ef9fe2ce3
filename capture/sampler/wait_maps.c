/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/sampler/wait_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "formats/base/clock.h"

/* The kernel gives up after so many threads without a message, and goes on where it was: so often at most. */
#define PASS_RETRIES 64

struct error *wait_maps_threads(int map_fd, wait_thread_fn fn, void *ctx)
{
    uint32_t tid, *at = NULL;
    struct wire_thread thread;

    while (!bpf_map_get_next_key(map_fd, at, &tid)) {
        at = &tid;
        if (!bpf_map_lookup_elem(map_fd, &tid, &thread))
            TRY(fn(ctx, &thread));
    }
    return NULL;
}

struct error *wait_maps_take_ended(int waits_fd, uint32_t *left, uint32_t *followed, uint64_t until_ns, wait_thread_fn fn,
                                   void *ctx)
{
    struct wire_thread thread;
    uint32_t tid, next;
    bool more = __atomic_exchange_n(left, 0, __ATOMIC_SEQ_CST) && !bpf_map_get_next_key(waits_fd, NULL, &tid);

    while (more) {
        /* The next key cannot be found from one that was removed. */
        more = !bpf_map_get_next_key(waits_fd, &tid, &next);
        bool ended = !bpf_map_lookup_elem(waits_fd, &tid, &thread) && thread.ended;
        if (ended && thread.switched_ns > until_ns) {
            __atomic_fetch_add(left, 1, __ATOMIC_SEQ_CST);
        } else if (ended && !bpf_map_delete_elem(waits_fd, &tid)) {
            __atomic_fetch_sub(&followed[thread.tgid % WIRE_FOLLOWED], 1, __ATOMIC_SEQ_CST);
            TRY(fn(ctx, &thread));
        }
        tid = next;
    }
    return NULL;
}

struct owed_reader {
    wait_site_fn fn;
    void *ctx;
};

static struct error *read_near(void *owed_reader, const struct wire_thread *thread)
{
    const struct owed_reader *reader = owed_reader;

    for (uint32_t i = 0; i < WIRE_NEAR_SITES; i++) {
        const struct wire_near_site *near = &thread->near[i];
        if (near->site.owed_ns || near->site.owed_queue_ns || near->site.owed_blame_ns)
            TRY(reader->fn(reader->ctx, near->key, &near->site));
    }
    return NULL;
}

struct error *wait_maps_owed(int waits_fd, int sites_fd, wait_site_fn fn, void *ctx)
{
    uint64_t site, *at = NULL;
    struct wire_wait_site owed;

    while (!bpf_map_get_next_key(sites_fd, at, &site)) {
        at = &site;
        if (!bpf_map_lookup_elem(sites_fd, &site, &owed) && (owed.owed_ns || owed.owed_queue_ns || owed.owed_blame_ns))
            TRY(fn(ctx, site, &owed));
    }
    return wait_maps_threads(waits_fd, read_near, &(struct owed_reader){fn, ctx});
}

uint64_t wait_maps_blame(int threads_fd, int gils_fd, uint32_t tid, uint64_t out_ns, uint64_t time_ns)
{
    struct wire_thread t;
    struct wire_gil gil;

    if (bpf_map_lookup_elem(threads_fd, &tid, &t) || t.runs || t.switched_ns != out_ns || t.gil_role != WIRE_GIL_HOLDS)
        return 0;
    struct wire_gil_key key = {.address = t.gil, .tgid = t.tgid};
    if (bpf_map_lookup_elem(gils_fd, &key, &gil) || gil.since_ns != t.gil_since_ns)
        return 0;
    return wire_gil_waited_ns(t.gil_waits, out_ns, gil.waits, time_ns);
}

struct error *wait_maps_gils(int gils_fd, wait_gil_fn fn, void *ctx)
{
    struct wire_gil_key key, *at = NULL;
    struct wire_gil gil;

    while (!bpf_map_get_next_key(gils_fd, at, &key)) {
        at = &key;
        if (!bpf_map_lookup_elem(gils_fd, &key, &gil))
            TRY(fn(ctx, &key, &gil, now_ns()));
    }
    return NULL;
}

void wait_maps_forget_gils(int gils_fd, uint32_t tgid)
{
    struct wire_gil_key key, next, *at = NULL;

    while (!bpf_map_get_next_key(gils_fd, at, &next)) {
        /* The next key cannot be found from a removed one, so remove a key after finding its successor. */
        if (at && key.tgid == tgid)
            bpf_map_delete_elem(gils_fd, &key);
        key = next;
        at = &key;
    }
    if (at && key.tgid == tgid)
        bpf_map_delete_elem(gils_fd, &key);
}

/* A read gives whole messages, each a sample's head and its kernel addresses. */
static struct error *hand_on(const uint8_t *bytes, size_t len_bytes, wait_message_fn fn, void *ctx)
{
    while (len_bytes >= sizeof(struct wire_sample)) {
        const struct wire_sample *m = (const void *)bytes;
        size_t len = sizeof *m + m->kernel_count * sizeof(uint64_t);
        if (len > len_bytes)
            break;
        TRY(fn(ctx, m, (uint32_t)len));
        bytes += len;
        len_bytes -= len;
    }
    return len_bytes ? error_create(ERROR_FORMAT, "the sampler sent a malformed message of a thread that sleeps") : NULL;
}

struct error *wait_maps_pass(int link_fd, wait_message_fn fn, void *ctx)
{
    _Alignas(8) uint8_t bytes[64 << 10]; /* larger than the kernel's buffer, which is emptied at each read */
    struct error *err = NULL;
    int fd = bpf_iter_create(link_fd), retries = 0;
    ssize_t len = 1;

    if (fd < 0)
        return error_os(errno, "threads cannot be gone over");
    while (!err && len) {
        len = read(fd, bytes, sizeof bytes);
        if (len > 0)
            err = hand_on(bytes, (size_t)len, fn, ctx);
        else if (len < 0 && (errno != EAGAIN || ++retries > PASS_RETRIES))
            err = error_os(errno, "what was found of threads cannot be read");
    }
    close(fd);
    return err;
}
