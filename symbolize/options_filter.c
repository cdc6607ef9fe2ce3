/* SPDX-License-Identifier: Apache-2.0 */
/* Setters of the options that choose samples or change stacks, see options.h. */
#include "symbolize/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *member(const struct option_row *row, void *target)
{
    return (char *)target + row->offset;
}

static struct error *note(const struct option_row *row, const char *argument, void *target)
{
    struct options *o = target;
    const struct given_option option = {row->name, row->argument ? argument : NULL};

    return VEC_PUSH(&o->given, option) ? NULL : error_no_memory();
}

struct error *filter_set_true(const struct option_row *row, const char *argument, void *target)
{
    TRY(note(row, argument, target));
    return option_set_true(row, argument, target);
}

struct error *filter_add_numbers(const struct option_row *row, const char *argument, void *target)
{
    TRY(note(row, argument, target));
    return option_add_numbers(row, argument, target);
}

static bool read_number(const char **at, uint32_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = **at >= '0' && **at <= '9' ? strtoull(*at, &end, 10) : UINT64_MAX;
    if (errno || value > UINT32_MAX)
        return false;
    *at = end;
    *out = (uint32_t)value;
    return true;
}

struct error *filter_add_ranges(const struct option_row *row, const char *argument, void *target)
{
    struct number_ranges *list = member(row, target);

    TRY(note(row, argument, target));
    for (const char *at = argument;; at++) {
        struct number_range range;
        if (!read_number(&at, &range.first))
            return option_refuse(row, argument);
        range.last = range.first;
        if (*at == '-' && (at++, !read_number(&at, &range.last)))
            return option_refuse(row, argument);
        if (range.last < range.first || (*at && *at != ','))
            return option_refuse(row, argument);
        if (!VEC_PUSH(list, range))
            return error_no_memory();
        if (!*at)
            return NULL;
    }
}

struct error *filter_add_text(const struct option_row *row, const char *argument, void *target)
{
    TRY(note(row, argument, target));
    if (!*argument)
        return option_refuse(row, argument);
    return option_add_text(row, argument, target);
}

static struct error *add_pattern(const struct option_row *row, const char *argument, void *target,
                                 struct error *(*create)(const char *, const char *, struct pattern **))
{
    struct patterns *list = member(row, target);
    struct pattern *pattern;
    char who[32];

    TRY(note(row, argument, target));
    snprintf(who, sizeof who, "--%s", row->name);
    TRY(create(who, argument, &pattern));
    if (VEC_PUSH(list, pattern))
        return NULL;
    pattern_destroy(pattern);
    return error_no_memory();
}

struct error *filter_add_pattern(const struct option_row *row, const char *argument, void *target)
{
    return add_pattern(row, argument, target, pattern_create);
}

struct error *filter_add_name_pattern(const struct option_row *row, const char *argument, void *target)
{
    return add_pattern(row, argument, target, pattern_create_for_names);
}

struct error *filter_add_frame_pattern(const struct option_row *row, const char *argument, void *target)
{
    return add_pattern(row, argument, target, pattern_create_for_frames);
}

struct error *filter_set_time(const struct option_row *row, const char *argument, void *target)
{
    struct options *o = target;

    TRY(note(row, argument, target));
    return time_range_parse(argument, &o->filters.time) ? NULL : option_refuse(row, argument);
}

struct error *filter_add_layers(const struct option_row *row, const char *argument, void *target)
{
    static const char *const names[] = {[EMIT_PYTHON] = "python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel"};
    struct options *o = target;

    TRY(note(row, argument, target));
    for (const char *at = argument;; at++) {
        size_t len = strcspn(at, ","), i = 0;
        while (i < sizeof names / sizeof *names && (strlen(names[i]) != len || memcmp(names[i], at, len) != 0))
            i++;
        if (i == sizeof names / sizeof *names)
            return option_refuse(row, argument);
        o->stacks.layers |= 1u << i;
        at += len;
        if (!*at)
            return NULL;
    }
}

struct error *filter_set_share(const struct option_row *row, const char *argument, void *target)
{
    char *end;
    double percent = strtod(argument, &end);

    TRY(note(row, argument, target));
    if (end == argument || end[*end == '%'] || !(percent >= 0 && percent <= 100))
        return option_refuse(row, argument);
    *(double *)member(row, target) = percent / 100;
    return NULL;
}

struct error *filter_set_group(const struct option_row *row, const char *argument, void *target)
{
    static const char *const names[] = {[STACK_GROUP_MODULE] = "module",
                                        [STACK_GROUP_PACKAGE] = "package",
                                        [STACK_GROUP_FILE] = "file",
                                        [STACK_GROUP_LAYER] = "layer"};
    struct options *o = target;

    TRY(note(row, argument, target));
    for (unsigned i = STACK_GROUP_MODULE; i <= STACK_GROUP_LAYER; i++) {
        if (!strcmp(names[i], argument)) {
            o->stacks.group = (enum stack_group)i;
            return NULL;
        }
    }
    return option_refuse(row, argument);
}
