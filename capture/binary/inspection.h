/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the file behind a mapping and finds out what it is, as a job for a worker: who may change or withhold the file is
 * a stranger.
 */
#ifndef CAPTURE_BINARY_INSPECTION_H
#define CAPTURE_BINARY_INSPECTION_H

#include <sys/stat.h>
#include <sys/types.h>

#include "capture/binary/code_mappings.h"
#include "capture/binary/module_asker.h"
#include "capture/binary/worker.h"
#include "formats/cpython/image.h"
#include "formats/elf/identity.h"

/* How long the reading of one file may take. */
#define INSPECTION_NS (UINT64_C(2) * 1000000000)

struct inspection {
    struct worker_job job; /* `number` is the module's index */
    /* the question */
    pid_t pid;
    struct code_mapping mapping; /* without a module; its path is owned */
    /* the answer */
    int fd; /* open, for its taker to close or keep (then -1 here); -1: the file could not be opened */
    struct stat st;
    struct elf_identity identity;
    struct py_image python;
    bool is_glibc;
};

/* A job that inspects the file behind a mapping of the asker. NULL: out of memory. */
struct inspection *inspection_create(uint32_t module, const struct module_asker *asker, const struct code_mapping *mapping);
/* The inspection that a job of the worker is. */
struct inspection *inspection_of_job(struct worker_job *job);
void inspection_destroy(struct inspection *i);

#endif
