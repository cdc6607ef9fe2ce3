/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads code objects out of a target's memory, and turns their strings into UTF-8.
 *
 * A str of 3.3 and later stores its characters in 1, 2 or 4 bytes each, whichever suffices for
 * all of them, right behind its header; bits in `state` say which header (the ASCII or the longer
 * one) and how wide. Bytes objects, and names in 2.7, are a length and bytes. The target runs
 * while we read, so any of it may be garbage: lengths are checked against a bound for such
 * objects before anything is allocated.
 */
#include "formats/cpython/code.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utf8.h"
#include "formats/cpython/version.h"

/* A longer name, line table or bytecode is garbage. */
#define SANE_MAX (1u << 28)
#define HEADER_MAX_BYTES 512

static uint64_t field_u64(const uint8_t *object, uint16_t offset)
{
    uint64_t v;

    memcpy(&v, object + offset, sizeof v);
    return v;
}

static uint32_t field_u32(const uint8_t *object, uint16_t offset)
{
    uint32_t v;

    memcpy(&v, object + offset, sizeof v);
    return v;
}

/* A part of a code object, by its place in the storage, which may move while it grows. */
struct part {
    uint32_t form;
    uint64_t len; /* characters, or bytes of a line table */
    size_t start, len_bytes;
};

struct reader {
    const struct py_layout *layout;
    py_read_fn read;
    void *ctx;
    struct buf *storage;
};

static struct part read_part(struct reader *r, uint32_t form, uint32_t char_bytes, uint64_t len, uint64_t data,
                             uint64_t max_bytes)
{
    struct part p = {form, len, r->storage->len_bytes, len * char_bytes};

    if (p.len_bytes > max_bytes)
        p.len_bytes = max_bytes - max_bytes % char_bytes;
    uint8_t *to = buf_reserve(r->storage, p.len_bytes);
    if (!to || (p.len_bytes && !r->read(r->ctx, data, to, p.len_bytes)))
        return (struct part){0};
    r->storage->len_bytes += p.len_bytes;
    return p;
}

static struct part read_bytes(struct reader *r, uint32_t form, uint64_t address, uint64_t max_bytes)
{
    const struct py_layout *l = r->layout;
    uint64_t len;

    if (!address || !r->read(r->ctx, address + l->bytes_size, &len, sizeof len) || len > SANE_MAX)
        return (struct part){0};
    return read_part(r, form, 1, len, address + l->bytes_data, max_bytes);
}

static struct part read_string(struct reader *r, uint64_t address, uint64_t max_bytes)
{
    const struct py_layout *l = r->layout;
    uint8_t header[128];
    uint64_t data;

    if (l->str_state == PY_NONE)
        return read_bytes(r, 8, address, max_bytes);
    size_t header_bytes = (size_t)(l->str_state > l->str_length + 4 ? l->str_state + 4 : l->str_length + 8);
    if (!address || header_bytes > sizeof header || !r->read(r->ctx, address, header, header_bytes))
        return (struct part){0};
    uint64_t len = field_u64(header, l->str_length);
    uint32_t state = field_u32(header, l->str_state), kind = state >> l->str_kind_shift & 7;
    bool compact = state >> l->str_compact_shift & 1, ascii = state >> l->str_ascii_shift & 1;
    if ((kind != 1 && kind != 2 && kind != 4) || len > SANE_MAX || (ascii && kind != 1))
        return (struct part){0};
    if (compact)
        data = address + (ascii ? l->str_ascii_data : l->str_compact_data);
    else if (!r->read(r->ctx, address + l->str_compact_data, &data, sizeof data) || !data)
        return (struct part){0};
    return read_part(r, kind, kind, len, data, max_bytes);
}

static struct py_string string_of(const struct reader *r, const struct part *p)
{
    return (struct py_string){p->form, p->len, p->len_bytes ? r->storage->data + p->start : NULL, p->len_bytes};
}

