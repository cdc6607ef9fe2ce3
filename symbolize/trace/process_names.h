/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a trace are called: the one place that says it for filters, tables, series and all outputs.
 *
 *     what it runs, as pycap wrote it (PROCESS)       "gunicorn", "-m http.server", "app.py"
 *     a worker without a name of its own              "gunicorn (spawn)": the program it works for (program_name.h)
 *     a process of kind UNKNOWN, whose title stands   the file of its main module: of the <module> that is the outermost
 *     where its command line was, or whose name is    function of its first thread, behind what only starts it
 *     a hash
 *     none of these                                   the kernel's name
 *
 * The kernel's name, which is the newest title that a process gave itself, stands beside the name.
 *
 * Names become known with the records and samples that tell them, and then stay: also in later epochs and files that do
 * not tell them again. Texts live as long as the struct.
 */
#ifndef SYMBOLIZE_TRACE_PROCESS_NAMES_H
#define SYMBOLIZE_TRACE_PROCESS_NAMES_H

#include "formats/base/arena.h"
#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/trace/main_module.h"

struct process_worker {
    uint32_t process, looks; /* how often its master was looked for */
};

struct process_names {
    struct arena arena;
    struct intern identities, texts; /* of processes of which something is known: struct process_identity */
    VEC(struct process_known *) known; /* by number of the identity */
    /* Of the epoch. */
    struct map of_pid;     /* pid -> the newest of its processes */
    struct map masters;    /* pids of parents of workers */
    VEC(struct process_worker) workers; /* that have no name of their own, and whose master's may still become known */
    uint32_t wanting;      /* processes whose stacks may tell a name */
    /* Scratch. */
    struct main_module main_module;
    struct buf text;
};

/* {0} is one that knows nothing. `limits` is borrowed; NULL: none. */
void process_names_init(struct process_names *n, struct limits *limits);
void process_names_deinit(struct process_names *n);
/*
 * Call after a record was loaded into the epoch. `file` is the number of the current file, from 1. Processes whose names
 * changed are added to `renamed` of the epoch.
 */
struct error *process_names_record(struct process_names *n, struct epoch *e, const struct trace_record *rec, uint32_t file);
/* Call when an epoch ends, also before a file that does not begin with one: forgets its ids. */
void process_names_end_epoch(struct process_names *n);
/* Looks into the stack of a sample for a name that is wanted. */
struct error *process_names_look(struct process_names *n, struct epoch *e, const struct trace_sample *sample, uint32_t file);
/* Call for each sample, before anything else looks at it. */
static inline struct error *process_names_sample(struct process_names *n, struct epoch *e, const struct trace_sample *sample,
                                                 uint32_t file)
{
    return n->wanting ? process_names_look(n, e, sample, file) : NULL;
}

/* Appends what a process of the epoch is called, whether it was sampled or not. */
void process_name_put(const struct epoch *e, uint32_t process, struct buf *out);
/* The title that it gave itself, as much as the kernel keeps of it, where that says more than its name; "": it has none. */
const char *process_name_title(const struct epoch *e, uint32_t process);
/* Appends the name and, if it is not "", a title, in one text: gunicorn "shop: worker". */
void process_name_put_with(const struct epoch *e, uint32_t process, const char *title, struct buf *out);
/* The same with its own title. */
static inline void process_name_put_with_title(const struct epoch *e, uint32_t process, struct buf *out)
{
    process_name_put_with(e, process, process_name_title(e, process), out);
}
/* A kernel's name that the process has, had, or will have, as far as is known; NULL: no more. `i` counts from 0. */
const char *process_kernel_name(const struct epoch *e, uint32_t process, uint32_t i);

#endif
