/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output formats. One file per format exports a `const struct emitter`; the table in
 * emitters.c, which --help and the tests walk, lists them.
 *
 * The symbolizer defines each frame and stack once, by number, and then passes samples
 * that refer to them. Stacks form a tree: a stack is its parent (the callers) and one
 * frame more. An emitter never sees the trace.
 */
#ifndef FORMATS_EMIT_EMIT_H
#define FORMATS_EMIT_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/event_value.h"
#include "formats/base/job_text.h"
#include "formats/base/limits.h"

enum emit_frame_kind {
    EMIT_PYTHON,
    EMIT_NATIVE,
    EMIT_KERNEL,
    EMIT_MARK, /* "[torn]", "[truncated]": frames are missing here; or "[wait: lock]" */
};

/* A frame as the output shows it. Strings live as long as the model; "" is unknown, and only `builtin` and `wait` can be NULL. */
struct emit_frame {
    enum emit_frame_kind kind;
    const char *function;  /* Python: qualified name; native: demangled name; kernel: symbol */
    const char *file;      /* source file as recorded */
    const char *builtin;   /* native: the built-in module of the interpreter that it is work of, such as "gc"; NULL: none */
    const char *wait;      /* a mark: what the thread waited for, such as "lock", with this as its innermost frame; NULL: no such mark */
    const char *module;    /* path of the binary; kernel: "[kernel.kallsyms]" or "[module]"; Python: the interpreter's */
    uint32_t line, column; /* 1-based; 0 unknown */
    uint64_t address;      /* native, kernel: the address (or file offset) sampled; Python: 0 */
    uint64_t symbol_offset; /* bytes from the symbol's start */
    bool return_address;   /* native: a call returns to `address`, and the frame is that of the code before it */
    bool inlined;          /* inlined into its caller, the next frame outwards */
    uint32_t mapping;      /* native, kernel: the index of its binary; else EMIT_NO_MAPPING */
    uint32_t function_line; /* where the function starts; 0 unknown */
    uint32_t function_end;  /* Python: the last line of its code; 0 unknown. It may differ among frames of a function */
    uint32_t code;          /* Python: the index of its code object; EMIT_NO_CODE where comparisons do not need it */
};

/*
 * A code object of Python, for comparing recordings. Equal ones have one number; a function has several where its code was
 * edited. Code 0 stands for none.
 */
struct emit_code {
    uint64_t fingerprint; /* equal where the code only moved; 0: not known (symbolize/stack/fingerprint.h) */
    uint32_t table_bytes; /* length of its table of lines: short ones are alike by chance */
    uint32_t first_line;  /* 0 unknown */
    bool is_qualified;    /* the function's name is: it tells all functions of a file apart (from 3.11 on) */
};
#define EMIT_NO_CODE 0

/* PT_LOAD of an ELF file. */
struct emit_segment {
    uint64_t vaddr, file_offset, file_size, memory_size;
    uint32_t flags; /* 1 X, 2 W, 4 R */
};

/*
 * A binary as its program headers describe it, wherever processes mapped it. The address of a native frame is an offset
 * in this file; `segments` turn it into a virtual address of the file.
 */
struct emit_mapping {
    const char *path;        /* as its process saw it; "[kernel.kallsyms]" or "[module]" for kernel code */
    const uint8_t *build_id; /* GNU build ID; NULL when unknown */
    uint32_t build_id_len;
    uint64_t start, end;     /* virtual addresses of its executable segments; 0 when unknown */
    uint64_t offset;         /* of `start` in the file */
    const struct emit_segment *segments;
    uint32_t segment_count;
    bool is_elsewhere; /* names come from files that do not lie where readers look by `path` and `build_id` */
};
#define EMIT_NO_MAPPING UINT32_MAX

struct emit_stack {
    uint32_t parent; /* EMIT_NO_STACK for the outermost frame */
    uint32_t frame;
    uint32_t depth;  /* 1 for the outermost frame */
};
#define EMIT_NO_STACK UINT32_MAX /* the stack of a sample without frames, too */

