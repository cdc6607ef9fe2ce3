/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as bytes: numbers of fixed size, texts with a NUL, and the pprof behind its length. See profile.h. */
#define XXH_INLINE_ALL
#include "symbolize/push/profile.h"

#include <ctype.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"
#include "formats/base/hex.h"
#include "formats/base/utf8.h"
#include "formats/emit/emit.h"
#include "formats/emit/pprof/tables.h"

/* ---- names ---- */

bool profile_is_of_losses(const struct push_profile *profile)
{
    for (uint32_t i = 0; i < profile->label_count; i++) {
        if (!strcmp(profile->labels[i].name, PROFILE_NAME_LABEL))
            return !strcmp(profile->labels[i].value, PROFILE_LOST_NAME);
    }
    return false;
}

void profile_put_name(const struct emit_event *event, struct buf *out)
{
    if (!strcmp(event->name, "cpu-clock") || !strcmp(event->name, "task-clock")) {
        buf_put_str(out, "process_cpu");
        return;
    }
    if (isdigit((unsigned char)*event->name))
        buf_put_u8(out, '_');
    pprof_put_word(event->name, out);
    if (!*event->name)
        buf_put_str(out, "unknown");
}

void profile_series(const struct push_profile *profile, char out[PROFILE_SERIES_BYTES])
{
    XXH128_canonical_t canonical;
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (uint32_t i = 0; i < profile->label_count; i++) {
        const struct profile_label *label = &profile->labels[i];
        XXH3_128bits_update(&state, label->name, strlen(label->name) + 1);
        XXH3_128bits_update(&state, label->value, strlen(label->value) + 1);
    }
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    const struct hex hex = hex_of(&canonical, sizeof canonical);
    memcpy(out, hex.text, PROFILE_SERIES_BYTES);
}

/* ---- writing ---- */

static void put_text(struct buf *out, const char *text)
{
    buf_put(out, text, strlen(text) + 1);
}

void profile_put(const struct push_profile *profile, struct buf *out)
{
    buf_put_u64(out, profile->window_begin_ns);
    buf_put_u64(out, profile->window_end_ns);
    buf_put_u64(out, profile->last_ns);
    buf_put_u64(out, profile->samples);
    buf_put_u64(out, profile->rows);
    buf_put_u64(out, profile->raw_len_bytes);
    buf_put_u32(out, profile->chunk);
    buf_put_u32(out, profile->label_count);
    for (uint32_t i = 0; i < profile->label_count; i++) {
        put_text(out, profile->labels[i].name);
        put_text(out, profile->labels[i].value);
    }
    buf_put_u32(out, (uint32_t)profile->len_bytes);
    buf_put(out, profile->data, profile->len_bytes);
}

/* ---- reading ---- */

static struct error *refuse(const char *why)
{
    return error_create(ERROR_FORMAT, "no profile: %s", why);
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);

    if (!len || len > PROFILE_LABEL_NAME_MAX || isdigit((unsigned char)*text))
        return false;
    for (; *text; text++) {
        if (*text != '_' && (!isascii(*text) || !isalnum((unsigned char)*text)))
            return false;
    }
    return true;
}

static bool is_value(const char *text)
{
    size_t len = strlen(text), n;
    uint32_t code;

    if (!len || len > PROFILE_LABEL_VALUE_MAX)
        return false;
    for (; len; text += n, len -= n) {
        n = utf8_decode((const uint8_t *)text, len, &code);
        if (!n)
            return false;
    }
    return true;
}

static struct error *read_labels(struct bytes *b, struct profile_label labels[PROFILE_LABELS_MAX], struct push_profile *p)
{
    bool named = false;

    if (p->label_count > PROFILE_LABELS_MAX)
        return refuse("too many labels");
    for (uint32_t i = 0; i < p->label_count; i++) {
        struct profile_label *label = &labels[i];
        label->name = bytes_cstr(b);
        label->value = bytes_cstr(b);
        if (b->bad)
            return refuse("a label is cut off");
        if (!is_name(label->name) || !is_value(label->value))
            return refuse("a label breaks the rules");
        if (i && strcmp(labels[i - 1].name, label->name) >= 0)
            return refuse("labels are not sorted, or one comes twice");
        named |= !strcmp(label->name, PROFILE_NAME_LABEL);
    }
    p->labels = labels;
    return named ? NULL : refuse("it lacks the label " PROFILE_NAME_LABEL);
}

struct error *profile_read(const void *bytes, size_t len_bytes, struct profile_label labels[PROFILE_LABELS_MAX],
                           struct push_profile *out)
{
    struct bytes b = bytes_of(bytes, len_bytes);
    struct push_profile p = {0};

    p.window_begin_ns = bytes_u64(&b);
    p.window_end_ns = bytes_u64(&b);
    p.last_ns = bytes_u64(&b);
    p.samples = bytes_u64(&b);
    p.rows = bytes_u64(&b);
    p.raw_len_bytes = bytes_u64(&b);
    p.chunk = bytes_u32(&b);
    p.label_count = bytes_u32(&b);
    if (b.bad)
        return refuse("it is cut off");
    if (p.last_ns < p.window_begin_ns || p.last_ns >= p.window_end_ns)
        return refuse("its newest sample is not in its window");
    TRY(read_labels(&b, labels, &p));
    p.len_bytes = bytes_u32(&b);
    if (p.len_bytes > PROFILE_BYTES_MAX)
        return refuse("it is too large");
    p.data = bytes_take(&b, p.len_bytes);
    if (b.bad || !p.len_bytes)
        return refuse("it is cut off");
    if (bytes_left(&b))
        return refuse("there is something behind it");
    *out = p;
    return NULL;
}
