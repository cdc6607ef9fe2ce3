/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process: an address space, from its fork or exec to its end. struct process holds its
 * identity, names, mappings and interpreter. Other parts of pycap keep their own data about a
 * process in arrays of their own, indexed by its slot.
 */
#ifndef CAPTURE_PROCESS_PROCESS_H
#define CAPTURE_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/native_unwind.h"
#include "bpf/wire.h"
#include "capture/binary/code_mappings.h"
#include "capture/binary/modules.h"
#include "capture/host/owner.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/cpython/thread_name.h"
#include "formats/trace/trace.h"

struct thread {
    uint32_t tid;
    uint32_t index; /* among its process's threads, until they are forgotten */
    char name[17];
    uint64_t handle;   /* its pthread handle; 0: it is no Python thread, as far as is known */
    char *python_name; /* NULL: unknown */
    uint64_t name_due_ns; /* when to read python_name again */
    uint32_t name_wait_ms;
};

/* A list of mappings that the sampler has of a process. */
struct sampler_list {
    uint64_t since_ns; /* 0: it has not had one */
    uint64_t upto_ns;  /* process.replaced_ns when it was made */
};
/* Samples are older than the newest list by the time between two drains. */
#define SAMPLER_LISTS_KEPT 4

struct process {
    uint64_t life; /* its number: no other process had or will have it */
    uint32_t slot; /* its index in arrays by process, from 0; reused once this process is dropped */
    uint32_t tgid, parent_tgid, ns_tgid;
    struct owner_facts owner_facts; /* as the sampler or /proc said, else its parent's */
    uint64_t owner;             /* of its quotas (owner.h), by these */
    bool owner_asked;           /* while that is the unknown: it was tried to find out */
    uint32_t shown_user;        /* wire_sample.user of its latest sample that had one; 0: none had */
    uint64_t owner_due_ns;      /* not to be asked again before, though samples show another user */
    uint64_t root_due_ns;       /* likewise, while it is root of the host: whether it still is */
    uint64_t start_boottime_ns; /* 0: not known yet */
    uint64_t exec_generation;
    bool bound;                 /* the two members above come from a sample */
    uint64_t start_ticks;       /* when it began, as /proc says; 0: that was not read */
    uint64_t forked_ns;         /* when its fork was reported; 0: before the capture, or not known */
    uint64_t bound_by_ns;       /* when that was taken */
    uint64_t expected_generation; /* what exec_generation is, by that of its parent or of its program before; 0: unknown */
    char comm[17];
    char *exe;
    enum trace_program_kind program_kind; /* TRACE_PROGRAM_UNRECORDED: not looked at yet; see process_program.h */
    char *program;              /* what it runs; NULL: unknown */
    enum trace_program_kind before_kind; /* the same of the program that called exec for this one, where that had a name */
    char *before;               /* NULL: none is known */
    bool folder_asked;          /* whether it was tried to find the next one */
    char *folder;               /* its working directory when it began, as procfs_folder() says; NULL: unknown */
    bool in_scope;              /* the user asked for it: by pid, as a child, or by asking for the whole host */
    bool passes;                /* it passed the filter when that was last applied */
    bool selected;              /* in_scope and passes: sampled if it is Python */
    bool undecided;             /* the filter asks for names, and its own cannot be told yet, */
    uint8_t undecided_tries;    /* as often as that was tried */
    bool forbidden;             /* its mappings may not be read: those from before the capture are unknown */
    bool held_up;               /* neither could they, since it was late; they are asked for again, at again_ns, */
    uint64_t again_ns, wait_ns; /* and if it is late again, after twice as long */
    bool leader_exited;         /* its first thread has ended; others may still run */
    uint64_t ended_ns;          /* 0: it lives */
    struct code_mappings mappings; /* executable ones as they are now; shared with its parent until one changes */
    uint64_t replaced_ns;          /* when addresses last got another meaning: code_mapping.replaced_ns, or they were cut out */
    uint64_t cut_ns;               /* the latter alone */
    struct sampler_list lists[SAMPLER_LISTS_KEPT]; /* that the sampler has, and those before, newest first */
    struct map thread_index;      /* tid -> index */
    VEC(struct thread) threads;
    /*
     * The interpreter, when one was found. Where another one is mapped, too, it is the one that runs, as far as that can be told.
     * Where both run, a thread has the frames of the rival only if it has no state in the first.
     */
    struct module *python, *rival;
    uint64_t python_bias, rival_bias;
    bool python_sure;           /* it was seen running beside a rival, */
    bool rival_runs;            /* and so was that; */
    bool rival_known;           /* the sampler knows it, or there is none */
    bool ran_python;            /* there was a sample with Python frames */
    bool glibc;
    bool switches_stacks;       /* greenlet is mapped */
    uint64_t gil;               /* where threads wait for the GIL, as far as it was learnt (gil_learn.h) */
    uint16_t gil_len;           /* in bytes; 0: it was not */
    struct py_name_hints name_hints;
    struct py_asyncio asyncio;  /* of the module _asyncio: a library of its own, or part of the interpreter */
    bool configured;            /* the sampler is configured for it */
    bool counted;               /* it is counted as a Python process */
    bool unopened;              /* a file that it maps could not be opened; it is tried again when that matters, */
    uint64_t open_due_ns, open_wait_ns; /* not before, and if it fails again, after twice as long */
    bool unsure;                /* a mapping was left out because of a limit: /proc says what is there now */
    uint64_t read_ns;           /* when its mappings were last read from /proc, or it began */
    uint32_t pass;              /* of the rescan in which it was last found */
    uint64_t begun_ns;          /* when it was put into the table, CLOCK_MONOTONIC */
    uint64_t since_ns;          /* when it forked or called exec; 0: before the capture began */
    uint64_t python_since_ns;   /* when its interpreter was mapped; 0: before the capture began */
};

