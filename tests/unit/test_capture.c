/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of pycap that need no privilege: /proc's texts, kernel symbols, the order of events, who is mapped where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/host.h"
#include "capture/kallsyms.h"
#include "capture/modules.h"
#include "capture/processes.h"
#include "capture/procfs.h"
#include "capture/queue.h"

#define OK(expr)                                       \
    do {                                               \
        struct error *err_ = (expr);                   \
        if (err_)                                      \
            fail_msg("%s: %s", #expr, error_text(err_)); \
    } while (0)

/* ---- /proc/PID/maps ---- */

static void test_maps(void **state)
{
    static const char text[] =
        "00400000-00401000 r-xp 00000000 fe:00 123                                /usr/bin/with space\n"
        "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
        "7f1000000000-7f1000001000 r-xp 00002000 08:01 77   /srv/lib\\012new.so (deleted)\n"
        "7ffd1000-7ffd2000 r-xp 00000000 00:00 0                                  [vdso]\n";
    struct procfs_mappings m;
    uint32_t bad;

    (void)state;
    OK(procfs_parse_mappings(text, strlen(text), &m, &bad));
    assert_int_equal(bad, 0);
    assert_int_equal(m.list.count, 4);
    assert_string_equal(m.list.data[0].path, "/usr/bin/with space");
    assert_int_equal(m.list.data[0].protection, PROT_READ | PROT_EXEC);
    assert_int_equal(m.list.data[0].device_major, 0xfe);
    assert_int_equal(m.list.data[0].inode, 123);
    assert_string_equal(m.list.data[1].path, "");
    assert_string_equal(m.list.data[2].path, "/srv/lib\nnew.so");
    assert_true(m.list.data[2].deleted);
    assert_int_equal(m.list.data[2].file_offset, 0x2000);
    assert_string_equal(m.list.data[3].path, "[vdso]");
    procfs_mappings_deinit(&m);
}

static void test_maps_hostile(void **state)
{
    static const char text[] = "7f0000000000-7f0000021000 rw-p\nnonsense\n\n5-4 r-xp 0 0:0 0\n"
                               "00400000-00401000 r-xp 00000000 fe:00 123 /ok";
    struct procfs_mappings m;
    uint32_t bad;

    (void)state;
    OK(procfs_parse_mappings(text, strlen(text), &m, &bad));
    assert_int_equal(bad, 3);
    assert_int_equal(m.list.count, 1);
    assert_string_equal(m.list.data[0].path, "/ok");
    procfs_mappings_deinit(&m);
    /* Cut anywhere: no crash, never more lines than there are. */
    for (size_t n = 0; n <= strlen(text); n++) {
        OK(procfs_parse_mappings(text, n, &m, &bad));
        assert_true(m.list.count + bad <= 5);
        procfs_mappings_deinit(&m);
    }
}

static void test_own_process(void **state)
{
    struct procfs_status status;
    struct procfs_mappings m;
    struct error *err;

    (void)state;
    OK(procfs_status(getpid(), &status));
    assert_int_equal(status.parent_tgid, getppid());
    assert_true(status.start_ticks > 0);
    OK(procfs_mappings(getpid(), &m));
    assert_true(m.list.count > 3);
    procfs_mappings_deinit(&m);
    err = procfs_status(1 << 22, &status);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
}

/* ---- lists of CPUs ---- */

static void test_cpus(void **state)
{
    static const char *const bad[] = {"", "x", "3-1", "1,", "-1", "1-", "1,,2", "99999999999999999999", "1 2"};
    uint32_t count;
    int *cpus;

    (void)state;
    OK(host_parse_cpus("0-2,7\n", &cpus, &count));
    assert_int_equal(count, 4);
    assert_int_equal(cpus[2], 2);
    assert_int_equal(cpus[3], 7);
    free(cpus);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error *err = host_parse_cpus(bad[i], &cpus, &count);
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_USAGE);
        error_destroy(err);
    }
}

/* ---- kernel symbols ---- */

static void test_kallsyms(void **state)
{
    static const char text[] = "ffffffff81000200 t second\nffffffff81000100 T first\nffffffff81000200 T alias\n"
                               "ffffffff81000300 D data\nffffffffc0000000 t in_module\t[ext4]\nbroken line\n"
                               "0000000000000000 T hidden\n";
    struct kernel_symbol symbol;
    struct kallsyms *k;
    bool found;

    (void)state;
    OK(kallsyms_create(&k));
    /* The first look-up reads the real file; ours takes its place. */
    OK(kallsyms_lookup(k, 1, 0, &symbol, &found));
    assert_false(found);
    OK(kallsyms_parse(k, text, strlen(text)));
    OK(kallsyms_lookup(k, 0xffffffff81000180, 0, &symbol, &found));
    assert_true(found);
    assert_string_equal(symbol.name, "first");
    assert_string_equal(symbol.module, "");
    assert_int_equal(symbol.address, 0xffffffff81000100);
    OK(kallsyms_lookup(k, 0xffffffff81000200, 0, &symbol, &found));
    assert_string_equal(symbol.name, "second");
    /* Data is no function: its addresses belong to the function before it. */
    OK(kallsyms_lookup(k, 0xffffffffc0000010, 0, &symbol, &found));
    assert_string_equal(symbol.name, "in_module");
    assert_string_equal(symbol.module, "ext4");
    OK(kallsyms_lookup(k, 0xffffffff80000000, 0, &symbol, &found));
    assert_false(found);
    /* Far behind the last function there is nothing. */
    OK(kallsyms_lookup(k, 0xffffffffc0900000, 0, &symbol, &found));
    assert_false(found);
    kallsyms_destroy(k);
}

