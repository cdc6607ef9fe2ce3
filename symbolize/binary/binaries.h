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

struct binaries_options {
    const char *const *archives; /* files of pycap archive, searched first; NULL-terminated, may be NULL */
    const char *const *symfs; /* directories searched like perf's --symfs, NULL-terminated, may be NULL */
    const char *sysroot;      /* prefix of the recorded paths and of /usr/lib/debug; NULL: "/" */
    bool no_host;             /* do not look at this host's own paths */
    bool debuginfod;          /* query the servers of DEBUGINFOD_URLS */
};

struct binaries;
struct error *binaries_create(const struct binaries_options *options, struct binaries **out);
void binaries_destroy(struct binaries *b);

/* What the trace says about a module. Borrowed. */
struct binary_key {
    const uint8_t *build_id;
    uint32_t build_id_len;
    uint32_t id_kind;  /* enum elf_id_kind; with ELF_ID_NONE nothing is ever found */
    const char *path;  /* as recorded */
};

/*
 * Texts are owned. A file of an archive is read through its descriptor, which is borrowed from the binaries; its name
 * is for messages and is not a path.
 */
struct binary_files {
    char *binary;     /* the file with the code and .eh_frame, or NULL */
    char *debug;      /* the file with DWARF or symbols (may equal binary), or NULL */
    char *supplement; /* what dwz split off the debug file, or NULL */
    int binary_fd, debug_fd, supplement_fd; /* 0: open it by its path */
    char *source;     /* how the binary was found, for the summary: "archive", "recorded path", "symfs" …, or NULL */
    char *debug_source; /* the same for the debug file; NULL when it is the binary */
    char *supplement_source; /* the same; "missing" when the debug file needs a supplement that was not found */
    char *problem;    /* why no binary was found, or what is wrong with it ("build ID differs: …"), or NULL */
};
/* Looks a module up. If nothing is found, that is not an error: see files->problem. */
struct error *binaries_find(struct binaries *b, const struct binary_key *key, struct binary_files *files);
void binary_files_deinit(struct binary_files *files);
/*
 * Opens one of the files, given its path and descriptor above. The caller closes the result. -1 and errno on failure.
 */
int binary_open(const char *path, int fd);

#endif
