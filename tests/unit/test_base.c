/* SPDX-License-Identifier: Apache-2.0 */
/* formats/base: the cursor, buffers, containers and errors that everything else rests on. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/arena.h"
#include "formats/base/buf.h"
#include "formats/base/bytes.h"
#include "formats/base/err.h"
#include "formats/base/hex.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/columns.h"
#include "formats/base/printable.h"
#include "formats/base/sha1.h"
#include "formats/base/sha256.h"
#include "formats/base/sort.h"
#include "formats/base/square_root.h"
#include "formats/base/utf8.h"
#include "formats/base/vec.h"

TEST(cursor_stops_at_the_end)
{
    static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct bytes b = bytes_of(data, sizeof data);

    assert_int_equal(bytes_u8(&b), 1);
    assert_int_equal(bytes_u64(&b), 0x0908070605040302);
    assert_int_equal(bytes_left(&b), 0);
    assert_false(b.bad);
    assert_int_equal(bytes_u8(&b), 0);
    assert_true(b.bad);
    /* It stays bad, and hands out nothing. */
    bytes_seek(&b, 0);
    assert_int_equal(bytes_u8(&b), 0);
    assert_int_equal(bytes_left(&b), 0);
    assert_null(bytes_take(&b, 0));

    for (size_t len = 0; len < 8; len++) {
        b = bytes_of(data, len);
        assert_int_equal(bytes_u64(&b), 0);
        assert_true(b.bad);
    }
    b = bytes_of(data, sizeof data);
    assert_null(bytes_take(&b, UINT64_MAX));
    assert_true(b.bad);
    b = bytes_of(data, sizeof data);
    bytes_skip(&b, 4);
    assert_int_equal(bytes_offset(&b), 4);
    assert_int_equal(bytes_u32(&b), 0x08070605);
    bytes_seek(&b, 1);
    assert_int_equal(bytes_u16(&b), 0x0302);
    bytes_seek(&b, sizeof data);
    assert_false(b.bad);
    bytes_seek(&b, sizeof data + 1);
    assert_true(b.bad);
    b = bytes_of(NULL, 0);
    assert_int_equal(bytes_left(&b), 0);
    assert_false(b.bad);
    assert_int_equal(bytes_u8(&b), 0);
    assert_true(b.bad);
}

TEST(cursor_strings)
{
    struct bytes b = bytes_of("ab\0cd", 5);

    assert_string_equal(bytes_cstr(&b), "ab");
    assert_null(bytes_cstr(&b));
    assert_true(b.bad);
    b = bytes_of("x", 1);
    bytes_skip(&b, 1);
    assert_null(bytes_cstr(&b));
}

TEST(varints_come_back)
{
    struct buf b = {0};

    for (int shift = 0; shift < 64; shift++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t v = (UINT64_C(1) << shift) + (uint64_t)delta;
            buf_clear(&b);
            buf_put_uleb(&b, v);
            buf_put_zigzag(&b, (int64_t)v);
            buf_put_zigzag(&b, -(int64_t)(v & INT64_MAX));
            buf_put_sleb(&b, (int64_t)v);
            buf_put_sleb(&b, -(int64_t)(v & INT64_MAX));
            struct bytes in = bytes_of(b.data, b.len_bytes);
            assert_int_equal(bytes_uleb(&in), v);
            assert_int_equal(bytes_zigzag(&in), (int64_t)v);
            assert_int_equal(bytes_zigzag(&in), -(int64_t)(v & INT64_MAX));
            assert_int_equal(bytes_sleb(&in), (int64_t)v);
            assert_int_equal(bytes_sleb(&in), -(int64_t)(v & INT64_MAX));
            assert_false(in.bad);
            assert_int_equal(bytes_left(&in), 0);
        }
    }
    buf_clear(&b);
    buf_put_zigzag(&b, INT64_MIN);
    buf_put_zigzag(&b, INT64_MAX);
    buf_put_sleb(&b, INT64_MIN);
    struct bytes in = bytes_of(b.data, b.len_bytes);
    assert_true(bytes_zigzag(&in) == INT64_MIN);
    assert_true(bytes_zigzag(&in) == INT64_MAX);
    assert_true(bytes_sleb(&in) == INT64_MIN);
    assert_int_equal(bytes_left(&in), 0);
    buf_deinit(&b);
}

