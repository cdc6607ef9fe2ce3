/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/push_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/job_text.h"
#include "formats/base/printable.h"

#define MINUTE_NS (60 * NS_PER_S)

/* Whether the line is to be said now; stores how many were left out before it. */
static bool may_say(struct push_log *log, enum push_log_kind kind, uint32_t *left_out)
{
    uint64_t now = now_ns();

    *left_out = 0;
    if (log->verbose || kind == PUSH_LOG_NOTICE)
        return true;
    if (now - log->kinds[kind].begun_ns > MINUTE_NS) {
        *left_out = log->kinds[kind].left_out;
        log->kinds[kind].begun_ns = now;
        log->kinds[kind].said = log->kinds[kind].left_out = 0;
    }
    bool may = log->kinds[kind].said < PUSH_LOG_MANY;
    log->kinds[kind].said += may;
    log->kinds[kind].left_out += !may;
    return may;
}

void push_log_say(struct push_log *log, enum push_log_kind kind, const char *fmt, ...)
{
    struct buf line = {0};
    uint32_t left_out;
    char *text = NULL;
    va_list args;

    if (!may_say(log, kind, &left_out))
        return;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    if (len < 0)
        return;
    printable_put(&line, text);
    if (left_out)
        buf_printf(&line, " (and %" PRIu32 " line%s like this left out)", left_out, left_out == 1 ? "" : "s");
    job_text_print(stderr, "pysym: %s\n", buf_cstr(&line));
    buf_deinit(&line);
    free(text);
}
