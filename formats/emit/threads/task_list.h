/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the tasks that waited at the end. */
#ifndef FORMATS_EMIT_THREADS_TASK_LIST_H
#define FORMATS_EMIT_THREADS_TASK_LIST_H

#include "formats/base/err.h"
#include "formats/emit/threads/threads_data.h"

/* Adds the tasks that wait to the list, and finds out who awaits whom. */
struct error *threads_list_tasks(struct threads *t);

#endif
