/* SPDX-License-Identifier: Apache-2.0 */
/* asyncio's tasks in made-up memory of which words were replaced: pairs of an address and a value, or addresses of two words. */
#include <stdlib.h>

#include "tests/unit/task_space.h"

#define TIMES 100000 /* questions for the time: no walk over so little memory needs so many */

static uint64_t word_at(const uint8_t *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof word);
    return word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static struct task_space s;
    const struct task_table *t = &s.table;

    space_three_tasks(&s);
    s.late_after = TIMES;
    for (; len_bytes >= 11; data += 11, len_bytes -= 11) {
        uint64_t at = SPACE_BASE + word_at(data) % (SPACE_BYTES - 8), value = word_at(data + 3);
        if (data[2] & 1) /* a pointer that leads somewhere */
            value = SPACE_BASE + value % SPACE_BYTES;
        space_put(&s, data[2] & 2 ? at & ~UINT64_C(7) : at, value);
    }
    task_walk_run(&s.tasks);
    for (size_t i = 0; i < t->tasks.count; i++) {
        const struct task *task = &t->tasks.data[i];
        if (task->loop >= t->loops.count || task->state > TASK_RUNNING || task->frame_count > TASK_READER_FRAMES_MAX ||
            task->first_frame + (uint64_t)task->frame_count > t->frames.count ||
            task->name + (uint64_t)task->name_len_bytes > t->names.len_bytes ||
            (task->awaiter != TASK_NONE && task->awaiter >= t->tasks.count))
            abort();
    }
    return 0;
}
