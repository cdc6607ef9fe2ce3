/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers in a file which profiles a store has got, so that after a restart, also after kill -9 or a crash of the host, each
 * is sent once; but for one whose answer was not seen, which is sent again. Stores of profiles do not recognize repeats.
 *
 * What is known of a trace goes by what it begins with (its headers, with the checksum of its first block), not by its name:
 * one that was moved or copied is the same. The file belongs to one destination and one way of dividing into windows and
 * series; with others it is refused with what to do.
 *
 * The file is text, a line for each event, appended; it is written anew (atomically) when most of it is about traces that are
 * complete. Half a line at its end, as a crash leaves it, is dropped. Its size is bounded by the traces that are not complete
 * and a line for each of the last STATE_TRACES_MAX complete ones.
 */
#ifndef SYMBOLIZE_PUSH_STATE_H
#define SYMBOLIZE_PUSH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/profile.h"

enum { STATE_TRACES_MAX = 1 << 16 };

struct state_trace_id {
    uint64_t number; /* XXH3-64 of the trace's first 72 bytes: file header and first block header */
};

struct state;
/*
 * Opens or makes the file, mode 0600, and locks it: ERROR_USAGE if another process pushes with it. A path of NULL: remembers
 * for this process alone. `destination`: one line that names store, URL, tenant, window and rules.
 */
struct error *state_open(const char *path, const char *destination, struct state **out);
void state_close(struct state *s);

/* Is nothing left to send of the trace, which has that length? One that has grown since is not complete. */
bool state_is_complete(const struct state *s, struct state_trace_id trace, uint64_t len_bytes);
struct error *state_set_complete(struct state *s, struct state_trace_id trace, uint64_t len_bytes);

enum state_of_profile {
    STATE_NEW,
    STATE_UNANSWERED, /* it was sent before, and no answer seen */
    STATE_SETTLED,    /* accepted, or refused for good */
};
enum state_of_profile state_find(const struct state *s, struct state_trace_id trace, const struct push_profile *profile);
/* Before a profile is sent: on disk when this returns. */
struct error *state_begin(struct state *s, struct state_trace_id trace, const struct push_profile *profile);
/* After its answer: settled, or (false) surely not stored, so that sending it once more is no repeat. */
struct error *state_answer(struct state *s, struct state_trace_id trace, const struct push_profile *profile, bool settled);

#endif
