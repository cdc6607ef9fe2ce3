/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the samples of each capture into a run of a set, while they pass: an emitter that writes nothing.
 *
 * Samples are added up by stack in blocks of about half a second of CPU time (of other events, 50 samples), in the order in
 * which they come. At the end of a block its sums go up the tree, once for each node that was seen in it. From the sums of
 * the blocks and of their squares follows how much more a share varies than independent samples would (run_cell.dispersion).
 * A thousand blocks say that well enough: after as many they are twice as long, so that a long recording costs no more.
 * Samples of several threads may come in a slightly other order than that of time: blocks are hardly touched by that.
 *
 * A block is a cluster of samples that chance drew together. With k of m in block b, and r = sum k / sum m, the variance of
 * the ratio is that of the residuals k - r m (Cochran, Sampling Techniques, 3rd ed., 6.3), and dispersion is it over what
 * the binomial distribution would have: B/(B-1) sum (k - r m)^2 / (M r (1 - r)), all in samples.
 */
#ifndef FORMATS_COMPARE_TALLY_H
#define FORMATS_COMPARE_TALLY_H

#include "formats/base/err.h"
#include "formats/compare/run_set.h"
#include "formats/emit/emit.h"

/* Without begin(): tally_create() makes its state. Samples of a capture come together. */
extern const struct emitter tally_emitter;
/*
 * `model` and `set` are borrowed until the state is destroyed. Frames should have their codes, else no code is known. After
 * the end the set has a run more for each capture, in their order, also for captures without samples. The limits are those
 * of the set.
 */
struct error *tally_create(const struct emit_model *model, struct run_set *set, void **state);

#endif
