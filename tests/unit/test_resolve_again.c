/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the resolver keeps from epoch to epoch makes no difference: a sample is resolved as by a resolver that sees nothing but
 * its epoch. Definitions are drawn from few values, so that most are equal to earlier ones or differ in one field.
 */
#include "tests/unit/scene_fixture.h"

enum { CODES = 6, FRAMES = 18, STACKS = 8, JOINS = 4, TUPLES = 32, SAME_STACKS = 8, LIST_MAX = 40 };

static uint32_t pick(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((*seed >> 33) % n);
}
#define PICK(n) pick(seed, n)

/* One code, or what differs from it in one field. */
static void draw_code(struct scene *s, uint64_t *seed)
{
    struct trace_code code = {.id = ++s->codes,
                              .python_version = 0x030b02f0,
                              .first_line = 2,
                              .code_len_bytes = 40,
                              .name_form = 1,
                              .name_len = 2,
                              .name = bytes_of_text("ab"),
                              .filename_form = 1,
                              .filename_len = 9,
                              .filename = bytes_of_text("/srv/a.py"),
                              .line_table_form = 1,
                              .line_table_len = 4,
                              .line_table = bytes_of_text("\xd8\x04\xd8\x08")};

    switch (PICK(18)) {
    case 0: code.python_version = 0x030a0df0; break;
    case 1: code.python_flags = TRACE_CODE_DEBUG; break;
    case 2: code.first_line = 1; break;
    case 3: code.co_flags = 1; break;
    case 4: code.code_len_bytes = 4; break;
    case 5: code.name_form = 2; break;
    case 6: code.name_len = 9; break;
    case 7: code.name = bytes_of_text("cd"); break;
    case 8: code.qualname_form = 1; break;
    case 9: code.qualname_form = 1, code.qualname_len = 2, code.qualname = bytes_of_text("ab"); break;
    case 10: code.qualname_form = 1, code.qualname_len = 3, code.qualname = bytes_of_text("ab"); break;
    case 11: code.filename_form = 8; break;
    case 12: code.filename_len = 12; break;
    case 13: code.filename = bytes_of_text("/srv/b.py"); break;
    case 14: code.line_table_form = 0; break;
    case 15: code.line_table_len = 9; break;
    case 16: code.line_table = bytes_of_text("\xd8\x0a\xd8\x08"); break;
    default: break;
    }
    load(s, (struct trace_record){.type = TRACE_code, .code = code});
}

/* Of each frame there is a second one, which differs in its flags alone if it is one of Python. */
static void draw_frames(struct scene *s, uint64_t *seed)
{
    for (int i = 0; i < FRAMES; i++) {
        uint32_t code = PICK(CODES + 1), flags = PICK(2), module = PICK(4), symbol = PICK(3), at = PICK(8);
        for (uint32_t twin = 0; twin < 2; twin++) {
            uint32_t id = ++s->frames;
            if (i % 3 == 0)
                LOAD(s, python_frame, .id = id, .code = code, .offset = 2 * (int64_t)(at % 3) - 2,
                     .flags = flags ^ twin ? TRACE_FRAME_RUN_END : 0);
            else if (i % 3 == 1)
                LOAD(s, native_frame, .id = id, .module = module, .offset = at * 0x100, .flags = flags);
            else
                LOAD(s, kernel_frame, .id = id, .symbol = symbol, .address = 0x1000 + at);
        }
    }
}

/* Of each stack there are several tuples, which differ in what stands beside the frames. */
static void draw_tuples(struct scene *s, uint64_t *seed)
{
    uint64_t list[LIST_MAX];
    uint32_t stacks[STACKS][2];

    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t count = 1 + PICK(5);
        for (uint32_t k = 0; k < count; k++)
            list[k] = 1 + 2 * PICK(FRAMES);
        for (uint32_t twin = 0; twin < 2; twin++) {
            for (uint32_t k = 0; k < count; k++)
                list[k] += twin;
            LOAD(s, stack, .first_id = s->stacks + 1, .frames = {.values = list, .count = count});
            s->stacks += count;
            stacks[i][twin] = s->stacks;
        }
    }
    for (uint32_t i = 1; i <= JOINS; i++) {
        uint32_t count = 1 + PICK(2);
        for (uint32_t k = 0; k < 2 * count; k++)
            list[k] = k % 2 ? PICK(2) * LOSS_join_mismatch : PICK(4);
        LOAD(s, join, .id = i, .kind = i == 1 ? TRACE_JOIN_COUNT : TRACE_JOIN_INDEX, .runs = {.values = list, .count = count});
    }
    for (uint32_t i = 0; i < TUPLES; i++) {
        uint32_t which = i / SAME_STACKS * 3;
        tuple(s, (struct trace_tuple){.kernel_stack = which % 2 ? stacks[which % STACKS][0] : 0,
                                      .native_stack = which % 4 ? stacks[(which + 1) % STACKS][0] : 0,
                                      .python_stack = stacks[(which + 2) % STACKS][PICK(2)],
                                      .join = PICK(JOINS + 1),
                                      .python_end = PICK(3) ? LOSS_complete : PICK(60),
                                      .native_end = PICK(3) ? LOSS_complete : PICK(60)});
    }
}

