/* SPDX-License-Identifier: Apache-2.0 */
/* Each block that is written is answered with how much room there is; while there is little it is asked for, too. */
#include "capture/session/session_reader.h"

#include <errno.h>

#include "capture/host/messages.h"
#include "capture/session/session_drain.h"

/* How often it is asked for. */
#define ASK_NS (100 * NS_PER_MS)

/* The next message begins an epoch. */
static void go_on(struct session *s)
{
    s->held = false;
    trace_writer_hold(s->writer, false);
}

void session_heed_reader(struct session *s, uint64_t time_ns)
{
    enum output_room room = outputs_backlog(s->outputs, false).room;

    if (room == OUTPUT_ROOM_FILE)
        return;
    if (room != OUTPUT_ROOM_ALL && time_ns - s->room_ns >= ASK_NS) {
        room = outputs_backlog(s->outputs, true).room;
        s->room_ns = time_ns;
    }
    trace_builder_drop_samples(s->builder, room != OUTPUT_ROOM_ALL);
    if (room == OUTPUT_ROOM_ALL && s->held)
        go_on(s);
    if (room == OUTPUT_ROOM_NONE && !s->held) {
        s->held = true;
        trace_writer_flush(s->writer);
        trace_writer_hold(s->writer, true);
    }
}

struct error *session_drain_for_reader(struct session *s)
{
    bool held = s->held;

    if (held)
        go_on(s);
    TRY(session_drain(s, UINT64_MAX));
    return held && trace_writer_epoch_full(s->writer) ? trace_builder_begin_epoch(s->builder, s->end_ns) : NULL;
}

struct error *session_forgive_reader(struct session *s, struct error *err)
{
    if (!err || err->os_errno != EPIPE || !session_has_reader(s) || outputs_lost(s->outputs))
        return err;
    if (!s->o->quiet)
        messages_line(s->o->messages, "the reader of the trace has gone: the recording has ended");
    error_destroy(err);
    s->reader_gone = true;
    return NULL;
}
