/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the files of a module by build ID: the binary itself and its separate debug file.
 * A file whose build ID differs from the one in the trace is never used.
 */
#ifndef SYMBOLIZE_BINARY_BINARIES_H
#define SYMBOLIZE_BINARY_BINARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/binary/binary_files.h"
#include "symbolize/binary/named_ids.h"

struct binaries_options {
    const char *const *archives; /* files of pycap archive, searched first; NULL-terminated, may be NULL */
    const struct named_ids *named; /* of the archives' files these alone; NULL: all */
    const char *const *symfs; /* directories searched like perf's --symfs, NULL-terminated, may be NULL */
    const char *sysroot;      /* prefix of the recorded paths and of /usr/lib/debug; NULL: "/" */
    bool no_host;             /* look at nothing but archives, symfs, sysroot and servers, and at no link out of them */
    bool debuginfod;          /* query the servers of DEBUGINFOD_URLS */
};

struct binaries;
struct error *binaries_create(const struct binaries_options *options, struct binaries **out);
void binaries_destroy(struct binaries *b);

/* Looks a module up. If nothing is found, that is not an error: see files->problem. */
struct error *binaries_find(struct binaries *b, const struct binary_key *key, struct binary_files *files);

#endif
