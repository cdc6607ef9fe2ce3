/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes waits: a thread's stack comes from the sampler when the thread leaves its CPU, the length of its wait when it
 * runs again. Until then the stack is kept here. A wait that lasts is handed on in pieces, so that the trace has it while
 * it lasts, and what is open at the end is handed on then.
 *
 * What a wait becomes are samples: the sampler's message with the time at which the piece ended, its length as the period
 * and its kind. When a thread was woken before it had a CPU, the rest of the wait is a sample of its own. All but the first
 * of a wait have WIRE_CONTINUES, pieces of one that goes on have WIRE_LASTS. What the call site owes, and who woke the thread, comes with the last of each
 * kind. Each piece has as its blame how long others waited since the piece before for what the thread holds.
 */
#ifndef CAPTURE_SESSION_WAITS_H
#define CAPTURE_SESSION_WAITS_H

#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/err.h"

/* Takes a sample, which is the callee's for the time of the call. */
typedef struct error *(*waits_fn)(void *ctx, const struct wire_sample *sample, uint32_t len_bytes);
/* Returns how long others have waited, in ns, for what the thread holds that began to wait as `sample` says, and waits still. */
typedef uint64_t (*waits_blame_fn)(void *ctx, const struct wire_sample *sample);

struct waits;
/* The functions are called by those below. `blame` may be NULL. */
struct error *waits_create(waits_fn put, waits_blame_fn blame, void *ctx, struct waits **out);
/* Accepts NULL. */
void waits_destroy(struct waits *w);

/* A thread begins to wait: a copy of the message, which has WIRE_WAITS, is kept. */
struct error *waits_begin(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes);
/*
 * The same for a wait that was met as it lasted, whose user stacks are yet to be read: it is handed on in pieces after
 * waits_complete() only. At the end it is handed on as it is, and so it is when it ends before.
 */
struct error *waits_begin_unread(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes);
/* The message of the thread's wait that began at `out_ns`, as long as it goes on and is unread; else NULL. Valid until the next call. */
const struct wire_sample *waits_unread(const struct waits *w, uint32_t tid, uint64_t out_ns);
/* The message of the wait that the thread is in, once its stacks are in it; NULL: none is kept. Valid until the next call. */
const struct wire_sample *waits_kept(const struct waits *w, uint32_t tid);
/* The message of an unread wait with all that was read: a copy takes the place of the one before. */
struct error *waits_complete(struct waits *w, const struct wire_sample *sample, uint32_t len_bytes);
/*
 * The thread has run since the wait began, so nothing more is handed on of it, unless its end is on its way: then that is
 * done as far as it is known.
 */
void waits_doubt(struct waits *w, uint32_t tid);
/* The thread runs again: hands on what is left of its wait. Does nothing when no stack is kept for it. */
struct error *waits_end(struct waits *w, const struct wire_wait *end);
/* The thread has ended; nothing is handed on. */
void waits_forget(struct waits *w, uint32_t tid);
/*
 * Hands on a piece, up to `time_ns`, of all waits of which nothing has been handed on for `piece_ns`; 0: of all. No wait
 * that was over at that time may still be unknown here.
 */
struct error *waits_pieces(struct waits *w, uint64_t time_ns, uint64_t piece_ns);
/* The same of all waits that have lasted for `piece_ns` by then: what is left of them goes into a file that ends. */
struct error *waits_cut(struct waits *w, uint64_t time_ns, uint64_t piece_ns);
/* waits_pieces() for the wait of one thread, however short that is. */
struct error *waits_piece(struct waits *w, uint32_t tid, uint64_t time_ns);
/* How many stacks were not kept because they would have taken too much memory. */
uint64_t waits_refused(const struct waits *w);

#endif
