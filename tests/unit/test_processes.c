/* SPDX-License-Identifier: Apache-2.0 */
/* The summary's processes as a tree: order, depth, who is left out, and parents that no kernel would report. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/summary/processes.h"

struct fact {
    uint32_t pid, parent;
    uint64_t samples;
    uint32_t boot;
    uint64_t start_boottime_ns;
};

/* The list of these processes as "pid@depth ...", and the idle ones as "+n". */
static const char *listed(const struct fact *facts, size_t count)
{
    static char out[4096];
    struct summary s = {0};
    struct process_list list;
    int len = 0;

    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        struct process_row row = {.pid = facts[i].pid, .parent_pid = facts[i].parent, .comm = "comm", .name = "name", .title = "",
                                  .container = "", .boot = facts[i].boot,
                                  .start_boottime_ns = facts[i].start_boottime_ns,
                                  .sample_count = facts[i].samples, .thread = SUMMARY_NO_ROW};
        assert_true(VEC_PUSH(&s.processes, row));
    }
    assert_null(processes_list(&s, NULL, &list));
    for (size_t i = 0; i < list.entries.count; i++)
        len += snprintf(out + len, sizeof out - (size_t)len, "%s%u@%u", i ? " " : "", list.entries.data[i].row->pid,
                        list.entries.data[i].depth);
    if (list.idle_count)
        snprintf(out + len, sizeof out - (size_t)len, " +%u", (unsigned)list.idle_count);
    processes_deinit(&list);
    VEC_DEINIT(&s.processes);
    return out;
}

#define LISTED(...) listed((const struct fact[]){__VA_ARGS__}, sizeof((const struct fact[]){__VA_ARGS__}) / sizeof(struct fact))

TEST(tree)
{
    assert_string_equal(LISTED({10, 1, 5}), "10@0");
    /* Children below their parent, by weight; a parent without samples stays for their sake, an idle process does not. */
    assert_string_equal(LISTED({10, 1, 0}, {11, 10, 5}, {12, 10, 9}, {13, 10, 0}, {20, 1, 100}), "20@0 10@0 12@1 11@1 +1");
    /* What is below a process counts for its place. */
    assert_string_equal(LISTED({10, 1, 6}, {20, 1, 5}, {21, 20, 1}, {22, 21, 1}), "20@0 21@1 22@2 10@0");
    assert_string_equal(LISTED({22, 21, 9}, {21, 20, 1}, {10, 1, 10}, {20, 1, 1}), "20@0 21@1 22@2 10@0");
    /* The order of the file does not matter, nor does that of the pids. */
    assert_string_equal(LISTED({5, 9, 1}, {7, 5, 1}, {9, 1, 1}), "9@0 5@1 7@2");
}

TEST(odd_parents)
{
    struct fact chain[40];

    /* Two programs of one process, one after the other, are one process. */
    assert_string_equal(LISTED({10, 1, 5}, {10, 1, 2}, {11, 10, 1}), "10@0 11@1");
    assert_string_equal(LISTED({10, 1, 5, 0, 1}, {10, 1, 2, 0, 2}, {11, 10, 1, 0, 3}), "10@0 10@0 11@1");
    assert_string_equal(LISTED({10, 10, 5}), "10@0");
    /* A circle has no root, and each is listed once all the same. */
    assert_string_equal(LISTED({1, 2, 5}, {2, 3, 5}, {3, 1, 5}), "1@0 3@1 2@2");
    /* A chain is as deep as the screen allows, and begins anew there. */
    for (uint32_t i = 0; i < 40; i++)
        chain[i] = (struct fact){100 + i, i ? 99 + i : 1, 1};
    const char *text = listed(chain, 40);
    assert_non_null(strstr(text, "100@0 101@1 "));
    assert_non_null(strstr(text, " 112@12 113@0 "));
    assert_non_null(strstr(text, "139@"));
}

/* Traces of two hosts have equal pids, and a pid may be used again. */
TEST(other_processes)
{
    assert_string_equal(LISTED({10, 1, 9, 0}, {11, 10, 1, 0}, {10, 1, 5, 1}, {11, 10, 2, 1}), "10@0 11@1 10@0 11@1");
    assert_string_equal(LISTED({10, 1, 9, 0}, {11, 10, 1, 1}), "10@0 11@0");
    assert_string_equal(LISTED({10, 1, 9, 0, 70}, {11, 10, 1, 0, 80}), "10@0 11@1");
    assert_string_equal(LISTED({10, 1, 9, 0, 90}, {11, 10, 1, 0, 80}), "10@0 11@0");
}

/* The table of processes with these names, each the child of the last. */
static char *table(const char *const *names, const char *const *titles, const uint64_t *samples, size_t count)
{
    struct summary s = {0};
    char *text;
    size_t len;

    for (uint32_t i = 0; i < count; i++) {
        struct process_row row = {.pid = 10 + i, .parent_pid = 9 + i, .comm = "comm", .name = names[i], .title = titles[i], .container = "",
                                  .sample_count = samples[i], .thread = SUMMARY_NO_ROW};
        assert_true(VEC_PUSH(&s.processes, row));
    }
    FILE *out = open_memstream(&text, &len);
    assert_null(processes_print(&s, NULL, true, out));
    fclose(out);
    VEC_DEINIT(&s.processes);
    return text;
}

/* A long name makes its column wider, a very long one is cut: the numbers stay below each other. */
TEST(long_names)
{
    static const char *const names[] = {"master", "multiprocessing.resource_tracker",
                                        "a-name-that-is-much-longer-than-any-program-has.py"};

    static const char *const none[] = {"", "", ""}, *const one[] = {"", "shop: mail work", ""};

    char *text = table(names, none, (const uint64_t[]){0, 1, 3}, 3);
    assert_string_equal(text, "Processes\n"
        "       pid  name                                      Python      samples       share  threads\n"
        "        10  master                                    -                 -           -        -\n"
        "        11    multiprocessing.resource_tracker        -                 1      25.0 %        0\n"
        "        12      a-name-that-is-muc\xe2\x80\xa6" "ny-program-has.py  -                 3      75.0 %        0\n\n");
    free(text);
    text = table((const char *const[]){"supervisord", "w.py"}, one, (const uint64_t[]){1, 3}, 2);
    assert_string_equal(text, "Processes\n"
        "       pid  name                    title            Python      samples       share  threads\n"
        "        10  supervisord                              -                 1      25.0 %        0\n"
        "        11    w.py                  shop: mail work  -                 3      75.0 %        0\n\n");
    free(text);
}

TEST(version)
{
    struct process_row row = {.version = 0x030d00f0, .flags = TRACE_CODE_FREE_THREADED | TRACE_CODE_DEBUG};
    char text[32];

    struct process_entry entry = {.row = &row};
    assert_string_equal(processes_version(&entry, text, sizeof text), "3.13.0td");
    entry.other_version = 0x030912f0;
    assert_string_equal(processes_version(&entry, text, sizeof text), "3.13.0td, 3.9.18");
    row.version = 0;
    assert_string_equal(processes_version(&entry, text, sizeof text), "");
}
