/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of an output, and the folders below it. Whoever may create files there could put a link in the way of what
 * we write; so nothing below the folder is followed, and only folders of ours are entered (output_place.h).
 */
#ifndef SYMBOLIZE_OUTPUT_FOLDER_H
#define SYMBOLIZE_OUTPUT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/err.h"

struct output_folder {
    int fd;      /* O_PATH; -1: there is none */
    char *shown; /* how messages begin: the folder as it was given, with '/' at the end, or "" */
    void (*made)(struct output_folder *f, const char *path, size_t len); /* called for a folder that was made */
    /* private */
    char *last_path; /* the folder below it that was opened last, and its descriptor */
    int last;        /* -1: none */
};

/* Closes both descriptors. {.fd = -1, .last = -1} has nothing to close. */
void output_folder_deinit(struct output_folder *f);
/* Is it a path of something below the folder: relative, without "." and "..", with parts that can be names? */
bool output_folder_has(const char *path);
/*
 * Opens the folder of such a path, O_PATH. `f` closes it when another is opened. With `make` missing folders are made.
 * ERROR_PERMISSION if something else is in the way, or a folder of another user.
 */
struct error *output_folder_open(struct output_folder *f, const char *path, bool make, int *out);
/* An error about a path below the folder: by errno `why`, or if that is 0 by `code`. */
struct error *output_folder_blame(const struct output_folder *f, const char *path, int why, enum error_code code, const char *message);

#endif
