/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process of a trace tells the sender, on a pipe: messages, each behind a head of fixed size. The sender reads a head,
 * then as many bytes as it says, and takes neither on trust.
 */
#ifndef SYMBOLIZE_PUSH_MESSAGE_H
#define SYMBOLIZE_PUSH_MESSAGE_H

#include "symbolize/push/converter.h"

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
