/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pycap keeps of code objects: every field of the CODE record, found by walking its
 * descriptor, so that one which is added to records.def is tested by being there.
 */
#include "tests/unit/test.h"

#include "capture/trace/codes.h"
#include "tests/unit/trace_fixture.h"

enum { RECORDS = 50 };

TEST(all_fields_come_back)
{
    const struct trace_record_type *type = trace_record_type(TRACE_code);
    static struct trace_code records[RECORDS];
    struct generator g = {.state = 88172645463325252u};
    struct trace_code back;
    struct codes *c;
    uint32_t index;

    OK(codes_create(&c));
    for (uint32_t i = 0; i < RECORDS; i++) {
        generate(&g, type, &records[i]);
        OK(codes_keep(c, &records[i], &index));
        assert_int_equal(index, i);
    }
    for (uint32_t i = 0; i < RECORDS; i++) {
        codes_record(c, i, &back);
        assert_same(type, &back, &records[i]);
        OK(codes_keep(c, &records[i], &index)); /* once */
        assert_int_equal(index, i);
    }
    uint64_t bytes = codes_bytes(c);
    assert_true(bytes > 0);
    codes_clear(c);
    assert_int_equal(codes_bytes(c), 0);
    OK(codes_keep(c, &records[RECORDS - 1], &index));
    assert_int_equal(index, 0);
    codes_destroy(c);
    arena_deinit(&g.arena);
}

/* Two records that differ in one field alone are two, whichever field it is. */
TEST(every_field_counts)
{
    const struct trace_record_type *type = trace_record_type(TRACE_code);
    struct trace_code plain = {.name = {(const uint8_t *)"f", 1}};
    struct codes *c;
    uint32_t first, index, others = 0;

    OK(codes_create(&c));
    OK(codes_keep(c, &plain, &first));
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        struct trace_code other = plain;
        void *at = (char *)&other + f->struct_offset;
        switch (f->type) {
        case TRACE_F_DEF: /* the id is the epoch's, not the code's */
            *(uint32_t *)at = 7;
            OK(codes_keep(c, &other, &index));
            assert_int_equal(index, first);
            continue;
        case TRACE_F_U32:
            *(uint32_t *)at += 1;
            break;
        case TRACE_F_U64:
        case TRACE_F_S64:
            *(uint64_t *)at += 1;
            break;
        case TRACE_F_BYTES:
            *(struct trace_bytes *)at = (struct trace_bytes){(const uint8_t *)"other", 5};
            break;
        default:
            fail_msg("code.%s refers to something: contents alone are no key any more", f->name);
        }
        OK(codes_keep(c, &other, &index));
        assert_int_equal(index, ++others);
    }
    assert_int_equal(others, type->field_count - 1);
    codes_destroy(c);
}

TEST(too_large)
{
    static const uint8_t byte;
    struct trace_code large = {.line_table = {&byte, TRACE_BLOCK_LIMIT_BYTES + 1}};
    struct codes *c;
    uint32_t index;

    OK(codes_create(&c));
    struct error *err = codes_keep(c, &large, &index);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_LIMIT);
    assert_string_equal(error_text(err), "a code object cannot be recorded: code.line_table: 16777217 bytes are more than "
                                         "a block may hold");
    error_destroy(err);
    codes_destroy(c);
}
