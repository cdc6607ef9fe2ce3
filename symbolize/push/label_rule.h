/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule of --label, NAME=TEMPLATE (series.h), as it is applied: pieces of text, and fields of which the first that is known
 * counts. And what a label may be called.
 */
#ifndef SYMBOLIZE_PUSH_LABEL_RULE_H
#define SYMBOLIZE_PUSH_LABEL_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

enum label_field {
    FIELD_HOST,
    FIELD_PROGRAM,
    FIELD_COMM,
    FIELD_UNIT,
    FIELD_CONTAINER,
    FIELD_POD_UID,
    FIELD_CGROUP,
    FIELD_PYTHON,
    FIELD_PID,
    FIELD_TID,
    FIELD_THREAD,
    FIELD_EVENT,
    FIELD_COUNT,
    FIELD_OF_MAP = FIELD_COUNT, /* by the name that the label map gives */
};

struct label_piece {
    const char *text;       /* as it is; of FIELD_OF_MAP the field's name */
    size_t len;
    enum label_field field; /* of a field */
    bool is_field;
    bool is_alternative;    /* this field counts where the one before it is not known */
};

struct label_rule {
    char *text;       /* the rule; pieces point into it */
    const char *name; /* of the label */
    VEC(struct label_piece) pieces; /* none: the label is left out */
};

/*
 * Parses a rule. `maps`: the label map may give other fields. ERROR_USAGE says what is wrong. The caller deinits *out, also
 * after an error.
 */
struct error *label_rule_parse(const char *text, bool maps, struct label_rule *out);
void label_rule_deinit(struct label_rule *rule);

/* May a label be called so? ERROR_USAGE says why not, and begins with `origin`, such as "--label" or "names.txt:3". */
struct error *label_check_name(const char *origin, const char *name, size_t len);
/* The names of the fields, for messages: "host, program, ...". */
extern const char label_field_names[];

#endif
