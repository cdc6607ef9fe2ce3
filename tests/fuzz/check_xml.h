/* SPDX-License-Identifier: Apache-2.0 */
/* Is this text well-formed XML, as far as pysym's pictures go: no comments, no CDATA, no entity but XML's own? Traps if not. */
#ifndef TESTS_FUZZ_CHECK_XML_H
#define TESTS_FUZZ_CHECK_XML_H

#include <stdbool.h>
#include <string.h>

#include "formats/base/buf.h"

enum { XML_DEEPEST = 64, XML_NAME_MOST = 32 };

static inline void xml_require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Text or the value of an attribute, which ends with `until`. Returns its end. */
static inline const char *xml_text(const char *s, const char *end, char until)
{
    for (; s < end && *s != until; s++) {
        xml_require(*s != '<');
        xml_require(*s != '&' || !strncmp(s, "&amp;", 5) || !strncmp(s, "&lt;", 4) || !strncmp(s, "&gt;", 4) ||
                    !strncmp(s, "&quot;", 6));
    }
    return s;
}

/* A tag from behind its "<" to behind its ">". */
static inline const char *xml_tag(const char *s, const char *end, char open[XML_DEEPEST][XML_NAME_MOST], size_t *depth)
{
    bool closes = *s == '/';
    size_t len = strcspn(s += closes, " \n/>");

    xml_require(len && len < XML_NAME_MOST);
    if (closes) {
        xml_require(*depth && strlen(open[*depth - 1]) == len && !memcmp(open[*depth - 1], s, len) && s[len] == '>');
        --*depth;
        return s + len + 1;
    }
    xml_require(*depth < XML_DEEPEST);
    memcpy(open[*depth], s, len);
    open[*depth][len] = 0;
    ++*depth;
    for (s += len; s < end && *s != '>'; s++) {
        if (*s == '/' && s[1] == '>')
            --*depth;
        else if (*s == '"')
            s = xml_text(s + 1, end, '"');
        else
            xml_require(*s != '<' && *s != '&');
    }
    xml_require(s < end);
    return s + 1;
}

/* `out` is a string. */
static inline void xml_check(const struct buf *out)
{
    const char *s = (const char *)out->data, *end = s + out->len_bytes;
    char open[XML_DEEPEST][XML_NAME_MOST];
    size_t depth = 0;

    if (out->len_bytes > 1 && s[0] == '<' && s[1] == '?')
        s = strstr(s, "?>") + 2;
    while ((s = xml_text(s, end, '<')) < end)
        s = xml_tag(s + 1, end, open, &depth);
    xml_require(!depth);
}

#endif
