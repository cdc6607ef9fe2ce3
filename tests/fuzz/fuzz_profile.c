/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a process that a trace may have taken over: any bytes. What is taken for one keeps the rules that the sender and
 * the stores rely on, and a profile that was read is written as the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/utf8.h"
#include "symbolize/push/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check_profile(const struct push_profile *p, const uint8_t *data, size_t len_bytes)
{
    char series[PROFILE_SERIES_BYTES];
    struct buf again = {0};
    bool named = false;

    if (p->label_count > PROFILE_LABELS_MAX || !p->len_bytes || p->len_bytes > PROFILE_BYTES_MAX ||
        p->last_ns < p->window_begin_ns || p->last_ns >= p->window_end_ns)
        abort();
    for (uint32_t i = 0; i < p->label_count; i++) {
        named |= !strcmp(p->labels[i].name, PROFILE_NAME_LABEL);
        if (strpbrk(p->labels[i].name, " .-\"\\{}=,\n") || !*p->labels[i].value)
            abort();
    }
    profile_series(p, series);
    if (!named || strspn(series, "0123456789abcdef") != PROFILE_SERIES_BYTES - 1)
        abort();
    profile_put(p, &again);
    if (again.len_bytes != len_bytes || memcmp(again.data, data, len_bytes) != 0)
        abort();
    buf_deinit(&again);
}

static void check(const uint8_t *data, size_t len_bytes)
{
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct converter_message m;
    struct message_head head;

    struct error *err = message_read_head(data, &head);
    if (!err && head.len_bytes <= len_bytes - MESSAGE_HEAD_BYTES) {
        uint8_t *body = malloc(head.len_bytes + !head.len_bytes); /* nothing behind it, so that reading on is seen */
        memcpy(body, data + MESSAGE_HEAD_BYTES, head.len_bytes);
        err = message_read(head, body, labels, &m);
        if (!err && m.event == CONVERTER_PROFILE)
            check_profile(&m.profile, body, head.len_bytes);
        else if (!err && m.text && !utf8_is_printable(m.text, strlen(m.text)))
            abort();
        free(body);
    }
    error_destroy(err);
}

/* As it is, and as a profile whose length is right. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct buf sealed = {0};

    if (len_bytes >= MESSAGE_HEAD_BYTES)
        check(data, len_bytes);
    buf_put_u32(&sealed, CONVERTER_PROFILE);
    buf_put_u32(&sealed, (uint32_t)len_bytes);
    buf_put(&sealed, data, len_bytes);
    if (sealed.bad)
        abort();
    check(sealed.data, sealed.len_bytes);
    buf_deinit(&sealed);
    return 0;
}
