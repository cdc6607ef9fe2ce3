/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text, whole and in pieces: no line of what comes out is one that a CI runner obeys, and all but what would be is as it
 * was. The judge looks at the text as a whole, with nothing of it kept from byte to byte.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/base/job_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static bool is_seen(uint8_t c)
{
    return c >= ' ' && c < 0x7f;
}

/* Only what is seen: without what runners may ignore, such as escape sequences. */
static size_t leave_seen(const uint8_t *line, size_t len, char *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < len; i++) {
        if (line[i] == 0x1b && i + 1 < len && line[i + 1] == '[') {
            size_t end = i + 2;
            while (end < len && line[end] >= 0x20 && line[end] < 0x40)
                end++;
            i = end < len && line[end] >= 0x40 && line[end] < 0x7f ? end : end - 1;
            continue;
        }
        if (is_seen(line[i]))
            out[kept++] = (char)line[i];
    }
    out[kept] = 0;
    return kept;
}

static void check_line(const uint8_t *line, size_t len, char *seen)
{
    size_t kept = leave_seen(line, len, seen);

    for (size_t i = 0; i < kept; i++) {
        if (!strncasecmp(seen + i, "##vso[", 6) || !strncmp(seen + i, "##[", 3) || !strncasecmp(seen + i, "##teamcity[", 11))
            abort();
    }
    if (!strncmp(seen + strspn(seen, " "), "::", 2))
        abort();
}

static void check(const struct buf *b)
{
    char *seen = malloc(b->len_bytes + 1);
    size_t from = 0;

    if (!seen)
        abort();
    if (!b->len_bytes) {
        free(seen);
        return;
    }
    for (size_t i = 0; i <= b->len_bytes; i++) {
        if (i < b->len_bytes && b->data[i] != '\n' && b->data[i] != '\r')
            continue;
        check_line(b->data + from, i - from, seen);
        from = i + 1;
    }
    free(seen);
}

static void put(const uint8_t *data, size_t len_bytes, size_t piece, struct buf *out)
{
    struct job_text t = {.syntax = JOB_TEXT_PLAIN};

    for (size_t i = 0; i < len_bytes; i += piece)
        job_text_put(&t, (const char *)data + i, len_bytes - i < piece ? len_bytes - i : piece, out);
}

/* What was written otherwise is written back. */
static void check_same(const uint8_t *data, size_t len_bytes, const struct buf *out)
{
    size_t at = 0;

    for (size_t i = 0; i < len_bytes; i++) {
        const char *instead = data[i] == '[' ? "\\x5b" : "\\x3a";
        if (at < out->len_bytes && out->data[at] == data[i]) {
            at++;
            continue;
        }
        if ((data[i] != '[' && data[i] != ':') || out->len_bytes - at < 4 || memcmp(out->data + at, instead, 4) != 0)
            abort();
        at += 4;
    }
    if (at != out->len_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct buf whole = {0}, pieces = {0};

    put(data, len_bytes, len_bytes ? len_bytes : 1, &whole);
    put(data, len_bytes, len_bytes ? data[0] % 7 + 1 : 1, &pieces);
    if (whole.len_bytes != pieces.len_bytes || (whole.len_bytes && memcmp(whole.data, pieces.data, whole.len_bytes) != 0))
        abort();
    check(&whole);
    check_same(data, len_bytes, &whole);
    buf_deinit(&whole);
    buf_deinit(&pieces);
    return 0;
}