/* Frees a process. Only the table of processes (process_table.c) creates and frees them. */
void process_destroy(struct process *p);
/* Sets in_scope and passes, and from them selected. */
void process_select(struct process *p, bool in_scope, bool passes);
/*
 * Finds out in which working directory the process began, once: soon after exec, before its program can have left it. A
 * child has that of its parent. It stays unknown of a process that was there before the capture.
 */
void process_find_folder(struct process *p);
/* The process as modules_find() and the tables want to know it. */
struct module_asker process_asker(const struct process *p, struct quotas *quotas);
/* Returns the thread; adds it on the first call. Valid until the next thread is added. NULL: out of memory. */
struct thread *process_thread(struct process *p, uint32_t tid);
/* Returns the thread, or NULL when it was not seen yet. */
struct thread *process_find_thread(struct process *p, uint32_t tid);
void process_forget_threads(struct process *p);
/* Whether the process has an interpreter whose frames can be walked. */
bool process_has_python(const struct process *p);
/*
 * Whether the interpreter of that file, mapped so far from where it was linked, is initialized: it has a thread state that is of
 * its own main interpreter. Reads the process's memory. False, too, of one of which it is not known where that would be.
 */
bool process_runs_python(const struct process *p, const struct module *module, uint64_t bias);
/*
 * Sets the members of `out` from which the frame walk begins: addresses in the process's interpreter. Leaves the others
 * as they are. Returns false when the process has no interpreter that can be walked.
 */
bool process_python(const struct process *p, struct wire_process *out);
/* The same of the rival; false: it does not run. */
bool process_rival(const struct process *p, struct wire_process *out);
/*
 * Returns the path of an executable mapping whose file could not be opened, so that it may or may not be an
 * interpreter; NULL when there is no such mapping. Mappings are inspected only in processes that are selected.
 */
const char *process_unopened(const struct process *p);
/*
 * How many of the frames of a stack that the sampler unwound at `taken_ns` can be trusted: where a library has taken the place of
 * another one that the sampler had not been told of yet, it went on by the rows of the one before. `frames` are innermost first.
 */
uint32_t process_trusted_frames(const struct process *p, const struct native_frame *frames, uint32_t count, uint64_t taken_ns);
/* At `time_ns` some of its addresses got another meaning; `cut`: nothing is known of them any more. */
void process_replaced(struct process *p, uint64_t time_ns, bool cut);
/* The sampler has the mappings as they are now, since `time_ns`. */
void process_listed(struct process *p, uint64_t time_ns);
/* Whether a file that it maps is still being inspected, so that the process may turn out to run Python. */
bool process_is_inspected(const struct process *p);

#endif
