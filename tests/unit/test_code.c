/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects out of a made-up address space: every kind of str, limits, holes, garbage; and their text. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "formats/cpython/code.h"
#include "formats/cpython/layout_find.h"

#define BASE 0x7f0000000000ull
#define SPACE_BYTES 65536

/* What lies at BASE; `hole` is an address that cannot be read. */
struct space {
    uint8_t bytes[SPACE_BYTES];
    uint64_t next, hole;
    uint32_t reads;
    struct py_layout layout;
};

static bool space_read(void *ctx, uint64_t address, void *out, uint64_t len_bytes)
{
    struct space *s = ctx;

    s->reads++;
    if (address < BASE || address - BASE > SPACE_BYTES || len_bytes > SPACE_BYTES - (address - BASE))
        return false;
    if (s->hole >= address && s->hole - address < len_bytes)
        return false;
    memcpy(out, s->bytes + (address - BASE), len_bytes);
    return true;
}

static void put(struct space *s, uint64_t address, uint64_t value, size_t len_bytes)
{
    memcpy(s->bytes + (address - BASE), &value, len_bytes);
}

static uint64_t make_object(struct space *s, uint64_t len_bytes)
{
    uint64_t at = BASE + s->next;

    s->next += (len_bytes + 15) & ~15ull;
    assert_true(s->next <= SPACE_BYTES);
    return at;
}

static uint64_t make_str(struct space *s, uint32_t kind, bool ascii, bool compact, const void *data, uint64_t chars)
{
    const struct py_layout *l = &s->layout;
    uint64_t at = make_object(s, 80 + chars * kind), to = at + (ascii ? l->str_ascii_data : l->str_compact_data);

    put(s, at + l->str_length, chars, 8);
    put(s, at + l->str_state,
        kind << l->str_kind_shift | (uint32_t)compact << l->str_compact_shift | (uint32_t)ascii << l->str_ascii_shift |
            1,
        4);
    if (!compact) {
        to = make_object(s, chars * kind);
        put(s, at + l->str_compact_data, to, 8);
    }
    memcpy(s->bytes + (to - BASE), data, chars * kind);
    return at;
}

static uint64_t make_ascii(struct space *s, const char *text)
{
    return make_str(s, 1, true, true, text, strlen(text));
}

static uint64_t make_bytes(struct space *s, const void *data, uint64_t len_bytes)
{
    uint64_t at = make_object(s, s->layout.bytes_data + len_bytes);

    put(s, at + s->layout.bytes_size, len_bytes, 8);
    memcpy(s->bytes + (at + s->layout.bytes_data - BASE), data, len_bytes);
    return at;
}

static uint64_t make_code(struct space *s, uint64_t name, uint64_t qualname, uint64_t filename, uint64_t table)
{
    const struct py_layout *l = &s->layout;
    uint64_t at = make_object(s, l->code_len_bytes);

    if (l->code_size != PY_NONE)
        put(s, at + l->code_size, 21, 8);
    put(s, at + l->code_first_line, 7, 4);
    put(s, at + l->code_flags, 0x83, 4);
    put(s, at + l->code_name, name, 8);
    if (l->code_qualname != PY_NONE)
        put(s, at + l->code_qualname, qualname, 8);
    put(s, at + l->code_filename, filename, 8);
    put(s, at + l->code_line_table, table, 8);
    return at;
}

static struct space *space_create(uint32_t version_hex)
{
    struct space *s = calloc(1, sizeof *s);
    struct error *err = py_layout_find(version_hex, false, NULL, 0, &s->layout);

    if (err)
        fail_msg("%s", error_text(err));
    s->next = 64;
    return s;
}

static const struct py_code_limits wide = {4096, 65536};

static void assert_text(struct py_string string, const char *text)
{
    struct buf out = {0};

    py_string_text(&string, &out);
    assert_string_equal(buf_cstr(&out), text);
    buf_deinit(&out);
}

static void read_whole(uint32_t version_hex)
{
    struct space *s = space_create(version_hex);
    static const uint16_t japanese[] = {0x65e5, 0x672c};
    static const uint32_t fraktur[] = {0x1d518, 'n', 'i', 0xe9};
    uint8_t table[3000];
    struct buf storage = {0};
    struct py_code c;

    for (size_t i = 0; i < sizeof table; i++)
        table[i] = (uint8_t)i;
    uint64_t code = make_code(s, make_str(s, 2, false, true, japanese, 2), make_str(s, 4, false, true, fraktur, 4),
                              make_ascii(s, "/x/y.py"), make_bytes(s, table, sizeof table));
    assert_true(py_code_read(&s->layout, space_read, s, code, &wide, &storage, &c));
    assert_true(py_code_complete(&c));
    assert_int_equal(c.python_version, version_hex);
    assert_int_equal(c.first_line, 7);
    assert_int_equal(c.co_flags, 0x83);
    assert_int_equal(c.code_len_bytes, 42);
    assert_text(c.name, "日本");
    assert_text(c.qualname, "𝔘nié");
    assert_text(c.filename, "/x/y.py");
    assert_int_equal(c.line_table.len, sizeof table);
    assert_memory_equal(c.line_table.data, table, sizeof table);
    /* Everything lies in the storage, also after it grew. */
    assert_true(c.name.data >= storage.data && c.line_table.data + sizeof table <= storage.data + storage.len_bytes);
    buf_deinit(&storage);
    free(s);
}

