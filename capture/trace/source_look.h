/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks what stat says of source files that a process names, as a job for a worker: the process chose the names, and file
 * systems of others need not answer. Nothing is opened but with O_PATH, so no FIFO and no device notices.
 *
 * A name is looked up in the process's root and does not lead out of it. A folder on the way has to be one that the
 * process's user may search, for pycap has more rights than he: a process learns nothing here, but its trace may be given to
 * somebody whom a name in another user's folders does not concern.
 */
#ifndef CAPTURE_TRACE_SOURCE_LOOK_H
#define CAPTURE_TRACE_SOURCE_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/binary/worker.h"
#include "capture/host/root_identity.h"
#include "formats/trace/trace.h"

/* Whose names they are. */
struct source_asker {
    pid_t pid;                 /* it may have ended: then pycap's own root is used, where that is the same */
    uint64_t life;             /* struct process */
    uint32_t user;             /* the one user that it runs as; OWN_FILE_NO_USER: several */
    struct root_identity root; /* that it had when its code was met */
    uint64_t owner;            /* as struct process has it */
    const char *folder;        /* its working directory, in which it began, as procfs_folder() says; NULL: not known */
};

/* What is known of a file. */
struct source_fact {
    enum trace_source_state state;
    uint64_t size_bytes;
    int64_t modified_ns;
};

/* So many names at once: the worker works for others between two jobs. */
#define SOURCE_LOOK_NAMES 64

struct source_look {
    struct worker_job job; /* `number` is the count of names */
    /* the question */
    struct source_asker asker; /* its folder is owned */
    uint64_t epoch;
    bool again;                /* the files were looked at before */
    uint32_t count;
    struct source_question {
        uint32_t id;           /* the caller's */
        char *name;            /* owned */
        struct source_fact fact; /* the answer; not known until then */
    } questions[SOURCE_LOOK_NAMES];
};

/* A job without names, for source_look_add(). NULL: out of memory. */
struct source_look *source_look_create(const struct source_asker *asker, uint64_t epoch, bool again);
/* Adds a name, which is copied; there must be room. False: out of memory. */
bool source_look_add(struct source_look *l, uint32_t id, const char *name);
/* The look that a job of the worker is. */
struct source_look *source_look_of_job(struct worker_job *job);
void source_look_destroy(struct source_look *l);

#endif