/* ---- order of events ---- */

struct seen {
    char text[64];
};

static struct error *note(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len)
{
    struct seen *s = ctx;

    (void)kind, (void)time_ns;
    strncat(s->text, data, len);
    return NULL;
}

static void test_queue(void **state)
{
    struct seen s = {0};
    struct queue *q;

    (void)state;
    OK(queue_create(&q));
    OK(queue_add(q, 30, 0, "d", 1));
    OK(queue_add(q, 10, 0, "a", 1));
    OK(queue_add(q, 20, 0, "b", 1));
    OK(queue_add(q, 20, 0, "c", 1)); /* equal times: in order of arrival */
    OK(queue_add(q, 50, 0, "f", 1));
    OK(queue_run(q, 29, note, &s));
    assert_string_equal(s.text, "abc");
    assert_int_equal(queue_count(q), 2);
    OK(queue_add(q, 40, 0, "e", 1));
    OK(queue_add(q, 50, 0, "g", 1));
    OK(queue_run(q, UINT64_MAX, note, &s));
    assert_string_equal(s.text, "abcdefg");
    assert_int_equal(queue_count(q), 0);
    queue_destroy(q);
}

/* ---- mappings and lives of processes ---- */

struct told {
    uint32_t mapped, ended;
};

static void on_mapped(void *ctx, struct process *p, struct mapping *m)
{
    (void)p, (void)m;
    ((struct told *)ctx)->mapped++;
}

static void on_ended(void *ctx, struct process *p, uint64_t time_ns)
{
    (void)p, (void)time_ns;
    ((struct told *)ctx)->ended++;
}

static void on_renamed(void *ctx, struct process *p, struct thread *t, uint64_t time_ns)
{
    (void)ctx, (void)p, (void)t, (void)time_ns;
}

static void map(struct processes *p, uint32_t tgid, uint64_t address, uint64_t length, const char *path)
{
    struct sideband_event e = {
        .kind = SIDEBAND_MMAP, .time_ns = 5, .tgid = tgid, .tid = tgid, .address = address, .length = length,
        .file_offset = 0x1000, .protection = PROT_READ | PROT_EXEC,
    };

    strcpy(e.text, path);
    OK(processes_apply(p, &e));
}

static void test_processes(void **state)
{
    struct processes_options options = {.follow = true};
    struct told told = {0};
    struct processes_events events = {.mapped = on_mapped, .ended = on_ended, .renamed = on_renamed, .ctx = &told};
    struct sideband_event e = {.kind = SIDEBAND_FORK, .tgid = 5000001, .tid = 5000001, .parent_tgid = 1, .time_ns = 1};
    struct modules *modules;
    struct processes *p;

    (void)state;
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    processes_set_events(p, &events);
    OK(processes_apply(p, &e));
    struct process *process = processes_find(p, 5000001);
    assert_non_null(process);
    map(p, 5000001, 0x10000, 0x10000, "/a");
    map(p, 5000001, 0x40000, 0x1000, "/b");
    map(p, 5000001, 0x10000, 0x10000, "/a"); /* told twice */
    assert_int_equal(process->mappings.count, 2);
    assert_int_equal(told.mapped, 2);
    /* In the middle of another one: that is cut in two. */
    map(p, 5000001, 0x14000, 0x2000, "/c");
    assert_int_equal(process->mappings.count, 4);
    const struct mapping *m = process->mappings.data;
    assert_int_equal(m[0].address, 0x10000);
    assert_int_equal(m[0].length, 0x4000);
    assert_string_equal(m[1].path, "/c");
    assert_int_equal(m[2].address, 0x16000);
    assert_int_equal(m[2].length, 0xa000);
    assert_int_equal(m[2].file_offset, 0x7000);
    assert_string_equal(m[2].path, "/a");
    assert_string_equal(m[3].path, "/b");
    /* Over several: they are gone. */
    map(p, 5000001, 0x12000, 0x30000, "/d");
    assert_int_equal(process->mappings.count, 2);
    assert_int_equal(process->mappings.data[0].length, 0x2000);
    assert_string_equal(process->mappings.data[1].path, "/d");
    /* A child has what its parent had; an exec has nothing. */
    e.tgid = e.tid = 5000002;
    e.parent_tgid = 5000001;
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000002)->mappings.count, 2);
    e.kind = SIDEBAND_EXEC;
    strcpy(e.text, "a-name-longer-than-16");
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000002)->mappings.count, 0);
    assert_string_equal(processes_find(p, 5000002)->comm, "a-name-longer-th");
    assert_int_equal(told.ended, 1);
    /* The end is noticed, but the process lingers. */
    e.kind = SIDEBAND_EXIT;
    e.time_ns = 10;
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000002)->ended_ns, 10);
    processes_reap(p, 500000000);
    assert_non_null(processes_find(p, 5000002));
    processes_reap(p, 2000000000);
    assert_null(processes_find(p, 5000002));
    assert_int_equal(told.ended, 2);
    processes_destroy(p);
    modules_destroy(modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),     cmocka_unit_test(test_maps_hostile), cmocka_unit_test(test_own_process),
        cmocka_unit_test(test_cpus),     cmocka_unit_test(test_kallsyms),     cmocka_unit_test(test_queue),
        cmocka_unit_test(test_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
