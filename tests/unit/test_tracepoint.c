/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of tracepoints, as kernels write them and as they never would. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/event/tracefs.h"
#include "capture/event/event.h"
#include "capture/event/tracepoint.h"

#define COMMON "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
               "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
static const char write_format[] = "name: sys_enter_write\nID: 840\nformat:\n" COMMON
    "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:const char * buf;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\nprint fmt: \"fd: 0x%08lx\", ((unsigned long)(REC->fd))\n";
static const char epoll_format[] = "name: sys_enter_epoll_wait\nID: 1069\nformat:\n" COMMON
    "\tfield:int timeout;\toffset:40;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:loff_t pos;\toffset:48;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long flags;\toffset:56;\tsize:8;\tsigned:0;\n";
static const char rename_format[] = "name: task_rename\nID: 123\nformat:\n" COMMON
    "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:char oldcomm[16];\toffset:12;\tsize:16;\tsigned:1;\n"
    "\tfield:__data_loc char[] newcomm;\toffset:28;\tsize:4;\tsigned:0;\n"
    "\tfield:short oom_score_adj;\toffset:32;\tsize:2;\tsigned:1;\n";

TEST(fields)
{
    struct tracepoint t;

    OK(tracepoint_parse(write_format, sizeof write_format - 1, NULL, &t));
    assert_int_equal(t.id, 840);
    assert_int_equal(t.weight_size, 0);
    OK(tracepoint_parse(write_format, sizeof write_format - 1, "count", &t));
    assert_int_equal(t.id, 840);
    assert_int_equal(t.weight_offset, 32);
    assert_int_equal(t.weight_size, 8);
    assert_false(t.weight_signed);
    OK(tracepoint_parse(rename_format, sizeof rename_format - 1, "oom_score_adj", &t));
    assert_int_equal(t.weight_offset, 32);
    assert_int_equal(t.weight_size, 2);
    assert_true(t.weight_signed);
}

/* Of the register that holds an argument of a system call, the call takes what the argument's type says. */
TEST(arguments)
{
    static const struct {
        const char *name;
        uint32_t size;
        bool is_signed;
    } wanted[] = {{"timeout", 4, true}, {"fd", 4, false}, {"pos", 8, true}, {"flags", 8, false}};
    struct tracepoint t;

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        OK(tracepoint_parse(epoll_format, sizeof epoll_format - 1, wanted[i].name, &t));
        assert_int_equal(t.weight_size, wanted[i].size);
        assert_int_equal(t.weight_signed, wanted[i].is_signed);
    }
}

static void expect_refusal(const char *text, const char *weight, const char *says)
{
    struct tracepoint t;
    struct error *err = tracepoint_parse(text, strlen(text), weight, &t);

    assert_non_null(err);
    if (!strstr(error_text(err), says))
        fail_msg("'%s' does not say '%s'", error_text(err), says);
    error_destroy(err);
}

TEST(refusals)
{
    expect_refusal(write_format, "bytes", "'bytes' does not exist; those that can be added up are: __syscall_nr, fd, count");
    expect_refusal(write_format, "buf", "'buf' is no number");
    expect_refusal(rename_format, "oldcomm", "'oldcomm' is no number; those that can be added up are: pid, oom_score_adj");
    expect_refusal(rename_format, "newcomm", "'newcomm' is no number");
    /* The first eight bytes are not shown to programs. */
    expect_refusal(write_format, "common_pid", "'common_pid' is no number");
    expect_refusal("name: x\nID: 5\n\tfield:u64 far;\toffset:2044;\tsize:8;\tsigned:0;\n", "far", "is no number");
    expect_refusal("name: x\nID: 5\n\tfield:u64 odd;\toffset:8;\tsize:3;\tsigned:0;\n", "odd", "is no number");
    expect_refusal("name: x\nID: 5\n\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n", NULL, "it is a probe");
}

