/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/tables.h"

#include <ctype.h>

#include <string.h>

#include "formats/base/hex.h"
#include "formats/emit/code_places.h"
#include "formats/emit/names.h"
#include "formats/emit/pprof/fields.h"
#include "formats/emit/protobuf.h"

enum { PAGE_BYTES = 4096 }; /* what pprof takes pages for, on all machines */
enum { ENTRY_BYTES = 7, MAPPING_BYTES = 40 }; /* what an entry takes but for its contents: its key, length and id */

struct error *pprof_tables_init(struct pprof_tables *t, const struct emit_model *model, struct limits *limits)
{
    *t = (struct pprof_tables){.model = model, .limits = limits};
    t->strings.arena.limits = t->functions.arena.limits = t->locations.arena.limits = limits;
    t->binaries.limits = t->names.limits = limits;
    return intern_id(&t->strings, "", 0, NULL) == 0 ? NULL : error_no_memory();
}

void pprof_tables_deinit(struct pprof_tables *t)
{
    intern_deinit(&t->strings);
    intern_deinit(&t->functions);
    intern_deinit(&t->locations);
    limits_give(t->limits, t->mappings.count * sizeof *t->mappings.data);
    VEC_DEINIT(&t->mappings);
    map_deinit(&t->binaries);
    map_deinit(&t->names);
    buf_deinit(&t->scratch);
    buf_deinit(&t->line);
}

/* ---- adding ---- */

/* The index of bytes in a table of entries. */
static uint32_t entry(struct pprof_tables *t, struct intern *table, const struct buf *bytes)
{
    bool added;

    if (bytes->bad || bytes->len_bytes >= UINT32_MAX || !limits_work(t->limits, 40 + bytes->len_bytes))
        return PPROF_NONE;
    uint32_t id = intern_id(table, bytes->len_bytes ? (const char *)bytes->data : "", (uint32_t)bytes->len_bytes, &added);
    if (id != INTERN_NONE && added)
        t->len_bytes += ENTRY_BYTES + bytes->len_bytes;
    return id;
}

/* The id of what was encoded in `scratch`. */
static uint32_t id_of_scratch(struct pprof_tables *t, struct intern *table)
{
    uint32_t index = entry(t, table, &t->scratch);

    return index == PPROF_NONE ? PPROF_NONE : index + 1;
}

uint32_t pprof_string(struct pprof_tables *t, const struct buf *text)
{
    return entry(t, &t->strings, text);
}

uint32_t pprof_plain_string(struct pprof_tables *t, const char *text)
{
    buf_clear(&t->scratch);
    name_plain(text, &t->scratch);
    return entry(t, &t->strings, &t->scratch);
}

void pprof_put_word(const char *name, struct buf *out)
{
    for (; *name; name++)
        buf_put_u8(out, isascii(*name) && isalnum((unsigned char)*name) ? (uint8_t)*name : '_');
}

uint32_t pprof_function(struct pprof_tables *t, const struct pprof_function *function)
{
    buf_clear(&t->scratch);
    protobuf_put_u64(&t->scratch, PPROF_FUNCTION_NAME, function->name);
    protobuf_put_u64(&t->scratch, PPROF_FUNCTION_FILENAME, function->file);
    protobuf_put_u64(&t->scratch, PPROF_FUNCTION_START_LINE, function->start_line);
    return id_of_scratch(t, &t->functions);
}

static uint32_t add_mapping(struct pprof_tables *t, const struct pprof_mapping *mapping)
{
    if (t->mappings.count >= PPROF_NONE - 1 || !limits_take(t->limits, sizeof *mapping) ||
        !VEC_PUSH(&t->mappings, *mapping))
        return PPROF_NONE;
    t->len_bytes += MAPPING_BYTES;
    return (uint32_t)t->mappings.count;
}

uint32_t pprof_named_mapping(struct pprof_tables *t, const char *name)
{
    struct pprof_mapping mapping = {.file = pprof_plain_string(t, name)};

    if (mapping.file == PPROF_NONE)
        return PPROF_NONE;
    const uint64_t *known = map_get(&t->names, mapping.file);
    if (known)
        return (uint32_t)*known;
    uint32_t id = add_mapping(t, &mapping);
    return id != PPROF_NONE && map_set(&t->names, mapping.file, id) ? id : PPROF_NONE;
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(PAGE_BYTES - 1);
}

/* The pages of a segment. A damaged header may have any numbers: then it is no range. */
static void set_range(struct pprof_mapping *mapping, const struct emit_segment *s)
{
    uint64_t end;
    const uint64_t before = s->vaddr - page_of(s->vaddr);

    if (__builtin_add_overflow(s->vaddr, s->memory_size, &end) || __builtin_add_overflow(end, PAGE_BYTES - 1, &end) ||
        before > s->file_offset)
        return;
    mapping->start = s->vaddr - before;
    mapping->offset = s->file_offset - before;
    mapping->limit = page_of(end);
}

