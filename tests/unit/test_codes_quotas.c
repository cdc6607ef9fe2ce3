/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may have of code objects: made-up ones in this process's own memory, read as another's would be. All
 * of them share one line table, which is how a program makes very many bytes of code out of few.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/quotas.h"
#include "capture/trace/codes.h"
#include "capture/trace/codes_limit.h"
#include "formats/cpython/layout_find.h"

enum { PYTHON_3_11 = 0x030b02f0, TABLE_BYTES = 1 << 20, OBJECT_BYTES = 512, CODE_TYPE = 0x1230, SLOT = 3, MANY = 20000 };

static const uint64_t line_burst = 0
#define QUOTA(name, loss, unit, per_second, burst, pool, first) + (QUOTA_##name == QUOTA_line_bytes ? (burst) : 0)
#include "capture/host/quotas.def"
#undef QUOTA
    ;

struct world {
    struct py_layout layout;
    struct codes *codes;
    struct quotas *quotas;
    struct codes_owner owner;
    uint8_t *table;  /* a bytes object */
    uint8_t *arena;  /* the others */
    size_t used;
};

static void put(uint8_t *object, uint16_t offset, uint64_t value, size_t len_bytes)
{
    memcpy(object + offset, &value, len_bytes);
}

static uint8_t *make(struct world *w)
{
    uint8_t *object = w->arena + w->used;

    w->used += OBJECT_BYTES;
    assert_true(w->used <= 2 * MANY * OBJECT_BYTES);
    return object;
}

/* A function; its line table is the shared one, cut to `table_bytes`. */
static uint64_t make_code(struct world *w, uint64_t table_bytes)
{
    const struct py_layout *l = &w->layout;
    uint8_t *name = make(w), *code = make(w);
    char text[64];

    snprintf(text, sizeof text, "function_%zu", w->used);
    put(name, l->str_length, strlen(text), 8);
    put(name, l->str_state, 1u << l->str_kind_shift | 1u << l->str_compact_shift | 1u << l->str_ascii_shift, 4);
    memcpy(name + l->str_ascii_data, text, strlen(text));
    put(code, l->code_type, CODE_TYPE, 8);
    put(code, l->code_first_line, 7, 4);
    put(code, l->code_name, (uintptr_t)name, 8);
    put(code, l->code_qualname, (uintptr_t)name, 8);
    put(code, l->code_filename, (uintptr_t)name, 8);
    put(code, l->code_line_table, (uintptr_t)w->table, 8);
    put(w->table, l->bytes_size, table_bytes, 8);
    return (uintptr_t)code;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct error *err = py_layout_find(PYTHON_3_11, false, NULL, 0, &w->layout);

    if (err)
        fail_msg("%s", error_text(err));
    assert_true(w->layout.code_len_bytes <= OBJECT_BYTES);
    w->table = calloc(1, w->layout.bytes_data + TABLE_BYTES);
    w->arena = calloc(2 * MANY, OBJECT_BYTES);
    assert_true(w->table && w->arena);
    OK(codes_create(&w->codes));
    OK(quotas_create(&w->quotas));
    OK(quotas_begin(w->quotas, SLOT, 1000, false));
    w->owner = (struct codes_owner){.pid = getpid(), .layout = &w->layout, .code_type = CODE_TYPE, .quotas = w->quotas,
                                    .slot = SLOT, .time_ns = 1};
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    codes_destroy(w->codes);
    quotas_destroy(w->quotas);
    free(w->table);
    free(w->arena);
    free(w);
    return 0;
}

static uint32_t add_live(struct world *w, uint64_t address)
{
    uint32_t index;

    OK(codes_add_live(w->codes, &w->owner, address, 0, &index));
    return index;
}

/* A message as the sampler sends it, with all of the object's pieces. */
static uint32_t add_message(struct world *w, uint64_t address, uint64_t table_bytes)
{
    static struct {
        struct wire_code head;
        uint8_t bytes[4 * OBJECT_BYTES + TABLE_BYTES];
    } m;
    const struct py_layout *l = &w->layout;
    uint64_t name;
    uint32_t at = 0, index;

    memcpy(&name, (const uint8_t *)(uintptr_t)address + l->code_name, 8);
    const struct wire_piece pieces[WIRE_CODE_PIECES] = {{address, l->code_len_bytes, 0},
                                                        {name, 128, 0},
                                                        {0},
                                                        {name, 128, 0},
                                                        {(uintptr_t)w->table, (uint32_t)(l->bytes_data + table_bytes), 0}};
    m.head = (struct wire_code){.type = WIRE_CODE, .tgid = (uint32_t)getpid(), .address = address};
    memcpy(m.head.pieces, pieces, sizeof pieces);
    for (int i = 0; i < WIRE_CODE_PIECES; i++) {
        if (pieces[i].len_bytes)
            memcpy(m.bytes + at, (const void *)(uintptr_t)pieces[i].address, pieces[i].len_bytes);
        at += pieces[i].len_bytes;
    }
    OK(codes_add_message(w->codes, &w->owner, &m.head, (uint32_t)sizeof m.head + at, &index));
    return index;
}

static uint64_t refused(struct world *w, enum quota kind)
{
    uint64_t counts[QUOTA_COUNT] = {0};

    quotas_refused(w->quotas, SLOT, counts);
    return counts[kind];
}

