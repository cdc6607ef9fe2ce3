/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts against measured ones (layout_expected.def), and debug offsets that lie. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/python_walk.h"
#include "formats/cpython/layout_find.h"
#include "formats/cpython/version.h"

#include "tests/unit/debug_offsets.h"
#define KNOWN "2.7 3.3 3.4 3.5 3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.14 3.15"

#define TABLE_BYTES 584 /* of 3.13 */

/* The debug offsets of a version; the version stands at [1]. Returns their length, 0 for a version without any. */
static uint32_t make_table(uint32_t version_hex, bool free_threaded, uint64_t table[TABLE_MAX_BYTES / 8])
{
    static const struct {
        uint16_t version;
        bool free_threaded;
        uint32_t len_bytes;
        const uint64_t *table;
    } tables[] = {
#define T(minor, threads, name) {0x0300 | minor, threads, sizeof debug_offsets_##name, debug_offsets_##name}
        T(13, false, 3_13), T(13, true, 3_13t), T(14, false, 3_14), T(14, true, 3_14t), T(15, false, 3_15),
        T(15, true, 3_15t),
#undef T
    };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (tables[i].version == version_hex >> 16 && tables[i].free_threaded == free_threaded) {
            memcpy(table, tables[i].table, tables[i].len_bytes);
            table[1] = version_hex;
            return tables[i].len_bytes;
        }
    }
    return 0;
}

