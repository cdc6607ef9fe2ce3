/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes compile units, their line programs, ranges and the strings that they share. Names of constants are those of the
 * DWARF 4 standard, section 7.
 */
#include "formats/emit/perf_data/code_dwarf.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/intern.h"
#include "formats/base/sort.h"
#include "formats/base/vec.h"

enum {
    DW_VERSION = 4,
    DW_ARANGES_VERSION = 2,
    DW_ADDRESS_BYTES = 8,
    DW_CHILDREN_no = 0, DW_CHILDREN_yes = 1,
    DW_TAG_compile_unit = 0x11, DW_TAG_subprogram = 0x2e,
    DW_AT_name = 0x03, DW_AT_stmt_list = 0x10, DW_AT_low_pc = 0x11, DW_AT_high_pc = 0x12, DW_AT_language = 0x13,
    DW_AT_producer = 0x25, DW_AT_decl_file = 0x3a, DW_AT_decl_line = 0x3b, DW_AT_ranges = 0x55,
    DW_FORM_addr = 0x01, DW_FORM_data2 = 0x05, DW_FORM_data8 = 0x07, DW_FORM_strp = 0x0e, DW_FORM_udata = 0x0f,
    DW_FORM_sec_offset = 0x17,
    DW_LANG_C99 = 0x0c, DW_LANG_Python = 0x14,
    DW_LNS_copy = 1, DW_LNS_advance_pc = 2, DW_LNS_advance_line = 3, DW_LNS_set_file = 4,
    DW_LNE_end_sequence = 1, DW_LNE_set_address = 2,
};

/* Abbreviations. */
enum { ABBREV_UNIT = 1, ABBREV_FUNCTION = 2 };

struct encoder {
    const struct code_map *map;
    struct code_dwarf *out;
    struct intern strings;           /* text n is at string_offsets[n] of .debug_str */
    VEC(uint32_t) string_offsets;
    VEC(uint32_t) files;             /* of the unit: file n + 1 of its line program */
    uint32_t *file_numbers;          /* by file of the map: its number in the unit's line program; 0: not in it */
};

/* ---- parts of all sections ---- */

static void put_attribute(struct buf *b, uint8_t name, uint8_t form)
{
    buf_put_u8(b, name);
    buf_put_u8(b, form);
}

static void put_abbreviations(struct buf *b)
{
    static const uint8_t unit[][2] = {{DW_AT_producer, DW_FORM_strp},      {DW_AT_language, DW_FORM_data2},
                                      {DW_AT_name, DW_FORM_strp},          {DW_AT_low_pc, DW_FORM_addr},
                                      {DW_AT_ranges, DW_FORM_sec_offset},  {DW_AT_stmt_list, DW_FORM_sec_offset}};
    static const uint8_t function[][2] = {{DW_AT_name, DW_FORM_strp},
                                          {DW_AT_decl_file, DW_FORM_udata},
                                          {DW_AT_decl_line, DW_FORM_udata},
                                          {DW_AT_low_pc, DW_FORM_addr},
                                          {DW_AT_high_pc, DW_FORM_data8}};

    put_attribute(b, ABBREV_UNIT, DW_TAG_compile_unit);
    buf_put_u8(b, DW_CHILDREN_yes);
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        put_attribute(b, unit[i][0], unit[i][1]);
    put_attribute(b, 0, 0);
    put_attribute(b, ABBREV_FUNCTION, DW_TAG_subprogram);
    buf_put_u8(b, DW_CHILDREN_no);
    for (size_t i = 0; i < sizeof function / sizeof *function; i++)
        put_attribute(b, function[i][0], function[i][1]);
    put_attribute(b, 0, 0);
    buf_put_u8(b, 0);
}

/* Leaves room for a length of 4 bytes, which put_length() fills in with how much comes behind it. */
static size_t begin_length(struct buf *b)
{
    size_t at = b->len_bytes;

    buf_put_u32(b, 0);
    return at;
}

static void put_length(struct buf *b, size_t at)
{
    uint64_t len = b->len_bytes - at - 4;

    if (len >= 0xfffffff0) /* where DWARF's long form begins */
        b->bad = true;
    if (!b->bad)
        memcpy(b->data + at, &(uint32_t){(uint32_t)len}, 4);
}

/* The reference to a string, which is put into .debug_str once. */
static void put_string(struct encoder *e, const char *text)
{
    struct buf *str = &e->out->str;
    size_t len = strlen(text) + 1;
    bool added;
    uint32_t id = len < UINT32_MAX ? intern_id(&e->strings, text, (uint32_t)len, &added) : INTERN_NONE;

    if (id == INTERN_NONE || (added && !VEC_PUSH(&e->string_offsets, (uint32_t)str->len_bytes))) {
        str->bad = true;
        return;
    }
    if (added)
        buf_put(str, text, len);
    str->bad |= str->len_bytes > UINT32_MAX;
    buf_put_u32(&e->out->info, e->string_offsets.data[id]);
}

