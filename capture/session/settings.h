/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture was asked for, as the META records of its trace have it: keys are those of the options. */
#ifndef CAPTURE_SESSION_SETTINGS_H
#define CAPTURE_SESSION_SETTINGS_H

#include "capture/session/session_options.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

struct settings {
    VEC(struct setting {
        const char *key; /* a literal */
        char *value;     /* owned */
    }) list;
};

/* Fills `out` with what follows from the options alone. `by_proc`: without BPF. */
struct error *settings_of_options(const struct session_options *o, bool by_proc, struct settings *out);
/* Adds a copy of `value`, as long as it may be. */
struct error *settings_add(struct settings *s, const char *key, const char *value);
void settings_deinit(struct settings *s);

#endif
