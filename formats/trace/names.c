/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up what the trace's numbers stand for: names, meanings and classes, from the
 * tables that define them (losses.def, enums.def, labels.def).
 */
#include <string.h>

#include "formats/trace/trace.h"

/* ---- losses ---- */

struct loss {
    const char *name, *meaning;
    enum loss_class class;
};

static const struct loss losses[LOSS_LIMIT] = {
#define LOSS(number, name, class, meaning) [number] = {#name, meaning, LOSS_CLASS_##class},
#include "formats/trace/losses.def"
#undef LOSS
};

const char *trace_loss_name(uint32_t reason)
{
    return reason < LOSS_LIMIT ? losses[reason].name : NULL;
}

const char *trace_loss_meaning(uint32_t reason)
{
    return reason < LOSS_LIMIT ? losses[reason].meaning : NULL;
}

enum loss_class trace_loss_class(uint32_t reason)
{
    return reason < LOSS_LIMIT ? losses[reason].class : LOSS_CLASS_unknown;
}

const char *trace_loss_class_name(enum loss_class class)
{
#define CLASS(name) [LOSS_CLASS_##name] = #name
    static const char *const names[] = {CLASS(unknown), CLASS(complete), CLASS(sample), CLASS(tick), CLASS(expected),
                                        CLASS(outdated), CLASS(no_python), CLASS(python), CLASS(native), CLASS(pending),
                                        CLASS(kernel), CLASS(join), CLASS(part), CLASS(retired)};
#undef CLASS

    return names[class];
}

/* ---- enumerations ---- */

struct value {
    uint32_t number;
    const char *meaning; /* NULL ends the list */
};

#define V(prefix, name, number, meaning) {number, meaning},
#define ENUM(name, ...) static const struct value name##_values[] = {__VA_ARGS__ {0, NULL}};
#include "formats/trace/enums.def"
#undef ENUM
#undef V

static const struct value *const enumerations[TRACE_ENUM_COUNT] = {
#define ENUM(name, ...) [TRACE_ENUM_##name] = name##_values,
#include "formats/trace/enums.def"
#undef ENUM
};

const char *trace_value_meaning(enum trace_enumeration enumeration, uint32_t value)
{
    for (const struct value *v = enumerations[enumeration]; v->meaning; v++) {
        if (v->number == value)
            return v->meaning;
    }
    return NULL;
}

/* ---- labels ---- */

enum { HIDDEN = false, SHOWN = true };

static const struct {
    const char *key;
    bool shown;
} labels[TRACE_LABEL_COUNT] = {
#define LABEL(name, key, shown, meaning) [TRACE_LABEL_##name] = {key, shown},
#include "formats/trace/labels.def"
#undef LABEL
};

const char *trace_label_key(enum trace_label label)
{
    return labels[label].key;
}

bool trace_label_is_shown(const char *key)
{
    for (uint32_t i = 0; i < TRACE_LABEL_COUNT; i++) {
        if (!strcmp(labels[i].key, key))
            return labels[i].shown;
    }
    return false;
}
