/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binaries that are mapped into processes: each is looked at once, whichever
 * process maps it. Known by build ID where the kernel told it with the mapping, else
 * by device and inode (with size and time of change, so that a replaced file is
 * another one).
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
    bool unreadable;   /* the file could not be opened: build ID and path only */
    char *path;        /* as the first process that mapped it sees it */
    uint8_t *image;    /* the vdso's bytes, or NULL */
    uint64_t image_len_bytes, image_address;
};

/* What a trace says of a module; the archive takes modules by it. */
enum module_use { MODULE_UNUSED, MODULE_NAMED, MODULE_FRAMED /* native frames are in it */ };

struct modules;
struct error *modules_create(struct modules **out);
void modules_destroy(struct modules *m);

/*
 * From now on the files of new modules stay open, for an archive at the end, as far as the number of files that may be
 * open allows; the rest is left to what lies at their paths then.
 */
void modules_hold(struct modules *m);

/*
 * The module behind a mapping of process `pid`. NULL for anonymous memory that is not the vdso, and for a file that cannot
 * be opened and has no build ID. Opens and inspects the file when it is new. Owned by `m`.
 */
struct error *modules_find(struct modules *m, pid_t pid, const struct code_mapping *mapping, struct module **out);
uint32_t modules_count(const struct modules *m);
struct module *modules_get(const struct modules *m, uint32_t index);

#endif
