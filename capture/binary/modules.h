/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of binaries (modules) that processes have mapped: each is a file under one path, whichever processes map it
 * there. A file is inspected once. It is known by what nobody can forge (module_key.h): device, inode, size and time of
 * change. A replaced file is a new module, and so is a copy, be its build ID the same.
 */
#ifndef CAPTURE_BINARY_MODULES_H
#define CAPTURE_BINARY_MODULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "capture/binary/code_mappings.h"
#include "capture/binary/module_asker.h"
#include "capture/host/procfs.h"
#include "formats/base/err.h"
#include "formats/cpython/image.h"
#include "formats/elf/identity.h"
#include "formats/trace/trace.h"

struct module {
    uint32_t index;
    uint32_t file;     /* index of the first module with this file: what is known of the inside of one holds for both */
    enum trace_module_kind kind;
    struct elf_identity identity;
    struct py_image python;
    bool is_glibc;
    dev_t device;      /* of the file that was inspected, as the next three */
    ino_t inode;
    uint64_t size;
    struct timespec changed;
    int held_fd;       /* its file, open since it was inspected; -1: it is not */
    bool needs_file;   /* held_fd stays open; otherwise it is closed a few seconds after the inspection */
    pid_t pid;         /* the first process that mapped it */
    uint64_t checked_ns; /* when it was last tried to open a file that is `unreadable`, */
    uint64_t checked_for; /* and for which program (module_asker.life): another one may have it in other file systems */
    uint64_t used_ns;    /* when a mapping was last found to be of this file, while that was open */
    bool unkeyed;      /* the next mapping of its file makes a new module: see modules_hold() */
    bool unreadable;   /* only path and build ID are known, as the kernel reported them: the file was not opened */
    bool pending;      /* likewise, but that may change: it is being inspected */
    char *path;        /* in the file systems of the processes that mapped it */
    uint8_t *image;    /* the vdso's bytes, or NULL */
    uint64_t image_len_bytes, image_address;
};

/* How a trace uses a module. The archive selects modules by it. */
enum module_use { MODULE_UNUSED, MODULE_NAMED, MODULE_FRAMED /* native frames are in it */ };

struct modules;
struct error *modules_create(struct modules **out);
void modules_destroy(struct modules *m);

/*
 * Raises the process's limit of open files, so that the files of new modules can be held open from now on: all ELF files
 * if `all`, for an archive at the end of the recording, which opens the others by their paths; else those whose device
 * might get another number. One of the latter that cannot be held, as the limit is reached, is not recognised again.
 */
void modules_hold(struct modules *m, bool all);

/* Takes over an open file as the module's held_fd. False: it has one, or enough are held; then `fd` is the caller's. */
bool modules_keep_file(struct modules *m, struct module *module, int fd);

/*
 * Finds the module behind a mapping. A worker opens and inspects the file when it is new; that is waited for a little, and
 * if it takes longer, the module is `pending`. `*out` is NULL for anonymous memory other than the vdso, for a file that
 * neither can be opened nor is described by the kernel, and when the process had too many files inspected. `m` owns
 * `*out`.
 */
struct error *modules_find(struct modules *m, const struct module_asker *asker, const struct code_mapping *mapping,
                           struct module **out);
/* Returns a module that was `pending` and no longer is, each once; NULL: there is none. Call when modules_fd() says so. */
struct module *modules_next_known(struct modules *m);
/* A file descriptor that becomes readable when the worker has inspected a file. */
int modules_fd(const struct modules *m);
/* Waits until no module is pending, or until the time (CLOCK_MONOTONIC). */
void modules_settle(struct modules *m, uint64_t until_ns);
/* Gives up an inspection that does not end, and closes files that nobody needed. Call about once a second. */
void modules_tend(struct modules *m, uint64_t time_ns);
uint32_t modules_count(const struct modules *m);
struct module *modules_get(const struct modules *m, uint32_t index);

#endif
