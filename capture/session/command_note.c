/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a copy of the text into keys and values where it stands. */
#include "capture/session/command_note.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 256
/* So many digits fit into 64 bits. */
#define DIGITS_MAX 19
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS "0123456789"
#define WORK "work"

static bool is_key(const char *key)
{
    return *key && strchr(LETTERS, *key) && strlen(key) <= NOTE_KEY_MAX && !key[strspn(key, LETTERS DIGITS ".-")];
}

static bool is_value(const char *value)
{
    size_t len = 0;

    while (value[len] >= ' ' && value[len] <= '~')
        len++;
    return !value[len] && len <= VALUE_MAX;
}

static bool is_work(const char *key)
{
    size_t len = strlen(WORK);

    return !strncmp(key, WORK, len) && (!key[len] || key[len] == '.');
}

/* The fact of a key; NULL: there are too many. */
static struct note_fact *fact_of(struct command_note *n, const char *key)
{
    for (uint32_t i = 0; i < n->fact_count; i++) {
        if (!strcmp(n->facts[i].key, key))
            return &n->facts[i];
    }
    if (n->fact_count == NOTE_FACTS_MAX)
        return NULL;
    struct note_fact *f = &n->facts[n->fact_count++];
    *f = (struct note_fact){.key = key, .adds_up = is_work(key)};
    f->has_value = !f->adds_up || !n->cut_bytes;
    return f;
}

/* Adds a whole number; false: it is none, or the sum is too large. */
static bool add(uint64_t *sum, const char *number)
{
    size_t len = strspn(number, DIGITS);

    return len && !number[len] && len <= DIGITS_MAX && !__builtin_add_overflow(*sum, strtoull(number, NULL, 10), sum);
}

/* Takes one line, which ends with NUL; false: it is not understood. */
static bool take_line(struct command_note *n, char *line)
{
    char *equals = strchr(line, '=');

    if (!equals)
        return false;
    *equals = 0;
    const char *value = equals + 1;
    if (!is_key(line))
        return false;
    bool good = is_value(value);
    struct note_fact *f = good || is_work(line) ? fact_of(n, line) : NULL;
    if (!f)
        return false;
    f->value = value;
    if (f->adds_up && !add(&f->sum, value))
        good = f->has_value = false;
    return good;
}

void command_note_parse(const void *bytes, size_t len_bytes, uint64_t cut_bytes, struct command_note *out)
{
    char *line = out->text, *end = out->text + len_bytes;

    out->fact_count = out->refused_lines = 0;
    out->cut_bytes = cut_bytes;
    memcpy(out->text, bytes, len_bytes);
    *end = 0;
    while (line < end) {
        char *newline = memchr(line, '\n', (size_t)(end - line)), *after = newline ? newline : end;
        if (!newline && cut_bytes)
            break; /* the rest of it was not read */
        *after = 0;
        /* A NUL inside would hide what follows it. */
        if (after > line && (strlen(line) != (size_t)(after - line) || !take_line(out, line)))
            out->refused_lines++;
        line = after + 1;
    }
}
