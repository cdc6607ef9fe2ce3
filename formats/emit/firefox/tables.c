/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the Profiler is an object of columns, each a list with a value for each row. */
#include "formats/emit/firefox/tables.h"

#include <ctype.h>
#include <inttypes.h>

#include "formats/base/hex.h"
#include "formats/emit/json.h"

#define NO_VALUE INT64_MIN /* null */
enum { RESOURCE_LIBRARY = 1, GUID_BYTES = 16 };

struct column {
    const char *name;
    int64_t (*value)(const struct firefox_stacks *s, size_t row);
    bool is_bool;
};

static int64_t number_or_null(uint32_t number)
{
    return number == FIREFOX_NONE ? NO_VALUE : number;
}

static int64_t known_or_null(uint32_t number)
{
    return number ? number : NO_VALUE;
}

static int64_t nothing(const struct firefox_stacks *s, size_t row)
{
    (void)s, (void)row;
    return NO_VALUE;
}

static int64_t one(const struct firefox_stacks *s, size_t row)
{
    (void)s, (void)row;
    return 1;
}

static void write_table(const struct firefox_stacks *s, const char *name, const struct column *columns, size_t row_count,
                        FILE *out)
{
    fprintf(out, "\"%s\":{\"length\":%zu", name, row_count);
    for (const struct column *c = columns; c->name; c++) {
        fprintf(out, ",\n\"%s\":[", c->name);
        for (size_t row = 0; row < row_count; row++) {
            int64_t value = c->value(s, row);
            if (row)
                fputc(',', out);
            if (value == NO_VALUE)
                fputs("null", out);
            else if (c->is_bool)
                fputs(value ? "true" : "false", out);
            else
                fprintf(out, "%" PRId64, value);
        }
        fputc(']', out);
    }
    fputs("},\n", out);
}

/* ---- stacks and frames ---- */

static int64_t stack_parent(const struct firefox_stacks *s, size_t row)
{
    return number_or_null(s->stacks.data[row].parent);
}

static int64_t stack_frame(const struct firefox_stacks *s, size_t row)
{
    return s->stacks.data[row].frame;
}

/* NULL: of samples without frames. */
static const struct emit_frame *model_frame(const struct firefox_stacks *s, size_t row)
{
    uint32_t frame = s->frames.data[row].model_frame;

    return frame < s->model->frame_count ? &s->model->frames[frame] : NULL;
}

static int64_t frame_address(const struct firefox_stacks *s, size_t row)
{
    return s->frames.data[row].address;
}

static int64_t frame_inline_depth(const struct firefox_stacks *s, size_t row)
{
    return s->frames.data[row].inline_depth;
}

static int64_t frame_category(const struct firefox_stacks *s, size_t row)
{
    return firefox_category_of(model_frame(s, row));
}

static int64_t frame_subcategory(const struct firefox_stacks *s, size_t row)
{
    return s->frames.data[row].subcategory;
}

static int64_t frame_function(const struct firefox_stacks *s, size_t row)
{
    return s->frames.data[row].function;
}

static int64_t frame_symbol(const struct firefox_stacks *s, size_t row)
{
    return number_or_null(s->frames.data[row].symbol);
}

static int64_t frame_line(const struct firefox_stacks *s, size_t row)
{
    const struct emit_frame *f = model_frame(s, row);

    return f ? known_or_null(f->line) : NO_VALUE;
}

static int64_t frame_column(const struct firefox_stacks *s, size_t row)
{
    const struct emit_frame *f = model_frame(s, row);

    return f && f->line && s->options->columns ? known_or_null(f->column) : NO_VALUE;
}

/* ---- functions and what they refer to ---- */

static struct firefox_function function_at(const struct firefox_stacks *s, size_t row)
{
    struct firefox_function function;

    memcpy(&function, intern_get(&s->functions, (uint32_t)row)->data, sizeof function);
    return function;
}

static int64_t function_name(const struct firefox_stacks *s, size_t row)
{
    return function_at(s, row).name;
}

static int64_t function_is_python(const struct firefox_stacks *s, size_t row)
{
    return function_at(s, row).is_python;
}

/* Each binary has one row in the table of resources, which has the same number. */
static int64_t function_resource(const struct firefox_stacks *s, size_t row)
{
    uint32_t library = function_at(s, row).library;

    return library == FIREFOX_NONE ? -1 : (int64_t)library;
}

static int64_t function_source(const struct firefox_stacks *s, size_t row)
{
    return number_or_null(function_at(s, row).source);
}

static int64_t function_line(const struct firefox_stacks *s, size_t row)
{
    return known_or_null(function_at(s, row).line);
}

static int64_t source_file(const struct firefox_stacks *s, size_t row)
{
    uint32_t file;

    memcpy(&file, intern_get(&s->sources, (uint32_t)row)->data, sizeof file);
    return file;
}

static struct firefox_symbol symbol_at(const struct firefox_stacks *s, size_t row)
{
    struct firefox_symbol symbol;

    memcpy(&symbol, intern_get(&s->symbols, (uint32_t)row)->data, sizeof symbol);
    return symbol;
}

static int64_t symbol_library(const struct firefox_stacks *s, size_t row)
{
    return symbol_at(s, row).library;
}

static int64_t symbol_address(const struct firefox_stacks *s, size_t row)
{
    return (int64_t)symbol_at(s, row).address;
}

