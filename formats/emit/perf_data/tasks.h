/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader of perf.data has to know of processes and threads before a sample of them: names (COMM), cgroups (CGROUP)
 * and the binaries in their memory (MMAP2). Each record is written once, before the first sample that needs it, and COMM
 * again when the name changes.
 */
#ifndef FORMATS_EMIT_PERF_DATA_TASKS_H
#define FORMATS_EMIT_PERF_DATA_TASKS_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/addresses.h"
#include "formats/emit/perf_data/records.h"

struct task_process {
    const char *comm; /* as last written; NULL: not yet. Texts of the model: equal ones have one address */
    uint64_t cgroup;  /* its number; 0: unknown */
};

struct tasks {
    const struct emit_model *model;
    struct limits *limits;
    struct records *records;
    const struct addresses *addresses;
    const struct emit_files *files;
    VEC(struct task_process) processes;
    VEC(const char *) threads; /* names as last written */
    struct map pids;           /* pid -> nothing: those that have been written */
    struct map mapped;         /* process and binary -> nothing, likewise */
    struct map cgroups;        /* path, a text of the model -> number, counted from 1 */
    struct buf text;           /* scratch */
};

/* All are borrowed; limits may be NULL. The owner of `t` calls tasks_deinit(). */
void tasks_init(struct tasks *t, const struct emit_model *model, struct limits *limits, struct records *records,
                const struct addresses *addresses, const struct emit_files *files);
void tasks_deinit(struct tasks *t);
/*
 * Writes what is new of the thread of a sample, and sets the numbers in the stamp, and *cgroup, for the sample's record.
 * The stamp's time, CPU and event must be set.
 */
struct error *tasks_name(struct tasks *t, uint32_t thread, struct record_stamp *stamp, uint64_t *cgroup);
/* Writes that the process has the file of the address in its memory, unless it has been written. */
struct error *tasks_map(struct tasks *t, uint32_t process, const struct record_stamp *stamp,
                        const struct address *address);

#endif
