/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a capture goes into: one, or one after the other, each complete in
 * itself. Names are made of a pattern; of those that were written, by this run and by
 * the ones before it, the newest can be kept and the others removed.
 *
 * A pattern may hold %h (host name), %t (UTC, 20260131T235959.123Z), %p (pid of pycap) and
 * %% (a percent sign). The time has the same length and its digits the same places in all
 * names, so that names sort by time in every locale.
 */
#ifndef CAPTURE_SESSION_FILES_H
#define CAPTURE_SESSION_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

#define FILES_TIME_BYTES (sizeof "20260131T235959.123Z")

struct files_options {
    const char *pattern;     /* "-": standard output */
    const char *hostname;
    bool rotates;            /* more files may follow */
    uint32_t keep;           /* of the files written, so many; 0: all */
};

struct files {
    struct files_options options;
    int fd;                  /* -1: none is open */
    char *path;              /* of the open file */
    uint64_t named_ns;       /* the time in its name, or in that of the last one; 0: none yet */
    VEC(char *) written;     /* files that were ended, oldest first */
    size_t adopted_count;    /* of these, the first: written by runs before this one */
};

/*
 * Checks a pattern: ERROR_USAGE for an unknown %, and for one that rotates and cannot make new names (no %t) or goes
 * to standard output.
 */
struct error *files_check(const char *pattern, bool rotates);
/* Whether two paths lead to the same file that is there; "-" is none. */
bool files_are_one(const char *a, const char *b);
/* The time as it stands in names. */
void files_time(uint64_t realtime_ns, char out[FILES_TIME_BYTES]);
/* The name that a pattern gives, malloc'd; NULL: out of memory. */
char *files_name(const char *pattern, const char *hostname, uint64_t realtime_ns);

/* {.fd = -1} is one without a file. Options are borrowed. */
void files_init(struct files *f, const struct files_options *options);
void files_deinit(struct files *f);
/*
 * Takes what runs before this one left into `written`, and removes what is not to be kept. For files_options.keep, before
 * the first file is opened; otherwise it does nothing. Taken are traces, in the pattern's folder, whose names the
 * pattern gives, with this host's name and any time and pid; regular files (no links) of the user to whom new ones are
 * given. None are if one of them is being written: another capture has the same pattern, and the files may be its own.
 */
struct error *files_adopt(struct files *f);
/* Whether a pattern gives this name, neither with a folder; and the time in it, as files_time() writes it. */
bool files_match(const char *pattern, const char *hostname, const char *name, char time[FILES_TIME_BYTES]);
/*
 * Opens the (next) file, mode 0600, given to the user who called sudo. A single one may exist and is written over; of
 * several each gets a name that is not taken: by as many milliseconds later as that takes.
 */
struct error *files_open(struct files *f);
/* Closes it and removes what is not to be kept. */
struct error *files_close(struct files *f);
/* Removes what is not to be kept; adopted files only if they still are what they were. */
struct error *files_trim(struct files *f);
/* The user to whom files are given, and the group if there is one: who called sudo, else our own user (false). */
bool files_owner(uid_t *uid, gid_t *gid);

#endif
