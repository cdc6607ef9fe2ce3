/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers in a file which profiles a store has got, so that after a restart, also after kill -9 or a crash of the host, each
 * is sent once; but for one whose answer was not seen, which is sent again. Stores of profiles do not recognize repeats.
 *
 * What is known of a trace goes by what it begins with (its headers, with the checksum of its first block), not by its name:
 * one that was moved or copied is the same. The file belongs to one destination and one way of dividing into windows and
 * series; with others it is refused with what to do.
 *
 * Nothing is skipped either, should a profile be another than it was: if it has another number of samples, since its trace
 * has grown after all or a newer pysym divides windows into other chunks, it is STATE_CHANGED, and so are the others of that
 * window and series. They have to be sent, and that repeats samples. The same holds for all of a trace that grew after its
 * profiles were forgotten.
 *
 * The file is text (state_file.h), a line for each event, appended; it is written anew, atomically, when it is opened and when
 * most of it is about traces that are complete. Half a line at its end, as a crash leaves it, is dropped. A complete trace
 * takes a line; the last STATE_TRACES_MAX / 2 at least are remembered. Of others each profile takes two lines of 46 bytes, and
 * 50 bytes of memory; when there are more than two million, those of other traces than the current are forgotten.
 */
#ifndef SYMBOLIZE_PUSH_STATE_H
#define SYMBOLIZE_PUSH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/profile.h"

enum { STATE_TRACES_MAX = 1 << 18 }; /* if there are more, the older half is forgotten */

struct state_trace_id {
    uint64_t number; /* XXH3-64 of the trace's first 72 bytes: file header and first block header */
};

struct state;
/*
 * Opens or makes the file, mode 0600, and locks it: ERROR_USAGE if another process pushes with it. A process that is forked
 * later shares the lock. A path of NULL: remembers for this process alone.
 * `destination` names store, URL, tenant, window and rules, as words NAME=VALUE divided by blanks. ERROR_USAGE if the file has
 * another one; ERROR_VERSION: another version of pysym wrote it; ERROR_FORMAT: it is no such file, or damaged.
 */
struct error *state_open(const char *path, const char *destination, struct state **out);
void state_close(struct state *s);

/* Is nothing left to send of the trace, which has that length? One that has grown since is not complete. */
bool state_is_complete(const struct state *s, struct state_trace_id trace, uint64_t len_bytes);
/*
 * Nothing is left to send, or ever will be: also call it for a trace that is gone, with its last length. `may_grow`: it does not
 * end with an END record; its profiles stay known.
 */
struct error *state_set_complete(struct state *s, struct state_trace_id trace, uint64_t len_bytes, bool may_grow);

enum state_of_profile {
    STATE_NEW,
    STATE_UNANSWERED, /* it was sent before, and no answer seen: sending it may repeat it */
    STATE_CHANGED,    /* its samples, or some, were sent before: sending it repeats them */
    STATE_SETTLED,    /* accepted, or refused for good */
};
enum state_of_profile state_find(const struct state *s, struct state_trace_id trace, const struct push_profile *profile);
/*
 * Before a profile is sent: on disk when this returns. After an error, which says what to do, it must not be sent, and is as it
 * was; the next call tries anew. Takes one fdatasync(): 1.3 ms on an SSD, 0.1 ms of CPU time.
 */
struct error *state_begin(struct state *s, struct state_trace_id trace, const struct push_profile *profile);
/*
 * After its answer: settled, or (false) surely not stored, so that sending it once more is no repeat. If an earlier request for it
 * was not answered it is STATE_UNANSWERED again. After an error it is known for this process, and the next call tries to write it.
 */
struct error *state_answer(struct state *s, struct state_trace_id trace, const struct push_profile *profile, bool settled);

#endif