bool py_code_read(const struct py_layout *layout, py_read_fn read, void *ctx, uint64_t address,
                  const struct py_code_limits *limits, struct buf *storage, struct py_code *out)
{
    struct reader r = {layout, read, ctx, storage};
    uint8_t header[HEADER_MAX_BYTES];

    *out = (struct py_code){
        .python_version = layout->version,
        .debug_build = layout->debug_build,
        .free_threaded = layout->free_threaded,
    };
    buf_clear(storage);
    if (layout->code_len_bytes > sizeof header || !read(ctx, address, header, layout->code_len_bytes))
        return false;
    out->first_line = (int32_t)field_u32(header, layout->code_first_line);
    out->co_flags = field_u32(header, layout->code_flags);
    if (layout->code_size != PY_NONE) {
        uint64_t units = field_u64(header, layout->code_size);
        out->code_len_bytes = units <= SANE_MAX ? (uint32_t)units * 2 : 0;
    }
    uint32_t string_max = limits->string_max_bytes;
    struct part name = read_string(&r, field_u64(header, layout->code_name), string_max);
    struct part filename = read_string(&r, field_u64(header, layout->code_filename), string_max);
    struct part table =
        read_bytes(&r, 1, field_u64(header, layout->code_line_table), limits->line_table_max_bytes);
    struct part qualname = {0};
    if (layout->code_qualname != PY_NONE)
        qualname = read_string(&r, field_u64(header, layout->code_qualname), string_max);
    if (storage->bad)
        name = qualname = filename = table = (struct part){0};
    out->name = string_of(&r, &name);
    out->qualname = string_of(&r, &qualname);
    out->filename = string_of(&r, &filename);
    out->line_table = string_of(&r, &table);
    return true;
}

/* Bytes of a character; 0 for a form that does not exist. */
static uint32_t char_bytes_of(uint32_t form)
{
    return form == 1 || form == 2 || form == 4 ? form : form == 8 ? 1 : 0;
}

bool py_string_complete(const struct py_string *s)
{
    uint32_t n = char_bytes_of(s->form);

    return n && s->len_bytes % n == 0 && s->len_bytes / n == s->len;
}

bool py_code_complete(const struct py_code *code)
{
    const struct py_behaviour *version = py_behaviour_of(code->python_version);

    return version && py_string_complete(&code->name) && py_string_complete(&code->filename) &&
           (!version->qualname || py_string_complete(&code->qualname)) && py_string_complete(&code->line_table);
}

static void put_char(struct buf *out, uint32_t c)
{
    uint8_t bytes[4];

    buf_put(out, bytes, utf8_write(c, bytes));
}

/*
 * Bytes that are probably UTF-8: valid sequences stay, every other byte becomes U+FFFD. If the string was `cut`, a
 * character that lost its end there is dropped.
 */
static void put_utf8(const uint8_t *p, uint64_t len, bool cut, struct buf *out)
{
    for (uint64_t i = 0, n; i < len; i += n) {
        uint32_t c;
        n = utf8_decode(p + i, len - i, &c);
        if (!n && cut && utf8_is_cut(p + i, len - i))
            return;
        if (n)
            buf_put(out, p + i, n);
        else
            put_char(out, 0xfffd);
        n = n ? n : 1;
    }
}

void py_string_text(const struct py_string *s, struct buf *out)
{
    uint32_t char_bytes = char_bytes_of(s->form);
    struct bytes b = bytes_of(s->data, s->len_bytes);

    if (!char_bytes) {
        buf_put_str(out, PY_STRING_UNREADABLE);
        return;
    }
    uint64_t chars = s->len_bytes / char_bytes;
    bool cut = chars < s->len;
    if (s->form == 8) {
        put_utf8(s->data, s->len_bytes, cut, out);
    } else {
        for (uint64_t i = 0; i < chars; i++)
            put_char(out, s->form == 1 ? bytes_u8(&b) : s->form == 2 ? bytes_u16(&b) : bytes_u32(&b));
    }
    if (cut)
        buf_put_str(out, "…");
}

bool py_string_read(const struct py_layout *layout, py_read_fn read, void *ctx, uint64_t address, uint32_t max_bytes,
                    struct buf *storage, struct buf *out)
{
    struct reader r = {layout, read, ctx, storage};

    buf_clear(storage);
    struct part p = read_string(&r, address, max_bytes);
    if (!p.form || storage->bad)
        return false;
    struct py_string text = string_of(&r, &p);
    py_string_text(&text, out);
    return !out->bad;
}