TEST(bad_varints)
{
    static const struct {
        const char *data;
        size_t len_bytes;
    } cases[] = {
        {"", 0},
        {"\x80", 1},
        {"\xff\xff\xff", 3},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10}, /* 65 bits */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes b = bytes_of(cases[i].data, cases[i].len_bytes);
        assert_int_equal(bytes_uleb(&b), 0);
        assert_true(b.bad);
    }
    struct bytes b = bytes_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    assert_true(bytes_uleb(&b) == UINT64_MAX);
    assert_false(b.bad);
}

TEST(signed_leb)
{
    static const struct {
        const char *data;
        size_t len_bytes;
        int64_t value;
        bool bad;
    } cases[] = {
        {"\x02", 1, 2, false},
        {"\x7e", 1, -2, false},
        {"\xff\x00", 2, 127, false},
        {"\x81\x7f", 2, -127, false},
        {"\x80\x7f", 2, -128, false},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 10, INT64_MIN, false},
        {"\x80", 1, 0, true},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, 0, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bytes b = bytes_of(cases[i].data, cases[i].len_bytes);
        assert_true(bytes_sleb(&b) == cases[i].value);
        assert_int_equal(b.bad, cases[i].bad);
    }
}

/* Like printf's. */
TEST(decimal)
{
    static const uint64_t numbers[] = {0, 1, 9, 10, 999, 1000, 123456, UINT32_MAX, UINT64_MAX};
    struct buf b = {0};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (unsigned width = 0; width < 30; width++) {
            char expected[100];
            buf_clear(&b);
            buf_put_decimal(&b, numbers[i], width, ' ');
            buf_put_u8(&b, '|');
            buf_put_decimal(&b, numbers[i], width, '0');
            snprintf(expected, sizeof expected, "%*llu|%0*llu", (int)width, (unsigned long long)numbers[i], (int)width,
                     (unsigned long long)numbers[i]);
            assert_string_equal(buf_cstr(&b), expected);
        }
    }
    buf_deinit(&b);
}

TEST(buf)
{
    struct buf b = {0};
    char expected[2000];

    assert_string_equal(buf_cstr(&b), "");
    buf_put(&b, NULL, 0);
    buf_put_u8(&b, 1);
    buf_put_u16(&b, 0x0302);
    buf_put_u32(&b, 0x07060504);
    buf_put_u64(&b, 0x0f0e0d0c0b0a0908);
    assert_int_equal(b.len_bytes, 15);
    for (uint8_t i = 0; i < 15; i++)
        assert_int_equal(b.data[i], i + 1);
    buf_clear(&b);
    buf_put_str(&b, "a");
    buf_printf(&b, "%d-%s", 5, "b");
    assert_string_equal(buf_cstr(&b), "a5-b");
    assert_int_equal(b.len_bytes, 4);
    /* Longer than what printf tries first. */
    memset(expected, 'y', sizeof expected);
    expected[sizeof expected - 1] = 0;
    buf_clear(&b);
    buf_printf(&b, "%s", expected);
    assert_string_equal(buf_cstr(&b), expected);
    /* More than there is: bad, and stays so. */
    assert_null(buf_reserve(&b, SIZE_MAX / 2));
    assert_true(b.bad);
    buf_put_u8(&b, 1);
    buf_printf(&b, "%s", expected);
    buf_put_uleb(&b, 1);
    assert_int_equal(b.len_bytes, sizeof expected - 1);
    assert_string_equal(buf_cstr(&b), "");
    buf_deinit(&b);
    assert_false(b.bad);
}

TEST(intern)
{
    enum { COUNT = 5000 };
    struct intern t = {0};
    bool added;

    assert_int_equal(intern_find(&t, "a", 1), INTERN_NONE);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            char key[32];
            uint32_t len = (uint32_t)snprintf(key, sizeof key, "%*u", (int)(i % 20), i);
            assert_int_equal(intern_id(&t, key, len, &added), i);
            assert_int_equal(added, round != 1);
            assert_int_equal(intern_find(&t, key, len), i);
            assert_memory_equal(intern_get(&t, i)->data, key, len);
            assert_int_equal(intern_get(&t, i)->len_bytes, len);
        }
        assert_int_equal(intern_id(&t, "", 0, &added), COUNT);
        assert_int_equal(intern_id(&t, "\0", 1, NULL), COUNT + 1);
        assert_int_equal(t.count, COUNT + 2);
        if (round == 1)
            intern_clear(&t);
    }
    intern_deinit(&t);
    assert_int_equal(t.count, 0);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Against an array that says what should be there. */
