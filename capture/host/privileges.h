/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities that recording takes: which are missing and what is lost without them, and letting go of those
 * that are not needed any more once everything is loaded, attached and opened.
 */
#ifndef CAPTURE_HOST_PRIVILEGES_H
#define CAPTURE_HOST_PRIVILEGES_H

#include <stdbool.h>
#include <stdio.h>

#include "capture/host/host.h"

/* Why nothing can be loaded and sampled, with the capability by name and how to give it; NULL when it can. */
struct error *privileges_check(const struct host *h);
/* A line for each capability that is missing where recording goes on without it; each line begins with `prefix`. */
void privileges_print_missing(const struct host *h, const char *prefix, FILE *out);
/* The names of all that are missing, separated by blanks, malloc'd; NULL when all are there. */
char *privileges_missing(const struct host *h);
/* Those of them that open other processes and their files: " without CAP_A CAP_B", or "". */
void privileges_missing_to_read(const struct host *h, char out[128]);

struct privileges_need {
    int bpf_map_fd;  /* a map that is looked into while running; -1: no map is */
    bool new_files;  /* files are opened or removed while running */
    bool command;    /* a command, perhaps another user's, is told to end */
};
/*
 * Lets all capabilities of this thread go but those needed while running, as far as they were there. Sets
 * no_new_privs. Threads made afterwards are like it.
 */
struct error *privileges_drop(const struct privileges_need *need);
/* The same for a thread that only computes: nothing is left. */
void privileges_drop_all(void);

#endif
