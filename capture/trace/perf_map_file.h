/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of code that programs make at run time. By perf's convention a program that does writes them to
 * /tmp/perf-PID.map, a line "START SIZE name" each (hexadecimal), PID being its own idea of it. Such memory becomes a
 * module of its process in the trace, and the file's text a PERF_MAP record: at the end of each epoch, when the process
 * has ended, and at the end of the recording. The file is held open while the process lives: a mount namespace that ends
 * with it takes the file's place along.
 */
#ifndef CAPTURE_TRACE_PERF_MAP_FILE_H
#define CAPTURE_TRACE_PERF_MAP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/process/processes.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

/* Of a text more than this is cut. */
#define PERF_MAP_MAX_BYTES (UINT64_C(8) << 20)

/* What is known of one process's file. */
struct perf_map_file {
    uint64_t epoch;    /* the module below was defined in it */
    uint32_t module;     /* id in the trace */
    bool known;          /* the rest is */
    uint64_t mount_namespace, root_device, root_inode; /* its root, to find it again by way of others */
    uint32_t uid;        /* effective: whose file is believed */
    uint64_t written_size, written_mtime_ns; /* of the file as it went into the trace last */
    int fd;              /* the file, held open; -1: not held */
    uint64_t try_ns;     /* when to look for it again, CLOCK_MONOTONIC */
    uint32_t wait_ms;
};

void perf_map_file_init(struct perf_map_file *m);
void perf_map_file_deinit(struct perf_map_file *m);
/* Notes what is needed to find the table when the process is gone. Call early, while it lives. */
void perf_map_file_remember_root(struct perf_map_file *m, const struct process *p);
/* The module that stands for the anonymous memory of a process, in this epoch of the trace. */
uint32_t perf_map_file_module(struct perf_map_file *m, const struct process *p, struct trace_writer *w, uint64_t epoch);
/* Looks for the file of a process whose memory was met, unless it is held or was looked for a moment ago. */
void perf_map_file_hold(struct perf_map_file *m, const struct process *p);
/*
 * Puts the process's symbols into the trace if its memory was met in this epoch and the file is there, is its own and
 * has changed. `*cut`: it was too long.
 */
struct error *perf_map_file_write(struct perf_map_file *m, const struct process *p, struct processes *all,
                                  struct trace_writer *w, uint64_t epoch, uint64_t time_ns, bool *cut);

#endif
