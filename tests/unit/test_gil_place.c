/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads wait for the GIL: by version, by the interpreter's own table, by symbols. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/cpython/gil.h"
#include "formats/cpython/layout_find.h"

#include "tests/unit/debug_offsets.h"

#define RUNTIME 0x100000
#define GILSTATE_CURRENT 8 /* tstate_current in struct _gilstate_runtime_state */
#define GIL_BYTES 208      /* struct _gil_runtime_state */

static const struct py_gil_variables stripped;

static struct py_layout layout_of(uint32_t version_hex, const uint64_t *table, uint32_t len_bytes)
{
    struct py_layout l;

    OK(py_layout_find(version_hex, false, table, len_bytes, &l));
    return l;
}

static void assert_gil(struct py_gil gil, uint32_t kind, uint64_t address, uint16_t skip, uint16_t len)
{
    assert_int_equal(gil.kind, kind);
    assert_int_equal(gil.address, address);
    assert_int_equal(gil.skip, skip);
    assert_int_equal(gil.len, len);
}

/*
 * Up to 3.11 the lock is the last member of struct _ceval_runtime_state, and struct _gilstate_runtime_state follows it. So
 * where the one is known, by which thread states are found in every patch release, the other is known.
 */
TEST(in_runtime)
{
    static const struct {
        uint32_t version;
        uint16_t at;
    } versions[] = {{0x030700f0, 1176}, {0x030703f0, 1176}, {0x030704f0, 1264}, {0x030710f0, 1264}, {0x030800f0, 1152},
                    {0x030900f0, 352},  {0x030a00f0, 352},  {0x030b00f0, 360}};

    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct py_layout l = layout_of(versions[i].version, NULL, 0);
        assert_int_equal(l.runtime_gil, versions[i].at);
        assert_int_equal(l.runtime_gil + GIL_BYTES + GILSTATE_CURRENT, l.runtime_tstate_current);
        assert_gil(py_gil_find(&l, RUNTIME, &stripped, false), PY_GIL_RANGE, RUNTIME + versions[i].at + 32, 0, GIL_BYTES - 32);
    }
}

TEST(in_interpreter)
{
    struct py_layout l = layout_of(0x030c01f0, NULL, 0);

    assert_gil(py_gil_find(&l, RUNTIME, &stripped, false), PY_GIL_INTERPRETER, 384, 32, GIL_BYTES - 32);
}

/* From 3.13 on the interpreter's table says where its own lock is, and `locked` and `last_holder` of it. */
TEST(tables_agree)
{
    static const struct {
        uint32_t version;
        bool free_threaded;
        uint32_t ceval_gil; /* index into the table; gil_runtime_state, _enabled, _locked and _holder follow */
        uint32_t len_bytes;
        const uint64_t *table;
    } tables[] = {{0x030d00f0, false, 14, sizeof debug_offsets_3_13, debug_offsets_3_13},
                  {0x030d0ff0, true, 14, sizeof debug_offsets_3_13t, debug_offsets_3_13t},
                  {0x030e0af0, false, 15, sizeof debug_offsets_3_14, debug_offsets_3_14},
                  {0x030f02f0, false, 15, sizeof debug_offsets_3_15, debug_offsets_3_15}};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const uint64_t *own = tables[i].table + tables[i].ceval_gil;
        struct py_layout l = layout_of(tables[i].version, tables[i].table, tables[i].len_bytes);
        struct py_gil gil = py_gil_find(&l, RUNTIME, &stripped, false);
        assert_int_equal(l.free_threaded, tables[i].free_threaded);
        assert_gil(gil, PY_GIL_INTERPRETER, own[0], tables[i].free_threaded ? 40 : 32, GIL_BYTES - 32);
        assert_int_equal(own[3] - own[1], gil.skip - 16); /* locked */
        assert_int_equal(own[4] - own[1], gil.skip - 24); /* last_holder */
    }
}

/* What the table does not have is known only where the structures are those of the row. */
TEST(stopped_world)
{
    static const uint32_t moved[] = {11, 22, 23}; /* imports_modules, thread_state.interp, current_frame */
    uint64_t table[sizeof debug_offsets_3_13t / 8];
    struct py_layout l;

    l = layout_of(0x030d0ff0, debug_offsets_3_13t, sizeof debug_offsets_3_13t);
    assert_int_equal(l.tstate_state, 40);
    assert_int_equal(l.interp_requester, 10760);
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        memcpy(table, debug_offsets_3_13t, sizeof table);
        table[moved[i]] += 8;
        l = layout_of(0x030d0ff0, table, sizeof table);
        assert_int_equal(l.tstate_state, 0);
        assert_int_equal(l.interp_requester, 0);
    }
}

static Elf64_Sym variable(uint64_t at, uint64_t size)
{
    return (Elf64_Sym){.st_shndx = 1, .st_value = at, .st_size = size};
}

TEST(by_symbols)
{
    /* As in a 3.6.15. */
    const struct py_gil_variables statics = {.cond = variable(0xae0, 48), .mutex = variable(0xaa0, 40),
                                           .switch_cond = variable(0xa60, 48), .switch_mutex = variable(0xa20, 40)};
    const struct py_gil_variables lock = {.lock_vaddr = 0x510};
    struct py_layout l = layout_of(0x03060ff0, NULL, 0);
    struct py_gil_variables bad;

    assert_gil(py_gil_find(&l, RUNTIME, &statics, true), PY_GIL_RANGE, 0xa20, 0, 240);
    assert_gil(py_gil_find(&l, RUNTIME, &stripped, false), PY_GIL_NONE, 0, 0, 0);
    assert_gil(py_gil_find(&l, RUNTIME, &stripped, true), PY_GIL_LEARN, 0, 0, 0);
    /* One is missing, has another size, lies elsewhere, or at the end of the address space. */
    bad = statics;
    bad.switch_cond = (Elf64_Sym){0};
    assert_gil(py_gil_find(&l, RUNTIME, &bad, false), PY_GIL_NONE, 0, 0, 0);
    bad = statics;
    bad.cond.st_size = 40;
    assert_gil(py_gil_find(&l, RUNTIME, &bad, false), PY_GIL_NONE, 0, 0, 0);
    bad = statics;
    bad.switch_mutex.st_value = 0xb00 - 256;
    assert_gil(py_gil_find(&l, RUNTIME, &bad, false), PY_GIL_NONE, 0, 0, 0);
    bad = statics;
    bad.mutex.st_value = UINT64_MAX - 8;
    assert_gil(py_gil_find(&l, RUNTIME, &bad, false), PY_GIL_NONE, 0, 0, 0);

    l = layout_of(0x020712f0, NULL, 0);
    assert_gil(py_gil_find(&l, RUNTIME, &lock, false), PY_GIL_POINTER, 0x510, 0, 32);
    assert_gil(py_gil_find(&l, RUNTIME, &stripped, false), PY_GIL_NONE, 0, 0, 0);
}
