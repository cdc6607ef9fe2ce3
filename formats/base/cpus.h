/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs this process may run on. */
#ifndef FORMATS_BASE_CPUS_H
#define FORMATS_BASE_CPUS_H

#include <stdint.h>

/* 1 at least. The limit on CPU time of a cgroup is not looked at. */
uint32_t cpus_allowed(void);

#endif
