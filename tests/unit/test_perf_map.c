/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of symbols that programs write for perf: what a line says, which line counts, and bytes that say nothing. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/trace/trace.h"
#include "symbolize/stack/perf_maps.h"

static void add(struct perf_map *m, const char *text)
{
    assert_true(perf_map_add(m, (const uint8_t *)text, strlen(text)));
}

static void assert_name(struct perf_map *m, uint64_t address, const char *name, uint64_t start)
{
    const struct perf_map_line *line = perf_map_find(m, address);

    if (!name) {
        assert_null(line);
        return;
    }
    assert_non_null(line);
    assert_string_equal(line->name, name);
    assert_int_equal(line->start, start);
}

TEST(lines)
{
    struct perf_map m = {0};

    assert_name(&m, 0x1000, NULL, 0);
    add(&m, "1000 10 f\n2000 20 Lapp/Main;::run(int) [opt]\r\n0x3000 0x8 hex\nABCDEF 1 upper\nfffffffffffffff0 f end");
    assert_name(&m, 0xfff, NULL, 0);
    assert_name(&m, 0x1000, "f", 0x1000);
    assert_name(&m, 0x100f, "f", 0x1000);
    assert_name(&m, 0x1010, NULL, 0);
    assert_name(&m, 0x201f, "Lapp/Main;::run(int) [opt]", 0x2000);
    assert_name(&m, 0x3007, "hex", 0x3000);
    assert_name(&m, 0xabcdef, "upper", 0xabcdef);
    assert_name(&m, UINT64_MAX - 1, "end", UINT64_MAX - 15);
    assert_name(&m, UINT64_MAX, NULL, 0);
    assert_int_equal(m.bad_count, 0);
    perf_map_deinit(&m);
}

/* Memory is used again: what was written last is there. */
TEST(last_counts)
{
    struct perf_map m = {0};

    add(&m, "1000 100 old\n1040 40 middle\n1050 10 inner\n2000 10 gone\n1ff0 30 over\n");
    assert_name(&m, 0x103f, "old", 0x1000);
    assert_name(&m, 0x1040, "middle", 0x1040);
    assert_name(&m, 0x1055, "inner", 0x1050);
    assert_name(&m, 0x1060, "middle", 0x1040);
    assert_name(&m, 0x1080, "old", 0x1000);
    assert_name(&m, 0x2005, "over", 0x1ff0);
    perf_map_deinit(&m);
}

/* The same file, longer: its lines are not read twice. Another file: they are. */
TEST(again)
{
    struct perf_map m = {0};

    add(&m, "1000 10 a\n");
    add(&m, "1000 10 a\n2000 10 b\n");
    assert_int_equal(m.lines.count, 2);
    assert_name(&m, 0x2000, "b", 0x2000);
    add(&m, "1000 10 a\n2000 10 b\n1008 10 c\n");
    assert_int_equal(m.lines.count, 3);
    assert_name(&m, 0x1008, "c", 0x1008);
    add(&m, "1000 20 d\n");
    assert_int_equal(m.lines.count, 4);
    assert_name(&m, 0x1008, "d", 0x1000);
    assert_name(&m, 0x2000, "b", 0x2000);
    perf_map_deinit(&m);
}

TEST(bad_lines)
{
    static const char *const bad[] = {
        "1000",          "1000 10",  "1000 10 ",          "x 10 f",    "1000 y f",  "1000 0 empty", "-1 10 f",
        "ffffffffffffffff 2 wraps", "10000000000000000 1 long", "1000  ", " 1000 10 f", "0x 10 f",  "1000\t", "garbage",
    };
    struct perf_map m = {0};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s\n", bad[i]);
        add(&m, text);
        if (m.bad_count != i + 1 || m.lines.count)
            fail_msg("taken for a line: %s", bad[i]);
    }
    assert_true(perf_map_add(&m, (const uint8_t *)"1000 10 a\0b\n\n\n1", 15));
    assert_name(&m, 0x1000, "a", 0x1000);
    perf_map_deinit(&m);
}

/* Every overlap against the plain answer: the last line that holds the address. */
TEST(random)
{
    enum { LINES = 300, SPAN = 2000 };
    unsigned seed = 7;

    for (int round = 0; round < 20; round++) {
        struct perf_map m = {0};
        unsigned start[LINES], size[LINES];
        for (unsigned i = 0; i < LINES; i++) {
            char text[64];
            start[i] = (seed = seed * 1103515245 + 12345) / 65536 % SPAN;
            size[i] = 1 + (seed = seed * 1103515245 + 12345) / 65536 % (round % 2 ? 20 : 600);
            snprintf(text, sizeof text, "%x %x n%u\n", start[i], size[i], i);
            m.read_len = 0;
            add(&m, text);
        }
        for (unsigned at = 0; at < SPAN + 700; at++) {
            char name[32] = "";
            unsigned i = LINES;
            while (i-- > 0 && !(at >= start[i] && at < start[i] + size[i]))
                ;
            if (i < LINES)
                snprintf(name, sizeof name, "n%u", i);
            assert_name(&m, at, i < LINES ? name : NULL, i < LINES ? start[i] : 0);
        }
        perf_map_deinit(&m);
    }
}

/* ---- the tables of a trace ---- */

static struct trace_bytes bytes(const char *text)
{
    return (struct trace_bytes){.data = (const uint8_t *)text, .len_bytes = strlen(text)};
}

static void put_table(struct trace_writer *w, const char *process, uint32_t kind, const char *text)
{
    struct trace_module module = {.kind = kind, .id_kind = TRACE_ID_PROCESS, .build_id = bytes(process)};

    trace_writer_put(w, TRACE_module, &module);
    struct trace_perf_map map = {.module = module.id, .text = bytes(text)};
    trace_writer_put(w, TRACE_perf_map, &map);
}

/* Modules have other ids in each epoch; a process has one table over all of them. */
TEST(tables_of_a_trace)
{
    struct perf_maps all = {0};
    struct trace_writer *w;
    int fd = memfd_create("trace", MFD_CLOEXEC);
    char path[64];

    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_null(trace_writer_create(fd, path, NULL, 1, &w));
    put_table(w, "one", TRACE_MODULE_ANONYMOUS, "1000 10 a\n");
    put_table(w, "file", 0, "1000 10 not of a process\n");
    trace_writer_new_epoch(w, 2);
    put_table(w, "two", TRACE_MODULE_ANONYMOUS, "1000 10 b\n");
    put_table(w, "one", TRACE_MODULE_ANONYMOUS, "2000 10 c\n");
    assert_null(trace_writer_finish(w));
    trace_writer_destroy(w);

    assert_null(perf_maps_read(&all, path));
    assert_int_equal(all.maps.count, 2);
    struct perf_map *one = perf_maps_get(&all, (const uint8_t *)"one", 3);
    assert_name(one, 0x1008, "a", 0x1000);
    assert_name(one, 0x2008, "c", 0x2000);
    assert_name(perf_maps_get(&all, (const uint8_t *)"two", 3), 0x1008, "b", 0x1000);
    /* What cannot be read twice is left alone. */
    assert_null(perf_maps_read(&all, "-"));
    perf_maps_deinit(&all);
    close(fd);
}
