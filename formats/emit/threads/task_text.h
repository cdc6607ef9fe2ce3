/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a process as text. */
#ifndef FORMATS_EMIT_THREADS_TASK_TEXT_H
#define FORMATS_EMIT_THREADS_TASK_TEXT_H

#include <stdbool.h>

#include "formats/base/buf.h"
#include "formats/emit/threads/threads_data.h"

/* The tasks of a process, if there are any. False: out of memory. */
bool threads_put_tasks(const struct threads *t, const struct threads_process *p, struct buf *out);

#endif
