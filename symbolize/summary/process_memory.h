/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory processes have, by the kernel's counts, and whether the samples of events of memory add up to how
 * it grew. Page faults say who touched memory first. That is what the process grew by, unless it gave memory back, or
 * faults were for something else, or one fault brought many pages: the summary says which.
 */
#ifndef SYMBOLIZE_SUMMARY_PROCESS_MEMORY_H
#define SYMBOLIZE_SUMMARY_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/trace/trace.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary_data.h"

/* What samples of an event stand for. */
enum memory_event process_memory_event(const char *name, const char *unit);
/* Takes note of a reading; `process` is a row. False: out of memory. */
bool process_memory_reading(struct summary *s, uint32_t process, const struct trace_process_memory *reading);
/* Adds a sample, as far as it lies between readings. `process` is one of the epoch, `event` a row. */
void process_memory_sample(struct summary *s, uint32_t process, uint32_t event, const struct trace_sample *sample);

/* What the samples of an event say of how a process grew. */
enum memory_finding {
    MEMORY_AGREES,   /* as much as it grew by */
    MEMORY_FILES,    /* more, but no more than files and shared memory need */
    MEMORY_RETURNED, /* more: some of it was given back */
    MEMORY_COPIED,   /* the same, and the process has forked, or was: it may have copied pages, too */
    MEMORY_FILLED,   /* less: the kernel filled memory without a fault of the program's own */
    MEMORY_LOST,     /* less: samples were lost */
    MEMORY_HUGE,     /* less: a fault brought more than a page */
    MEMORY_UNKNOWN,  /* filters left out samples */
};
struct memory_account {
    const struct event_row *event;
    uint64_t bytes;       /* that the samples stand for */
    int64_t growth_bytes; /* of what the event is about: anonymous memory, or mappings */
    enum memory_finding finding;
};
/* `r` may be NULL. */
struct memory_account process_memory_account(const struct summary *s, const struct resolver *r, const struct memory_row *row,
                                             uint32_t i);
/* A word for programs. */
const char *process_memory_finding(enum memory_finding finding);

#endif
