/* SPDX-License-Identifier: Apache-2.0 */
/* Parses rules of labels, from left to right. See label_rule.h. */
#include "symbolize/push/label_rule.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "symbolize/push/profile.h"

const char label_field_names[] = "host, program, comm, unit, container, pod_uid, cgroup, python, pid, tid, thread, event";

static const char *const fields[FIELD_COUNT] = {
    [FIELD_HOST] = "host",     [FIELD_PROGRAM] = "program",     [FIELD_COMM] = "comm",     [FIELD_UNIT] = "unit",
    [FIELD_CONTAINER] = "container", [FIELD_POD_UID] = "pod_uid", [FIELD_CGROUP] = "cgroup", [FIELD_PYTHON] = "python",
    [FIELD_PID] = "pid",       [FIELD_TID] = "tid",             [FIELD_THREAD] = "thread", [FIELD_EVENT] = "event",
};

static bool is_word(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '_' && !(isascii(text[i]) && isalnum((unsigned char)text[i])))
            return false;
    }
    return len && !isdigit((unsigned char)*text);
}

struct error *label_check_name(const char *origin, const char *name, size_t len)
{
    if (!is_word(name, len))
        return error_create(ERROR_USAGE, "%s: '%.*s' cannot be the name of a label: letters, digits and _ make one, with no digit first",
                            origin, (int)len, name);
    if (len > PROFILE_LABEL_NAME_MAX)
        return error_create(ERROR_USAGE, "%s: the name of a label has %d characters at most", origin, PROFILE_LABEL_NAME_MAX);
    if (len >= 2 && !memcmp(name, "__", 2))
        return error_create(ERROR_USAGE, "%s: %.*s: names that begin with __ are the store's own", origin, (int)len, name);
    return NULL;
}

/* ---- templates ---- */

static struct error *refuse(const struct label_rule *rule, const char *why)
{
    return error_create(ERROR_USAGE, "--label %s: %s", rule->text, why);
}

static struct error *add_field(struct label_rule *rule, const char *text, size_t len, bool is_alternative, bool maps)
{
    struct label_piece piece = {text, len, FIELD_OF_MAP, true, is_alternative};

    for (enum label_field f = 0; f < FIELD_COUNT; f++) {
        if (len == strlen(fields[f]) && !memcmp(text, fields[f], len))
            piece.field = f;
    }
    if (!is_word(text, len))
        return refuse(rule, "a field is a word in braces, such as {comm}; {{ and }} stand for braces");
    if (piece.field == FIELD_OF_MAP && !maps)
        return error_create(ERROR_USAGE, "--label %s: there is no field %.*s, unless a --label-map gives it: fields are %s", rule->text, (int)len,
                            text, label_field_names);
    return VEC_PUSH(&rule->pieces, piece) ? NULL : error_no_memory();
}

/* A field or several: *at is behind the brace, and goes behind the other one. */
static struct error *parse_fields(struct label_rule *rule, const char **at, bool maps)
{
    bool is_alternative = false;

    for (;;) {
        size_t len = strcspn(*at, "|{}");
        TRY(add_field(rule, *at, len, is_alternative, maps));
        *at += len;
        if (**at == '}') {
            ++*at;
            return NULL;
        }
        if (**at != '|')
            return refuse(rule, "a { has no } behind it");
        ++*at;
        is_alternative = true;
    }
}

static struct error *add_text(struct label_rule *rule, const char *text, size_t len)
{
    const struct label_piece piece = {.text = text, .len = len};

    return !len || VEC_PUSH(&rule->pieces, piece) ? NULL : error_no_memory();
}

static struct error *parse_template(struct label_rule *rule, const char *at, bool maps)
{
    while (*at) {
        size_t len = strcspn(at, "{}");
        bool doubled = at[len] && at[len] == at[len + 1];
        TRY(add_text(rule, at, len + doubled)); /* of {{ and }} the first brace */
        at += len + 2 * doubled;
        if (doubled || !*at)
            continue;
        if (*at == '}')
            return refuse(rule, "a } has no { before it; }} stands for a brace");
        at++;
        TRY(parse_fields(rule, &at, maps));
    }
    return NULL;
}

struct error *label_rule_parse(const char *text, bool maps, struct label_rule *out)
{
    char *equals;

    *out = (struct label_rule){.text = strdup(text)};
    if (!out->text)
        return error_no_memory();
    equals = strchr(out->text, '=');
    if (!equals)
        return error_create(ERROR_USAGE, "--label wants NAME=RULE, such as app={comm}, not '%s'", text);
    if (!utf8_is_printable(text, strlen(text)))
        return refuse(out, "it holds characters that cannot be shown");
    TRY(label_check_name("--label", out->text, (size_t)(equals - out->text)));
    if (strlen(equals + 1) > PROFILE_LABEL_VALUE_MAX)
        return error_create(ERROR_USAGE, "--label: a rule has %d bytes at most", PROFILE_LABEL_VALUE_MAX);
    TRY(parse_template(out, equals + 1, maps));
    out->name = out->text;
    *equals = 0; /* messages above show the whole rule */
    return NULL;
}

void label_rule_deinit(struct label_rule *rule)
{
    VEC_DEINIT(&rule->pieces);
    free(rule->text);
}
