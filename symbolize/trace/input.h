/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace to read, perhaps more than once. An input that cannot be read twice, such as a pipe, can be copied into a
 * temporary file first, which is then read instead.
 */
#ifndef SYMBOLIZE_TRACE_INPUT_H
#define SYMBOLIZE_TRACE_INPUT_H

#include "formats/trace/trace.h"

struct input {
    const char *path; /* as the user named it, "-" is standard input; borrowed */
    int wake_fd;      /* once it is readable, the input ends; -1: none. Borrowed */
    int fd;           /* of the copy; -1: there is no copy of our own */
    char copy[32];    /* path of what is read instead of `path`; "": nothing is */
};

/*
 * What outputs call an input: a file by its name without the folder, so that outputs do not depend on where they are
 * made; everything else "standard input".
 */
const char *input_title(const char *path);

void input_init(struct input *in, const char *path);
/* Reads another place, which messages call by the name of this one: /proc/self/fd/N, of a file that is open. */
void input_read_at(struct input *in, const char *place);
void input_deinit(struct input *in);
/* If the input cannot be read twice, copies it to a temporary file, up to its end. A full disk is an error. */
struct error *input_keep(struct input *in);
/* A path that can be opened any number of times; NULL if the input can be read only once, or not at all. */
const char *input_again(const struct input *in);
struct error *input_open(const struct input *in, struct trace_reader **out);

#endif
