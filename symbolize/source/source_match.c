/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/source/source_match.h"

#include <ctype.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/numbers.h"

enum {
    DECORATOR_LINES_MOST = 1000, /* between the first decorator of a function and its name */
    FRAME_WORK = 100, LINE_WORK = 20, /* steps, for the limits */
};

/* ---- functions ---- */

static bool is_of_identifier(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The name behind "def" or "class" in a function's qualified name; NULL for a lambda, a comprehension, a module. */
static const char *defined_name(const char *qualified)
{
    const char *dot = strrchr(qualified, '.'), *name = dot ? dot + 1 : qualified;

    if (!*name || isdigit((unsigned char)*name))
        return NULL;
    for (const char *c = name; *c; c++) {
        if (!is_of_identifier(*c)) /* identifiers in other scripts may be spelled in several ways */
            return NULL;
    }
    return name;
}

/* Skips a word and the blanks behind it; NULL: the line goes on with something else. */
static const char *skip_word(const char *s, const char *end, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(end - s) <= len || memcmp(s, word, len) || (s[len] != ' ' && s[len] != '\t'))
        return NULL;
    for (s += len; s < end && (*s == ' ' || *s == '\t');)
        s++;
    return s;
}

enum line_kind { LINE_DEFINES_IT, LINE_DEFINES_OTHER, LINE_DECORATES, LINE_OTHER };

static enum line_kind kind_of(const char *line, size_t len, const char *name)
{
    const char *end = line + len, *s = line, *word;
    size_t name_len = strlen(name);

    while (s < end && (*s == ' ' || *s == '\t' || *s == '\f'))
        s++;
    if (s < end && *s == '@')
        return LINE_DECORATES;
    if ((word = skip_word(s, end, "async")))
        s = word;
    word = skip_word(s, end, "def");
    if (!word)
        word = skip_word(s, end, "class");
    if (!word)
        return LINE_OTHER;
    bool is_it = (size_t)(end - word) >= name_len && !memcmp(word, name, name_len) &&
                 ((size_t)(end - word) == name_len || !is_of_identifier(word[name_len]));
    return is_it ? LINE_DEFINES_IT : LINE_DEFINES_OTHER;
}

/* May a function of this name begin at this line, by itself or by a decorator? */
static bool may_begin_at(const struct source_lines *lines, uint32_t first, const char *name, uint64_t *work)
{
    uint32_t count = source_lines_count(lines);

    for (uint32_t number = first; number <= count; number++) {
        size_t len;
        *work += LINE_WORK;
        const char *line = source_lines_get(lines, number, &len);
        enum line_kind kind = line ? kind_of(line, len, name) : LINE_OTHER;
        if (kind == LINE_DEFINES_IT || number - first == DECORATOR_LINES_MOST)
            return true;
        /* Below a decorator may stand anything: its arguments take as many lines as they like. */
        if (number == first && kind != LINE_DECORATES)
            return false;
    }
    return false;
}

/* Does a frame contradict the text? Then `reason` gets how. */
static bool contradicts(const struct source_lines *lines, const struct emit_frame *f, struct buf *reason, uint64_t *work)
{
    uint32_t count = source_lines_count(lines);
    const char *name = f->kind == EMIT_PYTHON ? defined_name(f->function) : NULL;
    struct number n;

    if (f->line > count) {
        buf_printf(reason, "line %u ran, and it has %s", f->line, counted(count, "line", "lines", &n));
        return true;
    }
    if (!name || !f->function_line || may_begin_at(lines, f->function_line, name, work))
        return false;
    buf_printf(reason, "%s began at line %u, and there it does not", name, f->function_line);
    return true;
}

/* ---- size and date ---- */

/* Archives and some file systems keep no parts of a second. */
static bool is_same_time(int64_t stamp_ns, struct timespec found)
{
    int64_t seconds = stamp_ns / (int64_t)NS_PER_S, rest = stamp_ns % (int64_t)NS_PER_S;

    return seconds == found.tv_sec && (rest == found.tv_nsec || !rest || !found.tv_nsec);
}

static enum emit_source_match match_of_stamp(const struct source_match *m, struct buf *reason)
{
    struct number ran, found;

    if (!m->stamp) {
        buf_put_str(reason, "the trace does not say");
        return EMIT_SOURCE_UNKNOWN;
    }
    if (m->stamp->several) {
        buf_put_str(reason, "several files of this name ran, or it changed meanwhile");
        return EMIT_SOURCE_UNKNOWN;
    }
    if (m->stamp->size_bytes != m->size_bytes) {
        buf_printf(reason, "%s ran, and it has %s", counted(m->stamp->size_bytes, "byte", "bytes", &ran),
                   grouped(m->size_bytes, &found));
        return EMIT_SOURCE_CHANGED;
    }
    if (is_same_time(m->stamp->modified_ns, m->modified))
        return EMIT_SOURCE_SAME;
    buf_put_str(reason, "it has the same size, and another date");
    return EMIT_SOURCE_UNKNOWN;
}

bool source_match_judge(const struct source_match *m, enum emit_source_match *out, struct buf *reason)
{
    size_t from = reason->len_bytes;

    *out = match_of_stamp(m, reason);
    if (*out == EMIT_SOURCE_CHANGED)
        return true;
    for (size_t i = 0; i < m->frame_count && *out != EMIT_SOURCE_CHANGED; i++) {
        struct buf contradiction = {0};
        uint64_t work = FRAME_WORK;
        if (contradicts(m->lines, &m->model->frames[m->frames[i]], &contradiction, &work)) {
            *out = EMIT_SOURCE_CHANGED;
            reason->len_bytes = from;
            buf_put_str(reason, buf_cstr(&contradiction));
        }
        buf_deinit(&contradiction);
        if (!limits_work(m->limits, work))
            return false;
    }
    return true;
}
