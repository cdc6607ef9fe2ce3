/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that wait, as they are gathered. */
#ifndef FORMATS_EMIT_THREADS_WAITING_H
#define FORMATS_EMIT_THREADS_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

/* The newest sample of the tasks that have one name, in one thread at one stack, waiting for one thing. */
struct task_newest {
    uint64_t until_ns, since_ns;
    uint32_t thread, stack, label_set, capture;
    uint32_t count; /* tasks that were there at once */
    bool lasts;
};

struct waiting_tasks {
    struct intern keys;
    VEC(struct task_newest) list; /* by key */
    uint64_t newest_ns;
    size_t prune_at; /* so many are in the list: those that have ended long ago are dropped */
};

/* Notes a sample of an event of tasks. False: out of memory. */
bool waiting_tasks_add(struct waiting_tasks *t, struct limits *limits, const struct emit_sample *s);
void waiting_tasks_deinit(struct waiting_tasks *t);

#endif
