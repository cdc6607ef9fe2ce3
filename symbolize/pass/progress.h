/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line on a terminal that says how far reading is, for what takes longer than a second:
 *
 *     pysym: 45 %, 12.3 million samples: web-03.trace (3 of 12)
 *
 * It is written over itself a few times a second, and gone when something else is written. Where standard error is no terminal, or
 * one that cannot go back in its line, there is none.
 */
#ifndef SYMBOLIZE_PASS_PROGRESS_H
#define SYMBOLIZE_PASS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

/* {0} never writes anything. */
struct progress {
    bool on;
    bool shown;              /* the line stands on the terminal */
    uint64_t next_ns;        /* CLOCK_MONOTONIC: when to write it again */
    const struct input *inputs; /* borrowed while a pass runs */
    size_t input_count, number; /* `number`: of the one that is read, from 0 */
    uint64_t all_bytes;      /* of all inputs; 0: unknown, since one is a pipe or grows */
    uint64_t done_bytes;     /* of those that were read */
    uint64_t samples;
};

/* Whether standard error is for people: a terminal, and no log of a CI job. Begins to count time. */
void progress_init(struct progress *p);
/* A pass over the inputs begins: nothing of them has been read. */
void progress_begin(struct progress *p, const struct input *inputs, size_t count);
void progress_begin_file(struct progress *p, size_t number);
/* So much of the file has been read. Costs little: call it for each record. */
void progress_look(struct progress *p, uint64_t file_bytes);
static inline void progress_record(struct progress *p, uint64_t file_bytes, uint64_t samples)
{
    if (!p || !p->on)
        return;
    p->samples += samples;
    progress_look(p, file_bytes);
}
void progress_end_file(struct progress *p, uint64_t file_bytes);
/* Takes the line away. Call before anything else is written to the terminal. */
void progress_clear(struct progress *p);

#endif
