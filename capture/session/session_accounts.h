/* SPDX-License-Identifier: Apache-2.0 */
/* Counts losses, and writes the account that stands at the end of a file, or of a part of it: ticks, losses, waits. */
#ifndef CAPTURE_SESSION_SESSION_ACCOUNTS_H
#define CAPTURE_SESSION_SESSION_ACCOUNTS_H

#include "capture/session/session_parts.h"

/* Updates s->losses: the sum of what the sampler, the trace builder and the process table have counted. */
void session_sum_losses(struct session *s);
/* The number of samples that are missing from the file. Other losses leave a sample incomplete, but in the file. */
uint64_t session_lost_samples(const struct session *s);
/* Starts the counts of a file, or of a part of one, that begins at `time_ns`. */
void session_begin_counts(struct session *s, uint64_t time_ns);
/* What an account ends. */
enum session_account {
    SESSION_ACCOUNT_PART, /* a part of a file; another one follows */
    SESSION_ACCOUNT_FILE, /* a file; the recording goes on */
    SESSION_ACCOUNT_LAST, /* the recording */
};
/*
 * Writes what stands at the end: waits, ticks, losses, and of the last one what came of the command. Everything up to `time_ns`
 * must have been recorded. Returns the first error; what comes after it is written all the same where that is possible.
 */
struct error *session_put_accounts(struct session *s, uint64_t time_ns, enum session_account account);

#endif
