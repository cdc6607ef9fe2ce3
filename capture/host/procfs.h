/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says of a process: read at the start for the processes that are there,
 * and again only for what the side-band missed.
 */
#ifndef CAPTURE_HOST_PROCFS_H
#define CAPTURE_HOST_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct procfs_mapping {
    uint64_t start, end, file_offset;
    uint32_t protection; /* PROT_ */
    bool shared;
    uint32_t device_major, device_minor;
    uint64_t inode;
    char *path; /* as /proc prints it, without " (deleted)"; owned; "" when anonymous */
    bool deleted;
    uint8_t build_id[20];
    uint32_t build_id_len; /* 0: not known */
};
struct procfs_mappings {
    VEC(struct procfs_mapping) list;
};
void procfs_mappings_deinit(struct procfs_mappings *m);
/* Parses the text of a maps file; lines that do not parse are counted in *bad (may be NULL) and left out. */
struct error *procfs_parse_mappings(const char *text, size_t len_bytes, struct procfs_mappings *out, uint32_t *bad);
/*
 * /proc/PID/maps; by way of another thread when the first one has exited. A process that is gone: ERROR_NOT_FOUND; one
 * whose mappings are not shown: ERROR_PERMISSION. Where its root is closed to us the build IDs of executable mappings
 * are asked for, too.
 */
struct error *procfs_mappings(pid_t pid, struct procfs_mappings *out);

/* All process ids. */
struct procfs_pids {
    VEC(pid_t) list;
};
struct error *procfs_pids(struct procfs_pids *out);
/* Thread ids of a process. */
struct error *procfs_threads(pid_t pid, struct procfs_pids *out);

struct procfs_status {
    char comm[17];
    uint32_t parent_tgid;
    uint32_t ns_tgid;      /* in the process's own pid namespace */
    uint64_t start_ticks;  /* since boot, in the reader's time namespace */
};
struct error *procfs_status(pid_t pid, struct procfs_status *out);
/* Name of a thread; false when it is gone. */
bool procfs_comm(pid_t pid, pid_t tid, char out[17]);
/* Inode number of a namespace ("pid", "mnt"), 0 when it cannot be read. */
uint64_t procfs_namespace(pid_t pid, const char *name);
/* Path in the unified cgroup hierarchy, malloc'd; NULL when unknown. */
char *procfs_cgroup(pid_t pid);
/* Its arguments with blanks between them, at most 4 KiB, malloc'd; NULL when unknown. */
char *procfs_cmdline(pid_t pid);
/* Where /proc/PID/exe points, malloc'd; NULL when unknown. */
char *procfs_exe(pid_t pid);
/* Bytes of memory that this process has, and the most that it had since it was executed; 0 when unknown. */
uint64_t procfs_own_resident(void);
uint64_t procfs_own_resident_most(void);
/* Reads a whole small file; malloc'd, NUL behind it. */
struct error *procfs_read(const char *path, char **text, size_t *len_bytes);
/* The same from a file that is open, from where it stands. */
struct error *procfs_read_open(int fd, const char *path, char **text, size_t *len_bytes);
/* What is known of the file behind a mapping. */
struct procfs_file {
    uint32_t device_major, device_minor;
    uint64_t inode;        /* 0: this and the device are not known */
    const uint8_t *build_id;
    uint32_t build_id_len; /* 0: not known */
};
/*
 * Opens the file behind a mapping: through map_files, which works for deleted files and other mount namespaces,
 * else in the process's root, which links do not lead out of, else by its path where that is how it is seen from here.
 * Where the root is closed to us nobody can tell how it is seen: then by its path if `file` proves that it is the one.
 * -1 when it cannot be opened.
 */
int procfs_open_mapping(pid_t pid, uint64_t start, uint64_t end, const char *path, const struct procfs_file *file);
/* Whether the open file is the one: by its build ID, else by device and inode. What is not known proves nothing. */
bool procfs_is_file(int fd, const char *path, const struct procfs_file *file);

#endif
