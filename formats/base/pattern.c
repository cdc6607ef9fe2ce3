/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and searches with regcomp(3) and regexec(3), see pattern.h. */
#include "formats/base/pattern.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    const char *text;
    enum pattern_part part;
    bool is_name, is_expression;
    regex_t regex;
};

static const struct {
    const char *prefix;
    enum pattern_part part;
} prefixes[] = {{"function:", PATTERN_FUNCTION}, {"file:", PATTERN_FILE}, {"module:", PATTERN_MODULE}, {"line:", PATTERN_LINE}};

/* What libc compiles in a moment: repeats within repeats are written out, and groups within groups take its stack. */
enum { LENGTH_MAX = 16384, GROUPS_MAX = 200, REPEATS_MAX = 4096 };

/* The greater number of "{2,5}", 1 at least. */
static double repeats_of(const char *brace)
{
    char *end;
    double least = (double)strtoul(brace + 1, &end, 10), most = *end == ',' ? (double)strtoul(end + 1, NULL, 10) : 0;

    return least > most ? least + !least : most;
}

/* What is wrong with its size; NULL: nothing. Brackets and backslashes only make it look larger than it is. */
static const char *size_trouble(const char *expression)
{
    /* How often something is written out: of what came last, and the most in each open group. */
    double last = 1, most[GROUPS_MAX + 1] = {1};
    size_t open = 0;

    if (strlen(expression) > LENGTH_MAX)
        return "it is too long";
    for (const char *c = expression; *c; c++) {
        if (*c == '(') {
            if (++open > GROUPS_MAX)
                return "it has too many groups within each other";
            most[open] = last = 1;
        } else if (*c == ')') {
            last = open ? most[open--] : 1;
        } else if (*c == '{') {
            bool is_nested = last > 1;
            last *= repeats_of(c);
            if (is_nested && last > REPEATS_MAX)
                return "it has too many repeats within repeats";
        } else if (!strchr("}*+?,0123456789", *c)) {
            last = 1;
        }
        most[open] = last > most[open] ? last : most[open];
    }
    return NULL;
}

static struct error *create(const char *who, const char *text, const char *expression, enum pattern_part part,
                            struct pattern **out)
{
    const char *trouble = size_trouble(expression);
    struct pattern *p;
    char why[128];

    if (trouble)
        return error_create(ERROR_USAGE, "%s wants a regular expression, not '%.200s': %s", who, text, trouble);
    p = calloc(1, sizeof *p);
    if (!p)
        return error_no_memory();
    *p = (struct pattern){.text = text, .part = part, .is_expression = true};
    /* An empty expression would be found in every name, and means something only by mistake. */
    int status = *expression ? regcomp(&p->regex, expression, REG_EXTENDED | REG_NOSUB) : REG_BADPAT;
    if (!status) {
        *out = p;
        return NULL;
    }
    if (*expression)
        regerror(status, &p->regex, why, sizeof why);
    else
        strcpy(why, "it is empty");
    free(p);
    if (status == REG_ESPACE)
        return error_no_memory();
    return error_create(ERROR_USAGE, "%s wants a regular expression, not '%s': %s", who, text, why);
}

struct error *pattern_create(const char *who, const char *text, struct pattern **out)
{
    return create(who, text, text, PATTERN_ANY_PART, out);
}

struct error *pattern_create_for_names(const char *who, const char *text, struct pattern **out)
{
    struct error *err = pattern_create(who, text, out);

    if (err && err->code == ERROR_USAGE && *text) {
        error_destroy(err);
        err = NULL;
        *out = calloc(1, sizeof **out);
        if (!*out)
            return error_no_memory();
        (*out)->text = text;
    }
    if (!err)
        (*out)->is_name = true;
    return err;
}

struct error *pattern_create_for_frames(const char *who, const char *text, struct pattern **out)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t len = strlen(prefixes[i].prefix);
        if (!strncmp(text, prefixes[i].prefix, len))
            return create(who, text, text + len, prefixes[i].part, out);
    }
    return create(who, text, text, PATTERN_ANY_PART, out);
}

void pattern_destroy(struct pattern *p)
{
    if (!p)
        return;
    if (p->is_expression)
        regfree(&p->regex);
    free(p);
}

void patterns_deinit(struct patterns *list)
{
    for (size_t i = 0; i < list->count; i++)
        pattern_destroy(list->data[i]);
    free(list->data);
    *list = (struct patterns){0};
}

enum pattern_part pattern_part(const struct pattern *p)
{
    return p->part;
}

const char *pattern_text(const struct pattern *p)
{
    return p->text;
}

bool pattern_finds(const struct pattern *p, const char *name)
{
    char cut[PATTERN_NAME_LIMIT_BYTES + 1];

    if (p->is_name && !strcmp(p->text, name))
        return true;
    if (!p->is_expression)
        return false;
    if (strnlen(name, sizeof cut) == sizeof cut) {
        memcpy(cut, name, PATTERN_NAME_LIMIT_BYTES);
        cut[PATTERN_NAME_LIMIT_BYTES] = 0;
        name = cut;
    }
    return regexec(&p->regex, name, 0, NULL, 0) == 0;
}

bool patterns_find(const struct patterns *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (pattern_finds(list->data[i], name))
            return true;
    }
    return false;
}
