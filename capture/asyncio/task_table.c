/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of what a look at a process's tasks found. */
#include "capture/asyncio/task_table.h"

void task_table_deinit(struct task_table *t)
{
    VEC_DEINIT(&t->tasks);
    VEC_DEINIT(&t->frames);
    buf_deinit(&t->names);
    VEC_DEINIT(&t->loops);
}
