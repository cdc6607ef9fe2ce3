/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the trace builder, shared by its parts: trace_define.c writes the records that samples refer to,
 * stacks.c finds the ids of their stacks, trace_sample.c writes the samples, trace_builder.c what begins and ends an epoch.
 */
#ifndef CAPTURE_TRACE_TRACE_PARTS_H
#define CAPTURE_TRACE_TRACE_PARTS_H

#include "bpf/native_unwind.h"
#include "capture/host/procfs_memory.h"
#include "capture/process/python_names.h"
#include "capture/trace/trace_builder_options.h"
#include "capture/trace/trace_notes.h"
#include "formats/base/buf.h"

/* More CPUs than any Linux is built for; what comes from others counts for the first. */
#define CPUS_MAX 8192

/* What was written of a thread whose waits are recorded: sums since the sampler first saw it. */
struct thread_account {
    uint32_t tid;
    uint64_t start_boottime_ns, exec_generation; /* of its program */
    uint64_t since_ns, until_ns; /* as in struct wire_thread, and the end of the last record */
    uint64_t on_cpu_ns;
    struct wire_wait_sum waits[WIRE_WAIT_KINDS];
};

/* A process that has executed another program in this epoch, or is gone: times of its threads may come yet. */
#define FORMERS_MAX 256
struct former_thread {
    uint32_t tid, id; /* of its record */
};
struct former_process {
    uint32_t tgid, parent_tgid, id;              /* id 0: it has no record so far */
    uint64_t start_boottime_ns, exec_generation; /* 0: not known */
    uint64_t ended_ns;
    char comm[17];
    enum trace_program_kind program_kind; /* and what goes with it: as struct process has them */
    char *program;                        /* owned */
    uint32_t python_version;
    VEC(struct former_thread) threads;           /* that have a record */
};

/* What stacks of waits at a call site stand for, and what they were given of it; by ids of the epoch. */
#define SITE_STACKS 64
enum { SITE_WAITING, SITE_QUEUED, SITE_BLAME, SITE_DEBTS }; /* what a site owes: waiting, time in the run queue, what others lost */
struct site_stack {
    uint32_t tuple, flags;
    uint32_t waker; /* string; 0: not known */
    double usual_ns[SITE_DEBTS]; /* how long lately: the lengths of its waits over their chances */
    double lacks_ns[SITE_DEBTS]; /* what it is still to get of the waits without a stack; less than 0: it has had too much */
};
struct site_note {
    uint32_t thread, kind;
    int system_call;
    uint64_t interpreter_id;
    VEC(struct site_stack) stacks; /* at most SITE_STACKS */
    size_t last;                   /* that of the last wait */
    double undivided_ns[SITE_DEBTS]; /* of the first wait, when nothing was usual yet */
};

/* How much memory a process has: what was read and written of it (trace_memory.h). */
struct memory_note {
    uint64_t life;     /* of the process; 0: of none */
    uint64_t tried_ns; /* when it was last read, or that was tried; 0: never */
    struct procfs_memory last; /* time 0: nothing was read yet */
    uint32_t file;     /* the last one that has a reading of it; 0: none */
    bool news;         /* samples were written since */
};
struct trace_memory {
    bool wanted;   /* an event of memory is recorded */
    uint32_t file; /* counts files, from 1 */
    VEC(struct memory_note) processes; /* by process->slot */
};

struct trace_builder {
    struct trace_builder_options o;
    uint64_t time_ns; /* of the message that is handled, CLOCK_MONOTONIC */
    uint64_t epoch; /* counts up over all files; 0 before the first */
    struct builder_event {
        uint32_t trace_id; /* in this epoch */
        uint64_t period;   /* as last written to the trace: the weight of samples that carry none */
        uint64_t process_gone, file_full, epoch_full, reader_slow; /* samples not written, by reason; the other losses are in `losses` */
        uint64_t unread_bytes; /* of samples of memory growth, those that reader_slow counts */
        uint64_t value; /* of the samples that were written, in the event's unit */
        uint64_t samples; /* that were written, over all files */
        uint64_t busy, own; /* ticks in the accounts that were written, but for idle ones; those of what is recorded */
        uint64_t written[LOSS_LIMIT];
        uint64_t unwanted[CPUS_MAX], unwanted_value[CPUS_MAX]; /* samples that were dropped, and what they count together */
        uint64_t handled[CPUS_MAX]; /* samples that came */
    } events[WIRE_EVENT_MAX]; /* as wire_sample.event numbers them */
    uint32_t blame_id; /* the event of blame in this epoch; 0: it has none so far */
    bool drops_samples; /* the reader of the pipe is slow */
    bool begun;       /* the records that begin the writer's first epoch are written */
    struct map kernel_frames; /* address -> frame id, of this epoch */
    uint64_t losses[LOSS_LIMIT], written[LOSS_LIMIT];
    VEC(struct refusal) refusals; /* at most some hundreds */
    uint64_t refused[QUOTA_COUNT];
    struct trace_builder_counts counts;
    struct map sampled; /* pid -> start_boottime_ns of the process that has samples; those that have ended are taken out */
    uint64_t file_samples; /* in the file that is being written */
    /* Of threads whose waits are recorded: what was written of each, and for all of them how long they waited. */
    VEC(struct thread_account) accounts;
    struct map account_of; /* tid -> index of accounts */
    struct former_process formers[FORMERS_MAX]; /* a ring: the next one takes the place of the oldest */
    uint32_t next_former;
    uint64_t waited_ns;
    VEC(struct site_note) sites; /* call sites of waits that this epoch has samples of */
    size_t site_stacks;          /* of all of them */
    struct map site_of;          /* key -> index of sites */
    uint64_t chance;             /* state of a random number generator */
    struct map kernel_roles; /* kernel address -> enum kernel_role + 1 */
    struct trace_notes notes;
    struct trace_memory memory;
    bool no_memory; /* an allocation failed in a callback that returns nothing: the next sample returns the error */
    struct python_names names;
    struct buf source_name; /* scratch */
    /* scratch, one sample at a time */
    bool of_rival;       /* the message that is handled is of the interpreter that runs in its process beside the first */
    uint64_t code_bytes; /* that were written of code objects, for which quotas of their own hold */
    struct wire_python entries[WIRE_PYTHON_MAX]; /* WIRE_RUN marks the outermost frame of an interpreter run */
    uint32_t frames[WIRE_PYTHON_MAX];
    uint64_t runs[WIRE_PYTHON_MAX * 2];
    uint64_t native[WIRE_NATIVE_MAX]; /* addresses of the native frames, with NATIVE_EXACT and NATIVE_GUESSED */
    uint64_t joined[WIRE_PYTHON_MAX * 2];
};

#endif
