/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel lets pycap open perf events: CAP_PERFMON is not enough everywhere. */
#ifndef CAPTURE_HOST_PERF_ALLOWED_H
#define CAPTURE_HOST_PERF_ALLOWED_H

#include "capture/host/host.h"

/* NULL: it does, or what keeps it from it will be told by the events themselves. To be called with CAP_PERFMON. */
struct error *perf_allowed_check(const struct host *h);

#endif