/* ---- line programs ---- */

/* The file's number in the line program of the unit, which gets it if it is new. */
static uint32_t file_number(struct encoder *e, uint32_t file)
{
    uint32_t *number = &e->file_numbers[file];

    if (!*number && VEC_PUSH(&e->files, file))
        *number = (uint32_t)e->files.count;
    if (!*number)
        e->out->line.bad = true;
    return *number;
}

static void forget_files(struct encoder *e)
{
    for (size_t i = 0; i < e->files.count; i++)
        e->file_numbers[e->files.data[i]] = 0;
    e->files.count = 0;
}

/* Numbers the files of a unit's functions; the first is the unit's own. */
static void number_files(struct encoder *e, const struct code_symbol *const *unit, size_t count)
{
    forget_files(e);
    file_number(e, unit[0]->file);
    for (size_t i = 0; i < count; i++) {
        const struct code_line *lines = e->map->lines + unit[i]->line_first;
        for (size_t l = 0; l < unit[i]->line_count; l++) {
            if (lines[l].file != CODE_NO_FILE)
                file_number(e, lines[l].file);
        }
    }
}

static void put_sequence(struct encoder *e, const struct code_symbol *symbol)
{
    const struct code_line *lines = e->map->lines + symbol->line_first;
    struct buf *b = &e->out->line;
    uint32_t address = symbol->start, file = 1;
    int64_t line = 1;

    if (!symbol->line_count)
        return;
    buf_put_u8(b, 0);
    buf_put_uleb(b, 1 + DW_ADDRESS_BYTES);
    buf_put_u8(b, DW_LNE_set_address);
    buf_put_u64(b, address);
    for (size_t i = 0; i < symbol->line_count; i++) {
        uint32_t number = lines[i].file == CODE_NO_FILE ? file : file_number(e, lines[i].file);
        if (number != file) {
            buf_put_u8(b, DW_LNS_set_file);
            buf_put_uleb(b, file = number);
        }
        buf_put_u8(b, DW_LNS_advance_pc);
        buf_put_uleb(b, lines[i].address - address);
        buf_put_u8(b, DW_LNS_advance_line);
        buf_put_sleb(b, (int64_t)lines[i].line - line);
        buf_put_u8(b, DW_LNS_copy);
        address = lines[i].address;
        line = lines[i].line;
    }
    buf_put_u8(b, DW_LNS_advance_pc);
    buf_put_uleb(b, symbol->end - address);
    buf_put_u8(b, 0);
    buf_put_uleb(b, 1);
    buf_put_u8(b, DW_LNE_end_sequence);
}

static void put_line_program(struct encoder *e, const struct code_symbol *const *unit, size_t count)
{
    static const uint8_t header[] = {
        1,       /* minimum_instruction_length */
        1,       /* maximum_operations_per_instruction */
        1,       /* default_is_stmt */
        0xfb,    /* line_base: -5 */
        14,      /* line_range */
        13,      /* opcode_base, then how many operands each standard opcode has */
        0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1,
        0,       /* end of include_directories */
    };
    struct buf *b = &e->out->line;
    size_t whole = begin_length(b), rest;

    number_files(e, unit, count);
    buf_put_u16(b, DW_VERSION);
    rest = begin_length(b);
    buf_put(b, header, sizeof header);
    for (size_t i = 0; i < e->files.count; i++) {
        const char *path = e->map->files[e->files.data[i]];
        buf_put(b, path, strlen(path) + 1);
        buf_put(b, "\0\0", 3); /* directory, time, length */
    }
    buf_put_u8(b, 0);
    put_length(b, rest);
    for (size_t i = 0; i < count; i++)
        put_sequence(e, unit[i]);
    put_length(b, whole);
}

/* ---- units ---- */

static void put_ranges(struct encoder *e, const struct code_symbol *const *unit, size_t count)
{
    struct buf *b = &e->out->ranges;

    for (size_t i = 0; i < count; i++) {
        buf_put_u64(b, unit[i]->start);
        buf_put_u64(b, unit[i]->end);
    }
    buf_put_u64(b, 0);
    buf_put_u64(b, 0);
}

static void put_aranges(struct encoder *e, uint32_t info_offset, const struct code_symbol *const *unit, size_t count)
{
    struct buf *b = &e->out->aranges;
    size_t whole = begin_length(b);

    buf_put_u16(b, DW_ARANGES_VERSION);
    buf_put_u32(b, info_offset);
    buf_put_u8(b, DW_ADDRESS_BYTES);
    buf_put_u8(b, 0);  /* no segments */
    buf_put_u32(b, 0); /* up to a multiple of two addresses */
    for (size_t i = 0; i < count; i++) {
        buf_put_u64(b, unit[i]->start);
        buf_put_u64(b, unit[i]->end - unit[i]->start);
    }
    buf_put_u64(b, 0);
    buf_put_u64(b, 0);
    put_length(b, whole);
}

