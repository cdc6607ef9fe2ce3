/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace to read, perhaps more than once. What cannot be read twice, such as a pipe, can be copied into a temporary
 * file first, and is then read as a file is.
 */
#ifndef SYMBOLIZE_TRACE_INPUT_H
#define SYMBOLIZE_TRACE_INPUT_H

#include "formats/trace/trace.h"

struct input {
    const char *path; /* as the user named it, "-" is standard input; borrowed */
    int fd;           /* of the copy; -1: none */
    char copy[32];    /* its path; "": none */
};

/*
 * What an input is called in outputs, which do not depend on the place where they are made: a file by its name without
 * the folder, all else "standard input".
 */
const char *input_title(const char *path);

void input_init(struct input *in, const char *path);
void input_deinit(struct input *in);
/* Copies an input that cannot be read twice: up to its end, and as far as the disk has room. */
struct error *input_keep(struct input *in);
/* NULL where it can be read only once, or not at all; else the path to read it by, as often as need be. */
const char *input_again(const struct input *in);
struct error *input_open(const struct input *in, struct trace_reader **out);

#endif
