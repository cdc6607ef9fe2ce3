/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that forks one for each trace, and these: what converter.c has on the other end of its socket. Orders and
 * answers are packets. It reads no trace itself, so the sender believes its answers.
 */
#ifndef SYMBOLIZE_PUSH_TRACE_PROCESSES_H
#define SYMBOLIZE_PUSH_TRACE_PROCESSES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/message.h"

struct converter_trace {
    const char *path; /* for messages */
    int fd;           /* a regular file, open for reading; its position may be anywhere */
};

/*
 * Runs in the process of one trace: confines it, reads the trace and writes its profiles to the pipe. Sets `*damaged` if
 * parts had to be passed over. The error is told to the sender.
 */
typedef struct error *converter_run(void *own, const struct converter_trace *trace, const struct profile_pipe *pipe, bool *damaged);

enum converter_task {
    CONVERTER_READ, /* as converter_run says */
    CONVERTER_LOOK, /* only looks whether there is an END record */
};

enum trace_order_kind {
    TRACE_ORDER_BEGIN, /* comes with the trace and the end of a pipe to write to, as SCM_RIGHTS */
    TRACE_ORDER_END,   /* kills the process of the trace, if it is still there */
};
enum { TRACE_ORDER_FDS = 2, TRACE_PROCESSES_MAX = 64 };

struct trace_order {
    uint32_t kind, task;
    uint32_t number; /* of the process: below TRACE_PROCESSES_MAX; that of BEGIN has none */
    char path[PATH_MAX]; /* cut, if it is longer */
};

/* Comes once for each TRACE_ORDER_BEGIN: when the process is gone. */
struct trace_answer {
    uint32_t number; /* of the order */
    int fork_errno; /* it could not be forked; else 0 */
    int status;     /* as waitpid(2) stores it */
};

/* Call in the process that was forked for it. Ends when the other end of `control` is closed. */
_Noreturn void trace_processes_serve(int control, converter_run *run, void *own);

#endif
