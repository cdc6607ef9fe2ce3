/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the parts of an output (symbolize/pass/parts.h) to files, whose names are made of the one that -o gives and of
 * what the part holds. Of profile.pb.gz:
 *
 *     profile.gunicorn-1234.worker-1240.20261122T101500Z.pb.gz
 *
 * the process, the thread and when the window begins (UTC; with fractions of the second where windows begin at some). The
 * names of processes and threads are anybody's: what a file system, a shell or a terminal could take for something else
 * becomes "_", and long names are cut. Parts that would have one name, since a PID was used twice, get ".2" and so on.
 */
#ifndef SYMBOLIZE_PART_FILES_H
#define SYMBOLIZE_PART_FILES_H

#include <stdint.h>
#include <stdio.h>

#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "symbolize/output_files.h"
#include "symbolize/pass/parts.h"

struct part_files {
    struct part_sink sink; /* first: its functions get a pointer to it */
    struct output_files *files;
    const char *path, *name;  /* of -o; its last part */
    size_t stem_len;          /* of `name`; behind it stands the extension */
    uint64_t window_ns;
    struct intern names;      /* without extension */
    VEC(unsigned) numbers;    /* by name: the last number that was added to it; 0: none yet */
    uint64_t count;           /* of files that are complete */
};

/*
 * All arguments are borrowed. `extension`: of the format; a path that does not end with it has the last one that it has.
 * ERROR_USAGE if the path's name is too long for more to be added.
 */
struct error *part_files_init(struct part_files *p, struct output_files *files, const char *path, const char *extension,
                              uint64_t window_ns);
void part_files_deinit(struct part_files *p);
/* Prints how many there are, and their names in short. */
void part_files_print(const struct part_files *p, FILE *out);

#endif
