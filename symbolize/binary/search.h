/* SPDX-License-Identifier: Apache-2.0 */
/* One search for the files of a module, as binaries.c goes through the places, and the steps that its parts share. */
#ifndef SYMBOLIZE_BINARY_SEARCH_H
#define SYMBOLIZE_BINARY_SEARCH_H

#include "formats/base/hex.h"
#include "formats/base/vec.h"
#include "formats/elf/identity.h"
#include "formats/elf/links.h"
#include "symbolize/binary/archive.h"
#include "symbolize/binary/binary_files.h"
#include "symbolize/binary/debuginfod.h"

/* Says of a file that it lies in an archive. Elsewhere: how many bytes of its path the user named, see candidate.h. */
#define SEARCH_IN_ARCHIVE SIZE_MAX

struct binaries {
    VEC(struct archive_files *) archives;
    VEC(char *) symfs;
    char *sysroot; /* "" for "/" */
    char *home;    /* whose ~/.debug is perf's cache; NULL when unknown */
    bool no_host;
    uint64_t compared_left; /* bytes of COMPARED_MAX */
    struct debuginfod debuginfod;
};

struct search {
    struct binaries *b;
    const struct binary_key *key;
    struct binary_files *files;
    char *path; /* the recorded one, without " (deleted)"; NULL when it names no file */
    struct hex id;
    int debug_holds;          /* HAS_* of files->debug */
    size_t binary_named, debug_named; /* of the paths of files->binary and files->debug */
    struct elf_links links;   /* of the binary */
    int server_errno;         /* why debuginfod could not answer, 0 when it did */
};

/* Replaces the text in *slot by `value`, which it owns from here on; NULL: memory ran out, and *slot stays. */
struct error *search_assign(char **slot, char *value);
/* A new text; NULL: memory ran out. */
char *search_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Replaces the descriptor in *slot by another one of the same file. */
struct error *search_keep(int fd, int *slot);
/* True if the file may be read whole, to be compared by its contents; takes its size from what may be read in all. */
bool search_may_compare(struct search *s, int fd);
/* Identifies a candidate. Its contents are hashed only where a hash is what the trace has, and the size is right. */
struct error *search_identify(struct search *s, int fd, const char *path, struct elf_identity *out);
/* Skips a candidate that cannot be read: of its errors only the lack of memory is left. */
struct error *search_skip_unreadable(struct error *err);

#endif
