/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what /proc shows of a process. pycap reads it at the start for all processes, and
 * later only to make up for lost side-band events.
 */
#ifndef CAPTURE_HOST_PROCFS_H
#define CAPTURE_HOST_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

/* A list of process or thread ids. */
struct procfs_pids {
    VEC(pid_t) list;
};
/* All process ids of the host, as far as /proc shows them. */
struct error *procfs_pids(struct procfs_pids *out);
/* The thread ids of a process. */
struct error *procfs_threads(pid_t pid, struct procfs_pids *out);

#define PROCFS_UID_UNKNOWN UINT32_MAX
struct procfs_status {
    char comm[17];
    uint32_t parent_tgid;
    uint32_t ns_tgid;      /* in the process's own pid namespace */
    uint32_t uid;          /* effective user id; PROCFS_UID_UNKNOWN when the kernel does not say */
    uint64_t start_ticks;  /* since boot, in the reader's time namespace */
};
struct error *procfs_status(pid_t pid, struct procfs_status *out);
/* Reads the name of a thread; false when it has ended. */
bool procfs_comm(pid_t pid, pid_t tid, char out[17]);
/* Whether the process's root may not be opened, though it shows its mappings: with CAP_PERFMON since Linux 6.15. */
bool procfs_root_is_closed(pid_t pid);
/* Inode number of a namespace ("pid", "mnt"), 0 when it cannot be read. */
uint64_t procfs_namespace(pid_t pid, const char *name);
/* Paths of the process's cgroup in all hierarchies, a line each: the text of /proc/PID/cgroup, malloc'd; NULL when unknown. */
char *procfs_cgroups(pid_t pid);
/*
 * The one of them that names it, malloc'd; NULL when unknown. With `unified` in the unified hierarchy if it is in one; else in that
 * of systemd (name=systemd), where container engines and systemd on cgroup v1 name theirs, if it is not at its root. Where
 * there is neither, in that of memory.
 */
char *procfs_cgroup_in(const char *text, bool unified);
/* The same of a process, not `unified`. */
char *procfs_cgroup(pid_t pid);
/* Its arguments with blanks between them, at most 4 KiB, malloc'd; NULL when unknown. */
char *procfs_cmdline(pid_t pid);
/*
 * Its arguments as exec() laid them out, each with a NUL behind it, and one more NUL. Returns how many bytes were read,
 * at most size - 1; 0 when there are none: the process has ended, or is about to begin.
 */
size_t procfs_arguments(pid_t pid, char *out, size_t size);
/* Where /proc/PID/exe points, malloc'd; NULL when unknown. */
char *procfs_exe(pid_t pid);
/* The same of /proc/PID/cwd, the working directory. No file system is asked. */
char *procfs_folder(pid_t pid);
/* Resident memory of pycap itself, in bytes: now, and the maximum since exec. 0 when unknown. */
uint64_t procfs_own_resident(void);
uint64_t procfs_own_resident_most(void);
/* Reads a whole small file; malloc'd, NUL behind it. */
struct error *procfs_read(const char *path, char **text, size_t *len_bytes);
/* The same for an open file, from its current offset. `path` is for error messages. */
struct error *procfs_read_open(int fd, const char *path, char **text, size_t *len_bytes);
/* What is known of the file behind a mapping. */
struct procfs_file {
    uint32_t device_major, device_minor;
    uint64_t inode;        /* 0: inode and device are not known */
    const uint8_t *build_id;
    uint32_t build_id_len; /* 0: not known */
    uint64_t mapped_ns;    /* CLOCK_MONOTONIC; 0: not known */
};
/*
 * Opens the file behind a mapping for reading. Tries /proc/PID/map_files, which works for deleted files and in other mount
 * namespaces; then the path in the process's root, which links cannot lead out of; then the path as pycap sees it, if
 * the process sees the same files or closes its root to us. Only regular files on storage are opened
 * (formats/base/open_regular.h), whoever asks.
 *
 * The mapping may be gone, and another file at its path, so a file found by path must be the one that `file` describes:
 * device and inode must be equal where they are known, else the build ID. Where pycap may not read more than the process
 * (same user, no CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE) no proof is asked for; where it has another user id but
 * neither of the capabilities, an equal build ID is enough.
 *
 * Returns -1 when the file cannot be opened. May block for ever: see open_regular.h.
 */
int procfs_open_mapping(pid_t pid, uint64_t start, uint64_t end, const char *path, const struct procfs_file *file);
/* Whether there is no mapping of a file from `start` to `end`. In doubt there is. Reads neither the memory nor the file. */
bool procfs_lacks_mapping(pid_t pid, uint64_t start, uint64_t end);
/* Whether this thread may read every file, whoever it belongs to: by CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE. */
bool procfs_reads_everything(void);
/*
 * Whether what is mapped now, by stat(), can be what `file` describes: false if device or inode are others, where they can be
 * compared. They cannot where the kernel numbers devices itself: on btrfs, overlayfs and the like.
 */
bool procfs_may_be_file(const struct stat *st, const struct procfs_file *file);
/*
 * Whether an open file is the one that `file` describes, by build ID, else by device and inode. False if neither is
 * known.
 */
bool procfs_is_file(int fd, const char *path, const struct procfs_file *file);

#endif