struct emit_process {
    uint32_t pid, parent_pid; /* parent_pid: 0 when unknown */
    uint32_t life;            /* equal for what a process ran before and after it executed another program: it counts once. 0: its own */
    const char *comm;         /* the kernel's name */
    const char *name;         /* what it runs, such as "gunicorn", "-m http.server" or "gunicorn (spawn)"; comm when unknown */
    const char *title;        /* comm, where the process gave itself one that says more than its name; NULL: no */
    const char *container;    /* ID of its container, shortened; "" for none */
    const char *cgroup;       /* path in the unified hierarchy; "" when unknown */
    bool free_threaded;       /* its Python is built to run without a GIL */
    bool ended;               /* before the captures did, or before its program was replaced by another one's */
    uint32_t python_version;  /* PY_VERSION_HEX; 0 for none */
    uint32_t other_version;   /* of another CPython that ran in it, beside the first or after it; 0: none was seen */
    uint32_t first_program;   /* index: of several programs that one process ran the first here; its own where there is but one */
};
struct emit_thread {
    uint32_t process; /* index */
    uint32_t tid;
    const char *name; /* Python's name if known, else the kernel's */
};
struct emit_event {
    const char *name; /* cpu-clock */
    const char *unit; /* of a sample's value: ns, bytes, switches … */
    enum event_value kind;
};

/* What a thread that is off the CPU waits for. The numbers are those of the trace (wait_kind). */
enum emit_wait {
    EMIT_WAIT_NONE,
    EMIT_WAIT_BLOCKED,
    EMIT_WAIT_UNINTERRUPTIBLE,
    EMIT_WAIT_LOCK,
    EMIT_WAIT_RUN_QUEUE,
    EMIT_WAIT_PREEMPTED,
    EMIT_WAIT_STOPPED,
    EMIT_WAIT_GIL,
    EMIT_WAIT_STOP_THE_WORLD,
    EMIT_WAIT_ASLEEP, /* for one of the above, but not for a CPU: without BPF no more is known of sums */
    EMIT_WAIT_TASK, /* this and the next two: of an asyncio task, not of a thread */
    EMIT_WAIT_FUTURE,
    EMIT_WAIT_EVENT_LOOP,
    EMIT_WAIT_OTHER, /* of a newer kind */
    EMIT_WAITS,
};

/* A mark on a sample, such as asyncio task = fetch. */
struct emit_label {
    const char *key, *value;
};
/* The labels of a sample, in the order of the trace. Set 0 is the empty one. */
struct emit_label_set {
    const struct emit_label *labels;
    uint32_t count;
    /* What some of these labels say; NULL: there is no such label. Equal texts are one text of the model. */
    const char *interpreter; /* the number of a subinterpreter */
    const char *system_call;
    enum emit_wait wait;
};

/* Where the time of a thread went, exactly, as the kernel's switches say. */
struct emit_exact_time {
    uint32_t thread;
    enum emit_wait wait; /* EMIT_WAIT_NONE: the thread was on a CPU */
    uint64_t ns, count;  /* count: of waits that ended */
};

/* What a thread did, as the kernel had it. The numbers are those of the trace (kernel_state). */
enum emit_kernel_state {
    EMIT_STATE_UNKNOWN,
    EMIT_STATE_RUNS, /* or waits for a CPU */
    EMIT_STATE_SLEEPS,
    EMIT_STATE_UNINTERRUPTIBLE,
    EMIT_STATE_STOPPED,
    EMIT_STATE_TRACED,
    EMIT_STATE_ENDED,
    EMIT_STATES,
};

/* A thread at the end of a recording of pycap dump, whether it has samples or not. */
struct emit_thread_state {
    uint32_t thread, capture;
    enum emit_kernel_state state;
    uint64_t time_ns, since_ns; /* CLOCK_MONOTONIC: of the look; when it left its CPU, 0 if that is not known */
};

struct emit_setting {
    const char *key, *value;
};
/* How an event was sampled in one capture. */
struct emit_rate {
    uint32_t event;
    uint64_t frequency_hz; /* asked for; 0 for a fixed period */
    uint64_t period;       /* counts that one sample stood for at the start */
    uint64_t samples;      /* in the file, whether they are shown or not */
    uint64_t busy_ticks, own_ticks; /* on all CPUs, but for idle ones; of them, those that fell on what is recorded; 0: not known */
};
struct emit_loss {
    const char *name, *meaning; /* meaning: "" when this version does not know it */
    const char *event;          /* whose samples it concerns; "" if none in particular */
    uint64_t count;
    bool is_sample;             /* each is a sample that is missing; else samples are there that lack a part */
    bool is_everywhere;         /* it is counted on all CPUs, whoever runs there; see struct emit_rate's ticks */
};

/*
 * The facts of one input file; files are in the order of the command line. They are complete after the last sample: until
 * then the duration covers only what was read.
 */
