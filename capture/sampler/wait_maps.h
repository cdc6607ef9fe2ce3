/* SPDX-License-Identifier: Apache-2.0 */
/* What the BPF programs know of waits: reads their maps, and runs the iterator over threads (bpf/sampler_sleep.h). */
#ifndef CAPTURE_SAMPLER_WAIT_MAPS_H
#define CAPTURE_SAMPLER_WAIT_MAPS_H

#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/err.h"

typedef struct error *(*wait_thread_fn)(void *ctx, const struct wire_thread *thread);
typedef struct error *(*wait_site_fn)(void *ctx, uint64_t site, const struct wire_wait_site *owed);
/* Takes a message of the sampler, which is valid during the call. */
typedef struct error *(*wait_message_fn)(void *ctx, const void *message, uint32_t len_bytes);

/* As sampler_threads() and sampler_owed(); the maps are `waits` and `wait_sites`. */
struct error *wait_maps_threads(int map_fd, wait_thread_fn fn, void *ctx);
struct error *wait_maps_owed(int waits_fd, int sites_fd, wait_site_fn fn, void *ctx);
/* One pass over all threads of the host: calls `fn` with each message that the program writes. */
struct error *wait_maps_pass(int link_fd, wait_message_fn fn, void *ctx);

#endif
