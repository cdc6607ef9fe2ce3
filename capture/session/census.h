/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether each thread has a stack: when a recording that is to show where every thread is now may end.
 *
 * The threads are listed once, when the sampler runs. Those that start later need not be waited for, and those that end
 * meanwhile are struck out. A stack with a hole in its Python frames counts only when there is no better one after a while.
 */
#ifndef CAPTURE_SESSION_CENSUS_H
#define CAPTURE_SESSION_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/session/waits.h"
#include "formats/base/err.h"

/* Of so many threads at most the stacks are waited for. */
#define CENSUS_MAX 65536
/* How long it is waited for a better stack than one with a hole. */
#define CENSUS_BETTER_NS (200 * UINT64_C(1000000))

struct census;
/* `waits` is borrowed. */
struct error *census_create(const struct waits *waits, struct census **out);
/* Accepts NULL. */
void census_destroy(struct census *c);
/* The sampler runs from now on. */
void census_begin(struct census *c, uint64_t time_ns);
/* Lists the threads that a process has now; none if it has ended. Call after census_begin(). */
struct error *census_list(struct census *c, uint32_t tgid);
/* A sample has come, of a thread that runs or that begins to wait. */
void census_saw(struct census *c, const struct wire_sample *sample);
/* Whether there is a stack of each thread that was listed and still lives. */
bool census_is_complete(struct census *c, uint64_t time_ns);
/* Threads without a stack, as far as the last call of census_is_complete() knows. */
uint32_t census_missing(const struct census *c);

#endif
