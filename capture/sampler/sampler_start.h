/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the sampler in a thread. The verifier looks at its programs for a tenth of a second; meanwhile the caller reads
 * /proc.
 */
#ifndef CAPTURE_SAMPLER_SAMPLER_START_H
#define CAPTURE_SAMPLER_SAMPLER_START_H

#include "capture/sampler/sampler.h"

struct sampler_start;
/* Begins what sampler_open() does. What `options` borrows must stay until sampler_started(). */
struct error *sampler_start(const struct sampler_options *options, struct sampler_start **out);
/* Waits for the end of it, takes its result, and frees `start`. */
struct error *sampler_started(struct sampler_start *start, struct sampler **out);
/* Waits for the end of it, and closes the sampler. NULL is accepted. */
void sampler_start_destroy(struct sampler_start *start);

#endif
