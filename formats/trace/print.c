/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a record as one line of text, for `pysym --format dump` and for messages of tests:
 * its name, then every field as name=value in the order of records.def.
 */
#include <inttypes.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/trace/trace.h"

enum { BYTES_SHOWN = 64, ROWS_SHOWN = 64 };

static bool is_text(const uint8_t *data, uint64_t len_bytes)
{
    for (uint64_t i = 0; i < len_bytes; i++)
        if ((data[i] < 0x20 && data[i] != '\t' && data[i] != '\n') || data[i] == 0x7f)
            return false;
    return true;
}

/* How much is left out. */
static void put_rest(uint64_t shown, uint64_t count, struct buf *out)
{
    if (shown == count)
        return;
    buf_put_u8(out, '+');
    buf_put_decimal(out, count - shown, 0, ' ');
}

/* Text is quoted; bytes that could end the line or control a terminal are escaped. */
static void print_bytes(const struct trace_bytes *b, bool number, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t shown = b->len_bytes < BYTES_SHOWN ? b->len_bytes : BYTES_SHOWN;
    bool text = !number && is_text(b->data, shown);

    buf_put_str(out, text ? "\"" : "<");
    for (uint64_t i = 0; i < shown; i++) {
        uint8_t c = b->data[i];
        if (!text || c >= 0x80) {
            buf_put_str(out, text ? "\\x" : "");
            buf_put_u8(out, (uint8_t)digits[c >> 4]);
            buf_put_u8(out, (uint8_t)digits[c & 15]);
        } else if (c == '\n' || c == '\t') {
            buf_put_str(out, c == '\n' ? "\\n" : "\\t");
        } else {
            buf_put_str(out, c == '"' || c == '\\' ? "\\" : "");
            buf_put_u8(out, c);
        }
    }
    buf_put_str(out, text ? "\"" : ">");
    put_rest(shown, b->len_bytes, out);
}

static void print_list(const struct trace_list *list, unsigned width, struct buf *out)
{
    uint64_t shown = list->count < ROWS_SHOWN ? list->count : ROWS_SHOWN;

    buf_put_u8(out, '[');
    for (uint64_t row = 0; row < shown; row++) {
        if (row)
            buf_put_u8(out, ' ');
        for (unsigned i = 0; i < width; i++) {
            buf_put_str(out, i ? "," : "");
            buf_put_decimal(out, list->values[row * width + i], 0, ' ');
        }
    }
    buf_put_u8(out, ']');
    put_rest(shown, list->count, out);
}

/* Addresses and versions are printed in hexadecimal, as other tools print them. */
static bool is_hex(const struct trace_field *f)
{
    return strstr(f->name, "address") || !strcmp(f->name, "python_version");
}

static void print_number(const struct trace_field *f, uint64_t v, struct buf *out)
{
    if (is_hex(f))
        buf_printf(out, "%#" PRIx64, v);
    else
        buf_put_decimal(out, v, 0, ' ');
}

static void print_field(const struct trace_record *rec, const struct trace_field *f, struct buf *out)
{
    const void *at = (const char *)&rec->epoch + f->struct_offset;

    buf_put_u8(out, ' ');
    buf_put_str(out, f->name);
    buf_put_u8(out, '=');
    switch (f->type) {
    case TRACE_F_DEF:
    case TRACE_F_DEFS:
    case TRACE_F_REF:
    case TRACE_F_ID:
    case TRACE_F_STR:
    case TRACE_F_U32:
        print_number(f, *(const uint32_t *)at, out);
        break;
    case TRACE_F_U64:
        print_number(f, *(const uint64_t *)at, out);
        break;
    case TRACE_F_S64:
        buf_printf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case TRACE_F_BYTES:
        print_bytes(at, f->argument, out);
        break;
    case TRACE_F_LIST:
        print_list(at, (unsigned)f->argument, out);
        break;
    }
}

void trace_record_print(const struct trace_record *rec, struct buf *out)
{
    const struct trace_record_type *type = trace_record_type(rec->type);

    if (!type) {
        buf_printf(out, "unknown type=%u\n", (unsigned)rec->type);
        return;
    }
    buf_put_str(out, type->name);
    for (uint32_t i = 0; i < type->field_count; i++)
        print_field(rec, &type->fields[i], out);
    buf_put_u8(out, '\n');
}
