/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of an output: the one that -o names, and those beside it (struct emit_files). They appear together when all
 * are whole, or none does.
 *
 * Each is written under another name in its folder. At the end all are renamed, first those beside the output. What lay
 * there is kept until the last one has its name, and comes back if one cannot be renamed. So only a crash between the
 * first and the last renaming leaves some of them, or a file system that cannot exchange two files, such as NFS.
 *
 * Below the output's folder nothing is followed: a folder on the way must be a folder of ours (output_place.h), or is
 * made. What an earlier output has left in such a folder stays, but for the files that are written again.
 */
#ifndef SYMBOLIZE_OUTPUT_FILES_H
#define SYMBOLIZE_OUTPUT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"

struct output_files_options {
    const char *path;          /* of -o; NULL: standard output. Borrowed, as the inputs are */
    bool parts;                /* nothing is written to `path`: there are only files in its folder */
    uint64_t max_bytes;        /* of all files together */
    bool by_size;              /* see struct output_limit */
    bool binary;               /* see struct output_stream */
    enum job_text_syntax syntax; /* of all files */
    const struct stat *inputs; /* files that are not overwritten */
    size_t input_count;
};

struct output_files;
/* Opens the output itself. ERROR_USAGE if it is one of the inputs, or no place for parts. */
struct error *output_files_open(const struct output_files_options *options, struct output_files **out);
/* The output itself: not to be closed. NULL for parts. */
FILE *output_files_first(const struct output_files *s);
/* For the files beside it. NULL: the output is no regular file, or one that nothing can be created beside. */
struct emit_files *output_files_beside(struct output_files *s);
/*
 * A part: a file in the folder of the output that has no name yet. It goes to where `path` says, a name in that folder, when
 * all files appear; without output_files_close() it never does. That writes the rest of it and closes *out.
 */
struct output_file;
struct error *output_files_create(struct output_files *s, struct output_file **file, FILE **out);
struct error *output_files_close(struct output_file *file, const char *path);
/*
 * Takes the error of what wrote the files, if any. Without one it closes all files and gives them their names. Returns
 * what went wrong, with the name of the file that could not be written; the limit comes before all else. Only
 * output_files_destroy() may follow.
 */
struct error *output_files_finish(struct output_files *s, struct error *err);
/* Removes what has not got its name. */
void output_files_destroy(struct output_files *s);
/* The same for a signal handler that ends the program: removes files, and frees nothing. */
void output_files_remove(const struct output_files *s);

#endif
