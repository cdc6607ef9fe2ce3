/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a push's state: text, locked by the process that pushes.
 *
 *     pysym push state 1
 *     destination store=pyroscope url=http://localhost:4040 window=15s
 *     sent 00c0ffee00c0ffee 0123456789abcdef 1204
 *
 * Behind the first two lines stands one for each event (ledger.h): its word, the trace, the key if there is one, the number.
 * Lines are appended. A last line without its end, which a crash or a full disk left, is dropped.
 */
#ifndef SYMBOLIZE_PUSH_STATE_FILE_H
#define SYMBOLIZE_PUSH_STATE_FILE_H

#include "symbolize/push/ledger.h"

struct state_file {
    char *path;        /* NULL: there is no file, and nothing is written */
    char *destination; /* printable, in one line */
    int fd;            /* locked */
    uint64_t len_bytes;
    bool spoilt; /* the end of the file is unknown after an error: it has to be written anew */
};

/*
 * Opens or makes the file, and locks it. ERROR_USAGE: another process has it locked. Nothing to close after an error. A path of
 * NULL: there is no file.
 */
struct error *state_file_open(const char *path, const char *destination, struct state_file *out);
void state_file_close(struct state_file *f);
/*
 * Calls `take` with its events. ERROR_USAGE: it is about another destination; ERROR_VERSION: a newer pysym wrote it;
 * ERROR_FORMAT: something else did, or a line is damaged.
 */
struct error *state_file_read(struct state_file *f, ledger_taker *take, void *ctx);
/* Appends events, and is on disk afterwards if that is asked for. `ledger` has them already; if need be the file is written anew. */
struct error *state_file_append(struct state_file *f, const struct ledger *ledger, const struct ledger_event *events, size_t count,
                                bool durable);
/* Writes it anew, as short as it can be; on disk when it returns. */
struct error *state_file_rewrite(struct state_file *f, const struct ledger *ledger);
/* The length that it has when written anew, at most. */
uint64_t state_file_least_bytes(const struct state_file *f, const struct ledger *ledger);

#endif
