/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a host can be sampled with BPF. */
#ifndef CAPTURE_HOST_HOST_CHECK_H
#define CAPTURE_HOST_HOST_CHECK_H

#include "capture/host/host.h"

/* Why sampling with BPF cannot work here, with what to do about it; NULL when it should. */
struct error *host_check(const struct host *h);

#endif