struct emit_capture {
    const char *name; /* of the file, without its folder */
    const char *hostname, *kernel_release, *machine, *cpu_model, *recorder; /* "" when unknown */
    uint64_t memory_bytes; /* usable by the kernel; 0 when unknown */
    uint32_t cpu_count, page_size; /* 0 when unknown */
    /* The clocks, read at one moment; all 0 when unknown. */
    uint64_t monotonic_ns, realtime_ns, boottime_ns;
    uint64_t start_ns;          /* CLOCK_MONOTONIC */
    uint64_t start_realtime_ns; /* since 1970; 0 when unknown */
    uint64_t duration_ns;
    const struct emit_setting *settings;
    uint32_t setting_count;
    const struct emit_rate *rates;
    uint32_t rate_count;
    const struct emit_loss *losses;
    uint32_t loss_count;
};

/*
 * What stat said of a Python source file while its code was recorded, over all captures. There is none for names that the
 * traces do not know it of: of older traces, of `<string>` and the like, of files that were not there or were modified after
 * their process began.
 */
struct emit_source_stamp {
    const char *file;    /* as in frames: equal texts are one text of the model */
    uint64_t size_bytes; /* this and modified_ns: 0 where `several` */
    int64_t modified_ns; /* since 1970 */
    bool several;        /* more than one file of this name ran, or it changed */
};

/* Sums of an event over all inputs, in its unit. */
struct emit_total {
    uint64_t all_samples, all_value;     /* of the inputs; 0 in a part of an output, where they are not known */
    uint64_t shown_samples, shown_value; /* of those that passed the filters */
    uint64_t interpreter_value;          /* of those shown: where `in_interpreter` */
};

/* What has been defined so far. It grows while samples come; numbers stay valid, pointers need not. */
struct emit_model {
    const struct emit_frame *frames;
    uint32_t frame_count;
    const struct emit_code *codes; /* [0]: none */
    uint32_t code_count;
    const struct emit_stack *stacks;
    uint32_t stack_count;
    const struct emit_process *processes;
    uint32_t process_count;
    const struct emit_thread *threads;
    uint32_t thread_count;
    const struct emit_event *events;
    uint32_t event_count;
    const struct emit_mapping *mappings;
    uint32_t mapping_count;
    const struct emit_label_set *label_sets;
    uint32_t label_set_count;
    const struct emit_capture *captures;
    uint32_t capture_count;
    const struct emit_total *totals; /* by event; complete after the last sample */
    /*
     * Of threads all of whose samples are shown, over all captures; other filters leave nothing here, nor do traces without
     * waits. A row for each thread and each thing that it waited for. Complete after the last sample.
     */
    const struct emit_exact_time *exact_times;
    uint32_t exact_time_count;
    const struct emit_thread_state *thread_states; /* of such threads, the newest of a thread last; complete after the last sample */
    uint32_t thread_state_count;
    const struct emit_source_stamp *source_stamps; /* a file name once; complete after the last sample */
    uint32_t source_stamp_count;
    const char *filters;             /* the options that chose samples or changed stacks, as given; "" for none */
};

/* Did the thread hold its interpreter's lock? */
enum emit_gil { EMIT_GIL_UNKNOWN, EMIT_GIL_HELD, EMIT_GIL_NOT_HELD };

struct emit_sample {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t value;   /* in the event's unit: ns for clocks, bytes for page faults */
    uint64_t faults;  /* of page faults, where value is bytes: how many; else 0 */
    uint32_t thread, event, cpu;
    uint32_t stack;
    uint32_t label_set, capture;
    enum emit_gil gil;
    bool continues;      /* of a wait: another part of the one that an earlier sample of the thread began with */
    bool lasts;          /* of a wait: it went on after the sample */
    bool owed;           /* of waits: the time of others of the thread at the same place, of which no stack was taken */
    bool in_interpreter; /* the innermost frame was the interpreter's own; its time is that of the function shown */
};

/* What is kept apart in formats that add samples up. */
enum emit_merge {
    EMIT_MERGE_DEFAULT, /* the format's own choice */
    EMIT_MERGE_ALL,     /* nothing: one profile */
    EMIT_MERGE_PROCESS,
    EMIT_MERGE_THREAD,
};

/* Rows of top are sorted by this, and stand for this. */
enum emit_sort { EMIT_SORT_SELF, EMIT_SORT_TOTAL };
enum emit_by { EMIT_BY_FUNCTION, EMIT_BY_LINE };

/* The terminal that the output goes to; {0}: it goes to a file or a pipe. */
struct emit_terminal {
    uint32_t columns; /* 0: lines may be of any length */
    bool colours;
    bool blocks; /* it shows UTF-8, and so parts of a block: bars */
};