static uint32_t binary_segment(struct pprof_tables *t, uint32_t mapping, uint32_t segment)
{
    const struct emit_mapping *m = &t->model->mappings[mapping];
    uint64_t key = (uint64_t)mapping << 32 | segment;
    const uint64_t *known = map_get(&t->binaries, key);

    if (known)
        return (uint32_t)*known;
    struct pprof_mapping added = {.file = pprof_plain_string(t, m->path),
                                  .build_id = pprof_plain_string(t, hex_of(m->build_id, m->build_id_len).text)};
    if (added.file == PPROF_NONE || added.build_id == PPROF_NONE)
        return PPROF_NONE;
    if (segment != CODE_PLACE_NO_SEGMENT)
        set_range(&added, &m->segments[segment]);
    uint32_t id = add_mapping(t, &added);
    return id != PPROF_NONE && map_set(&t->binaries, key, id) ? id : PPROF_NONE;
}

uint32_t pprof_binary(struct pprof_tables *t, uint32_t mapping, uint64_t offset, uint64_t *address)
{
    const struct emit_mapping *m = &t->model->mappings[mapping];

    if (!limits_work(t->limits, 20 + 2 * (uint64_t)m->segment_count))
        return PPROF_NONE;
    uint32_t segment = code_place_segment(m, offset);
    *address = segment == CODE_PLACE_NO_SEGMENT ? offset : offset - m->segments[segment].file_offset + m->segments[segment].vaddr;
    return binary_segment(t, mapping, segment);
}

uint32_t pprof_program(struct pprof_tables *t, uint32_t mapping)
{
    const struct emit_mapping *m = &t->model->mappings[mapping];
    uint32_t segment = CODE_PLACE_NO_SEGMENT;

    for (uint32_t i = m->segment_count; i--;)
        segment = m->segments[i].flags & 1 ? i : segment;
    return binary_segment(t, mapping, segment);
}

uint32_t pprof_location(struct pprof_tables *t, uint32_t mapping, uint64_t address, const struct pprof_line *lines,
                        size_t line_count)
{
    struct buf *line = &t->line;

    buf_clear(&t->scratch);
    protobuf_put_u64(&t->scratch, PPROF_LOCATION_MAPPING, mapping);
    protobuf_put_u64(&t->scratch, PPROF_LOCATION_ADDRESS, address);
    for (size_t i = 0; i < line_count; i++) {
        buf_clear(line);
        protobuf_put_u64(line, PPROF_LINE_FUNCTION, lines[i].function);
        protobuf_put_i64(line, PPROF_LINE_LINE, lines[i].line);
        protobuf_put_i64(line, PPROF_LINE_COLUMN, lines[i].column);
        protobuf_put_message(&t->scratch, PPROF_LOCATION_LINE, line);
    }
    return id_of_scratch(t, &t->locations);
}

/* ---- writing ---- */

static struct error *write_mappings(struct pprof_tables *t, struct gzip *out, struct buf *field)
{
    for (size_t i = 0; i < t->mappings.count; i++) {
        const struct pprof_mapping *m = &t->mappings.data[i];
        struct buf *row = &t->scratch;
        buf_clear(row);
        buf_clear(field);
        protobuf_put_u64(row, PPROF_MAPPING_ID, i + 1);
        protobuf_put_u64(row, PPROF_MAPPING_START, m->start);
        protobuf_put_u64(row, PPROF_MAPPING_LIMIT, m->limit);
        protobuf_put_u64(row, PPROF_MAPPING_OFFSET, m->offset);
        protobuf_put_u64(row, PPROF_MAPPING_FILENAME, m->file);
        protobuf_put_u64(row, PPROF_MAPPING_BUILD_ID, m->build_id);
        protobuf_put_u64(row, PPROF_MAPPING_HAS_FUNCTIONS, m->has_functions);
        protobuf_put_u64(row, PPROF_MAPPING_HAS_FILENAMES, m->has_files);
        protobuf_put_u64(row, PPROF_MAPPING_HAS_LINES, m->has_lines);
        protobuf_put_u64(row, PPROF_MAPPING_HAS_INLINED, m->has_inlined);
        protobuf_put_message(field, PPROF_MAPPING, row);
        TRY(pprof_write(out, field));
    }
    return NULL;
}

/* Writes a table whose entries lack but their ids, which are field 1 of all. */
static struct error *write_entries(struct pprof_tables *t, const struct intern *table, uint32_t number,
                                   struct gzip *out, struct buf *field)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct intern_entry *e = intern_get(table, i);
        buf_clear(&t->scratch);
        buf_clear(field);
        protobuf_put_u64(&t->scratch, PPROF_ID, (uint64_t)i + 1);
        buf_put(&t->scratch, e->data, e->len_bytes);
        protobuf_put_message(field, number, &t->scratch);
        TRY(pprof_write(out, field));
    }
    return NULL;
}

static struct error *write_strings(struct pprof_tables *t, struct gzip *out, struct buf *field)
{
    for (uint32_t i = 0; i < t->strings.count; i++) {
        const struct intern_entry *e = intern_get(&t->strings, i);
        buf_clear(field);
        protobuf_put_bytes(field, PPROF_STRING, e->data, e->len_bytes);
        TRY(pprof_write(out, field));
    }
    return NULL;
}

struct error *pprof_tables_write(struct pprof_tables *t, struct gzip *out)
{
    struct buf field = {0};

    struct error *err = write_mappings(t, out, &field);
    if (!err)
        err = write_entries(t, &t->locations, PPROF_LOCATION, out, &field);
    if (!err)
        err = write_entries(t, &t->functions, PPROF_FUNCTION, out, &field);
    if (!err)
        err = write_strings(t, out, &field);
    buf_deinit(&field);
    return err;
}