/* An epoch whose definitions follow from the seed. */
static void draw_epoch(struct scene *s, uint64_t *seed)
{
    static const char *const paths[] = {"/usr/bin/python3.11", "/opt/python/bin/python3.10", "/usr/lib/libc.so.6", "/no/such"};
    uint64_t segments[] = {0, 0, 0x1000, 0x1000, 1}, ranges[2];

    event(s);
    process(s, 1, 100, paths[PICK(2)]);
    process(s, 2, 200, paths[PICK(2)]);
    for (uint32_t i = 1; i <= 3; i++) {
        uint32_t file = PICK(4);
        ranges[0] = (file + 2) * 0x100;
        ranges[1] = ranges[0] + 0x100;
        LOAD(s, module, .id = i, .path = string(s, paths[file]), .kind = TRACE_MODULE_ELF, .segments = {.values = segments, .count = 1},
             .eval_ranges = {.values = ranges, .count = file < 2});
    }
    for (uint32_t i = 1; i <= 2; i++)
        LOAD(s, kernel_symbol, .id = i, .address = 0x1000, .name = string(s, i == 1 ? "do_read" : "do_write"));
    for (int i = 0; i < CODES; i++)
        draw_code(s, seed);
    draw_frames(s, seed);
    draw_tuples(s, seed);
}

/* All that is shown of a sample's stack, innermost first. */
static void put_stack(const struct scene *s, const struct emit_sample *sample, struct buf *out)
{
    const struct emit_model *m = resolver_model(s->resolver);

    buf_clear(out);
    buf_printf(out, "in_interpreter=%d", sample->in_interpreter);
    for (uint32_t stack = sample->stack; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
        const struct emit_frame *f = &m->frames[m->stacks[stack].frame];
        const struct emit_code *code = &m->codes[f->code];
        buf_printf(out, "\n%llx %u %u %d", (unsigned long long)code->fingerprint, code->table_bytes, code->first_line, code->is_qualified);
        buf_printf(out, " %d %s (%s) %s:%u:%u from %u, %llx+%llx %s %d %d", f->kind, f->function, f->module, f->file, f->line,
                   f->column, f->function_line, (unsigned long long)f->address, (unsigned long long)f->symbol_offset,
                   f->builtin ? f->builtin : "", f->inlined, f->return_address);
    }
}

static void add_ends(struct resolver_ends *sum, const struct resolver_ends *ends)
{
    for (size_t i = 0; i < sizeof ends->count / sizeof *ends->count; i++)
        sum->count[i] += ends->count[i];
}

static void add_stats(struct resolver_stats *sum, const struct resolver_stats *stats)
{
    sum->sample_count += stats->sample_count;
    sum->unresolved_count += stats->unresolved_count;
    sum->native_frame_count += stats->native_frame_count;
    sum->native_unnamed_count += stats->native_unnamed_count;
    sum->python_frame_count += stats->python_frame_count;
    sum->python_unnamed_count += stats->python_unnamed_count;
    sum->no_frame_count += stats->no_frame_count;
    for (size_t i = 0; i < MERGE_NO_FRAME_LIMIT; i++)
        sum->no_frame[i] += stats->no_frame[i];
    add_ends(&sum->python, &stats->python);
    add_ends(&sum->native, &stats->native);
    add_ends(&sum->join, &stats->join);
}

/* Adds up samples of modules, by path. */
static uint64_t samples_of(const struct scene *s, const char *path, uint64_t *unresolved)
{
    struct modcache *modules = resolver_modules(s->resolver);
    uint64_t samples = 0;

    for (uint32_t i = 0; i < modcache_count(modules); i++) {
        const struct modcache_entry *m = modcache_get(modules, i);
        if (strcmp(m->path, path))
            continue;
        samples += m->sample_count;
        *unresolved += m->unresolved_count;
    }
    return samples;
}

static void expect_epochs_are_independent(const struct resolver_options *options)
{
    static const char c_library[] = "/usr/lib/libc.so.6";
    struct scene all;
    struct resolver_stats sum = {0};
    struct buf text = {0}, alone_text = {0};
    uint64_t samples = 0, unresolved = 0, all_unresolved = 0;

    setup(&all, options);
    for (uint64_t round = 0; round < 210; round++) {
        struct scene alone;
        uint64_t seed = round % 200, same = seed, order = round;
        if (round)
            begin_epoch(&all, round);
        setup(&alone, options);
        draw_epoch(&all, &seed);
        draw_epoch(&alone, &same);
        for (int i = 0; i < 2 * TUPLES; i++) {
            uint32_t thread = 1 + pick(&order, 2), id = 1 + pick(&order, TUPLES);
            struct emit_sample shown = sample(&all, thread, id, 100), shown_alone = sample(&alone, thread, id, 100);
            put_stack(&all, &shown, &text);
            put_stack(&alone, &shown_alone, &alone_text);
            assert_string_equal(buf_cstr(&text), buf_cstr(&alone_text));
        }
        resolver_end_epoch(alone.resolver);
        add_stats(&sum, resolver_stats(alone.resolver));
        samples += samples_of(&alone, c_library, &unresolved);
        teardown(&alone);
    }
    resolver_end_epoch(all.resolver);
    assert_memory_equal(&sum, resolver_stats(all.resolver), sizeof sum);
    assert_int_equal(samples_of(&all, c_library, &all_unresolved), samples);
    assert_int_equal(all_unresolved, unresolved);
    assert_true(samples > 100 || options->python_only);
    buf_deinit(&text);
    buf_deinit(&alone_text);
    teardown(&all);
}

