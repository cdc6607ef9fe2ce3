/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of code that programs generate at run time. By perf's convention such a program writes them to
 * /tmp/perf-PID.map, one line "START SIZE name" per function (numbers in hexadecimal). PID is the pid in the program's
 * own pid namespace. In the trace the anonymous memory of the process becomes a module, and the file's text becomes a
 * PERF_MAP record, which is written at the end of each epoch, when the process has ended, and at the end of the
 * recording. The file is held open while the process lives, because a mount namespace may end with its last process and
 * the file cannot be opened any more then.
 */
#ifndef CAPTURE_TRACE_PERF_MAP_FILE_H
#define CAPTURE_TRACE_PERF_MAP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/host/root_identity.h"
#include "capture/process/processes.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

/* A longer file is cut to this size. */
#define PERF_MAP_MAX_BYTES (UINT64_C(8) << 20)

/* The perf map file of one process. */
struct perf_map_file {
    uint64_t epoch;      /* in which `module` was defined */
    uint32_t module;     /* id in the trace */
    bool known;          /* the members below are set */
    struct root_identity root; /* of the process: another process may share it */
    uint64_t exec_generation; /* of the program that the user below was read of */
    uint32_t user;       /* of the process, who must own the file (capture/host/own_file.h); OWN_FILE_NO_USER: nobody may */
    uint64_t written_size, written_mtime_ns; /* of the file when it was last written into the trace */
    int fd;              /* the file, held open; -1: not held */
    uint64_t try_ns;     /* when to look for the file again, CLOCK_MONOTONIC */
    uint32_t wait_ms;    /* how long to wait after the next failure */
};

void perf_map_file_init(struct perf_map_file *m);
void perf_map_file_deinit(struct perf_map_file *m);
/*
 * Remembers the process's root and user, to find the file after the process has ended. Call early, while it lives, and
 * again at times: what was remembered of the program before exec() does not count.
 */
void perf_map_file_remember_root(struct perf_map_file *m, const struct process *p);
/* Returns the id of the module that stands for the process's anonymous memory, and defines it once per epoch. */
uint32_t perf_map_file_module(struct perf_map_file *m, const struct process *p, struct trace_writer *w, uint64_t epoch);
/* Opens the file and keeps it open, if samples fell into the process's generated code. Rate-limited by try_ns. */
void perf_map_file_hold(struct perf_map_file *m, const struct process *p);
/*
 * Writes the process's symbols into the trace, if the file exists, can be trusted and has changed since it was last
 * written, and if the process's quota allows it. Call where samples fell into its generated code. Sets `*cut` when the file was
 * longer than PERF_MAP_MAX_BYTES, or the epoch is full: then the next call tries again. A missing file is no error.
 */
struct error *perf_map_file_write(struct perf_map_file *m, const struct process *p, struct processes *all,
                                  struct trace_writer *w, uint64_t epoch, uint64_t time_ns, bool *cut);

#endif
