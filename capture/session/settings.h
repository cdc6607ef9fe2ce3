/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture was asked for, as the META records of its trace have it: keys are those of the options. */
#ifndef CAPTURE_SESSION_SETTINGS_H
#define CAPTURE_SESSION_SETTINGS_H

#include "capture/session/session_options.h"

#define SETTINGS_MAX 16

struct settings {
    struct setting {
        const char *key;  /* a literal */
        char value[256];  /* cut, with an ellipsis, where it is longer */
    } list[SETTINGS_MAX];
    uint32_t count;
};

/* What follows from the options alone. `by_proc`: without BPF. */
void settings_of_options(const struct session_options *o, bool by_proc, struct settings *out);
void settings_add(struct settings *s, const char *key, const char *value);

#endif
