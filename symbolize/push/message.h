/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process of a trace tells the sender, on a pipe: messages, each behind a head of fixed size. The sender reads a head,
 * then as many bytes as it says, and takes neither on trust.
 */
#ifndef SYMBOLIZE_PUSH_MESSAGE_H
#define SYMBOLIZE_PUSH_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/profile.h"

enum converter_event {
    CONVERTER_PROFILE,
    CONVERTER_LOST,   /* what the recorder lost, by name */
    CONVERTER_TEXT,   /* a line for standard error: damage, warnings */
    CONVERTER_END,    /* the task is done */
    CONVERTER_FAILED, /* it was not: `text` says why. Also when the process was killed, or told nonsense */
};

struct converter_message {
    enum converter_event event;
    struct push_profile profile; /* until the next message */
    const char *text;            /* likewise; printable. CONVERTER_LOST: the name */
    uint64_t count;
    bool is_sample;              /* CONVERTER_LOST: as in struct emit_loss */
    bool damaged;                /* CONVERTER_END: parts were damaged or missing, and passed over */
    bool ended;                  /* CONVERTER_END: the trace has an END record, so it will not grow */
    bool killed;                 /* CONVERTER_FAILED: for want of memory or processes, it seems: reading it again may do */
};

enum {
    MESSAGE_HEAD_BYTES = 8,
    MESSAGE_TEXT_MAX = 4096,                      /* bytes of a text, with its NUL */
    MESSAGE_BYTES_MAX = PROFILE_BYTES_MAX + (1 << 16), /* behind the head */
};

struct profile_pipe {
    int fd; /* blocking */
};

struct message_head {
    enum converter_event event;
    uint32_t len_bytes; /* behind the head */
};

/*
 * Writes a message. Texts are made printable, and cut. ERROR_LIMIT: the profile is over the limits of profile.h, and nothing
 * was written.
 */
struct error *message_write(const struct profile_pipe *pipe, const struct converter_message *message);

/* ERROR_FORMAT: no head of a message. */
struct error *message_read_head(const void *bytes, struct message_head *out);
/* Reads what stands behind a head. `labels` and pointers: as in profile_read(). ERROR_FORMAT: not such a message. */
struct error *message_read(struct message_head head, const void *bytes, struct profile_label labels[PROFILE_LABELS_MAX],
                           struct converter_message *out);

#endif
