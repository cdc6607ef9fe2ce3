/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to the user beside results: all of it is written here. */
#ifndef CAPTURE_HOST_MESSAGES_H
#define CAPTURE_HOST_MESSAGES_H

#include <stdint.h>
#include <stdio.h>

/* Writes text as it is, or a line of its own that begins with "pycap: ". */
void messages_write(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void messages_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A number with its noun: "1 sample", "2 samples"; "0 processes"; "3 binaries". */
struct messages_count {
    char text[64];
};
struct messages_count messages_count(uint64_t n, const char *noun);

#endif
