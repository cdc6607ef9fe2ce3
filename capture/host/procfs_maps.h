/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the executable mappings of a process from /proc/PID/maps, in pieces: a process may have
 * 65,530 mappings with paths of 4 KB, 268 MB of text.
 */
#ifndef CAPTURE_HOST_PROCFS_MAPS_H
#define CAPTURE_HOST_PROCFS_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"

struct procfs_mapping {
    uint64_t start, end, file_offset;
    uint32_t protection; /* PROT_ */
    bool shared;
    uint32_t device_major, device_minor;
    uint64_t inode;
    bool deleted;
    uint8_t build_id[20];
    uint32_t build_id_len; /* 0: not known */
    char path[PATH_MAX];   /* as /proc prints it, without " (deleted)"; "" when anonymous */
};
/*
 * Parses a line of a maps file, without its newline. False: it is malformed, or its path is longer than PATH_MAX; the
 * members are not valid then.
 */
bool procfs_parse_mapping(const char *line, size_t len_bytes, struct procfs_mapping *out);

/* The text of a file of /proc that is being read. */
struct procfs_maps {
    pid_t pid;
    int fd;
    bool asks_build_ids; /* the process's root may not be opened: the kernel is asked for build IDs */
    bool ended, cut;     /* all was read; or nothing more is read, because `may_read` said so */
    bool late;           /* what was read is not all: the process holds up who reads it */
    bool skips;      /* until the end of a line */
    size_t at, len_bytes;
    char text[4 * PATH_MAX]; /* a few pages of text, and the line begun before */
    /* Called before each piece of `len_bytes` is used; false: no more is to be read. NULL: there is no limit. */
    bool (*may_read)(void *ctx, size_t len_bytes);
    void *ctx;
};
/*
 * Opens /proc/PID/maps, through another thread when the first one has exited. ERROR_NOT_FOUND when the process has
 * ended, ERROR_PERMISSION when its mappings may not be read; with the OS's error EBUSY when the process holds up who reads them. The caller may set may_read and ctx afterwards.
 */
struct error *procfs_maps_open(pid_t pid, struct procfs_maps *out);
void procfs_maps_close(struct procfs_maps *m);
/*
 * Reads the next executable mapping. False at the end, or when `m->cut`. Malformed lines are skipped. If the process's
 * root may not be opened, also gets build IDs from the kernel.
 */
bool procfs_maps_next(struct procfs_maps *m, struct procfs_mapping *out);

#endif