TEST(map)
{
    enum { KEYS = 300, STEPS = 100000 };
    static uint64_t model[KEYS];
    static bool there[KEYS];
    struct map m = {0};
    uint64_t random = 1, count = 0;

    assert_null(map_get(&m, 0));
    map_remove(&m, 0);
    map_clear(&m);
    for (int step = 0; step < STEPS; step++) {
        uint64_t k = next_random(&random) % KEYS, key = k << 32 | (k & 3);
        if (next_random(&random) % 3) {
            assert_true(map_set(&m, key, (uint64_t)step));
            count += !there[k];
            there[k] = true;
            model[k] = (uint64_t)step;
        } else {
            map_remove(&m, key);
            count -= there[k];
            there[k] = false;
        }
        assert_int_equal(m.count, count);
        if (step % 1000)
            continue;
        for (k = 0; k < KEYS; k++) {
            const uint64_t *v = map_get(&m, k << 32 | (k & 3));
            assert_int_equal(v != NULL, there[k]);
            assert_true(!v || *v == model[k]);
        }
    }
    map_clear(&m);
    assert_int_equal(m.count, 0);
    assert_null(map_get(&m, 0));
    assert_true(map_set(&m, UINT64_MAX, 1));
    assert_int_equal(*map_get(&m, UINT64_MAX), 1);
    map_deinit(&m);
}

TEST(arena)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 1000, 65535, 65536, 65537, 1 << 20};
    struct arena a = {0};
    uint8_t *pieces[10];

    for (size_t i = 0; i < 10; i++) {
        pieces[i] = arena_alloc(&a, lengths[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, lengths[i]);
    }
    for (size_t i = 0; i < 10; i++)
        for (size_t k = 0; k < lengths[i]; k++)
            assert_int_equal(pieces[i][k], i);
    const uint64_t *zeros = arena_calloc(&a, 100, 8);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zeros[i], 0);
    assert_null(arena_calloc(&a, SIZE_MAX / 2, 8));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_string_equal(arena_strndup(&a, "hello", 4), "hell");
    assert_string_equal(arena_strndup(&a, NULL, 0), "");
    assert_memory_equal(arena_dup(&a, "abc", 3), "abc", 3);
    assert_true(a.total_bytes >= 1 << 20);
    arena_deinit(&a);
    arena_deinit(&a);
}