static int64_t symbol_name(const struct firefox_stacks *s, size_t row)
{
    return symbol_at(s, row).name;
}

/* ---- binaries ---- */

/* "[kernel.kallsyms]", "libc.so.6". */
static const char *library_name(const struct emit_mapping *m)
{
    return *m->path == '[' ? m->path : name_base(m->path);
}

static int64_t resource_library(const struct firefox_stacks *s, size_t row)
{
    (void)s;
    return (int64_t)row;
}

static int64_t resource_type(const struct firefox_stacks *s, size_t row)
{
    (void)s, (void)row;
    return RESOURCE_LIBRARY;
}

/* firefox_libraries_write() has added the string. */
static int64_t resource_name(const struct firefox_stacks *s, size_t row)
{
    return s->library_names.data[row];
}

/* The build ID as Breakpad writes it: a GUID, whose first three numbers are little-endian in the ID, and the age 0. */
static void put_breakpad_id(const struct emit_mapping *m, struct buf *out)
{
    static const uint8_t order[GUID_BYTES] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

    if (!m->build_id_len)
        return;
    for (int i = 0; i < GUID_BYTES; i++)
        buf_printf(out, "%02X", order[i] < m->build_id_len ? m->build_id[order[i]] : 0);
    buf_put_u8(out, '0');
}

static void put_member(struct buf *out, const char *key, struct firefox_strings *strings, const char *name)
{
    buf_put_str(out, key);
    buf_clear(&strings->scratch);
    name_plain(name, &strings->scratch);
    json_put_foreign(buf_cstr(&strings->scratch), out);
}

static void put_library(struct firefox_stacks *s, const struct emit_mapping *m, struct buf *out)
{
    struct firefox_strings *strings = &s->strings;

    put_member(out, "{\"arch\":", strings, s->model->capture_count ? s->model->captures[0].machine : "");
    put_member(out, ",\"name\":", strings, library_name(m));
    put_member(out, ",\"path\":", strings, m->path);
    put_member(out, ",\"debugName\":", strings, library_name(m));
    put_member(out, ",\"debugPath\":", strings, m->path);
    buf_put_str(out, ",\"breakpadId\":\"");
    put_breakpad_id(m, out);
    if (m->build_id_len)
        buf_printf(out, "\",\"codeId\":\"%s\"}", hex_of(m->build_id, m->build_id_len).text);
    else
        buf_put_str(out, "\",\"codeId\":null}");
}

struct error *firefox_libraries_write(struct firefox_stacks *s, FILE *out)
{
    struct buf text = {0};
    bool ok = true;

    fputc('[', out);
    for (size_t i = 0; ok && i < s->libraries.count; i++) {
        const struct emit_mapping *m = &s->model->mappings[s->libraries.data[i]];
        uint32_t name = firefox_plain_string(&s->strings, library_name(m));
        buf_clear(&text);
        put_library(s, m, &text);
        ok = name != FIREFOX_NONE && !text.bad && VEC_PUSH(&s->library_names, name);
        fprintf(out, "%s%s", i ? ",\n" : "\n", buf_cstr(&text));
    }
    fputc(']', out);
    buf_deinit(&text);
    return ok ? NULL : error_no_memory();
}

/* ---- all ---- */

static const struct column stack_columns[] = {{"prefix", stack_parent, false}, {"frame", stack_frame, false}, {0}};
static const struct column frame_columns[] = {
    {"address", frame_address, false},       {"inlineDepth", frame_inline_depth, false}, {"category", frame_category, false},
    {"subcategory", frame_subcategory, false}, {"func", frame_function, false},          {"nativeSymbol", frame_symbol, false},
    {"innerWindowID", nothing, false},       {"line", frame_line, false},                {"column", frame_column, false},
    {0}};
static const struct column function_columns[] = {
    {"name", function_name, false},         {"isJS", function_is_python, true},     {"relevantForJS", function_is_python, true},
    {"resource", function_resource, false}, {"source", function_source, false},     {"lineNumber", function_line, false},
    {"columnNumber", nothing, false},       {0}};
static const struct column resource_columns[] = {
    {"lib", resource_library, false}, {"name", resource_name, false},
    {"host", nothing, false},         {"type", resource_type, false}, {0}};
static const struct column symbol_columns[] = {{"libIndex", symbol_library, false},
                                               {"address", symbol_address, false},
                                               {"name", symbol_name, false},
                                               {"functionSize", nothing, false},
                                               {0}};
static const struct column source_columns[] = {{"id", nothing, false},      {"filename", source_file, false},
                                               {"startLine", one, false},   {"startColumn", one, false},
                                               {"sourceMapURL", nothing, false}, {0}};

struct error *firefox_tables_write(struct firefox_stacks *s, FILE *out)
{
    fputs("{\n", out);
    write_table(s, "stackTable", stack_columns, s->stacks.count, out);
    write_table(s, "frameTable", frame_columns, s->frames.count, out);
    write_table(s, "funcTable", function_columns, s->functions.count, out);
    write_table(s, "resourceTable", resource_columns, s->libraries.count, out);
    write_table(s, "nativeSymbols", symbol_columns, s->symbols.count, out);
    write_table(s, "sources", source_columns, s->sources.count, out);
    fputs("\"stringArray\":", out);
    TRY(firefox_strings_write(&s->strings, out));
    fputc('}', out);
    return NULL;
}
