/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers of traces. A pass (pass.h) reads every input once and hands each record and sample to a list of consumers.
 * A consumer is a struct of functions over raw records and samples, like uftrace's dump_ops. An output format that
 * needs only resolved stacks is an emitter (emit.h) instead; one consumer calls the emitters (emit_consumer.h).
 */
#ifndef SYMBOLIZE_PASS_CONSUMER_H
#define SYMBOLIZE_PASS_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/trace/input.h"

/* The input that is being read. */
struct consumer_file {
    const struct input *input;
    uint32_t number;                   /* of the input, from 0 */
    const struct trace_reader *reader; /* for its statistics and the damage that it found */
    struct epoch *epoch;               /* what was defined so far; unwinding moves its address spaces in time */
    bool has_start;
    uint64_t start_ns;                 /* CLOCK_MONOTONIC, when its first epoch began */
};

/* Time of a sample since the start of its file; 0 if it is older than the start. */
static inline uint64_t consumer_since_start_ns(const struct consumer_file *file, const struct trace_sample *sample)
{
    return sample->time_ns > file->start_ns ? sample->time_ns - file->start_ns : 0;
}

/* A sample that passed the filters. */
struct consumer_sample {
    uint32_t event;                  /* the epoch's id */
    const struct trace_sample *raw;  /* its value is set: the event's period if the trace has no value */
    const struct emit_sample *shown; /* resolved; NULL unless a consumer of the pass wants stacks */
};

/* What a consumer needs from the pass, as bits. Every consumer gets the records. */
enum consumer_wants {
    CONSUMER_SAMPLES = 1, /* samples that pass the filters; the stacks need not be loaded into the epoch */
    CONSUMER_EPOCH = 2,   /* the same, and everything in the trace is loaded into the epoch */
    CONSUMER_STACKS = 4,  /* the same, and samples are resolved */
};

/*
 * Functions in the order in which they are called; NULL where a consumer has nothing to do. An error ends the pass.
 * `destroy` comes last, also after an error.
 */
struct consumer {
    unsigned wants; /* enum consumer_wants */
    struct error *(*begin_file)(void *state, const struct consumer_file *file);
    /* Every record. If any consumer wants samples, it has been loaded into the epoch before. */
    struct error *(*record)(void *state, const struct consumer_file *file, const struct trace_record *rec);
    struct error *(*sample)(void *state, const struct consumer_file *file, const struct consumer_sample *sample);
    /* The epoch ends; its definitions are still there. */
    struct error *(*end_epoch)(void *state, const struct consumer_file *file);
    struct error *(*end_file)(void *state, const struct consumer_file *file);
    /* All files were read: writes the rest of the output. */
    struct error *(*end)(void *state);
    void (*destroy)(void *state);
    /* True if it needs nothing more. The pass stops reading when all its consumers return true. */
    bool (*has_enough)(const void *state);
};

#endif
