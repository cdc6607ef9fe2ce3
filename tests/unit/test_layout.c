/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts against measured ones (layout_expected.def), and debug offsets that lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/cpython/layout.h"

#define KNOWN "2.7 3.3 3.4 3.5 3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13"
#define TABLE_BYTES 584
#define COOKIE 0x7970677562656478ull /* "xdebugpy" */

/* The debug offsets of 3.13.0, read out of a live process; the version stands at [1]. */
static const uint64_t table_3_13[TABLE_BYTES / 8] = {
    COOKIE, 0x030d00f0, 0, 283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0, 7768, 7760,
    304, 0, 8, 16, 72, 152, 160, 232, 32, 80, 8, 0, 56, 72, 70, 208, 112, 120, 128, 136, 68, 52, 96, 104, 200, 16, 8,
    416, 24, 88, 168, 32, 24, 16, 40, 24, 16, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40, 240, 200,
};

static void make_table(uint32_t version_hex, uint64_t table[TABLE_BYTES / 8])
{
    memcpy(table, table_3_13, TABLE_BYTES);
    table[1] = version_hex;
}

static void find(uint32_t version_hex, struct py_layout *out)
{
    uint64_t table[TABLE_BYTES / 8];
    bool has_table = version_hex >= 0x030d0000;

    make_table(version_hex, table);
    struct error *err = py_layout_find(version_hex, false, has_table ? table : NULL, has_table ? sizeof table : 0, out);
    if (err)
        fail_msg("%s", error_text(err));
}

static void assert_refused(uint32_t version_hex, const void *table, uint32_t table_len, const char *text)
{
    struct py_layout layout;
    struct error *err = py_layout_find(version_hex, false, table, table_len, &layout);

    assert_non_null(err);
    assert_int_equal(err->code, ERROR_VERSION);
    assert_string_equal(error_text(err), text);
    error_destroy(err);
}

static void test_measured_layouts(void **state)
{
    struct py_layout l;

    (void)state;
#define IS(field, value)                                                     \
    if (l.field != (value))                                                  \
        fail_msg("%s: " #field " is %u, not %u", text, l.field, (unsigned)(value));
#define EXPECTED(version_hex, name, ...) \
    {                                    \
        const char *text = name;         \
        find(version_hex, &l);           \
        __VA_ARGS__                      \
        assert_int_equal(l.version, version_hex); \
    }
#include "tests/unit/layout_expected.def"
}

/* One read takes in every field that the walk looks at, and no more than the structure has. */
static void test_lengths(void **state)
{
    static const struct {
        uint32_t version;
        uint16_t frame, code;
        uint8_t kind;
    } expected[] = {{0x020712f0, 128, 112, PY_FRAMES_OBJECT}, {0x030605f0, 128, 120, PY_FRAMES_OBJECT},
                    {0x030710f0, 112, 120, PY_FRAMES_OBJECT}, {0x030912f0, 112, 128, PY_FRAMES_OBJECT},
                    {0x030a0df0, 104, 128, PY_FRAMES_OBJECT}, {0x030b07f0, 72, 176, PY_FRAMES_ENTRY}, {0x030c01f0, 72, 184, PY_FRAMES_SHIM},
                    {0x030d00f0, 72, 192, PY_FRAMES_SHIM}};
    struct py_layout l;

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        find(expected[i].version, &l);
        assert_int_equal(l.frame_len_bytes, expected[i].frame);
        assert_int_equal(l.code_len_bytes, expected[i].code);
        assert_int_equal(l.frame_kind, expected[i].kind);
        if (expected[i].kind == PY_FRAMES_OBJECT) {
            assert_true(l.code_code && l.code_code + 8 <= l.code_len_bytes);
            assert_true(l.frame_instr + 4 <= l.frame_len_bytes);
            assert_int_equal(l.instr_unit_bytes, expected[i].version >= 0x030a0000 ? 2 : 1);
            continue;
        }
        assert_true(l.code_first_traceable + 4 <= l.code_len_bytes);
        assert_true(l.code_len_bytes <= l.code_bytecode);
        assert_true(l.frame_owner < l.frame_len_bytes);
    }
}

/* The thread state's place in _PyRuntime moved within 3.7. */
static void test_patch_releases(void **state)
{
    struct py_layout l;

    (void)state;
    find(0x030703f0, &l);
    assert_int_equal(l.runtime_tstate_current, 1392);
    assert_int_equal(l.runtime_tss_key, 1420);
    find(0x030704f0, &l);
    assert_int_equal(l.runtime_tstate_current, 1480);
    assert_int_equal(l.runtime_tss_key, 1508);
}

static void test_flavours(void **state)
{
    uint64_t table[TABLE_BYTES / 8];
    struct py_layout l;

    (void)state;
    assert_null(py_layout_find(0x030b07f0, true, NULL, 0, &l));
    assert_int_equal(l.debug_build, 1);
    make_table(0x030d05f0, table);
    table[2] = 1;
    assert_refused(0x030d05f0, table, sizeof table,
                   "CPython 3.13.5 free-threaded is not supported (known: " KNOWN ")");
}

