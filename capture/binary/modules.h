/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of binaries (modules) that processes have mapped. Each is inspected once,
 * whichever process maps it. A module is identified by build ID where the kernel reports
 * one with the mapping, else by device and inode, together with size and time of change,
 * so that a replaced file becomes a new module.
 */
#ifndef CAPTURE_BINARY_MODULES_H
#define CAPTURE_BINARY_MODULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/binary/code_mappings.h"
#include "capture/host/procfs.h"
#include "formats/base/err.h"
#include "formats/cpython/image.h"
#include "formats/elf/identity.h"
#include "formats/trace/trace.h"

struct module {
    uint32_t index;
    enum trace_module_kind kind;
    struct elf_identity identity;
    struct py_image python;
    bool is_glibc;
    int held_fd;       /* its file, held open since it was mapped; -1: not held */
    pid_t pid;         /* the first process that mapped it */
    bool unreadable;   /* the file could not be opened: only build ID and path are known */
    char *path;        /* in the file system of the first process that mapped it */
    uint8_t *image;    /* the vdso's bytes, or NULL */
    uint64_t image_len_bytes, image_address;
};

/* How a trace uses a module. The archive selects modules by it. */
enum module_use { MODULE_UNUSED, MODULE_NAMED, MODULE_FRAMED /* native frames are in it */ };

struct modules;
struct error *modules_create(struct modules **out);
void modules_destroy(struct modules *m);

/*
 * Keeps the files of new modules open from now on, for an archive at the end of the recording, until the limit of open
 * files is near. The archive opens the others by their paths.
 */
void modules_hold(struct modules *m);

/*
 * Finds the module behind a mapping of process `pid`; opens and inspects the file when it is new. `*out` is NULL for
 * anonymous memory other than the vdso, and for a file that cannot be opened and has no build ID. `m` owns `*out`.
 */
struct error *modules_find(struct modules *m, pid_t pid, const struct code_mapping *mapping, struct module **out);
uint32_t modules_count(const struct modules *m);
struct module *modules_get(const struct modules *m, uint32_t index);

#endif
