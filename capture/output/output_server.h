/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: the process that owns the files of a recording and reads nobody (output_protocol.h). It believes nothing
 * that it is asked: a request that is out of order is refused, one that it does not understand ends it.
 */
#ifndef CAPTURE_OUTPUT_OUTPUT_SERVER_H
#define CAPTURE_OUTPUT_OUTPUT_SERVER_H

#include <stdbool.h>

#include "capture/output/files_kept.h"

struct output_options {
    struct files_options files; /* without its callback */
    const char *archive;        /* "-": standard output; NULL: there is none */
    const char *group;          /* name or number of a group that may read what is written; NULL: none */
    const char *status;         /* file of figures about the recording; NULL: there is none */
    bool confine;               /* give up what writing these files does not need */
};

/* Finds the group, whose number goes to `number` and from there into `files`. */
struct error *output_server_find_group(struct output_options *options, gid_t *number);
/*
 * Confines this process to writing these files: capabilities, Landlock where the kernel has it, and a list of system
 * calls. What is open stays open.
 */
struct error *output_server_confine(const struct output_options *options);
/*
 * Answers requests until the other end of `socket` goes away. What was written by then stays; the temporary file of an
 * unfinished archive is removed. `options` is borrowed.
 */
void output_server_run(int socket, const struct output_options *options);

#endif
