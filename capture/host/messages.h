/* SPDX-License-Identifier: Apache-2.0 */
/* Writes status and warnings to the user. All messages of pycap's library go through here. */
#ifndef CAPTURE_HOST_MESSAGES_H
#define CAPTURE_HOST_MESSAGES_H

#include <stdint.h>
#include <stdio.h>

/*
 * messages_write() writes text, which may have several lines; messages_line() writes "pycap: ", the text as one line, and a
 * newline. What else a terminal would obey in the text is escaped (formats/base/printable.h), or the runner of a CI job
 * (formats/base/job_text.h). Names of processes, which
 * may hold line ends, go through messages_name() before they go into messages_write().
 */
void messages_write(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void messages_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Clears the line of a terminal for a status line or what replaces it. */
void messages_clear_line(FILE *out);

/* The kernel's name of a process or thread, printable; a longer text is cut. */
struct messages_name {
    char text[64]; /* 15 bytes, each escaped */
};
struct messages_name messages_name(const char *comm);

/* Formats a number with its noun, given in the singular: "1 sample", "2 samples", "0 processes", "3 binaries". */
struct messages_count {
    char text[64];
};
struct messages_count messages_count(uint64_t n, const char *noun);

#endif