static void test_unknown_versions(void **state)
{
    (void)state;
    assert_refused(0x030e02f0, NULL, 0, "CPython 3.14.2 is not supported (known: " KNOWN ")");
    assert_refused(0x020609f0, NULL, 0, "CPython 2.6.9 is not supported (known: " KNOWN ")");
    assert_refused(0x030206f0, NULL, 0, "CPython 3.2.6 is not supported (known: " KNOWN ")");
    assert_refused(0x040000f0, NULL, 0, "CPython 4.0.0 is not supported (known: " KNOWN ")");
    assert_refused(0x030c00c2, NULL, 0, "CPython 3.12.0rc2 is a pre-release and not supported (known: " KNOWN ")");
    assert_refused(0, NULL, 0, "CPython 0.0.0?0 is not supported (known: " KNOWN ")");
}

static void test_debug_offsets_refused(void **state)
{
    uint64_t table[TABLE_BYTES / 8];
    const uint32_t v = 0x030d05f0;

    (void)state;
    make_table(v, table);
    assert_refused(v, NULL, 0, "CPython 3.13.5: _PyRuntime does not begin with the debug offsets");
    assert_refused(v, table, 16, "CPython 3.13.5: _PyRuntime does not begin with the debug offsets");
    assert_refused(v, table, 576, "CPython 3.13.5: its debug offsets end at byte 576 of 584");
    table[0]++;
    assert_refused(v, table, sizeof table, "CPython 3.13.5: _PyRuntime does not begin with the debug offsets");
    make_table(0x030d06f0, table);
    assert_refused(v, table, sizeof table, "CPython 3.13.5: its debug offsets are of version 0x30d06f0, flavour 0");
    make_table(v, table);
    table[2] = 7;
    assert_refused(v, table, sizeof table, "CPython 3.13.5: its debug offsets are of version 0x30d05f0, flavour 7");
    make_table(v, table);
    table[184 / 8] = 304; /* current_frame behind the end of the thread state */
    assert_refused(v, table, sizeof table, "CPython 3.13.5: debug offset 304 at byte 184 makes no sense");
    table[184 / 8] = 73;
    assert_refused(v, table, sizeof table, "CPython 3.13.5: debug offset 73 at byte 184 makes no sense");
    table[184 / 8] = UINT64_MAX - 7;
    assert_refused(v, table, sizeof table,
                   "CPython 3.13.5: debug offset 18446744073709551608 at byte 184 makes no sense");
    make_table(v, table);
    table[344 / 8] = 192; /* co_code_adaptive: then nobody knows where _co_firsttraceable is */
    assert_refused(v, table, sizeof table,
                   "CPython 3.13.5: debug offset at byte 344 is 192, not 200 as in every 3.13 known");
}

/* What the interpreter says of itself goes before the row. */
static void test_debug_offsets_taken(void **state)
{
    uint64_t table[TABLE_BYTES / 8];
    struct py_layout l;

    (void)state;
    make_table(0x030d05f0, table);
    table[184 / 8] = 80;
    table[264 / 8] = 71;
    assert_null(py_layout_find(0x030d05f0, false, table, sizeof table, &l));
    assert_int_equal(l.tstate_frame, 80);
    assert_int_equal(l.frame_owner, 71);
    assert_int_equal(l.runtime_tss_key, 2164);
    table[40 / 8] = 640; /* _PyRuntime is not the one we know: the key may be anywhere */
    assert_null(py_layout_find(0x030d05f0, false, table, sizeof table, &l));
    assert_int_equal(l.runtime_interpreters_head, 640);
    assert_int_equal(l.runtime_tss_key, PY_NONE);
}

static void test_random_debug_offsets(void **state)
{
    struct py_layout l;
    uint64_t table[TABLE_BYTES / 8];

    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        make_table(0x030d05f0, table);
        for (int i = 0; i < 3; i++)
            table[3 + (unsigned)rand() % 70] = (uint64_t)rand() << (rand() % 40) >> (rand() % 60);
        struct error *err = py_layout_find(0x030d05f0, false, table, sizeof table, &l);
        assert_true(err || (l.frame_len_bytes && l.code_len_bytes == 192));
        error_destroy(err);
    }
}

static void test_version_text(void **state)
{
    char buf[32];

    (void)state;
    assert_string_equal(py_version_text(0x030b07f0, buf), "3.11.7");
    assert_string_equal(py_version_text(0x030d00c2, buf), "3.13.0rc2");
    assert_string_equal(py_version_text(0x030f00a1, buf), "3.15.0a1");
    assert_string_equal(py_version_text(0xffffffff, buf), "255.255.255");
    assert_string_equal(py_version_text(0xffffff9f, buf), "255.255.255?15");
    assert_string_equal(py_versions_known(), KNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_layouts),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_patch_releases),
        cmocka_unit_test(test_flavours),
        cmocka_unit_test(test_unknown_versions),
        cmocka_unit_test(test_debug_offsets_refused),
        cmocka_unit_test(test_debug_offsets_taken),
        cmocka_unit_test(test_random_debug_offsets),
        cmocka_unit_test(test_version_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
