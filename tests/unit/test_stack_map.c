/* SPDX-License-Identifier: Apache-2.0 */
/* From stacks as recorded to stacks as shown: the rules that options ask for, and the stage that applies them. */
#include "tests/unit/scene_fixture.h"

#include "symbolize/stack/stack_map.h"

static uint32_t text(struct model *m, const char *s)
{
    return model_text(m, s, strlen(s));
}

static uint32_t line_of(struct model *m, const char *function, uint32_t line)
{
    struct model_frame f = {.kind = EMIT_PYTHON,
                            .function = text(m, function),
                            .file = text(m, "/a.py"),
                            .line = line,
                            .column = 3,
                            .function_line = line / 10 * 10,
                            .mapping = EMIT_NO_MAPPING};

    return model_frame(m, &f);
}

static uint32_t stack_of(struct model *m, const uint32_t *frames, uint32_t count)
{
    uint32_t stack = EMIT_NO_STACK;

    for (uint32_t i = 0; i < count; i++)
        stack = model_stack(m, stack, frames[i]);
    return stack;
}

/* "function:line:column;…", outermost first. */
static const char *spelled(const struct model *m, uint32_t stack)
{
    static char out[512];
    char before[512] = "";

    for (out[0] = 0; stack != EMIT_NO_STACK; stack = m->stacks.data[stack].parent) {
        const struct emit_frame *f = &m->frames.data[m->stacks.data[stack].frame];
        snprintf(out, sizeof out, "%s:%u:%u%s%.400s", f->function, f->line, f->column, *before ? ";" : "", before);
        strcpy(before, out);
    }
    return out;
}

static const char *shown(struct stack_map *map, uint32_t stack, uint32_t label_set)
{
    uint32_t number;
    bool kept;

    OK(stack_map_find(map, stack, label_set, 1, &number, &kept));
    return kept ? spelled(map->model, number) : "dropped";
}

TEST(options)
{
    const struct stack_map_options none = {0}, function = {.by_function = true}, lineless = {.no_lines = true},
                                   both = {.by_function = true, .no_lines = true};
    struct model m = {0};
    struct stack_map map;
    uint32_t number, other;
    bool kept;

    assert_true(model_init(&m, NULL));
    uint32_t frames[] = {line_of(&m, "f", 12), line_of(&m, "g", 25)}, late[] = {frames[0], line_of(&m, "g", 27)};
    uint32_t stack = stack_of(&m, frames, 2), second = stack_of(&m, late, 2);
    OK(stack_map_init(&map, &m, &none, stack_rules));
    OK(stack_map_find(&map, stack, 0, 1, &number, &kept));
    assert_int_equal(number, stack);
    stack_map_deinit(&map);

    OK(stack_map_init(&map, &m, &function, stack_rules));
    assert_string_equal(shown(&map, stack, 0), "f:10:0;g:20:0");
    assert_string_equal(shown(&map, stack, 0), "f:10:0;g:20:0");
    OK(stack_map_find(&map, stack, 0, 1, &number, &kept));
    OK(stack_map_find(&map, second, 0, 1, &other, &kept));
    assert_int_equal(number, other); /* lines of one function fall together */
    assert_string_equal(shown(&map, EMIT_NO_STACK, 0), "");
    stack_map_deinit(&map);

    for (int i = 0; i < 2; i++) {
        OK(stack_map_init(&map, &m, i ? &both : &lineless, stack_rules));
        assert_string_equal(shown(&map, second, 0), "f:0:0;g:0:0");
        stack_map_deinit(&map);
    }
    model_deinit(&m);
}