TEST(vec)
{
    VEC(uint32_t) v = {0};

    for (uint32_t i = 0; i < 1000; i++)
        assert_true(VEC_PUSH(&v, i * 3));
    assert_int_equal(v.count, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(v.data[i], i * 3);
    assert_false(VEC_RESERVE(&v, SIZE_MAX));
    assert_int_equal(v.data[999], 999 * 3);
    VEC_DEINIT(&v);
    assert_int_equal(v.cap, 0);
}

static void assert_error(struct error *err, enum error_code code, const char *text)
{
    assert_non_null(err);
    assert_int_equal(err->code, code);
    assert_string_equal(error_text(err), text);
    assert_string_equal(error_text(err), text);
    error_destroy(err);
}

static struct error *passes_on(struct error *err)
{
    TRY(err);
    return error_create(ERROR_LIMIT, "reached");
}

TEST(errors)
{
    assert_error(error_create(ERROR_USAGE, "bad %d", 7), ERROR_USAGE, "bad 7");
    assert_error(error_os(EACCES, "open"), ERROR_PERMISSION, "open: Permission denied");
    assert_error(error_os(ENOENT, "open"), ERROR_NOT_FOUND, "open: No such file or directory");
    assert_error(error_file(ENOSPC, "/a/b", "cannot write"), ERROR_IO, "/a/b: cannot write: No space left on device");
    assert_error(error_path(ERROR_FORMAT, "/a/b", "is %s", "odd"), ERROR_FORMAT, "/a/b: is odd");
    assert_error(error_at(ERROR_FORMAT, "f", 12, "odd"), ERROR_FORMAT, "f: offset 12: odd");
    /* What comes from elsewhere does not control the terminal, nor begin a line of its own. */
    assert_error(error_file(ENOENT, "a\x1b[31m", "not\n%s", "\xe2\x80\xae" "b"), ERROR_NOT_FOUND,
                 "a\\x1b[31m: not\\x0a\\xe2\\x80\\xaeb: No such file or directory");
    assert_error(error_lines(ERROR_USAGE, "one\n%s", "two\x1b"), ERROR_USAGE, "one\ntwo\\x1b");
    assert_error(error_no_memory(), ERROR_NO_MEMORY, "out of memory");
    assert_error(error_no_memory(), ERROR_NO_MEMORY, "out of memory");
    assert_error(passes_on(NULL), ERROR_LIMIT, "reached");
    assert_error(passes_on(error_create(ERROR_IO, "first")), ERROR_IO, "first");
    error_destroy(NULL);
}

/* ---- sort ---- */

struct pair {
    int key, order;
};

static int by_key(const void *a, const void *b)
{
    return ((const struct pair *)a)->key - ((const struct pair *)b)->key;
}

TEST(sort_stable)
{
    struct pair pairs[257];

    for (size_t count = 0; count <= 257; count += count < 10 ? 1 : 13) {
        for (size_t i = 0; i < count; i++)
            pairs[i] = (struct pair){.key = (int)(i * 7919 % 17), .order = (int)i};
        assert_true(sort_stable(pairs, count, sizeof *pairs, by_key));
        for (size_t i = 1; i < count; i++) {
            assert_true(pairs[i - 1].key <= pairs[i].key);
            if (pairs[i - 1].key == pairs[i].key)
                assert_true(pairs[i - 1].order < pairs[i].order);
        }
    }
}

static const char *filled(struct buf *out, const char *text, size_t columns)
{
    buf_clear(out);
    columns_fill(out, text, columns);
    return buf_cstr(out);
}

/* What is too long for a column loses its middle, what is too short is filled up; a character is one column. */
TEST(columns)
{
    struct buf out = {0};

    assert_int_equal(columns_of("a\xc3\xa9\x9b", 4), 3);
    assert_string_equal(filled(&out, "ab", 4), "ab  ");
    assert_string_equal(filled(&out, "", 1), " ");
    assert_string_equal(filled(&out, "abcd", 4), "abcd");
    assert_string_equal(filled(&out, "abcdefg", 6), "abc\xe2\x80\xa6" "fg");
    assert_string_equal(filled(&out, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3), "\xc3\xa9\xe2\x80\xa6\xc3\xa9");
    assert_string_equal(filled(&out, "abc", 1), "\xe2\x80\xa6");
    buf_deinit(&out);
}

TEST(printable)
{
    struct intern texts = {0};

    const char *kept = printable_keep(&texts, "a b\n\x1b[1m\x7f\xc2\x9b\xc3\xa9\x9b\xe2\x80\xa8\xf0\x9f\x90\x8d\xc3");
    assert_string_equal(kept, "a b\\x0a\\x1b[1m\\x7f\\xc2\\x9b\xc3\xa9\\x9b\\xe2\\x80\\xa8\xf0\x9f\x90\x8d\\xc3");
    /* U+202E turns the direction, U+200B is invisible, U+E0041 is an invisible letter. */
    assert_string_equal(printable_keep(&texts, "\xe2\x80\xae" "a\xe2\x80\x8b\xf3\xa0\x81\x81"),
                        "\\xe2\\x80\\xaea\\xe2\\x80\\x8b\\xf3\\xa0\\x81\\x81");
    assert_string_equal(printable_keep(&texts, ""), "");
    assert_ptr_equal(printable_keep(&texts, ""), printable_keep(&texts, ""));
    intern_deinit(&texts);
}

/* What is a character comes back; what is none is not taken for one. */
TEST(utf8)
{
    uint8_t bytes[4];
    uint32_t back;

    for (uint32_t code = 0; code < 0x110400; code++) {
        bool character = code < 0xd800 || (code >= 0xe000 && code < 0x110000);
        size_t len = utf8_write(code, bytes);
        assert_int_equal(utf8_decode(bytes, len, &back), len);
        assert_int_equal(back, character ? code : 0xfffd);
        assert_int_equal(utf8_decode(bytes, len - 1 ? len - 1 : 1, &back), len > 1 ? 0 : 1);
        assert_true(len == 1 || utf8_is_cut(bytes, len - 1));
        assert_false(utf8_is_cut(bytes, len));
    }
    assert_false(utf8_is_cut((const uint8_t *)"\xe2\x82x", 3)); /* broken, and not at the end */
    assert_false(utf8_is_cut((const uint8_t *)"\x82", 1));
    static const char *const none[] = {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xff"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(utf8_decode((const uint8_t *)none[i], strlen(none[i]), &back), 0);
}

TEST(controls)
{
    static const uint32_t controls[] = {0, '\n', 0x1b, 0x1f, 0x7f, 0x80, 0x9b, 0x9f, 0xad, 0x61c, 0x200b, 0x200d, 0x200e, 0x200f,
                                        0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0xfeff, 0xfff9, 0xe0041};
    static const uint32_t others[] = {' ', '~', 0xa0, 0xac, 0xae, 0x61b, 0x200a, 0x2010, 0x2027, 0x202f, 0x205f, 0x2070,
                                      0xfe0f, 0xfffc, 0xfffd, 0x1f40d, 0xe0080, 0x10ffff};

    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        assert_true(utf8_is_control(controls[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(utf8_is_control(others[i]));
}

TEST(hex)
{
    uint8_t bytes[100], back[100];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 5);
    assert_string_equal(hex_of(bytes, 4).text, "052a4f74");
    assert_string_equal(hex_of(bytes, 0).text, "");
    assert_int_equal(strlen(hex_of(bytes, sizeof bytes).text), 2 * HEX_MAX_BYTES);
    assert_int_equal(hex_read(hex_of(bytes, 64).text, back, sizeof back), 64);
    assert_memory_equal(back, bytes, 64);
    assert_int_equal(hex_read("0A-1b-fF-7", back, sizeof back), 3); /* the half of one is none */
    assert_memory_equal(back, "\x0a\x1b\xff", 3);
    assert_int_equal(hex_read("0123456789", back, 2), 2);
}

/* As sha1sum prints it. */
static void expect_sha1(const char *data, size_t len_bytes, size_t part, const char *expected)
{
    uint8_t hash[SHA1_BYTES];
    struct sha1 sha;

    sha1_init(&sha);
    for (size_t at = 0; at < len_bytes; at += part)
        sha1_add(&sha, data + at, len_bytes - at < part ? len_bytes - at : part);
    sha1_end(&sha, hash);
    assert_string_equal(hex_of(hash, sizeof hash).text, expected);
}

TEST(sha1)
{
    char as[1000];

    memset(as, 'a', sizeof as);
    expect_sha1("", 0, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect_sha1("abc", 3, 3, "a9993e364706816aba3e25717850c26c9cd0d89d"); /* RFC 3174 */
    for (size_t part = 1; part < 200; part += 7)
        expect_sha1(as, sizeof as, part, "291e9a6c66994949b57ba5e650361e98fc36b1ba");
    /* The length needs a block of its own from 56 bytes on. */
    expect_sha1(as, 55, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    expect_sha1(as, 56, 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    expect_sha1(as, 64, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}

TEST(sha256)
{
    static const struct {
        size_t len_bytes;
        const char *expected; /* as sha256sum prints it */
    } lengths[] = {
        {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"},
    };
    uint8_t hash[SHA256_BYTES];
    char as[1000];

    memset(as, 'a', sizeof as);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        sha256(as, lengths[i].len_bytes, hash);
        assert_string_equal(hex_of(hash, sizeof hash).text, lengths[i].expected);
    }
    sha256("abc", 3, hash); /* FIPS 180-4 */
    assert_string_equal(hex_of(hash, sizeof hash).text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(square_root)
{
    assert_true(square_root(0) == 0 && square_root(-4) == 0 && square_root(1) == 1 && square_root(99) == 9 && square_root(100) == 10);
    assert_true(square_root(1e30) == UINT64_C(1000000000000000));
    assert_true(square_root(1e300) == UINT64_MAX); /* too large for the result */
}
