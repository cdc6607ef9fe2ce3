/* SPDX-License-Identifier: Apache-2.0 */
/* What the BPF programs know of waits: reads their maps, and runs the iterator over threads (bpf/sampler_sleep.h). */
#ifndef CAPTURE_SAMPLER_WAIT_MAPS_H
#define CAPTURE_SAMPLER_WAIT_MAPS_H

#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/err.h"

typedef struct error *(*wait_thread_fn)(void *ctx, const struct wire_thread *thread);
typedef struct error *(*wait_site_fn)(void *ctx, uint64_t site, const struct wire_wait_site *owed);
/* `time_ns`: when it was read, CLOCK_MONOTONIC. */
typedef struct error *(*wait_gil_fn)(void *ctx, const struct wire_gil_key *key, const struct wire_gil *gil, uint64_t time_ns);
/* Takes a message of the sampler, which is valid during the call. */
typedef struct error *(*wait_message_fn)(void *ctx, const void *message, uint32_t len_bytes);

/* As sampler_threads() and sampler_owed(); the maps are `waits` and `wait_sites`. */
struct error *wait_maps_threads(int map_fd, wait_thread_fn fn, void *ctx);
struct error *wait_maps_owed(int waits_fd, int sites_fd, wait_site_fn fn, void *ctx);
/*
 * Returns how long others waited up to `time_ns` for the lock that a thread holds, since it left its CPU at `out_ns`; 0: it
 * holds none, or is back. In ns, CLOCK_MONOTONIC. `time_ns` is now, unless the sampler is disabled. The maps are `waits`, `gils`.
 */
uint64_t wait_maps_blame(int threads_fd, int gils_fd, uint32_t tid, uint64_t out_ns, uint64_t time_ns);
/* As sampler_gils(). */
struct error *wait_maps_gils(int gils_fd, wait_gil_fn fn, void *ctx);
/* Closes the accounts of all locks of a process. */
void wait_maps_forget_gils(int gils_fd, uint32_t tgid);
/*
 * As sampler_ended_threads(); `left` is the sampler's counter `wait_left`, `followed` its array of that name. A thread whose
 * last switch was after `until_ns` stays: what was sent of it may not be known yet.
 */
struct error *wait_maps_take_ended(int waits_fd, uint32_t *left, uint32_t *followed, uint64_t until_ns, wait_thread_fn fn,
                                   void *ctx);
/* One pass over all threads of the host: calls `fn` with each message that the program writes. */
struct error *wait_maps_pass(int link_fd, wait_message_fn fn, void *ctx);

#endif