static void find(uint32_t version_hex, bool free_threaded, struct py_layout *out)
{
    uint64_t table[TABLE_MAX_BYTES / 8];
    uint32_t len = make_table(version_hex, free_threaded, table);
    struct error *err = py_layout_find(version_hex, false, len ? table : NULL, len, out);

    if (err)
        fail_msg("%s", error_text(err));
    assert_int_equal(out->free_threaded, free_threaded);
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

TEST(measured_layouts)
{
    struct py_layout l;

#define IS(field, value)                                                     \
    if (l.field != (value))                                                  \
        fail_msg("%s: " #field " is %u, not %u", text, l.field, (unsigned)(value));
#define EXPECTED(version_hex, name, ...) \
    {                                    \
        const char *text = name;         \
        find(version_hex, strchr(name, 't') != NULL, &l); \
        __VA_ARGS__                      \
        assert_int_equal(l.version, version_hex); \
    }
#include "tests/unit/layout_expected.def"
}

/* One read takes in every field that the walk looks at, and no more than the structure has. */
TEST(lengths)
{
    static const struct {
        uint32_t version;
        bool free_threaded;
        uint16_t frame, code;
        uint8_t kind, tag_mask;
    } expected[] = {{0x020712f0, false, 128, 112, PY_FRAMES_OBJECT, 0}, {0x030605f0, false, 128, 120, PY_FRAMES_OBJECT, 0},
                    {0x030710f0, false, 112, 120, PY_FRAMES_OBJECT, 0}, {0x030912f0, false, 112, 128, PY_FRAMES_OBJECT, 0},
                    {0x030a0df0, false, 104, 128, PY_FRAMES_OBJECT, 0},
                    {0x030b07f0, false, 72, 176, PY_FRAMES_ENTRY, 0}, {0x030c01f0, false, 72, 184, PY_FRAMES_SHIM, 0},
                    {0x030d00f0, false, 72, 192, PY_FRAMES_SHIM, 0},  {0x030d05f0, true, 72, 208, PY_FRAMES_SHIM, 0},
                    {0x030e00f0, false, 80, 200, PY_FRAMES_SHIM, 3},  {0x030e00f0, true, 80, 216, PY_FRAMES_SHIM, 3},
                    {0x030f00f0, false, 80, 200, PY_FRAMES_SHIM, 3},  {0x030f00f0, true, 80, 216, PY_FRAMES_SHIM, 3}};
    struct py_layout l;

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        find(expected[i].version, expected[i].free_threaded, &l);
        assert_int_equal(l.code_tag_mask, expected[i].tag_mask);
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

TEST(reach_is_that_of_the_walk)
{
    assert_int_equal(PY_TSTATE_READ_MAX, WALK_HEADER_MASK);
    assert_int_equal(PY_FRAME_READ_MAX, WALK_FRAME_MAX);
}

/* The thread state's place in _PyRuntime moved within 3.7. */
TEST(patch_releases)
{
    struct py_layout l;

    find(0x030703f0, false, &l);
    assert_int_equal(l.runtime_tstate_current, 1392);
    assert_int_equal(l.runtime_tss_key, 1420);
    find(0x030704f0, false, &l);
    assert_int_equal(l.runtime_tstate_current, 1480);
    assert_int_equal(l.runtime_tss_key, 1508);
}

TEST(flavours)
{
    uint64_t table[TABLE_MAX_BYTES / 8];
    struct py_layout l;

    assert_null(py_layout_find(0x030b07f0, true, NULL, 0, &l));
    assert_int_equal(l.debug_build, 1);
    /* Which flavour it is, the debug offsets say; both flavours' objects are known. */
    make_table(0x030d05f0, false, table);
    table[2] = 1;
    assert_refused(0x030d05f0, table, TABLE_BYTES,
                   "CPython 3.13.5: debug offset at byte 280 is 112, not 128 as in every 3.13 known");
    make_table(0x030d05f0, true, table);
    table[2] = 0;
    assert_refused(0x030d05f0, table, TABLE_BYTES,
                   "CPython 3.13.5: debug offset at byte 280 is 128, not 112 as in every 3.13 known");
    /* Free-threaded 3.14: which copy of the bytecode a frame runs must be known. */
    uint32_t len = make_table(0x030e02f0, true, table);
    table[304 / 8] = 0;
    assert_refused(0x030e02f0, table, len, "CPython 3.14.2: its debug offsets have no index of the thread's bytecode");
    len = make_table(0x030e02f0, true, table);
    table[392 / 8] = 216;
    assert_refused(0x030e02f0, table, len,
                   "CPython 3.14.2: debug offset at byte 392 is 216, not 224 as in every 3.14 known");
}

/* Every version that has a layout. */
static const uint16_t minors[] = {
#define PYTHON(ma, mi, ...) (ma) << 8 | (mi),
#define VARIANT(...)
#define BEHAVIOUR(...)
#define TASKS(...)
#include "formats/cpython/versions.def"
#undef PYTHON
#undef VARIANT
#undef BEHAVIOUR
#undef TASKS
};

/* What a version does agrees with the fields that it has. */
TEST(behaviour_fits_the_layout)
{
    for (size_t i = 0; i < sizeof minors / sizeof *minors; i++) {
        uint32_t version = (uint32_t)minors[i] << 16 | 0xf0;
        const struct py_behaviour *b = py_behaviour_of(version);
        struct py_layout l;
        find(version, false, &l);
        assert_non_null(b);
        bool variable = b->state == PY_STATE_VARIABLE || b->state == PY_STATE_VARIABLE_KEY;
        bool tls = b->state == PY_STATE_TLS || b->state == PY_STATE_TLS_KEPT;
        assert_int_equal(variable, l.runtime_interpreters_head == PY_NONE);
        assert_int_equal(variable, l.runtime_tstate_current == 0);
        assert_int_equal(tls, l.runtime_tstate_current == PY_NONE);
        assert_int_equal(variable || b->state == PY_STATE_TLS_KEPT, l.runtime_tss_key == PY_NONE);
        assert_int_equal(b->qualname, l.code_qualname != PY_NONE);
        /* The newer tables count bytes of code; where f_lasti counts otherwise, its unit says so. */
        assert_int_equal(b->lines >= PY_LINES_RANGES, l.frame_kind != PY_FRAMES_OBJECT || l.instr_unit_bytes == 2);
        assert_int_equal(b->ints == PY_INTS_LONG, l.str_state == PY_NONE);
        assert_int_equal(b->instances == PY_INSTANCES_DICT, b->cached_keys == 0);
        /* Patch releases, and those before the first, do as their minor version. */
        assert_ptr_equal(py_behaviour_of(version | 0x1200), b);
        assert_ptr_equal(py_behaviour_of(version - 0x10), b);
    }
    assert_null(py_behaviour_of(0));
    assert_null(py_behaviour_of(0x030200f0));
    assert_null(py_behaviour_of(0x040000f0));
    assert_null(py_behaviour_of(0xffffffff));
}

TEST(unknown_versions)
{
    uint64_t table[TABLE_MAX_BYTES / 8];
    uint32_t len = make_table(0x030f02f0, false, table);

    assert_refused(0x036300f0, NULL, 0, "CPython 3.99.0 is not supported (known: " KNOWN ")");
    /* Debug offsets of a version that is not known, and of one before its release, say nothing to be trusted. */
    table[1] = 0x036300f0;
    assert_refused(0x036300f0, table, len, "CPython 3.99.0 is not supported (known: " KNOWN ")");
    table[1] = 0x030f00c1;
    assert_refused(0x030f00c1, table, len,
                   "CPython 3.15.0rc1 is a pre-release; only final releases are supported (known: " KNOWN ")");
    assert_refused(0x020609f0, NULL, 0, "CPython 2.6.9 is not supported (known: " KNOWN ")");
    assert_refused(0x030206f0, NULL, 0, "CPython 3.2.6 is not supported (known: " KNOWN ")");
    assert_refused(0x030b40f0, NULL, 0, "CPython 3.11.64 was never released (known: " KNOWN ")");
    assert_refused(0x030b02f1, NULL, 0, "CPython 3.11.2 was never released (known: " KNOWN ")");
    assert_refused(0x040000f0, NULL, 0, "CPython 4.0.0 is not supported (known: " KNOWN ")");
    assert_refused(0x030c00c2, NULL, 0, "CPython 3.12.0rc2 is a pre-release; only final releases are supported (known: " KNOWN ")");
    assert_refused(0, NULL, 0, "CPython ? is not supported (known: " KNOWN ")");
}

TEST(debug_offsets_refused)
{
    uint64_t table[TABLE_MAX_BYTES / 8];
    const uint32_t v = 0x030d05f0;

    make_table(v, false, table);
    assert_refused(v, NULL, 0, "CPython 3.13.5: _PyRuntime does not begin with the debug offsets");
    assert_refused(v, table, 16, "CPython 3.13.5: _PyRuntime does not begin with the debug offsets");
    assert_refused(v, table, 576, "CPython 3.13.5: its debug offsets end at byte 576 of 584");
    table[0]++;
    assert_refused(v, table, TABLE_BYTES, "CPython 3.13.5: _PyRuntime does not begin with the debug offsets");
    make_table(0x030d06f0, false, table);
    assert_refused(v, table, TABLE_BYTES, "CPython 3.13.5: its debug offsets are of version 0x30d06f0, flavour 0");
    make_table(v, false, table);
    table[2] = 7;
    assert_refused(v, table, TABLE_BYTES, "CPython 3.13.5: its debug offsets are of version 0x30d05f0, flavour 7");
    make_table(v, false, table);
    table[184 / 8] = 304; /* current_frame behind the end of the thread state */
    assert_refused(v, table, TABLE_BYTES, "CPython 3.13.5: debug offset 304 at byte 184 makes no sense");
    table[184 / 8] = 73;
    assert_refused(v, table, TABLE_BYTES, "CPython 3.13.5: debug offset 73 at byte 184 makes no sense");
    table[184 / 8] = UINT64_MAX - 7;
    assert_refused(v, table, TABLE_BYTES,
                   "CPython 3.13.5: debug offset 18446744073709551608 at byte 184 makes no sense");
    make_table(v, false, table);
    table[344 / 8] = 192; /* co_code_adaptive: then nobody knows where _co_firsttraceable is */
    assert_refused(v, table, TABLE_BYTES,
                   "CPython 3.13.5: debug offset at byte 344 is 192, not 200 as in every 3.13 known");
    /* Within their structures, but beyond what the frame walk reads of them. */
    const char *beyond = "CPython 3.13.5: its thread states or frames are laid out unlike any known version";
    make_table(v, false, table);
    table[184 / 8] = 160; /* current_frame behind thread_id */
    assert_refused(v, table, TABLE_BYTES, beyond);
    table[184 / 8] = 72;
    table[192 / 8] = 272; /* thread_id */
    assert_refused(v, table, TABLE_BYTES, beyond);
    make_table(v, false, table);
    table[224 / 8] = 200; /* sizeof _PyInterpreterFrame */
    table[248 / 8] = 120; /* instr_ptr */
    assert_refused(v, table, TABLE_BYTES, beyond);
    /* Each version's table has its own length. */
    uint32_t len = make_table(0x030e02f0, false, table);
    assert_int_equal(len, 760);
    assert_refused(0x030e02f0, table, len - 8, "CPython 3.14.2: its debug offsets end at byte 752 of 760");
    assert_refused(0x030e02f0, NULL, 0, "CPython 3.14.2: _PyRuntime does not begin with the debug offsets");
    len = make_table(0x030f02f0, false, table);
    assert_int_equal(len, 888);
    assert_refused(0x030f02f0, table, len - 8, "CPython 3.15.2: its debug offsets end at byte 880 of 888");
    table[744 / 8] = 64; /* sizeof PyCompactUnicodeObject */
    assert_refused(0x030f02f0, table, len,
                   "CPython 3.15.2: debug offset at byte 744 is 64, not 56 as in every 3.15 known");
}

/* What the interpreter says of itself goes before the row. */
TEST(debug_offsets_taken)
{
    uint64_t table[TABLE_MAX_BYTES / 8];
    struct py_layout l;

    make_table(0x030d05f0, false, table);
    table[184 / 8] = 80;
    table[264 / 8] = 71;
    assert_null(py_layout_find(0x030d05f0, false, table, TABLE_BYTES, &l));
    assert_int_equal(l.tstate_frame, 80);
    assert_int_equal(l.frame_owner, 71);
    assert_int_equal(l.runtime_tss_key, 2164);
    table[40 / 8] = 640; /* _PyRuntime is not the one we know: the key may be anywhere */
    assert_null(py_layout_find(0x030d05f0, false, table, TABLE_BYTES, &l));
    assert_int_equal(l.runtime_interpreters_head, 640);
    assert_int_equal(l.runtime_tss_key, PY_NONE);
}

TEST(random_debug_offsets)
{
    struct py_layout l, whole;
    uint64_t table[TABLE_MAX_BYTES / 8];

    srand(1);
    for (int round = 0; round < 20000; round++) {
        uint32_t version = 0x030d05f0 + ((unsigned)round % 3 << 16);
        bool free_threaded = round / 3 % 2;
        uint32_t len = make_table(version, free_threaded, table);
        find(version, free_threaded, &whole);
        for (int i = 0; i < 3; i++)
            table[3 + (unsigned)rand() % (len / 8 - 3)] = (uint64_t)rand() << (rand() % 40) >> (rand() % 60);
        struct error *err = py_layout_find(version, false, table, len, &l);
        assert_true(err || (l.frame_len_bytes && l.code_len_bytes == whole.code_len_bytes));
        error_destroy(err);
    }
}

TEST(version_text)
{
    char buf[32];

    assert_string_equal(py_version_text(0x030b07f0, buf), "3.11.7");
    assert_string_equal(py_version_text(0x030d00c2, buf), "3.13.0rc2");
    assert_string_equal(py_version_text(0x030f00a1, buf), "3.15.0a1");
    assert_string_equal(py_version_text(0, buf), "?");
    assert_string_equal(py_version_text(0xffffffff, buf), "255.255.255");
    assert_string_equal(py_version_text(0xffffff9f, buf), "255.255.255?15");
    assert_string_equal(py_versions_known(), KNOWN);
}
