/* SPDX-License-Identifier: Apache-2.0 */
/* Writes status and warnings to the user. All messages of pycap's library go through here. */
#ifndef CAPTURE_HOST_MESSAGES_H
#define CAPTURE_HOST_MESSAGES_H

#include <stdint.h>
#include <stdio.h>

/* messages_write() writes text as it is; messages_line() writes "pycap: ", the text and a newline. */
void messages_write(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void messages_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Formats a number with its noun, given in the singular: "1 sample", "2 samples", "0 processes", "3 binaries". */
struct messages_count {
    char text[64];
};
struct messages_count messages_count(uint64_t n, const char *noun);

#endif