/* Where an output of several files puts those beside the first. */
struct emit_files {
    const char *folder; /* of the output: absolute, ends in '/' */
    const char *name;   /* of the output in that folder */
    /*
     * Creates a file; `path` is relative to `folder`, missing folders are made. It appears when the output does, or never.
     * The caller of begin() checks and closes *out.
     */
    struct error *(*create)(struct emit_files *files, const char *path, FILE **out);
    /* Makes a symbolic link at `path`, likewise. */
    struct error *(*link)(struct emit_files *files, const char *path, const char *target);
};

/* Is the text that was found the one that ran? */
enum emit_source_match {
    EMIT_SOURCE_UNKNOWN, /* the trace does not say what ran, or not enough */
    EMIT_SOURCE_SAME,
    EMIT_SOURCE_CHANGED,
};

/* A source file that was found, as Python or a compiler would read it. */
struct emit_source {
    const char *path; /* where it was found */
    const char *text; /* UTF-8; what was no text of the file's encoding is escaped; a 0 byte ends it */
    size_t len_bytes; /* without that byte */
    enum emit_source_match match;
    const char *reason; /* for people, why it is CHANGED or UNKNOWN: "line 40 does not begin add"; else "" */
};

/* Finds source files, only where the user said that they are (--source). */
struct emit_sources {
    /*
     * *found is the text of `file`, as a frame names it, or NULL: there is none. Paths and texts live as long as the
     * sources. Fails only where memory runs out. Best after the last sample, when the model is complete.
     */
    struct error *(*find)(struct emit_sources *sources, const struct emit_model *model, const char *file,
                          const struct emit_source **found);
};

/* The summary of the inputs, in its own words, for outputs that show it. */
struct emit_summary {
    /*
     * Prints it. `brief`: the files and how complete the recording is, as above the tables of pysym's first page; else all,
     * as `--format summary -v`. Call it from end(): only then is the summary complete.
     */
    struct error *(*print)(struct emit_summary *summary, bool brief, FILE *out);
};

/* Two sets of captures that are compared, for outputs that show it. */
struct emit_comparison {
    /*
     * Compares, and writes members of an object of JSON: formats/compare/report/page.h. Call it once, from end(): only then
     * all samples are counted.
     */
    struct error *(*write)(struct emit_comparison *comparison, FILE *out);
};

/* How large one output may be, for readers that take no larger ones. 0: as large as it is. */
struct emit_most {
    uint32_t rows;      /* distinct stacks */
    uint32_t depth;     /* places of a stack: the middle of a deeper one is left out, with the mark [truncated] in its place */
    uint64_t raw_bytes; /* unpacked; the row with which it is reached is the last one */
};

/* What end() wrote, in a format that obeys struct emit_most. */
struct emit_chunk {
    uint64_t samples, rows, raw_bytes;
    uint64_t cut_samples; /* of them, those whose stacks were deeper */
    bool more;            /* something is left */
};

#define EMIT_PART_ALL UINT32_MAX

/*
 * What one of several parts of an output holds (--split, --window): the samples of one process or thread, of one window of
 * time. Each part has an emitter state of its own, which writes its samples as if there were no others. In its model the
 * totals are those of the part (all_samples and all_value: 0); losses are still those of the captures.
 */
struct emit_part {
    uint32_t process, thread; /* indices; EMIT_PART_ALL: of all */
    uint32_t series;          /* its number, where parts are those of a store of profiles; else EMIT_PART_ALL */
    struct emit_most most;    /* of one output */
    /* As real time, ns since 1970: from the window's begin until before its end. Both 0: not a window. */
    uint64_t window_begin_ns, window_end_ns;
    /* What of that time the captures lasted, or of all time; for the head of a profile. Complete at the end; both 0 when unknown. */
    uint64_t begin_ns, end_ns;
    uint64_t last_ns; /* of the newest sample, as real time; 0: not a window */
    /* By event: do the samples of all parts together weigh differently? What depends on it must be alike in all parts. */
    const bool *weights_differ;
    bool several_events; /* do the samples of all parts together belong to several events? Likewise */
};