static void put_function(struct encoder *e, const struct code_symbol *symbol)
{
    struct buf *b = &e->out->info;

    buf_put_u8(b, ABBREV_FUNCTION);
    put_string(e, symbol->name);
    buf_put_uleb(b, 1); /* file of the unit */
    buf_put_uleb(b, symbol->line);
    buf_put_u64(b, symbol->start);
    buf_put_u64(b, symbol->end - symbol->start);
}

/* Takes from the limits what the sections have grown by; an error, too, if they are longer than their offsets can say. */
static struct error *count_bytes(struct code_dwarf *out)
{
    const struct buf *all[] = {&out->abbrev, &out->info, &out->line, &out->aranges, &out->ranges, &out->str};
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->bad)
            return error_no_memory();
        if (all[i]->len_bytes > UINT32_MAX)
            return error_create(ERROR_LIMIT, "the lines of all functions take more than 4 GiB");
        sum += all[i]->len_bytes;
    }
    uint64_t more = sum - out->taken_bytes;
    if (!limits_take(out->limits, more))
        return error_no_memory();
    out->taken_bytes = sum;
    return limits_work(out->limits, 4 * more) ? NULL : error_no_memory();
}

static struct error *put_unit(struct encoder *e, const struct code_symbol *const *unit, size_t count)
{
    struct buf *b = &e->out->info;
    uint32_t start = (uint32_t)b->len_bytes;
    size_t whole = begin_length(b);

    buf_put_u16(b, DW_VERSION);
    buf_put_u32(b, 0); /* .debug_abbrev */
    buf_put_u8(b, DW_ADDRESS_BYTES);
    buf_put_u8(b, ABBREV_UNIT);
    put_string(e, "pysym");
    buf_put_u16(b, unit[0]->is_python ? DW_LANG_Python : DW_LANG_C99);
    put_string(e, e->map->files[unit[0]->file]);
    buf_put_u64(b, 0); /* what ranges are relative to */
    buf_put_u32(b, (uint32_t)e->out->ranges.len_bytes);
    buf_put_u32(b, (uint32_t)e->out->line.len_bytes);
    for (size_t i = 0; i < count; i++)
        put_function(e, unit[i]);
    buf_put_u8(b, 0);
    put_length(b, whole);
    put_line_program(e, unit, count);
    put_ranges(e, unit, count);
    put_aranges(e, start, unit, count);
    return count_bytes(e->out);
}

static bool same_unit(const struct code_symbol *a, const struct code_symbol *b)
{
    return a->file == b->file && a->is_python == b->is_python;
}

static int by_unit(const void *left, const void *right)
{
    const struct code_symbol *a = *(const struct code_symbol *const *)left, *b = *(const struct code_symbol *const *)right;

    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return (int)a->is_python - (int)b->is_python;
}

static struct error *put_units(struct encoder *e)
{
    VEC(const struct code_symbol *) symbols = {0};
    struct error *err = NULL;
    bool ok = true;

    for (size_t i = 0; ok && i < e->map->symbol_count; i++) {
        if (e->map->symbols[i].file != CODE_NO_FILE)
            ok = VEC_PUSH(&symbols, &e->map->symbols[i]);
    }
    if (!ok || (symbols.count && !sort_stable(symbols.data, symbols.count, sizeof *symbols.data, by_unit)))
        err = error_no_memory();
    for (size_t i = 0, end; !err && i < symbols.count; i = end) {
        for (end = i + 1; end < symbols.count && same_unit(symbols.data[i], symbols.data[end]);)
            end++;
        err = put_unit(e, symbols.data + i, end - i);
    }
    VEC_DEINIT(&symbols);
    return err;
}

struct error *code_dwarf_encode(const struct code_map *map, struct code_dwarf *out)
{
    struct encoder e = {.map = map, .out = out, .strings.arena.limits = out->limits};
    struct error *err;

    e.file_numbers = calloc(map->file_count + 1, sizeof *e.file_numbers);
    put_abbreviations(&out->abbrev);
    err = e.file_numbers ? put_units(&e) : error_no_memory();
    intern_deinit(&e.strings);
    VEC_DEINIT(&e.string_offsets);
    VEC_DEINIT(&e.files);
    free(e.file_numbers);
    return err;
}

void code_dwarf_deinit(struct code_dwarf *dwarf)
{
    buf_deinit(&dwarf->abbrev);
    buf_deinit(&dwarf->info);
    buf_deinit(&dwarf->line);
    buf_deinit(&dwarf->aranges);
    buf_deinit(&dwarf->ranges);
    buf_deinit(&dwarf->str);
    limits_give(dwarf->limits, dwarf->taken_bytes);
    dwarf->taken_bytes = 0;
}
