/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a record as one line of text, for `pysym --format dump` and for messages of tests:
 * its name, then every field as name=value in the order of records.def.
 */
#include <inttypes.h>
#include <string.h>

#include "formats/trace/trace.h"

enum { BYTES_SHOWN = 64, ROWS_SHOWN = 64 };

static bool is_text(const uint8_t *data, uint64_t len_bytes)
{
    for (uint64_t i = 0; i < len_bytes; i++)
        if ((data[i] < 0x20 && data[i] != '\t' && data[i] != '\n') || data[i] == 0x7f)
            return false;
    return true;
}

/* Text is quoted; bytes that could end the line or control a terminal are escaped. */
static void print_bytes(const struct trace_bytes *b, FILE *out)
{
    uint64_t shown = b->len_bytes < BYTES_SHOWN ? b->len_bytes : BYTES_SHOWN;
    bool text = is_text(b->data, shown);

    fputs(text ? "\"" : "<", out);
    for (uint64_t i = 0; i < shown; i++) {
        uint8_t c = b->data[i];
        if (!text)
            fprintf(out, "%02x", c);
        else if (c == '\n' || c == '\t')
            fputs(c == '\n' ? "\\n" : "\\t", out);
        else if (c >= 0x80)
            fprintf(out, "\\x%02x", c);
        else
            fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    fputs(text ? "\"" : ">", out);
    if (shown < b->len_bytes)
        fprintf(out, "+%" PRIu64, b->len_bytes - shown);
}

static void print_list(const struct trace_list *list, unsigned width, FILE *out)
{
    uint64_t shown = list->count < ROWS_SHOWN ? list->count : ROWS_SHOWN;

    fputc('[', out);
    for (uint64_t row = 0; row < shown; row++) {
        if (row)
            fputc(' ', out);
        for (unsigned i = 0; i < width; i++)
            fprintf(out, "%s%" PRIu64, i ? "," : "", list->values[row * width + i]);
    }
    fputc(']', out);
    if (shown < list->count)
        fprintf(out, "+%" PRIu64, list->count - shown);
}

/* Addresses and versions are printed in hexadecimal, as other tools print them. */
static bool is_hex(const struct trace_field *f)
{
    return strstr(f->name, "address") || !strcmp(f->name, "python_version");
}

void trace_record_print(const struct trace_record *rec, FILE *out)
{
    const struct trace_record_type *type = trace_record_type(rec->type);

    if (!type) {
        fprintf(out, "unknown type=%u\n", (unsigned)rec->type);
        return;
    }
    fputs(type->name, out);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct trace_field *f = &type->fields[i];
        const void *at = (const char *)&rec->epoch + f->struct_offset;
        fprintf(out, " %s=", f->name);
        switch (f->type) {
        case TRACE_F_DEF:
        case TRACE_F_DEFS:
        case TRACE_F_REF:
        case TRACE_F_ID:
        case TRACE_F_STR:
        case TRACE_F_U32:
            fprintf(out, is_hex(f) ? "%#" PRIx32 : "%" PRIu32, *(const uint32_t *)at);
            break;
        case TRACE_F_U64:
            fprintf(out, is_hex(f) ? "%#" PRIx64 : "%" PRIu64, *(const uint64_t *)at);
            break;
        case TRACE_F_S64:
            fprintf(out, "%" PRId64, *(const int64_t *)at);
            break;
        case TRACE_F_BYTES:
            print_bytes(at, out);
            break;
        case TRACE_F_LIST:
            print_list(at, (unsigned)f->argument, out);
            break;
        }
    }
    fputc('\n', out);
}
