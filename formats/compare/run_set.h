/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a comparison knows of recordings: for each run what it was recorded on, and how much of it each function, each call
 * path and each line took. There are no samples, so that ten runs of a service are some hundred kilobytes: that is what a
 * baseline file keeps (baseline.h).
 *
 * The owner of a sample is its innermost Python frame; native and kernel time below that counts for it. Owners and their
 * callers form a tree of nodes, in which recursion is collapsed: a call of a function that is on the path leads back to its
 * node. Samples without a Python frame belong to the root.
 *
 * Functions, codes, nodes and lines are numbered once for all runs of a set; numbers count up from 0 and stay valid.
 */
#ifndef FORMATS_COMPARE_RUN_SET_H
#define FORMATS_COMPARE_RUN_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/event_value.h"
#include "formats/base/intern.h"
#include "formats/base/limits.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

#define RUN_SET_NONE UINT32_MAX

/* A function by its file and qualified name, as recorded. Texts are numbers in run_set.texts. */
struct run_function {
    uint32_t file, name;
    uint32_t first_line; /* of the code that was met first; 0 unknown */
    bool unqualified;    /* the name is not qualified (before 3.11): first_line tells functions of one file and name apart */
};

/*
 * The code that a function had. The fingerprint is made of the length of its bytecode, its flags and its table of lines,
 * which counts from its first line: it stays where a function only moves, and changes with nearly every other edit.
 */
struct run_code {
    uint32_t function;
    uint32_t first_line;   /* 0 unknown */
    uint32_t table_bytes;  /* length of the table of lines: short ones are alike by chance */
    uint64_t fingerprint;  /* 0: not known */
};

/* A function below its callers. Node 0 is the root, whose function and parent are RUN_SET_NONE; parents come before children. */
struct run_node {
    uint32_t parent, function;
};
#define RUN_SET_ROOT 0

/* A line of the owner of samples. */
struct run_line {
    uint32_t code;
    uint32_t line; /* 1-based in the file; of this code, so that line - first_line is its place in the function; 0 unknown */
};

/*
 * What one run has of a node, function, code, line or module; only those with time are there, in order of `id`. Values are
 * in the unit of the event (nanoseconds).
 */
enum { RUN_DISPERSION_STEPS = 64, RUN_DISPERSION_MAX = 16384 };
struct run_cell {
    uint32_t id;
    /*
     * How much more the value varies within the run, from one stretch of 0.5 s of CPU time to the next, than independent
     * samples would: the design effect, 1 at least (1 also where there are too few samples to tell). Of a node: of its total
     * as a share of its parent's, and of its self as a share of its own total. Of a function: of its total and of its self
     * as shares of all. Of a line, a code: 1. In steps of 1/64 and up to 16,384: that is what
     * a baseline keeps.
     */
    float dispersion, self_dispersion;
    double self;  /* as the owner */
    double total; /* as the owner or one of its callers, counted once; of a line, a module: the same as self. Of a code: as the
                   * outermost one of its function on the stack, or its self where that is more. */
};

/* A VEC of them, in order of `id`. */
struct run_cells {
    struct run_cell *data;
    size_t count, cap;
};

/* One event of one run. */
struct run_event {
    uint32_t name, unit;       /* texts */
    enum event_value kind;
    uint64_t frequency_hz;     /* asked for; 0 for a fixed period */
    uint64_t period;
    uint64_t samples;
    double total;              /* of all samples */
    double weight;             /* of a sample, for its share in chance: the sum of squares over the sum; 0: the total is, too */
    uint64_t ticks;            /* that were to become samples, those lost included; for the share that was lost */
    uint64_t lost;             /* of them: ring_full, tick_skipped, known_late and the like */
    struct run_cells nodes, functions, codes, lines;
    struct run_cells modules; /* by text: the owner's file, which is what Python calls a module */
};

struct run_note {
    uint32_t key, value; /* texts: what the program wrote into PYCAP_NOTE */
};

/* Work beyond these is none: a time divided by it would leave the range of a double. */
#define RUN_WORK_LEAST 1e-100
#define RUN_WORK_MOST 1e100

/* One recording. Texts are numbers in run_set.texts; 0 is "", unknown. */
struct run {
    uint32_t name;          /* of the file, without its folder */
    uint32_t host, kernel_release, machine, cpu_model, recorder;
    uint32_t backend;       /* "bpf", "proc" */
    uint32_t native;        /* how native stacks were recorded, as META says; "" unknown */
    uint32_t pythons;       /* the versions of CPython that have samples: "3.12 3.13t", sorted */
    uint32_t programs;      /* what ran, for people: "gunicorn, pytest" */
    uint32_t filters;       /* options of pysym that chose samples or changed stacks, as given */
    uint32_t cpu_count;
    uint64_t start_realtime_ns, duration_ns; /* 0 unknown */
    bool has_command;       /* pycap ran it */
    uint64_t command_wall_ns; /* 0 unknown */
    double work;            /* units of work that the run did; 0: not known */
    VEC(struct run_note) notes;
    VEC(struct run_event) events;
};

struct run_set {
    struct limits *limits; /* borrowed; NULL: none */
    struct intern texts;   /* text 0 is "" */
    VEC(struct run_function) functions;
    VEC(struct run_code) codes;
    VEC(struct run_node) nodes;
    VEC(struct run_line) lines;
    VEC(struct run) runs;
    /* private: what exists already, by contents */
    struct intern function_keys, code_keys, line_keys;
    struct map node_keys;
    struct buf scratch;
};

/* The set has text 0 and the root then. Deinit it also if this returns false: out of memory. */
bool run_set_init(struct run_set *s, struct limits *limits);
void run_set_deinit(struct run_set *s);
/* The number of what is asked for, which is added if it is new; RUN_SET_NONE: out of memory, or over the limits. */
uint32_t run_set_text(struct run_set *s, const char *text, size_t len_bytes);
uint32_t run_set_function(struct run_set *s, const struct run_function *function);
uint32_t run_set_code(struct run_set *s, const struct run_code *code);
uint32_t run_set_node(struct run_set *s, uint32_t parent, uint32_t function);
uint32_t run_set_line(struct run_set *s, const struct run_line *line);
const char *run_set_text_get(const struct run_set *s, uint32_t text);
/* A new run, {0}; NULL: out of memory. The pointer is valid until the next call. */
struct run *run_set_add(struct run_set *s);
/* Adds a copy of a run of another set, with the numbers of this one. */
struct error *run_set_copy(struct run_set *s, const struct run_set *from, uint32_t run);
/* What of a run is copied: cells whose number has the least samples here, by number in `from`; NULL: all. */
struct run_choice {
    const double *nodes, *functions, *lines;
    double least_nodes, least_functions, least_lines;
    bool no_host; /* the copy does not say which host it was */
};
struct error *run_set_copy_chosen(struct run_set *s, const struct run_set *from, uint32_t run, const struct run_choice *choice);
/*
 * Are two runs of one set the same recording? They are if they began and ended in the same nanosecond and have the same
 * events with the same sums. Never if it is not known when they began.
 */
bool run_is_same(const struct run *a, const struct run *b);
/* The event of a run by name; NULL: it has none such. */
const struct run_event *run_event_find(const struct run_set *s, const struct run *run, const char *name);

#endif
