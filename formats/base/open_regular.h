/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files whose paths come from strangers: from a process that is recorded, or from a trace. Opening alone can do
 * harm (a watchdog is armed, a tape is rewound, the writer of a FIFO goes on), and links lead anywhere. So a path is
 * walked step by step with O_PATH, which opens nothing, and what it ends at is looked at before it is opened for reading,
 * through the descriptor that was looked at. Where /proc is missing, which that takes, open_regular opens it by its name,
 * and checks that it is the same file.
 *
 * Refused are: what is no regular file, everything in file systems that are no storage (procfs, sysfs, debugfs and the
 * like), and folders where an automounter waits. Links are followed only inside the folder that the walk begins at, but
 * for OPEN_OUTSIDE.
 *
 * All of this may block for ever where a file system does: a network that is gone, a file system in user space.
 */
#ifndef FORMATS_BASE_OPEN_REGULAR_H
#define FORMATS_BASE_OPEN_REGULAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum open_links {
    OPEN_FOLLOW,   /* links are followed, also the last one; an absolute one begins again at the folder */
    OPEN_NO_LINKS, /* no part of the path may be a link */
    OPEN_PUBLIC,   /* as OPEN_FOLLOW, but only what every user may reach and read, by the modes of folders and file */
    OPEN_OUTSIDE,  /* links and ".." may lead out of the folder, an absolute link to "/"; but nothing in /dev is opened */
};

/* Who may reach a file, where the caller has more rights: a user and the groups that he is in. Borrowed. */
struct open_user {
    uint32_t user; /* OPEN_NO_USER: one who has only the rights of everybody; 0 reaches everything */
    const uint32_t *groups;
    size_t group_count;
};
#define OPEN_NO_USER UINT32_MAX

/*
 * Walks from `folder` (a descriptor, O_PATH will do) to `path`, absolute or not: both begin at the folder, and ".." does
 * not leave it, but for OPEN_OUTSIDE. Returns an O_PATH descriptor of what lies there, which is no link, or -1 with errno: EACCES when it is
 * refused.
 */
int open_path(int folder, const char *path, enum open_links links);
/*
 * The same, and refuses a folder on the way that `user` may not search, by its mode. Lists of access are not looked at;
 * nor is `folder` itself.
 */
int open_path_of(int folder, const char *path, enum open_links links, const struct open_user *user);
/* As open_path(), and refuses what is no regular file. */
int open_regular_path(int folder, const char *path, enum open_links links);
/*
 * Opens for reading what an O_PATH descriptor is, if it is not refused (above), and closes `path_fd`. -1: errno says
 * why. -1 is passed on.
 */
int open_regular_reopen(int path_fd);
/* Both. */
int open_regular(int folder, const char *path, enum open_links links);

#endif
