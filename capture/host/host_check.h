/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a host can be sampled with BPF. */
#ifndef CAPTURE_HOST_HOST_CHECK_H
#define CAPTURE_HOST_HOST_CHECK_H

#include "capture/host/host.h"

/* Returns an error that says why BPF sampling cannot work on this host and what to do; NULL when it should work. */
struct error *host_check(const struct host *h);
/* Takes an error of this kind from elsewhere, and returns it with a line on what works without BPF, as those above have one. */
struct error *host_check_say_rest(struct error *err);

#endif
