/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the unwind table of a file, or of the vdso, as a job for a worker. */
#ifndef CAPTURE_BINARY_TABLE_JOB_H
#define CAPTURE_BINARY_TABLE_JOB_H

#include <sys/types.h>

#include "capture/binary/code_mappings.h"
#include "capture/binary/modules.h"
#include "capture/binary/worker.h"
#include "formats/elf/unwind_table.h"

struct table_job {
    struct worker_job job; /* `number` is the table's number */
    /* the question */
    pid_t pid;
    struct code_mapping mapping; /* without a module; its path is owned */
    dev_t device;                /* of the module's file */
    ino_t inode;
    uint32_t rows_max;
    uint8_t *image;              /* of the vdso, owned; NULL: a file */
    uint64_t image_len_bytes;
    int fd;         /* the file; -1: to be opened */
    bool fd_is_own; /* it was opened here; whoever takes it sets this to false */
    /* the answer */
    struct unwind_table *table; /* NULL: none can be built; or the file cannot be opened, and fd is -1 */
    bool too_large;             /* it would have more than rows_max rows */
    uint64_t hash;              /* of the table: equal for equal ones */
};

/* A job for a module's table. It borrows module->held_fd. NULL: out of memory. */
struct table_job *table_job_create(uint32_t number, const struct module_asker *asker, const struct code_mapping *mapping,
                                   const struct module *module);
struct table_job *table_job_of(struct worker_job *job);
void table_job_destroy(struct table_job *j);

/* Where a module's pc 0 lies, to which its table is relative. False when the mapping holds no code of it. */
bool table_base(const struct module *module, const struct code_mapping *m, uint64_t *base);

#endif
