/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a line is kept from byte to byte; most bytes change nothing, and are skipped over. */
#include "formats/base/job_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE = 0x1b };

/* The words that may stand between "##" and "[". */
static const char *const words[] = {"vso", "teamcity"};

static const char *const instead_of[][2] = {
    [JOB_TEXT_PLAIN] = {"\\x5b", "\\x3a"}, [JOB_TEXT_COMMANDS] = {"\\x5b", "\\x3a"},
    [JOB_TEXT_JSON] = {"\\u005b", "\\u003a"}, [JOB_TEXT_XML] = {"&#91;", "&#58;"},
};

static bool is_visible(unsigned char c)
{
    return c > ' ' && c < 0x7f;
}

static char lower(unsigned char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Takes a character behind "##". True: it makes a command. */
static bool follow_word(struct job_text *t, unsigned char c)
{
    bool complete = !t->word || !*t->word;
    const char *word = t->word;

    if (complete && c == '[')
        return true;
    for (size_t i = 0; !word && i < sizeof words / sizeof *words; i++)
        word = words[i][0] == lower(c) ? words[i] : NULL;
    if (word && *word && *word == lower(c)) {
        t->word = word + 1;
    } else {
        t->hashes = 0;
        t->word = NULL;
    }
    return false;
}

/* Takes one that is visible. True: with it a command would be whole. */
static bool take_visible(struct job_text *t, unsigned char c)
{
    bool begins = !t->within, second = t->colon;

    t->within = true;
    t->colon = begins && c == ':' && t->syntax != JOB_TEXT_COMMANDS;
    if (second && c == ':')
        return true;
    if (c == '#') {
        t->hashes = t->word || !t->hashes ? 1 : 2;
        t->word = NULL;
        return false;
    }
    if (t->hashes < 2) {
        t->hashes = 0;
        return false;
    }
    return follow_word(t, c);
}

/* Is the byte a part of an escape sequence such as "\x1b[1m"? */
static bool take_escape(struct job_text *t, unsigned char c)
{
    if (c == ESCAPE) {
        t->escape = 1;
        return true;
    }
    if (!t->escape)
        return false;
    if (t->escape == 1 && c == '[') {
        t->escape = 2;
        return true;
    }
    bool goes_on = t->escape == 2 && c >= 0x20 && c < 0x40, ends = t->escape == 2 && c >= 0x40 && c < 0x7f;
    t->escape = goes_on ? 2 : 0;
    return goes_on || ends;
}

static bool take(struct job_text *t, unsigned char c)
{
    if (c == '\n' || c == '\r') {
        *t = (struct job_text){.syntax = t->syntax};
        return false;
    }
    if (take_escape(t, c))
        return false;
    if (is_visible(c))
        return take_visible(t, c);
    if (c == ' ') {
        t->colon = false;
        t->hashes = 0;
        t->word = NULL;
    }
    return false;
}

size_t job_text_pass(struct job_text *t, const char *text, size_t len_bytes, const char **instead)
{
    if (t->syntax == JOB_TEXT_AS_IS)
        return len_bytes;
    for (size_t i = 0; i < len_bytes; i++) {
        if (t->within && !t->colon && !t->escape && !t->hashes) {
            while (i < len_bytes && text[i] != '#' && text[i] != '\n' && text[i] != '\r' && text[i] != ESCAPE)
                i++;
            if (i == len_bytes)
                break;
        }
        if (!take(t, (unsigned char)text[i]))
            continue;
        *instead = instead_of[t->syntax][text[i] == ':'];
        t->colon = false;
        t->hashes = 0;
        t->word = NULL;
        return i;
    }
    return len_bytes;
}

void job_text_put(struct job_text *t, const char *text, size_t len_bytes, struct buf *out)
{
    while (len_bytes) {
        const char *instead;
        size_t n = job_text_pass(t, text, len_bytes, &instead);
        buf_put(out, text, n);
        if (n == len_bytes)
            return;
        buf_put_str(out, instead);
        text += n + 1;
        len_bytes -= n + 1;
    }
}

void job_text_print(FILE *out, const char *fmt, ...)
{
    struct job_text guard = {.syntax = JOB_TEXT_PLAIN};
    struct buf safe = {0};
    char *text;
    va_list ap;

    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (len < 0)
        return;
    job_text_put(&guard, text, (size_t)len, &safe);
    free(text);
    if (!safe.bad)
        fwrite(safe.data, 1, safe.len_bytes, out);
    buf_deinit(&safe);
}
