/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the emitter `gil` adds up, and hands to its two writers, of text and of JSON: for each process, or for all, who
 * held the GIL, who waited for it, and where.
 *
 * What is known of the GIL comes from three events. Samples of a clock say whether their thread held the GIL. Waits say
 * that, too, and whether they were for the GIL. Samples of blame are of threads that held the GIL while others waited
 * for it, and weigh the time that these lost.
 */
#ifndef FORMATS_EMIT_GIL_H
#define FORMATS_EMIT_GIL_H

#include <stdlib.h>

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

/* Which facts the samples in a total carry. */
enum gil_what {
    GIL_RAN,    /* the thread ran, and held the GIL */
    GIL_OFF,    /* it was off the CPU, and held the GIL */
    GIL_WAITED, /* it waited for the GIL */
    GIL_BLAMED, /* it held the GIL while others waited for it: the time that they lost */
    GIL_LOCKED, /* in a Python without a GIL: it waited for a lock, or for the world to stop or to go on */
    GIL_WHATS,
};

struct gil_sum {
    uint64_t samples, ns;
    double variance; /* of ns, in ns squared: what sampling by a clock adds to it. Sums of waits are exact */
};

/* Off the CPU or not, and in which system call; NULL: in none, or it is not known. */
struct gil_state {
    enum emit_wait wait;
    const char *system_call;
};

/* A thread in an interpreter. */
struct gil_thread {
    uint32_t thread;
    const char *interpreter; /* NULL: the main one, or not known */
    struct gil_sum sums[GIL_WHATS];
    bool exact; /* these are known: what it waited for the GIL, in all its interpreters */
    uint64_t exact_ns, exact_count;
};

/* Samples of a thread, in an interpreter, of one stack and in one state. */
struct gil_entry {
    uint32_t group, thread, owner; /* group: its number as groups were added; owner: of the thread in its interpreter */
    enum gil_what what;
    uint32_t state, stack; /* state: in gil_view.states */
    struct gil_sum sum;
};

/* Samples of one Python function, in one state, of which the stack with the most weight stands for all. */
struct gil_row {
    uint32_t function;       /* in gil_view.texts */
    uint32_t state;          /* in gil_view.states */
    uint32_t stack;          /* EMIT_NO_STACK: without frames */
    uint64_t stack_ns;
    struct gil_sum sum;
    uint64_t blamed_ns;      /* of GIL_CALLS: what others lost meanwhile */
};

/* What rows are of. */
enum gil_table {
    GIL_HOLDERS, /* what held the GIL while others waited; where that is not known, what ran and held it */
    GIL_CALLS,   /* what was off the CPU of its own will and held the GIL */
    GIL_WAITERS, /* what waited for the GIL, or without a GIL for locks */
    GIL_TABLES,
};

/* A process, or all. */
struct gil_group {
    uint32_t process;       /* EMIT_PART_ALL: all of them */
    uint32_t process_count;
    bool has_gil;           /* some process has one; */
    bool free_threaded;     /* some process has none, as it needs none */
    uint64_t known_samples, held_samples; /* on a CPU: those that say whether the GIL was held, and those that held it */
    struct gil_sum sums[GIL_WHATS];
    uint32_t holders, waiters; /* threads */
    bool exact;
    uint64_t exact_ns, exact_count; /* waits for the GIL */
    uint32_t exact_waiters;
    bool subinterpreters;   /* there are some; each may have a GIL of its own */
    VEC(struct gil_thread) threads; /* in the order in which they are shown */
    const struct gil_entry *entries; /* what the tables are made of */
    size_t entry_count;
    /* The rows of the table that is being written, likewise. */
    VEC(struct gil_row) rows;
    struct gil_sum all; /* their sum; also of those that are not shown, below options.min_share too */
};

struct gil_view {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct intern texts;
    uint32_t *ids; /* by frame: its text; at frame_count that of no frames */
    VEC(struct gil_state) states;
    bool has_waits, has_blame; /* the trace has such samples, or could have had */
    uint32_t group_count;
};

/* How many of `count` rows are shown. */
static inline uint32_t gil_shown(const struct gil_view *v, size_t count)
{
    return v->options.top_count && v->options.top_count < count ? v->options.top_count : (uint32_t)count;
}

/* qsort(), which takes no NULL: for lists that may be empty. */
static inline void gil_sort(void *data, size_t count, size_t size_bytes, int (*compare)(const void *, const void *))
{
    if (count)
        qsort(data, count, size_bytes, compare);
}

/* The standard error of a sum, in ns. */
uint64_t gil_error_ns(const struct gil_sum *sum);
/* The recorded time that figures of all samples are shares of, in ns; 0: not known, or samples were chosen by time. */
uint64_t gil_duration_ns(const struct gil_view *v);

/* Fills in g->rows and g->all. */
struct error *gil_fill_table(const struct gil_view *v, struct gil_group *g, enum gil_table table);

/*
 * The frames of a row: those inward of its innermost Python function, of user space, where neighbours of one name are one;
 * and the Python functions outward.
 */
struct gil_frames {
    VEC(uint32_t) native, callers; /* the model's numbers; native: outermost first, callers: innermost first */
};
/* Replaces what is there. False: out of memory. */
bool gil_frames_of(const struct gil_view *v, const struct gil_row *row, struct gil_frames *out);
void gil_frames_deinit(struct gil_frames *f);

/* Called in this order: for each group begin_group, the tables, end_group. A failed write is found by whoever closes the file. */
struct gil_writer {
    struct error *(*begin)(const struct gil_view *v);
    struct error *(*begin_group)(const struct gil_view *v, const struct gil_group *g, bool first);
    struct error *(*table)(const struct gil_view *v, const struct gil_group *g, enum gil_table table);
    struct error *(*end_group)(const struct gil_view *v, const struct gil_group *g);
    struct error *(*end)(const struct gil_view *v);
};
extern const struct gil_writer gil_text_writer, gil_json_writer;

#endif
