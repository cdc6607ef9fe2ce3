/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pysym push`: sends the profiles of traces to a store, files in the order of their time, windows in theirs; tries again
 * where the store is not there, and counts what it refuses.
 */
#ifndef SYMBOLIZE_PUSH_PUSH_H
#define SYMBOLIZE_PUSH_PUSH_H

#include "formats/base/err.h"
#include "symbolize/push/converter.h"
#include "symbolize/push/request.h"

struct push_outcome {
    bool incomplete; /* something was refused, unreadable, or not sent in time; the account that was printed says what */
};

/* Returns when all is sent or, with `follow`, when SIGTERM or SIGINT came. */
struct error *push_run(const struct push_request *request, converter_run *convert, void *own, struct push_outcome *outcome);

#endif
