/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/source/source_text.h"

#include <stdbool.h>
#include <string.h>

#include "formats/base/utf8.h"

enum coding { CODING_UTF8, CODING_LATIN1, CODING_OTHER };

enum { CODING_NAME_MOST = 16 };

static const uint8_t byte_order_mark[] = {0xef, 0xbb, 0xbf};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_of_name(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

/* Python compares names in lower case, with "-" for "_". */
static enum coding coding_named(const uint8_t *text, size_t len)
{
    static const struct {
        const char *name;
        enum coding coding;
    } codings[] = {{"utf-8", CODING_UTF8},        {"utf8", CODING_UTF8},         {"u8", CODING_UTF8},
                   {"utf-8-sig", CODING_UTF8},    {"utf-8-unix", CODING_UTF8},   {"latin-1", CODING_LATIN1},
                   {"latin1", CODING_LATIN1},     {"iso-8859-1", CODING_LATIN1}, {"iso8859-1", CODING_LATIN1},
                   {"iso-latin-1", CODING_LATIN1}, {"l1", CODING_LATIN1},        {"latin-1-unix", CODING_LATIN1}};
    char name[CODING_NAME_MOST + 1] = "";

    for (size_t i = 0; i < len && len <= CODING_NAME_MOST; i++)
        name[i] = text[i] == '_' ? '-' : (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        if (!strcmp(name, codings[i].name))
            return codings[i].coding;
    }
    return CODING_OTHER;
}

/* The encoding that a comment names by "coding:" or "coding="; false: it names none. */
static bool coding_of_comment(const uint8_t *line, size_t len, enum coding *out)
{
    static const char word[] = "coding";
    const size_t word_len = sizeof word - 1;

    for (size_t i = 0; i + word_len < len; i++) {
        size_t from = i + word_len + 1, to;
        if (memcmp(line + i, word, word_len) || (line[from - 1] != ':' && line[from - 1] != '='))
            continue;
        while (from < len && (line[from] == ' ' || line[from] == '\t'))
            from++;
        for (to = from; to < len && is_of_name(line[to]); to++)
            ;
        if (to == from)
            continue;
        *out = coding_named(line + from, to - from);
        return true;
    }
    return false;
}

/* A comment may name the encoding on the first line, or on the second where the first is blank or a comment. */
static enum coding coding_of(const uint8_t *bytes, size_t len)
{
    enum coding coding = CODING_UTF8;

    for (int line = 0; line < 2 && len; line++) {
        size_t line_len = 0, at = 0;
        while (line_len < len && bytes[line_len] != '\n' && bytes[line_len] != '\r')
            line_len++;
        while (at < line_len && is_blank(bytes[at]))
            at++;
        bool is_comment = at < line_len && bytes[at] == '#';
        if (at < line_len && !is_comment)
            return CODING_UTF8;
        if (is_comment && coding_of_comment(bytes + at, line_len - at, &coding))
            return coding;
        if (line_len < len)
            line_len += bytes[line_len] == '\r' && line_len + 1 < len && bytes[line_len + 1] == '\n' ? 2 : 1;
        bytes += line_len;
        len -= line_len;
    }
    return coding;
}

/* What begins at `s`; returns how many bytes it is of. */
static size_t decode_one(const uint8_t *s, size_t len, enum coding coding, struct buf *out)
{
    uint8_t encoded[4];
    uint32_t code;

    if (*s == '\r') {
        buf_put_u8(out, '\n');
        return len > 1 && s[1] == '\n' ? 2 : 1;
    }
    size_t n = *s == 0 || (*s >= 0x80 && coding != CODING_UTF8) ? 0 : utf8_decode(s, len, &code);
    if (n)
        buf_put(out, s, n);
    else if (*s && coding == CODING_LATIN1)
        buf_put(out, encoded, utf8_write(*s, encoded));
    else
        buf_printf(out, "\\x%02x", *s);
    return n ? n : 1;
}

void source_text_decode(const uint8_t *bytes, size_t len, struct buf *out)
{
    bool marked = len >= sizeof byte_order_mark && !memcmp(bytes, byte_order_mark, sizeof byte_order_mark);
    enum coding coding = marked ? CODING_UTF8 : coding_of(bytes, len);

    for (size_t i = marked ? sizeof byte_order_mark : 0; i < len && !out->bad;)
        i += decode_one(bytes + i, len - i, coding, out);
}
