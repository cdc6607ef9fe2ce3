/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities that recording needs: tells which are missing and what is lost without them, and drops those that
 * are not needed any more once everything is loaded, attached and opened.
 */
#ifndef CAPTURE_HOST_PRIVILEGES_H
#define CAPTURE_HOST_PRIVILEGES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "capture/host/host.h"

/*
 * Returns an error when a capability is missing without which BPF sampling is impossible. It names the capability and
 * tells how to grant it. NULL when all is well.
 */
struct error *privileges_check(const struct host *h);
/*
 * Writes a line for each missing capability without which recording is possible but incomplete. Lines begin with
 * `prefix`.
 */
void privileges_print_missing(const struct host *h, const char *prefix, FILE *out);
/* Returns the names of these missing capabilities, separated by spaces, malloc'd; NULL when none is missing. */
char *privileges_missing(const struct host *h);
#define PRIVILEGES_TEXT_MAX 320
/*
 * Lists the missing ones that are needed to read other processes and their files: " without CAP_A CAP_B". Where none is missing it is
 * who else confines pycap, such as "; the AppArmor profile 'x' may forbid it", or "".
 */
void privileges_missing_to_read(const struct host *h, char out[PRIVILEGES_TEXT_MAX]);

struct privileges_need {
    int bpf_map_fd; /* a BPF map that pycap reads while it records; -1: there is none */
    bool command;   /* pycap must be able to end the command, which may run as another user */
};
/*
 * Drops all capabilities of this thread except those needed while recording, and leaves root as privileges_leave_root()
 * does, whose result it stores. Sets no_new_privs. Threads created afterwards inherit all of this.
 */
struct error *privileges_drop(const struct privileges_need *need, bool *left_root);
/*
 * Makes this thread another user than root, one that no other process is, without groups; its capabilities stay. False
 * if that is impossible: without CAP_SETUID and CAP_SETGID, or in a user namespace that has no such user. Does nothing
 * for other users than root.
 */
bool privileges_leave_root(void);
/*
 * Drops all capabilities of this thread but those by which root creates files in other users' folders, and gives them to
 * the user who called sudo.
 */
struct error *privileges_drop_but_files(void);
/* Whether this process may give files of its own to a group: it is in it, or has CAP_CHOWN. */
bool privileges_may_give(gid_t group);
/* Leaves root, and drops all capabilities of this thread except those to read other processes. Sets no_new_privs. */
void privileges_drop_to_read(void);
/* The same; where CAP_SYS_PTRACE is missing it leaves CAP_PERFMON, by which mappings may be read since Linux 6.15. */
void privileges_drop_for_errands(void);
/* Leaves root, and drops all capabilities of this thread except the one to make BPF maps. Sets no_new_privs. */
void privileges_drop_to_make_maps(void);
/* Drops all capabilities of this thread, and sets no_new_privs. For threads that only compute. */
void privileges_drop_all(void);

#endif
