/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of key and value that stand in each epoch of a trace as META records: how it was recorded. */
#ifndef CAPTURE_TRACE_SETTINGS_LIST_H
#define CAPTURE_TRACE_SETTINGS_LIST_H

#include "formats/base/err.h"
#include "formats/base/vec.h"

/* {0} is empty. */
struct settings {
    VEC(struct setting {
        const char *key; /* a literal */
        char *value;     /* owned */
    }) list;
};
/* Adds a copy of `value`, as long as it may be. */
struct error *settings_add(struct settings *s, const char *key, const char *value);
void settings_deinit(struct settings *s);

#endif