TEST(read)
{
    read_whole(0x030b07f0);
    read_whole(0x030c01f0);
}

TEST(latin1_and_legacy)
{
    struct space *s = space_create(0x030b07f0);
    struct buf storage = {0};
    struct py_code c;

    uint64_t table = make_bytes(s, "", 0), code = make_code(s, make_str(s, 1, false, true, "na\xefve", 5),
                                                            make_str(s, 1, true, false, "legacy", 6),
                                                            make_ascii(s, ""), table);
    assert_true(py_code_read(&s->layout, space_read, s, code, &wide, &storage, &c));
    assert_true(py_code_complete(&c));
    assert_text(c.name, "naïve");
    assert_text(c.qualname, "legacy");
    assert_text(c.filename, "");
    assert_int_equal(c.line_table.form, 1);
    buf_deinit(&storage);
    free(s);
}

TEST(limits)
{
    static const struct py_code_limits narrow = {7, 3};
    struct space *s = space_create(0x030c01f0);
    static const uint16_t greek[] = {0x3b1, 0x3b2, 0x3b3, 0x3b4};
    struct buf storage = {0};
    struct py_code c;

    uint64_t code = make_code(s, make_ascii(s, "seven__"), make_str(s, 2, false, true, greek, 4),
                              make_ascii(s, "/long/path.py"), make_bytes(s, "\1\2\3\4", 4));
    assert_true(py_code_read(&s->layout, space_read, s, code, &narrow, &storage, &c));
    assert_false(py_code_complete(&c));
    assert_text(c.name, "seven__");
    assert_int_equal(c.qualname.len, 4);
    assert_int_equal(c.qualname.len_bytes, 6);
    assert_text(c.qualname, "αβγ…");
    assert_int_equal(c.filename.len, 13);
    assert_text(c.filename, "/long/p…");
    assert_int_equal(c.line_table.len, 4);
    assert_int_equal(c.line_table.len_bytes, 3);
    buf_deinit(&storage);
    free(s);
}

/* 2.7: names are bytes, UTF-8 or whatever; up to 3.10: no qualified names, and the length of the bytecode is not told. */
TEST(old)
{
    static const uint16_t japanese[] = {0x65e5, 0x672c};
    struct buf storage = {0};
    struct py_code c;

    for (int is_2 = 0; is_2 < 2; is_2++) {
        struct space *s = space_create(is_2 ? 0x020712f0 : 0x030a0df0);
        uint64_t name = is_2 ? make_bytes(s, "日本", 6) : make_str(s, 2, false, false, japanese, 2);
        uint64_t file = is_2 ? make_bytes(s, "/x/\xff.py", 7) : make_ascii(s, "/x/y.py");
        uint64_t code = make_code(s, name, 0, file, make_bytes(s, "\1\2\3\4", 4));
        assert_true(py_code_read(&s->layout, space_read, s, code, &wide, &storage, &c));
        assert_true(py_code_complete(&c));
        c.python_version = 0x030b07f0; /* which would have a co_qualname */
        assert_false(py_code_complete(&c));
        assert_int_equal(c.first_line, 7);
        assert_int_equal(c.co_flags, 0x83);
        assert_int_equal(c.code_len_bytes, 0);
        assert_int_equal(c.name.form, is_2 ? 8 : 2);
        assert_int_equal(c.qualname.form, 0);
        assert_text(c.name, "日本");
        assert_text(c.filename, is_2 ? "/x/\uFFFD.py" : "/x/y.py");
        assert_int_equal(c.line_table.len, 4);
        assert_memory_equal(c.line_table.data, "\1\2\3\4", 4);
        free(s);
    }
    buf_deinit(&storage);
}

