/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 defines it: shortest forms only, no surrogates, nothing above U+10FFFF. */
#include "formats/base/utf8.h"

enum { REPLACEMENT = 0xfffd };

/* The length of a sequence by its first byte; 0: no sequence begins so. */
static size_t length_of(uint8_t lead)
{
    return lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *code)
{
    size_t need = length_of(s[0]);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if (!need || need > len)
        return 0;
    *code = need == 1 ? s[0] : s[0] & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    if (*code < least[need] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return 0;
    return need;
}

size_t utf8_write(uint32_t code, uint8_t out[4])
{
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = REPLACEMENT;
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; code >>= 6)
        out[i] = (uint8_t)(0x80 | (code & 0x3f));
    out[0] = (uint8_t)(len == 1 ? code : code | (0xf00u >> len & 0xff));
    return len;
}

bool utf8_is_cut(const uint8_t *s, size_t len)
{
    size_t have = 1;

    while (have < len && (s[have] & 0xc0) == 0x80)
        have++;
    return have == len && len < length_of(s[0]);
}

bool utf8_is_control(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {
        {0, 0x1f},
        {0x7f, 0x9f},
        {0xad, 0xad},         /* soft hyphen */
        {0x61c, 0x61c},       /* Arabic letter mark */
        {0x180e, 0x180e},     /* Mongolian vowel separator */
        {0x200b, 0x200f},     /* zero width, joiners, marks of direction */
        {0x2028, 0x202e},     /* ends of lines and paragraphs, overrides of direction */
        {0x2060, 0x206f},     /* invisible operators, isolates of direction, deprecated controls */
        {0xfeff, 0xfeff},     /* byte order mark */
        {0xfff9, 0xfffb},     /* annotations */
        {0xe0000, 0xe007f},   /* tags: invisible letters */
    };

    for (size_t i = 0; i < sizeof controls / sizeof *controls && c >= controls[i].first; i++) {
        if (c <= controls[i].last)
            return true;
    }
    return false;
}

bool utf8_is_printable(const char *text, size_t len_bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    uint32_t code;

    for (size_t i = 0, n; i < len_bytes; i += n) {
        n = utf8_decode(s + i, len_bytes - i, &code);
        if (!n || utf8_is_control(code))
            return false;
    }
    return true;
}