struct spool;
struct emit_options {
    enum emit_merge merge;
    bool threads;       /* the default choice of `merge` is EMIT_MERGE_THREAD; perf-script: comm is the thread's name */
    bool labels;        /* speedscope: profiles of each value of a label, too; pprof: samples have them */
    bool merged_lines;  /* a function's frames were merged into one, so there are no lines to show */
    bool full_paths;    /* file names in full; else shortened as far as they stay distinct */
    bool own_paths;     /* of files that are in no package, such as the program's own, the names in full */
    bool columns;       /* name:line:column */
    bool qualify;       /* pprof: names of Python functions say their module */
    bool label_cpu;     /* pprof: samples have the number of their CPU as a label */
    bool no_comments;   /* pprof: nothing about the captures, which stores of profiles would drop */
    bool waits_chosen;  /* of the waits at one place some may have been left out, and others not */
    bool times_chosen;  /* samples were chosen by time: captures took longer than what is shown */
    const char *name;   /* of the profile: the input's file name, without its folder */
    const char *exporter; /* "pysym " and its version */
    uint32_t top_count; /* rows of `top`; 0: all */
    enum emit_sort sort;
    enum emit_by by;
    bool json; /* top: for scripts */
    struct emit_terminal terminal;
    struct emit_sources *sources; /* borrowed; NULL: no --source was given */
    bool embed_source;   /* source texts travel with the output, where the format `embeds_source` */
    const char *annotate; /* annotate: the file or function to show, as given; NULL: the hottest files */
    bool all_lines;       /* annotate: whole files and functions, not only what is hot in them */
    uint32_t context_lines; /* annotate: around each hot line */
    bool native_names;   /* native names travel with the output, where the format `takes_native_names` */
    double min_share;    /* what weighs less is joined or left out, where the format `joins_thin`; 0: nothing; below: see emit_min_share() */
    bool weights_differ; /* samples to come do not all weigh the same, as far as that is known beforehand */
    struct limits *limits; /* of memory and work; borrowed; NULL: none */
    struct emit_summary *summary; /* borrowed; NULL for a part of an output, since the summary is about the whole recording */
    struct emit_comparison *comparison; /* borrowed; NULL: the captures are one set */
    struct emit_files *files; /* borrowed; NULL: the output is a pipe or the terminal, or a part */
    const struct emit_part *part; /* borrowed, and changes as samples come; NULL: the output holds all samples */
    struct spool *spool; /* one for all parts, so that each needs no file of its own; borrowed; NULL: none (formats/emit/spool.h) */
};

/* The share below which an output joins or leaves out: as asked for, else its own. */
static inline double emit_min_share(const struct emit_options *options, double own)
{
    return options->min_share < 0 ? own : options->min_share;
}

struct emitter {
    const char *name;        /* of --format */
    const char *description; /* one line for --help */
    const char *extension;   /* ".folded" */
    bool time_order;         /* needs each thread's samples in order of time */
    bool writes_each_sample; /* with its stack, as it comes */
    bool writes_json;        /* with options.json */
    bool joins_thin;         /* takes options.min_share */
    bool takes_native_names; /* takes options.native_names */
    bool shows_source;       /* looks for sources by itself: takes options.sources */
    bool embeds_source;      /* takes options.embed_source, and then options.sources */
    bool tells_waits;        /* tells running from waiting: not for --wall, which makes them one event */
    bool tells_filters;      /* its output says what the filters left */
    bool qualifies;          /* takes options.qualify and options.label_cpu */
    bool shows_labels;       /* its samples have labels, so stacks do not begin with them */
    bool wants_weights;      /* needs options.weights_differ, for which the input is read twice */
    bool needs_files;        /* needs options.files: it refuses to write to standard output */
    bool uses_files;         /* takes options.files where there are any */
    bool seeks;              /* rewrites the start of `out` at its end: fseeko() to 0 */
    bool binary;             /* its output is no text: nothing for a terminal, and no lines at whose ends it can be cut */
    enum job_text_syntax syntax; /* of its text; with options.json JSON */
    /* The caller checks and closes `out`. *state is the emitter's own. */
    struct error *(*begin)(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state);
    struct error *(*sample)(void *state, const struct emit_sample *sample);
    /* Writes the rest, after the last sample. */
    struct error *(*end)(void *state);
    /*
     * After end(): what it wrote. While there is more, end() is called again, and writes the next output to the same stream,
     * from which the caller has taken the one before. NULL: it writes all at once, however large that is.
     */
    void (*chunk)(const void *state, struct emit_chunk *out);
    /* After the end: a line for standard error that readers of the output should know, or NULL. May be NULL itself. */
    const char *(*remark)(const void *state);
    void (*destroy)(void *state); /* accepts NULL; also after an error */
};

extern const struct emitter *const emitters[]; /* ends with NULL */
/* By name; NULL: there is no such format. */
const struct emitter *emitter_find(const char *name);

#endif
