/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/stack_nothing.h"

#include <ctype.h>
#include <string.h>

#include "symbolize/stack/inventory.h"

enum {
    NAME_COMPARED_BYTES = 128,
    PATTERN_COMPARED_BYTES = 64,
    NAMES_COMPARED = 20000,
    RESEMBLANCE_MIN = 3, /* letters in a row */
};

/* Weights by number of a text: those of functions, by themselves and with all that they called. */
struct weighed {
    VEC(uint64_t) self, total;
};

static void weighed_deinit(struct weighed *w)
{
    VEC_DEINIT(&w->self);
    VEC_DEINIT(&w->total);
}

static void add(uint64_t *weights, const struct model *m, uint32_t stack, uint64_t weight)
{
    weights[model_frame_get(m, m->stacks.data[stack].frame).function] += weight;
}

/* A stack has a higher number than its callers', so that one walk downwards adds it to all of them. */
static bool weigh_functions(const struct stack_map *map, struct weighed *out)
{
    const struct model *m = map->model;
    VEC(uint64_t) stacks = {0};
    bool ok = VEC_EXTEND_ZERO(&stacks, map->dropped.count) && VEC_EXTEND_ZERO(&out->self, m->texts.count) &&
              VEC_EXTEND_ZERO(&out->total, m->texts.count);

    for (size_t i = map->dropped.count; ok && i--;) {
        uint32_t stack = (uint32_t)i, parent = m->stacks.data[stack].parent;
        add(out->self.data, m, stack, map->dropped.data[stack]);
        stacks.data[stack] += map->dropped.data[stack];
        if (!stacks.data[stack])
            continue;
        add(out->total.data, m, stack, stacks.data[stack]);
        if (parent != EMIT_NO_STACK)
            stacks.data[parent] += stacks.data[stack];
    }
    VEC_DEINIT(&stacks);
    return ok;
}

/* How many letters in a row a name has in common with a text, in whichever case. */
static unsigned resemblance(const char *text, const char *name)
{
    size_t text_len = strnlen(text, PATTERN_COMPARED_BYTES), name_len = strnlen(name, NAME_COMPARED_BYTES);
    unsigned rows[2][NAME_COMPARED_BYTES + 1] = {0}, best = 0;

    for (size_t i = 0; i < text_len; i++) {
        unsigned *row = rows[i % 2], *before = rows[(i + 1) % 2];
        for (size_t k = 0; k < name_len; k++) {
            bool same = tolower((unsigned char)text[i]) == tolower((unsigned char)name[k]);
            row[k + 1] = same ? before[k] + 1 : 0;
            best = row[k + 1] > best ? row[k + 1] : best;
        }
    }
    return best;
}

/* Fills `names` with the functions that resemble the pattern most. */
static void list_similar(const struct model *m, const struct weighed *w, const char *pattern, struct inventory *names)
{
    unsigned best = RESEMBLANCE_MIN;

    for (int round = 0; round < 2; round++) {
        size_t compared = 0;
        for (uint32_t text = 1; text < w->total.count && compared < NAMES_COMPARED; text++) {
            if (!w->total.data[text])
                continue;
            compared++;
            const char *name = model_text_get(m, text);
            unsigned alike = resemblance(pattern, name);
            if (round && alike + 1 >= best && alike >= RESEMBLANCE_MIN)
                inventory_add(names, inventory_value(names, name), w->total.data[text], false);
            best = alike > best ? alike : best;
        }
    }
}

static void list_heaviest(const struct model *m, const struct weighed *w, struct inventory *names)
{
    for (uint32_t text = 1; text < w->self.count; text++) {
        if (w->self.data[text])
            inventory_add(names, inventory_value(names, model_text_get(m, text)), w->self.data[text], false);
    }
}

static bool put_functions(const struct stack_map *map, const char *pattern, struct buf *out)
{
    struct weighed w = {0};
    struct inventory names = {0};
    struct buf list = {0};
    bool ok = weigh_functions(map, &w);

    if (ok)
        list_similar(map->model, &w, pattern, &names);
    if (ok && inventory_put(&names, false, &list)) {
        buf_printf(out, "; functions with similar names: %s", buf_cstr(&list));
    } else if (ok) {
        list_heaviest(map->model, &w, &names);
        if (inventory_put(&names, false, &list))
            buf_printf(out, "; functions with the most time: %s", buf_cstr(&list));
    }
    ok &= !list.bad;
    buf_deinit(&list);
    inventory_deinit(&names);
    weighed_deinit(&w);
    return ok;
}

/* ---- no stack is left ---- */