static uint64_t lines_of(struct world *w, uint32_t index)
{
    struct trace_code record;

    assert_int_not_equal(index, CODES_NONE);
    codes_record(w->codes, index, &record);
    assert_true(record.name.len_bytes > 0);
    assert_int_not_equal(record.line_table_len, 0); /* the full length, also where it was cut */
    return record.line_table.len_bytes;
}

/* Either way of learning: first the line tables go, then the names, and all of it is counted. */
static void assert_lines_go_first(struct world *w, uint64_t table_bytes, bool live)
{
    uint64_t lines = 0, with = 0, without = 0, nameless = 0;

    for (int i = 0; i < MANY && nameless < 10; i++) {
        uint64_t address = make_code(w, table_bytes);
        uint32_t index = live ? add_live(w, address) : add_message(w, address, table_bytes);
        uint64_t more = index == CODES_NONE ? 0 : lines_of(w, index);
        nameless += index == CODES_NONE;
        with += more != 0;
        without += index != CODES_NONE && !more;
        lines += more;
    }
    assert_int_equal(with, line_burst / table_bytes);
    assert_int_equal(lines, with * table_bytes);
    assert_true(without > 1000); /* names cost little */
    assert_int_equal(nameless, 10);
    assert_in_range(codes_bytes(w->codes), line_burst - table_bytes, 3 * line_burst);
    uint64_t counts[QUOTA_COUNT] = {0};
    assert_true(quotas_refused(w->quotas, SLOT, counts));
    assert_in_range(counts[QUOTA_line_bytes], without, without + nameless);
    assert_int_equal(counts[QUOTA_name_bytes], nameless);
    w->owner.time_ns += UINT64_C(10000000000); /* after ten seconds there is room for some */
    uint64_t address = make_code(w, 1000);
    assert_int_equal(lines_of(w, live ? add_live(w, address) : add_message(w, address, 1000)), 1000);
}

TEST_WITH(live, set_up, tear_down)
{
    assert_lines_go_first(*state, TABLE_BYTES, true);
}

TEST_WITH(messages, set_up, tear_down)
{
    assert_lines_go_first(*state, 16384, false);
}

/* What is known already costs nothing when another process, or a new object, brings it again. */
TEST_WITH(known_contents_are_free, set_up, tear_down)
{
    struct world *w = *state;
    uint64_t address = make_code(w, 1000);
    uint32_t index = add_message(w, address, 1000);

    for (uint64_t i = 0; i < 2 * line_burst / 1000; i++)
        assert_int_equal(add_message(w, address, 1000), index);
    assert_int_equal(refused(w, QUOTA_line_bytes), 0);
    assert_int_equal(codes_count(w->codes), 1);
}

/* An object that cannot be read costs time, so attempts are limited, too. */
TEST_WITH(attempts_are_limited, set_up, tear_down)
{
    struct world *w = *state;
    uint64_t attempts = 0;

    while (!refused(w, QUOTA_name_bytes)) {
        assert_int_equal(add_live(w, 0x10), CODES_NONE);
        assert_true(++attempts < 100000);
    }
    assert_true(attempts > 1000);
}

/* ---- the memory that they take ---- */

static struct process_note *note_with(struct world *w, struct trace_notes *notes, struct process *p, uint32_t count,
                                      uint64_t table_bytes)
{
    struct process_note *n = trace_notes_process(notes, p);

    assert_non_null(n);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = make_code(w, table_bytes);
        uint32_t index = add_live(w, address);
        intern_id(&n->codes.keys, &address, sizeof address, NULL);
        assert_true(VEC_PUSH(&n->codes.index, index));
    }
    return n;
}

TEST_WITH(the_biggest_is_forgotten_first, set_up, tear_down)
{
    struct world *w = *state;
    struct trace_notes notes = {0};
    struct process big = {.slot = 0}, small = {.slot = 1}, ended = {.slot = 2};
    struct trace_code record;
    char name[64];

    note_with(w, &notes, &big, 200, 1000);
    note_with(w, &notes, &ended, 10, 1000);
    struct process_note *n = note_with(w, &notes, &small, 20, 1000);
    codes_record(w->codes, n->codes.index.data[7], &record);
    snprintf(name, sizeof name, "%.*s", (int)record.name.len_bytes, (const char *)record.name.data);
    *codes_place(w->codes, n->codes.index.data[7]) = (struct code_place){5, 6};
    trace_notes_forget(&notes, &ended);
    uint64_t all = codes_bytes(w->codes) + trace_notes_codes_bytes(&notes);

    OK(codes_limit(w->codes, &notes, all));
    assert_int_equal(codes_count(w->codes), 220); /* what ended processes had is given up for nothing */
    OK(codes_limit(w->codes, &notes, all / 2));
    assert_int_equal(codes_count(w->codes), 20);
    assert_int_equal(trace_notes_find(&notes, &big)->codes.index.count, 0);
    assert_int_equal(n->codes.index.count, 20);
    codes_record(w->codes, n->codes.index.data[7], &record);
    assert_int_equal(record.name.len_bytes, strlen(name));
    assert_memory_equal(record.name.data, name, strlen(name));
    assert_int_equal(codes_place(w->codes, n->codes.index.data[7])->epoch, 5);
    assert_int_equal(lines_of(w, add_live(w, make_code(w, 500))), 500);
    OK(codes_limit(w->codes, &notes, 0));
    assert_int_equal(codes_count(w->codes), 0);
    trace_notes_deinit(&notes);
}
