/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on standard error of what matters while `pysym push` runs. Of a kind PUSH_LOG_MANY come in a minute at most; what
 * was left out is told with the next one.
 */
#ifndef SYMBOLIZE_PUSH_PUSH_LOG_H
#define SYMBOLIZE_PUSH_PUSH_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { PUSH_LOG_MANY = 5 };

enum push_log_kind {
    PUSH_LOG_NOTICE, /* about the whole: never left out */
    PUSH_LOG_STORE,  /* it does not answer, or does again */
    PUSH_LOG_REFUSED,
    PUSH_LOG_REPEATED,
    PUSH_LOG_TRACE,  /* read, damaged, gone, unreadable */
    PUSH_LOG_TEXT,   /* what the process of a trace says */
    PUSH_LOG_STATE,  /* the state file cannot be written */
    PUSH_LOG_KINDS,
};

struct push_log {
    bool verbose; /* nothing is left out */
    struct {
        uint64_t begun_ns;
        uint32_t said, left_out;
    } kinds[PUSH_LOG_KINDS];
};

/* Prints "pysym: " and the text, made printable, as a line. */
void push_log_say(struct push_log *log, enum push_log_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