/* Every single byte unreadable in turn: the part that it belongs to is missing, the others are there. */
TEST(holes)
{
    struct space *s = space_create(0x030c01f0);
    struct buf storage = {0};
    struct py_code c;
    uint32_t complete = 0, no_header = 0, no_name = 0;

    uint64_t name = make_ascii(s, "name"), code = make_code(s, name, make_ascii(s, "qualname"), make_ascii(s, "file"),
                                                            make_bytes(s, "\1\2", 2));
    for (s->hole = BASE; s->hole < BASE + s->next; s->hole++) {
        if (!py_code_read(&s->layout, space_read, s, code, &wide, &storage, &c)) {
            no_header++;
            continue;
        }
        assert_int_equal(c.first_line, 7);
        int missing = !c.name.form + !c.qualname.form + !c.filename.form + !c.line_table.form;
        assert_true(missing <= 1);
        assert_true(py_code_complete(&c) == (missing == 0));
        complete += !missing;
        no_name += !c.name.form;
        if (!c.name.form)
            assert_text(c.name, "?");
    }
    assert_int_equal(no_header, s->layout.code_len_bytes);
    assert_int_equal(no_name, s->layout.str_state + 4 + 4);
    assert_true(complete > 0);
    buf_deinit(&storage);
    free(s);
}

TEST(garbage)
{
    struct space *s = space_create(0x030c01f0);
    const struct py_layout *l = &s->layout;
    struct buf storage = {0};
    struct py_code c;

    uint64_t kind0 = make_ascii(s, "a"), kind3 = make_ascii(s, "a"), huge = make_ascii(s, "a"),
             table = make_bytes(s, "", 0);
    put(s, kind0 + l->str_state, 0x60, 4);
    put(s, kind3 + l->str_state, 0x6c, 4);
    put(s, huge + l->str_length, UINT64_MAX, 8);
    put(s, table + l->bytes_size, 1ull << 40, 8);
    uint64_t code = make_code(s, kind0, kind3, huge, table);
    put(s, code + l->code_size, UINT64_MAX, 8);
    assert_true(py_code_read(l, space_read, s, code, &wide, &storage, &c));
    assert_int_equal(c.name.form, 0);
    assert_int_equal(c.qualname.form, 0);
    assert_int_equal(c.filename.form, 0);
    assert_int_equal(c.line_table.form, 0);
    assert_int_equal(c.code_len_bytes, 0);
    code = make_code(s, 0, UINT64_MAX, 1, UINT64_MAX - 20);
    assert_true(py_code_read(l, space_read, s, code, &wide, &storage, &c));
    assert_int_equal(c.name.form + c.qualname.form + c.filename.form + c.line_table.form, 0);
    assert_false(py_code_read(l, space_read, s, UINT64_MAX - 8, &wide, &storage, &c));
    srand(1);
    for (int round = 0; round < 20000; round++) {
        put(s, code + 8 * ((unsigned)rand() % (l->code_len_bytes / 8)), BASE + (unsigned)rand() % (unsigned)s->next, 8);
        if (rand() % 4 == 0)
            s->bytes[(unsigned)rand() % (unsigned)s->next] = (uint8_t)rand();
        if (py_code_read(l, space_read, s, code, &wide, &storage, &c))
            assert_true(storage.len_bytes <= 3 * wide.string_max_bytes + wide.line_table_max_bytes);
    }
    buf_deinit(&storage);
    free(s);
}

#define TEXT(form, chars, literal, text) \
    assert_text((struct py_string){form, chars, (const uint8_t *)(literal), sizeof(literal) - 1}, text)

TEST(text)
{
    TEXT(1, 3, "a\xe9\xff", "aéÿ");
    TEXT(1, 5, "abc", "abc…");
    TEXT(2, 2, "\x3d\xd8\x00\xde", "\xef\xbf\xbd\xef\xbf\xbd"); /* not a pair: Python has none */
    TEXT(2, 1, "\xac\x20", "€");
    TEXT(4, 2, "\x18\xd5\x01\x00\x00\xdc\x00\x00", "𝔘\xef\xbf\xbd");
    TEXT(4, 1, "\x00\x00\x11\x00", "\xef\xbf\xbd"); /* past the last code point */
    TEXT(4, 2, "a\0\0\0b\0", "a…");
    TEXT(8, 2, "\xc3\xa9", "é");
    TEXT(8, 5, "a\xff" "b\xc3" "c", "a\xef\xbf\xbd" "b\xef\xbf\xbd" "c");
    TEXT(8, 3, "a\xe2\x82", "a\xef\xbf\xbd\xef\xbf\xbd");
    TEXT(8, 4, "a\xe2\x82", "a…"); /* the cut went through a character */
    TEXT(8, 2, "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd");
    TEXT(8, 3, "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    TEXT(8, 4, "\xf0\x9d\x94\x98", "𝔘");
    TEXT(0, 5, "abcde", "?");
    TEXT(3, 5, "abcde", "?");
    assert_text((struct py_string){.form = 1}, "");
    assert_text((struct py_string){.form = 1, .len = 9}, "…");
}