TEST(labels)
{
    const struct stack_map_options all = {.labels = true, .by_function = true}, interpreters = {.interpreters = true};
    struct model m = {0};
    struct stack_map map;

    assert_true(model_init(&m, NULL));
    uint32_t frame = line_of(&m, "f", 12), stack = stack_of(&m, &frame, 1);
    const struct model_label labels[] = {{text(&m, trace_label_key(TRACE_LABEL_interpreter)), text(&m, "1")},
                                         {text(&m, trace_label_key(TRACE_LABEL_task)), text(&m, "fetch")}};
    uint32_t pair = model_label_set(&m, labels, 2), task = model_label_set(&m, labels + 1, 1);
    assert_int_equal(pair, 1);
    assert_int_equal(model_label_set(&m, labels, 2), pair);
    assert_int_equal(m.view.label_set_count, 3);
    assert_int_equal(m.view.label_sets[0].count, 0);
    assert_string_equal(m.view.label_sets[task].labels[0].value, "fetch");
    assert_string_equal(m.view.label_sets[pair].interpreter, "1");
    assert_true(!m.view.label_sets[pair].system_call && !m.view.label_sets[task].interpreter);
    const struct model_label waits[] = {{text(&m, trace_label_key(TRACE_LABEL_wait)), text(&m, "GIL")},
                                        {text(&m, trace_label_key(TRACE_LABEL_system_call)), text(&m, "futex")},
                                        {text(&m, trace_label_key(TRACE_LABEL_wait)), text(&m, "a newer one")}};
    const struct emit_label_set *gil = &m.view.label_sets[model_label_set(&m, waits, 2)];
    assert_string_equal(gil->system_call, "futex");
    assert_int_equal(gil->wait, EMIT_WAIT_GIL);
    assert_int_equal(m.view.label_sets[model_label_set(&m, waits + 2, 1)].wait, EMIT_WAIT_OTHER);

    OK(stack_map_init(&map, &m, &all, stack_rules));
    for (int again = 0; again < 2; again++) {
        assert_string_equal(shown(&map, stack, 0), "f:10:0");
        assert_string_equal(shown(&map, stack, pair), "[interpreter 1]:0:0;[asyncio task fetch]:0:0;f:10:0");
        assert_string_equal(shown(&map, stack, task), "[asyncio task fetch]:0:0;f:10:0");
        assert_string_equal(shown(&map, EMIT_NO_STACK, task), "[asyncio task fetch]:0:0");
    }
    stack_map_deinit(&map);
    OK(stack_map_init(&map, &m, &interpreters, stack_rules));
    assert_string_equal(shown(&map, stack, pair), "[interpreter 1]:0:0;f:12:3");
    assert_string_equal(shown(&map, stack, task), "f:12:3");
    stack_map_deinit(&map);
    model_deinit(&m);
}

/* ---- rules that leave out, in order ---- */

static uint32_t times_asked;

static bool always(const struct stack_map_options *o)
{
    (void)o;
    return true;
}

static bool is_called(const struct model *m, uint32_t frame, const char *function)
{
    return !strcmp(m->frames.data[frame].function, function);
}

static struct error *hide_helpers(struct stack_map *map, uint32_t frame, uint32_t *out)
{
    times_asked++;
    *out = is_called(map->model, frame, "helper") ? STACK_MAP_NO_FRAME : frame;
    return NULL;
}

/* Begins at "work"; drops what never works. */
static struct error *root_at_work(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept)
{
    (void)label_set;
    times_asked++;
    for (size_t i = 0; i < list->count; i++) {
        if (is_called(map->model, list->data[i], "work")) {
            list->count -= i;
            memmove(list->data, list->data + i, list->count * sizeof *list->data);
            return NULL;
        }
    }
    *kept = false;
    return NULL;
}

TEST(hidden_and_dropped)
{
    static const struct stack_rule rules[] = {{.option = "--hide", .is_enabled = always, .frame = hide_helpers},
                                              {.option = "--root", .is_enabled = always, .stack = root_at_work},
                                              {0}};
    const struct stack_map_options none = {0};
    struct model m = {0};
    struct stack_map map;

    assert_true(model_init(&m, NULL));
    uint32_t helper = line_of(&m, "helper", 1), mainly = line_of(&m, "main", 2), work = line_of(&m, "work", 3);
    uint32_t chain[] = {mainly, helper, work, helper}, idle[] = {mainly, helper, helper};
    uint32_t working = stack_of(&m, chain, 4), idling = stack_of(&m, idle, 3);
    OK(stack_map_init(&map, &m, &none, rules));
    for (int again = 0; again < 3; again++) {
        assert_string_equal(shown(&map, working, again), "work:3:3");
        assert_string_equal(shown(&map, idling, again), "dropped");
        assert_string_equal(shown(&map, EMIT_NO_STACK, again), "dropped");
    }
    /* Three frames and, whatever the labels, three stacks: each was asked for once. */
    assert_int_equal(times_asked, 6);
    stack_map_deinit(&map);
    model_deinit(&m);
}
