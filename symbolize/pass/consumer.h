/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What listens while traces are read: a pass (pass.h) reads every input once and hands what it meets to a list of
 * consumers. A consumer is a row of functions over the raw records and samples, as uftrace's dump_ops is; a format that
 * needs no more than resolved stacks is an emitter (emit.h), which one consumer serves (emit_consumer.h).
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
    const struct trace_reader *reader; /* for what it met besides records */
    struct epoch *epoch;               /* what was defined so far; unwinding moves its address spaces in time */
    bool has_start;
    uint64_t start_ns;                 /* CLOCK_MONOTONIC, when its first epoch began */
};

/* Of a sample of that file; 0 for one from before the start. */
static inline uint64_t consumer_since_start_ns(const struct consumer_file *file, const struct trace_sample *sample)
{
    return sample->time_ns > file->start_ns ? sample->time_ns - file->start_ns : 0;
}

/* A sample that passed the filters. */
struct consumer_sample {
    uint32_t event;                  /* the epoch's id */
    const struct trace_sample *raw;  /* its value is that of the event's period where it brought none */
    const struct emit_sample *shown; /* resolved; NULL unless a consumer of the pass wants stacks */
};

/* What a pass does on behalf of a consumer, bits. Records come in any case. */
enum consumer_wants {
    CONSUMER_SAMPLES = 1, /* samples that pass the filters; the epoch has no stacks */
    CONSUMER_EPOCH = 2,   /* the same, and the epoch has all that the trace has */
    CONSUMER_STACKS = 4,  /* the same, and samples are resolved */
};

/*
 * Functions in the order in which they are called; NULL where a consumer has nothing to do. An error ends the pass.
 * `destroy` comes last, also after an error.
 */
struct consumer {
    unsigned wants; /* enum consumer_wants */
    struct error *(*begin_file)(void *state, const struct consumer_file *file);
    /* Every record; where samples are wanted after it was loaded into the epoch. */
    struct error *(*record)(void *state, const struct consumer_file *file, const struct trace_record *rec);
    struct error *(*sample)(void *state, const struct consumer_file *file, const struct consumer_sample *sample);
    /* Before the epoch is forgotten. */
    struct error *(*end_epoch)(void *state, const struct consumer_file *file);
    struct error *(*end_file)(void *state, const struct consumer_file *file);
    /* All files were read: writes what is still to be written. */
    struct error *(*end)(void *state);
    void (*destroy)(void *state);
    /* True: it needs nothing more. The pass stops reading when that holds for all its consumers. */
    bool (*has_enough)(const void *state);
};

#endif
