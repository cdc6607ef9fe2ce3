/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/cpus.h"

#include <sched.h>
#include <unistd.h>

uint32_t cpus_allowed(void)
{
    cpu_set_t set;
    /* It fails where the kernel has room for more CPUs than the set. */
    long count = sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);

    return count > 0 ? (uint32_t)count : 1;
}