TEST(epochs_are_independent)
{
    static const struct resolver_options options[] = {
        {.interpreter = MERGE_HIDE_INTERPRETER, .binaries.no_host = true},
        {.interpreter = MERGE_HIDE_CALLS, .binaries.no_host = true},
        {.interpreter = MERGE_SHOW_ALL, .binaries.no_host = true},
        {.interpreter = MERGE_HIDE_INTERPRETER, .python_only = true},
        {.interpreter = MERGE_HIDE_INTERPRETER, .fingerprints = true, .binaries.no_host = true},
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        expect_epochs_are_independent(&options[i]);
}

/* A name of 40,000 characters that ends in the number. */
static const char *long_name(uint32_t number)
{
    static char text[40001];

    memset(text, 'x', sizeof text - 1);
    snprintf(text + sizeof text - 10, 10, "%09u", number);
    return text;
}

/* More than is kept: names are right before and after it begins anew, in the middle of an epoch. */
TEST(more_code_than_is_kept)
{
    struct scene s;

    setup(&s, NULL);
    for (uint32_t number = 0; number < 3; number++) {
        uint32_t last[2] = {0};
        if (number)
            begin_epoch(&s, number);
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        for (uint32_t i = 0; i < 600; i++) {
            uint32_t frame = python(&s, long_name(i * (number + 1)), "/srv/a.py", 1, TRACE_FRAME_RUN_END);
            uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, &frame, 1), .python_end = LOSS_complete});
            struct emit_sample shown = sample(&s, 1, id, 100);
            const struct emit_model *m = resolver_model(s.resolver);
            assert_string_equal(m->frames[m->stacks[shown.stack].frame].function, long_name(i * (number + 1)));
            /* A frame of the epoch that was seen long ago, in a new stack. */
            last[0] = last[0] ? last[0] : frame;
            last[1] = frame;
            id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, last, 2), .python_end = LOSS_complete});
            shown = sample(&s, 1, id, 100);
            m = resolver_model(s.resolver);
            assert_string_equal(m->frames[m->stacks[m->stacks[shown.stack].parent].frame].function, long_name(0));
        }
    }
    teardown(&s);
}

/* A stack of many frames that no other has: `number` says which of two each of the outer ones is. */
static uint32_t deep_tuple(struct scene *s, const uint32_t frames[2], uint32_t number)
{
    uint32_t list[64], first = s->stacks;

    for (uint32_t block = 0; block < 50; block++) {
        for (uint32_t i = 0; i < 64; i++)
            list[i] = frames[block ? i % 2 : number >> (i % 32) & 1];
        uint64_t values[64];
        for (uint32_t i = 0; i < 64; i++)
            values[i] = list[i];
        LOAD(s, stack, .first_id = s->stacks + 1, .parent = block ? s->stacks : 0, .frames = {.values = values, .count = 64});
        s->stacks += 64;
    }
    assert_int_equal(s->stacks - first, 3200);
    return tuple(s, (struct trace_tuple){.python_stack = s->stacks, .python_end = LOSS_complete});
}

TEST(more_stacks_than_are_kept)
{
    struct scene s;

    NOT_SANITIZED();
    setup(&s, NULL);
    for (uint32_t number = 0; number < 2; number++) {
        if (number)
            begin_epoch(&s, number);
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        uint32_t frames[2];
        for (uint32_t i = 0; i < 2; i++)
            frames[i] = python(&s, i ? "one" : "zero", "/srv/a.py", 1, 0);
        for (uint32_t i = 0; i < 1500; i++) {
            struct emit_sample shown = sample(&s, 1, deep_tuple(&s, frames, i), 100);
            const struct emit_model *m = resolver_model(s.resolver);
            uint32_t found = 0, at = shown.stack;
            for (uint32_t k = 3200; k--; at = m->stacks[at].parent) {
                if (k < 32 && !strcmp(m->frames[m->stacks[at].frame].function, "one"))
                    found |= UINT32_C(1) << k;
            }
            assert_int_equal(at, EMIT_NO_STACK);
            assert_int_equal(found, i);
        }
    }
    teardown(&s);
}
