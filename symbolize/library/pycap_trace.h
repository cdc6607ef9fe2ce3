/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpycaptrace: reads traces of pycap, one sample after the other, with the names that are in the trace.
 *
 *     char why[PYCAP_MESSAGE_MAX];
 *     struct pycap_trace *trace = pycap_trace_open("trace.bin", why, sizeof why);
 *     const struct pycap_sample *sample;
 *     while (pycap_trace_next(trace, &sample) > 0)
 *         ... sample->python[sample->python_count - 1]->function ...
 *     pycap_trace_close(trace);
 *
 * #include <pycap/trace.h>, and compile and link with what `pkg-config --cflags --libs pycaptrace` says. The
 * library exports the functions of this header and no other name; it prints nothing, starts no thread and ends no process.
 *
 * Whose memory: all that a sample points to is the library's, and lasts until the next call of pycap_trace_next() or
 * pycap_trace_close() with the same trace. Copy what you keep. No string is NULL unless it says so; unknown ones are "".
 * Strings end with a NUL; names of Python functions and files are UTF-8, all others whatever bytes the recorder met.
 * Structs may get members at their ends in later versions.
 *
 * Threads: a trace is for one thread at a time; two traces have nothing in common.
 *
 * Whom to trust: a trace may be forged. Everything in it is checked, and what it may cost is bounded by its size: 96 MiB of
 * memory, and 112 times its size up to 8 GiB. Text may hold what a terminal obeys.
 *
 * Damage is no error: what is damaged is skipped, at most to the end of an epoch (ten minutes), and pycap_trace_summary()
 * says so. A program that shows results should show that, too.
 *
 * docs/trace-format.md of pycap specifies the file, and what its numbers mean.
 */
#ifndef PYCAP_TRACE_H
#define PYCAP_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PYCAP_MESSAGE_MAX 512 /* bytes that are enough for a message; a longer one is cut */
#define PYCAP_COMPLETE 1      /* of python_end and native_end: nothing is missing */

struct pycap_trace;

/* What is sampled. `kind` is an event_kind of the format. */
struct pycap_event {
    const char *name; /* perf's: "cpu-clock", "off-cpu" */
    const char *unit; /* of a weight: "ns", "bytes", "faults", "cycles" */
    uint32_t kind;
    uint32_t bytes;   /* of memory that a count of the event stands for; 0: it is not of memory, or that is unknown */
};

/* One program image of one process. What makes it the same in several epochs are pid, start_boottime_ns and exec_generation. */
struct pycap_process {
    uint32_t pid, parent_pid; /* in the recorder's namespace; 0: unknown */
    const char *name;         /* what it runs, as pysym calls it, as far as is known by now */
    const char *comm;         /* the kernel's name, the newest */
    const char *exe, *cgroup; /* paths */
    uint64_t start_boottime_ns, exec_generation;
    uint32_t python_version;  /* PY_VERSION_HEX; 0: none */
};

struct pycap_thread {
    const struct pycap_process *process;
    uint32_t tid;     /* in the recorder's namespace */
    const char *name; /* Python's, else the kernel's */
};

/* The same frame has the same address in all samples of an epoch. */
struct pycap_python_frame {
    const char *function; /* qualified from 3.11 on; "?": could not be read */
    const char *file;     /* "": unknown */
    uint32_t line;        /* 0: unknown */
    uint32_t column;      /* from 1, in bytes; 0: unknown */
    uint32_t first_line;  /* of the function; 0: unknown */
    uint32_t python_version;
    bool is_entry;        /* the outermost frame of an activation of the eval loop */
    bool is_generator;    /* of a generator or coroutine */
};

struct pycap_module {
    const char *path;         /* as its process sees it */
    const uint8_t *build_id;  /* NULL: it has none */
    size_t build_id_len;      /* bytes */
};

struct pycap_native_frame {
    const struct pycap_module *module; /* NULL: none is known, and `offset` is the address */
    uint64_t offset;                   /* bytes from the start of the module's file */
    bool is_return_address;            /* the call lies just before it */
};

struct pycap_kernel_frame {
    const char *function;          /* "": unknown */
    const char *module;            /* "": the kernel itself */
    uint64_t address;
};

struct pycap_label {
    const char *key, *value; /* "wait": "lock" */
};

/*
 * A look at a thread; of a wait, at its end. Frames are outermost first. Python's and native frames are two views of one
 * stack; how they interleave is not told here. `python_end` and `native_end` say whether frames are missing: 0 there are
 * none, and none were asked for, PYCAP_COMPLETE, else a loss reason, see pycap_loss_meaning().
 */
struct pycap_sample {
    uint64_t time_ns; /* CLOCK_MONOTONIC. Samples come nearly in order of time: within two seconds */
    uint64_t weight;  /* what the sample stands for, in the unit of its event */
    const struct pycap_event *event;
    const struct pycap_thread *thread;
    uint32_t cpu;
    uint32_t flags;   /* bits of the format's sample_flag */
    const struct pycap_python_frame *const *python;
    const struct pycap_native_frame *const *native;
    const struct pycap_kernel_frame *const *kernel;
    const struct pycap_label *labels;
    uint32_t python_count, native_count, kernel_count, label_count;
    uint32_t python_end, native_end;
};

/* What was read so far. */
struct pycap_summary {
    bool ended;             /* the recorder ended in good order; if not, what it had in memory is missing */
    uint64_t sample_count;
    uint64_t lost_count;    /* samples that the recorder knows it lost */
    uint64_t damaged_bytes; /* of the file, that were skipped */
    const char *damage;     /* what was wrong first; NULL: nothing */
};

/*
 * Opens a trace; "-" is standard input. It is read from its beginning to its end, without seeking, so it may be a pipe. NULL:
 * it cannot be read, and `message` says why, with the path.
 */
struct pycap_trace *pycap_trace_open(const char *path, char *message, size_t message_size);
/* NULL is allowed. */
void pycap_trace_close(struct pycap_trace *trace);
/* Sets *sample to the next one. 1: there is one; 0: the trace has ended; -1: an error, which later calls return again. */
int pycap_trace_next(struct pycap_trace *trace, const struct pycap_sample **sample);
/* What went wrong, for a person; "" before an error. Lives as long as the trace. */
const char *pycap_trace_error(const struct pycap_trace *trace);
/* Of what was read so far. Lives as long as the trace. */
const struct pycap_summary *pycap_trace_summary(struct pycap_trace *trace);
/*
 * Finds what lay at an address of a process of the newest sample, at a time of its epoch: *offset is then where in the file of the
 * module it lies. NULL: nothing that is known.
 */
const struct pycap_module *pycap_trace_find(struct pycap_trace *trace, const struct pycap_process *process, uint64_t time_ns,
                                            uint64_t address, uint64_t *offset);
/* What a loss reason means: "more Python frames than the limit; the outermost were cut". NULL: this version does not know it. */
const char *pycap_loss_meaning(uint32_t reason);

#ifdef __cplusplus
}
#endif

#endif