/* The patterns of a rule; NULL: it has none. */
static const struct frame_matches *matches_of(const struct stack_map *map, const struct stack_rule *rule)
{
    for (int i = 0; i < STACK_PATTERN_COUNT; i++) {
        if (!strcmp(rule->option + 2, stack_pattern_names[i]))
            return &map->matches[i];
    }
    return NULL;
}

/* Whether any frame matches, also those of stacks that other rules dropped before the pattern was tried on them. */
static bool matches_somewhere(const struct model *m, const struct pattern *p)
{
    enum pattern_part part = pattern_part(p);
    bool any = part == PATTERN_ANY_PART;

    for (size_t i = 0; i < m->frames.count; i++) {
        const struct emit_frame *f = &m->frames.data[i];
        if (!limits_work(m->limits, 1000))
            return true;
        if (((any || part == PATTERN_FUNCTION) && pattern_finds(p, f->function)) ||
            ((any || part == PATTERN_FILE) && pattern_finds(p, f->file)) ||
            ((any || part == PATTERN_MODULE) && f->kind != EMIT_PYTHON && pattern_finds(p, f->module)) ||
            (part == PATTERN_LINE && frame_match_line(p, f->kind, f->line)))
            return true;
    }
    return false;
}

/* A pattern that is to blame by itself: the first one that matches no frame at all. */
static const struct frame_match *unmatched(const struct model *m, const struct frame_matches *matches)
{
    for (size_t i = 0; i < matches->count; i++) {
        if (!matches->data[i].found && !matches_somewhere(m, matches->data[i].pattern))
            return &matches->data[i];
    }
    return NULL;
}

static void put_option(const struct stack_map *map, const struct stack_rule *rule, struct buf *out)
{
    size_t before = out->len_bytes;

    if (map->options->given)
        given_put(map->options->given, rule->option + 2, out);
    if (out->len_bytes == before)
        buf_put_str(out, rule->option);
}

static const char *part_name(const struct pattern *p)
{
    static const char *const names[] = {[PATTERN_ANY_PART] = "function, file or module",
                                        [PATTERN_FUNCTION] = "function",
                                        [PATTERN_FILE] = "file",
                                        [PATTERN_MODULE] = "module",
                                        [PATTERN_LINE] = "line"};

    return names[pattern_part(p)];
}

/* Which rules stacks came through before they were dropped by number `last`. */
static void put_rules_before(const struct stack_map *map, size_t last, struct buf *out)
{
    const char *between = " of those that pass ";

    for (size_t i = 0; i < last; i++) {
        if (!matches_of(map, map->list_rules.data[i].rule))
            continue;
        buf_put_str(out, between);
        put_option(map, map->list_rules.data[i].rule, out);
        between = " and ";
    }
}

static struct error *explain(const struct stack_map *map, size_t last)
{
    const struct stack_rule *rule = map->list_rules.data[last].rule;
    const struct frame_matches *matches = matches_of(map, rule);
    bool leaves_out = matches == &map->matches[STACK_IGNORE] || matches == &map->matches[STACK_HIDE];
    const struct frame_match *culprit = !matches || leaves_out ? NULL : unmatched(map->model, matches);
    const char *pattern = culprit ? pattern_text(culprit->pattern) : "";
    struct buf text = {0};

    if (culprit) {
        buf_printf(&text, "no %s matches '%s' (%s)", part_name(culprit->pattern), pattern, rule->option);
        if (pattern_part(culprit->pattern) != PATTERN_ANY_PART)
            pattern = strchr(pattern, ':') + 1;
    } else {
        buf_put_str(&text, leaves_out ? "nothing is left by " : "no sample passes ");
        put_option(map, rule, &text);
        put_rules_before(map, last, &text);
    }
    bool ok = put_functions(map, pattern, &text);
    struct error *err = !ok || text.bad ? error_no_memory() : error_create(ERROR_NOT_FOUND, "%s", buf_cstr(&text));
    buf_deinit(&text);
    return err;
}

struct error *stack_nothing_left(const struct stack_map *map)
{
    for (size_t i = 0; i < map->list_rules.count; i++) {
        if (map->list_rules.data[i].rule->chooses && !map->list_rules.data[i].kept)
            return explain(map, i);
    }
    return NULL;
}

/* ---- patterns without a match ---- */

bool stack_nothing_matched(const struct stack_map *map, struct buf *out)
{
    size_t before = out->len_bytes;

    for (int i = 0; i < STACK_PATTERN_COUNT; i++) {
        for (size_t k = 0; k < map->matches[i].count; k++) {
            const struct frame_match *match = &map->matches[i].data[k];
            if (match->found)
                continue;
            buf_put_str(out, out->len_bytes == before ? "no frame of these samples matches " : ", ");
            buf_printf(out, "--%s '%s'", stack_pattern_names[i], pattern_text(match->pattern));
        }
    }
    return out->len_bytes != before;
}
