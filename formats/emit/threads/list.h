/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the threads that were there at the end. */
#ifndef FORMATS_EMIT_THREADS_LIST_H
#define FORMATS_EMIT_THREADS_LIST_H

#include "formats/base/err.h"
#include "formats/emit/threads/threads_data.h"

/* Makes the list of what was gathered. */
struct error *threads_list_make(struct threads *t);
void threads_list_deinit(struct threads_list *list);

#endif
