/* SPDX-License-Identifier: Apache-2.0 */
/* How a trace was recorded: pairs of key and value, written into each epoch as META records. */
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
/* Adds a copy of `value`, of any length. `key` is not copied. */
struct error *settings_add(struct settings *s, const char *key, const char *value);
void settings_deinit(struct settings *s);

#endif
