/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects told apart by what they were made of, and the frames that refer to them. */
#include "tests/unit/test.h"
#include "tests/unit/scene_fixture.h"

#include "symbolize/stack/fingerprint.h"

static const uint8_t table[] = {0x80, 0x00, 0xd8, 0x04, 0x0b, 0x80, 0x51};

static struct trace_code code_at(int64_t first_line)
{
    return (struct trace_code){.python_version = 0x030c00f0,
                               .first_line = first_line,
                               .co_flags = 3,
                               .code_len_bytes = 40,
                               .line_table_form = 1,
                               .line_table_len = sizeof table,
                               .line_table = {table, sizeof table}};
}

TEST(fingerprint)
{
    const struct trace_code code = code_at(7), moved = code_at(70);
    struct trace_code other = code;
    uint8_t other_table[sizeof table];
    uint64_t fingerprint = fingerprint_of_code(&code);

    assert_true(fingerprint != 0);
    assert_true(fingerprint_of_code(&moved) == fingerprint);
    other.co_flags = 7;
    assert_true(fingerprint_of_code(&other) != fingerprint);
    other = code;
    other.code_len_bytes = 42;
    assert_true(fingerprint_of_code(&other) != fingerprint);
    other = code;
    memcpy(other_table, table, sizeof table);
    other_table[3]++;
    other.line_table.data = other_table;
    assert_true(fingerprint_of_code(&other) != fingerprint);
}

/* The same bytes on every machine: baselines keep them. SHA-1 of 28 00 00 00, 03 00 00 00 and the table. */
TEST(fingerprint_is_fixed)
{
    const struct trace_code code = code_at(1);

    assert_true(fingerprint_of_code(&code) == UINT64_C(0xcdd7772703e03895));
}

TEST(fingerprint_unknown)
{
    struct trace_code cut = code_at(7), unread = code_at(7), no_length = code_at(7);

    cut.line_table_len++;
    assert_true(fingerprint_of_code(&cut) == 0);
    unread.line_table_form = 0;
    assert_true(fingerprint_of_code(&unread) == 0);
    no_length.code_len_bytes = 0;
    assert_true(fingerprint_of_code(&no_length) == 0);
}

static uint32_t frame_of_code(struct scene *s, const struct trace_code *code, const char *name)
{
    struct trace_code named = *code;

    named.id = ++s->codes;
    named.name_form = 1;
    named.name_len = strlen(name);
    named.name = bytes_of_text(name);
    load(s, (struct trace_record){.type = TRACE_code, .code = named});
    LOAD(s, python_frame, .id = ++s->frames, .code = s->codes);
    return s->frames;
}

static uint32_t code_of_sample(struct scene *s, uint32_t frame)
{
    const struct emit_model *m = resolver_model(s->resolver);
    uint32_t id = tuple(s, (struct trace_tuple){.python_stack = stack(s, &frame, 1), .python_end = LOSS_complete});
    uint32_t leaf = sample(s, 1, id, 50).stack;

    return m->frames[m->stacks[leaf].frame].code;
}

/* A function that was edited in place has two codes, and so two frames that look the same; only where they are asked for. */
TEST(frames_have_codes)
{
    const struct trace_code code = code_at(7);
    struct trace_code edited = code;
    const struct resolver_options options = {.fingerprints = true};
    struct scene s;

    edited.code_len_bytes = 50;
    setup(&s, &options);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    const struct emit_model *m = resolver_model(s.resolver);
    uint32_t first = code_of_sample(&s, frame_of_code(&s, &code, "f"));
    uint32_t second = code_of_sample(&s, frame_of_code(&s, &edited, "f"));
    assert_int_equal(m->frame_count, 2);
    assert_true(m->codes[first].fingerprint == fingerprint_of_code(&code));
    assert_int_equal(m->codes[first].first_line, 7);
    assert_int_equal(m->codes[first].table_bytes, sizeof table);
    assert_true(m->codes[second].fingerprint == fingerprint_of_code(&edited));
    assert_int_equal(m->code_count, 3);
    /* What could not be read has no code, and another epoch's has the same. */
    LOAD(&s, python_frame, .id = ++s.frames);
    assert_int_equal(code_of_sample(&s, s.frames), EMIT_NO_CODE);
    begin_epoch(&s, 1);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    assert_int_equal(code_of_sample(&s, frame_of_code(&s, &edited, "f")), second);
    teardown(&s);

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    m = resolver_model(s.resolver);
    assert_int_equal(code_of_sample(&s, frame_of_code(&s, &code, "f")), EMIT_NO_CODE);
    assert_int_equal(code_of_sample(&s, frame_of_code(&s, &edited, "f")), EMIT_NO_CODE);
    assert_int_equal(m->frame_count, 1);
    teardown(&s);
}
