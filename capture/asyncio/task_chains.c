/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/asyncio/task_chains.h"

#include <string.h>

/* When so much of stacks was built in a look, others have only their innermost frames. A task without frames counts as one. */
#define BUILT_MAX_BYTES (UINT64_C(2) << 20)
#define ENTRIES_KEPT 32

void task_chains_deinit(struct task_chains *c)
{
    VEC_DEINIT(&c->seen);
    VEC_DEINIT(&c->path);
}

static uint64_t hash_frames(const struct wire_python *frames, uint32_t count)
{
    uint64_t hash = count + 1;

    for (uint32_t i = 0; i < count; i++)
        hash = task_mix(task_mix(hash, frames[i].address), (uint64_t)frames[i].fingerprint << 32 | (uint32_t)frames[i].offset);
    return hash;
}

/* Finds the chain of a task. Tasks that await each other in a ring, which a damaged table may have, end at the first again. */
static struct error *find_chain(struct task_chains *c, const struct task_table *table, uint32_t task)
{
    uint32_t next = task;
    uint64_t chain = 0;

    c->path.count = 0;
    while (next != TASK_NONE && !c->seen.data[next].known) {
        c->seen.data[next].known = true;
        c->seen.data[next].chain = 0;
        if (!VEC_PUSH(&c->path, next))
            return error_no_memory();
        next = table->tasks.data[next].awaiter;
    }
    if (next != TASK_NONE)
        chain = c->seen.data[next].chain;
    for (size_t i = c->path.count; i-- > 0;) {
        struct task_seen *s = &c->seen.data[c->path.data[i]];
        s->chain = chain = task_mix(s->own, chain);
    }
    return NULL;
}

struct error *task_chains_find(struct task_chains *c, const struct task_table *table)
{
    c->seen.count = 0;
    c->built_bytes = 0;
    for (size_t i = 0; i < table->tasks.count; i++) {
        const struct task *t = &table->tasks.data[i];
        struct task_seen seen = {.own = hash_frames(table->frames.data + t->first_frame, t->frame_count)};
        if (!VEC_PUSH(&c->seen, seen))
            return error_no_memory();
    }
    for (size_t i = 0; i < table->tasks.count; i++) {
        uint32_t awaiter = table->tasks.data[i].awaiter;
        if (awaiter != TASK_NONE)
            c->seen.data[awaiter].awaits_tasks = true;
        TRY(find_chain(c, table, (uint32_t)i));
    }
    return NULL;
}

uint32_t task_chains_build(struct task_chains *c, const struct task_table *table, uint32_t task, bool *cut)
{
    uint32_t count = 0, tasks = 0, stack = task + 1, most = c->built_bytes < BUILT_MAX_BYTES ? TASK_CHAIN_MAX : ENTRIES_KEPT;

    *cut = false;
    for (; task != TASK_NONE; task = table->tasks.data[task].awaiter, tasks++) {
        const struct task *t = &table->tasks.data[task];
        bool again = c->seen.data[task].stack == stack;
        c->seen.data[task].stack = stack;
        uint32_t take = again ? 0 : t->frame_count < most - count ? t->frame_count : most - count;
        if (take)
            memcpy(c->entries + count, table->frames.data + t->first_frame, take * sizeof *c->entries);
        count += take;
        if (again || count == most || tasks == most) {
            *cut = true;
            break;
        }
        if (take)
            c->entries[count++] = (struct wire_python){.address = WIRE_RUN};
    }
    c->built_bytes += (count + tasks) * sizeof *c->entries;
    return count;
}
