/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on the pipe between the process that reads a trace and the one that sends. See message.h. */
#include "symbolize/push/message.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/base/printable.h"
#include "formats/base/utf8.h"

/* ---- writing ---- */

/* Appends a text and its NUL: printable, and cut between two characters. */
static void put_text(struct buf *out, const char *text)
{
    size_t begun = out->len_bytes;

    printable_put(out, text);
    if (out->len_bytes - begun >= MESSAGE_TEXT_MAX) {
        out->len_bytes = begun + MESSAGE_TEXT_MAX - 1;
        while ((out->data[out->len_bytes] & 0xc0) == 0x80)
            out->len_bytes--;
    }
    buf_put_u8(out, 0);
}

static void put_body(const struct converter_message *message, struct buf *out)
{
    switch (message->event) {
    case CONVERTER_PROFILE:
        profile_put(&message->profile, out);
        break;
    case CONVERTER_LOST:
        buf_put_u64(out, message->count);
        buf_put_u8(out, message->is_sample);
        put_text(out, message->text);
        break;
    case CONVERTER_TEXT:
    case CONVERTER_FAILED:
        put_text(out, message->text);
        break;
    case CONVERTER_END:
        buf_put_u8(out, message->damaged);
        buf_put_u8(out, message->ended);
        break;
    }
}

static struct error *write_bytes(int fd, const uint8_t *data, size_t len_bytes)
{
    while (len_bytes) {
        ssize_t n = write(fd, data, len_bytes);
        if (n < 0 && errno != EINTR)
            return error_os(errno, "cannot write to the process that sends");
        data += n > 0 ? n : 0;
        len_bytes -= n > 0 ? (size_t)n : 0;
    }
    return NULL;
}

struct error *message_write(const struct profile_pipe *pipe, const struct converter_message *message)
{
    struct buf bytes = {0};
    struct error *err = NULL;

    if (message->event == CONVERTER_PROFILE && message->profile.len_bytes > PROFILE_BYTES_MAX)
        return error_create(ERROR_LIMIT, "a profile is over %d MiB, packed", PROFILE_BYTES_MAX >> 20);
    buf_put_u32(&bytes, message->event);
    buf_put_u32(&bytes, 0);
    put_body(message, &bytes);
    if (bytes.bad) {
        err = error_no_memory();
    } else {
        const uint32_t len = (uint32_t)bytes.len_bytes - MESSAGE_HEAD_BYTES;
        memcpy(bytes.data + MESSAGE_HEAD_BYTES - sizeof len, &len, sizeof len);
        err = write_bytes(pipe->fd, bytes.data, bytes.len_bytes);
    }
    buf_deinit(&bytes);
    return err;
}

/* ---- reading ---- */

static struct error *refuse(const char *why)
{
    return error_create(ERROR_FORMAT, "no message: %s", why);
}

struct error *message_read_head(const void *bytes, struct message_head *out)
{
    struct bytes b = bytes_of(bytes, MESSAGE_HEAD_BYTES);
    uint32_t event = bytes_u32(&b);
    uint32_t len_bytes = bytes_u32(&b);

    if (event > CONVERTER_FAILED)
        return refuse("it is of no known kind");
    if (len_bytes > (event == CONVERTER_PROFILE ? MESSAGE_BYTES_MAX : MESSAGE_TEXT_MAX + sizeof(uint64_t) + 1))
        return refuse("it is too long");
    *out = (struct message_head){(enum converter_event)event, len_bytes};
    return NULL;
}

static struct error *read_text(struct bytes *b, struct converter_message *out)
{
    out->text = bytes_cstr(b);
    if (b->bad || !utf8_is_printable(out->text, strlen(out->text)))
        return refuse("its text is not printable");
    return NULL;
}

struct error *message_read(struct message_head head, const void *bytes, struct profile_label labels[PROFILE_LABELS_MAX],
                           struct converter_message *out)
{
    struct bytes b = bytes_of(bytes, head.len_bytes);

    *out = (struct converter_message){.event = head.event};
    switch (head.event) {
    case CONVERTER_PROFILE:
        return profile_read(bytes, head.len_bytes, labels, &out->profile);
    case CONVERTER_LOST:
        out->count = bytes_u64(&b);
        out->is_sample = bytes_u8(&b);
        TRY(read_text(&b, out));
        break;
    case CONVERTER_TEXT:
    case CONVERTER_FAILED:
        TRY(read_text(&b, out));
        break;
    case CONVERTER_END:
        out->damaged = bytes_u8(&b);
        out->ended = bytes_u8(&b);
        break;
    }
    return b.bad || bytes_left(&b) ? refuse("its length is wrong") : NULL;
}
