/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits what each process may make pycap do, so that a hostile one costs nobody else
 * anything. A quota is a leaky bucket for each process and each kind of work (quotas.def).
 * Three limits hold at once:
 *   - the process's own burst;
 *   - its owner's share: the processes of one owner (owner.h) may together use as much of the
 *     pool as the others leave free, so one hostile owner gets at most half, two a third each;
 *     the same holds for all ids of one block together;
 *   - the pool of all processes. Processes that the user named (-p, a command) are held by
 *     this one only.
 * The last eighth of the pool is a reserve: it goes only to processes that have taken less than
 * `first`, as those have that just begin. Half of it is shared among owners in the same way, the
 * other half goes to owners that have had less than `first` of it. So a new program finds what
 * it needs, whatever others have taken for how long.
 * Processes are known by their slot (process.h). Nothing here allocates while it decides.
 */
#ifndef CAPTURE_HOST_QUOTAS_H
#define CAPTURE_HOST_QUOTAS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

enum quota {
#define QUOTA(name, loss, unit, per_second, burst, pool, first) QUOTA_##name,
#include "capture/host/quotas.def"
#undef QUOTA
    QUOTA_COUNT,
};

struct quotas;
struct error *quotas_create(struct quotas **out);
void quotas_destroy(struct quotas *q);
/*
 * Multiplies what each process may take of a kind by `each`, and the pool by `pool` besides: for what comes with samples,
 * of which a higher rate and more CPUs make more. Call before quota_take().
 */
void quotas_scale(struct quotas *q, enum quota kind, uint64_t each, uint64_t pool);
/* Returns how much of a kind all processes together may have at once. */
uint64_t quotas_pool(const struct quotas *q, enum quota kind);

/* Begins with a new process in this slot. `owner` is as owner_key() says. `named`: the user asked for this process. */
struct error *quotas_begin(struct quotas *q, uint32_t slot, uint64_t owner, bool named);
/* The process's owner or scope became known or changed. */
void quotas_set_owner(struct quotas *q, uint32_t slot, uint64_t owner, bool named);
/* The process is dropped: gives back what it holds. Read its refusals before. */
void quotas_end(struct quotas *q, uint32_t slot);

/*
 * Whether the process may take `amount` more of a kind, in its unit. If so, it is taken; if not, a refusal is counted.
 * `time_ns` is CLOCK_MONOTONIC, and may go back a little. A slot without a process is refused.
 */
bool quota_take(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns);
/* The same, but a refusal is not counted. */
bool quota_try(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns);
/*
 * Takes what was used already, beyond the limits if need be: for work of which only its end shows how much it was. False:
 * the process may take no more for now. Nothing is counted as refused.
 */
bool quota_owe(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns);
/* Gives back what was taken before. */
void quota_give(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount);
/* Counts something else that was left out because of the same limit. */
void quota_refuse(struct quotas *q, uint32_t slot, enum quota kind, uint64_t count);

/*
 * Returns the refusals since the last call, by kind, in `counts`, and forgets them. False: there were none. `any` is
 * whether quotas_refused() has anything to return for some slot.
 */
bool quotas_refused(struct quotas *q, uint32_t slot, uint64_t counts[QUOTA_COUNT]);
bool quotas_any_refused(const struct quotas *q);

/* Its name in quotas.def, the number of the loss that a refusal counts as, and what the quota counts. */
const char *quota_name(enum quota kind);
uint32_t quota_loss(enum quota kind);
const char *quota_unit(enum quota kind);

#endif