TEST(damage)
{
    struct tracepoint t;

    expect_refusal("", NULL, "no number");
    expect_refusal("name: x\nID: \n", NULL, "no number");
    expect_refusal("name: x\nID: 0\n", NULL, "no number");
    expect_refusal("name: x\nID: 99999999999\n", NULL, "no number");
    expect_refusal("name: x\nID: 5\n\tfield:u64 a;\toffset:99999999999999999999;\tsize:8;\tsigned:0;\n", "a", "does not exist");
    for (size_t len = 0; len < sizeof write_format - 1; len++) /* any end is read without going beyond it */
        error_destroy(tracepoint_parse(write_format, len, "count", &t));
}

static void assert_near(const char *category, const char *name, const char *want)
{
    static const char names[] = "sched:sched_switch\nsched:sched_wakeup\nsyscalls:sys_enter_open\nsyscalls:sys_enter_openat\n"
                                "syscalls:sys_enter_openat2\nsyscalls:sys_exit_openat\nother:sched_switch\nodd\n\nfs:openat";
    struct buf out = {0};

    tracepoint_put_near(names, category, name, &out);
    assert_string_equal(buf_cstr(&out), want);
    buf_deinit(&out);
}

TEST(near)
{
    assert_near("sched", "sched_swich", "sched:sched_switch");
    assert_near("shed", "sched_switch", "sched:sched_switch, other:sched_switch");
    assert_near("syscalls", "sys_enter_open_at", "syscalls:sys_enter_openat, syscalls:sys_enter_openat2");
    assert_near("sys", "openat", "fs:openat");
    assert_near("sys", "exit", "syscalls:sys_exit_openat");
    assert_near("sys", "nothing", "");
    assert_near("sys", "", "");
}

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

TEST(folder)
{
    char top[] = "/tmp/pycap-unit-tracefs-XXXXXX", path[256];
    static const char *const folders[] = {"events", "events/syscalls", "events/syscalls/sys_enter_write"};
    struct tracepoint t;

    assert_non_null(mkdtemp(top));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", top, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof path, "%s/events/syscalls/sys_enter_write/format", top);
    put_file(path, write_format);
    int fd = open(top, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    OK(tracepoint_find(fd, "syscalls", "sys_enter_write", "count", &t));
    assert_int_equal(t.id, 840);
    struct error *err = tracepoint_find(fd, "syscalls", "sys_enter_wriet", NULL, &t);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    error_destroy(err);
    err = tracepoint_find(fd, "syscalls", "../syscalls/sys_enter_write", NULL, &t);
    assert_non_null(err);
    error_destroy(err);
    close(fd);
    unlink(path);
    for (size_t i = sizeof folders / sizeof *folders; i--;) {
        snprintf(path, sizeof path, "%s/%s", top, folders[i]);
        rmdir(path);
    }
    assert_int_equal(rmdir(top), 0);
}

/* A field that is a level is refused whatever the kernel says of it; others are looked up. */
TEST(levels)
{
    const struct event_places nowhere = {.tracefs = -1};
    struct event_list events = {0};

    OK(event_list_add(&events, "kmem:rss_stat/weight=size,unit=bytes/"));
    struct error *err = event_list_resolve(&events, &nowhere);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "event kmem:rss_stat: its field 'size' says how much memory there is at that moment"));
    error_destroy(err);
    event_list_deinit(&events);
}

TEST(this_kernel)
{
    struct tracepoint t, weighed;
    int fd;

    struct error *err = tracefs_open(&fd);
    if (err) {
        printf("%s\n", error_text(err));
        error_destroy(err);
        skip();
    }
    OK(tracepoint_find(fd, "sched", "sched_process_fork", NULL, &t));
    OK(tracepoint_find(fd, "sched", "sched_process_fork", "child_pid", &weighed));
    assert_int_equal(t.id, weighed.id);
    assert_int_equal(weighed.weight_size, 4);
    assert_true(weighed.weight_signed);
    char *names;
    OK(tracepoint_list(fd, &names));
    assert_non_null(strstr(names, "\nsched:sched_process_fork\n"));
    free(names);
    close(fd);
}
