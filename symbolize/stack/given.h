/* SPDX-License-Identifier: Apache-2.0 */
/* The filters that stood on the command line, as they were given: outputs and messages repeat them. */
#ifndef SYMBOLIZE_STACK_GIVEN_H
#define SYMBOLIZE_STACK_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/buf.h"

/* Texts are borrowed. */
struct given_option {
    const char *name;     /* without dashes */
    const char *argument; /* NULL: the option takes none */
};
/* A VEC, in the order of the command line. */
struct given {
    struct given_option *data;
    size_t count, cap;
};

/* Appends "--pid 12 --comm 'a b'": the options of that name, or all of them if `name` is NULL. */
void given_put(const struct given *given, const char *name, struct buf *out);
/* Appends all but those of one name; NULL: all. */
void given_put_but(const struct given *given, const char *but, struct buf *out);

#endif
