/* SPDX-License-Identifier: Apache-2.0 */
/* Who wants to know what is in a file: the process for which it is opened, and whose limits hold. */
#ifndef CAPTURE_BINARY_MODULE_ASKER_H
#define CAPTURE_BINARY_MODULE_ASKER_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/host/quotas.h"

/* The process that has a mapping, and what it may ask for. */
struct module_asker {
    pid_t pid;
    uint64_t life;         /* a number that no other process had or will have */
    uint64_t owner;        /* whose it is (owner.h) */
    uint32_t slot;         /* in `quotas` */
    struct quotas *quotas; /* NULL: no limit */
};

#endif
