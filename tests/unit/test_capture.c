/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of pycap that need no privilege: /proc's texts, kernel symbols, the order of events, who is mapped where. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/host.h"
#include "capture/host/host_check.h"
#include "capture/host/kallsyms.h"
#include "capture/host/kernel_hang.h"
#include "capture/binary/modules.h"
#include "capture/host/messages.h"
#include "capture/process/process_table.h"
#include "capture/process/processes.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_maps.h"
#include "capture/session/queue.h"
#include "capture/trace/trace_notes.h"
#include "formats/base/clock.h"
#include "formats/elf/identity.h"

STARTS_THREADS;

/* ---- /proc/PID/maps ---- */

static bool parse(const char *line, struct procfs_mapping *m)
{
    return procfs_parse_mapping(line, strlen(line), m);
}

TEST(maps)
{
    struct procfs_mapping m;

    assert_true(parse("00400000-00401000 r-xp 00000000 fe:00 123                                /usr/bin/with space", &m));
    assert_string_equal(m.path, "/usr/bin/with space");
    assert_int_equal(m.protection, PROT_READ | PROT_EXEC);
    assert_int_equal(m.device_major, 0xfe);
    assert_int_equal(m.inode, 123);
    assert_true(parse("7f0000000000-7f0000021000 rw-p 00000000 00:00 0 ", &m));
    assert_string_equal(m.path, "");
    assert_true(parse("7f1000000000-7f1000001000 r-xp 00002000 08:01 77   /srv/lib\\012new.so (deleted)", &m));
    assert_string_equal(m.path, "/srv/lib\nnew.so");
    assert_true(m.deleted);
    assert_int_equal(m.file_offset, 0x2000);
    assert_true(parse("7ffd1000-7ffd2000 r-xp 00000000 00:00 0                                  [vdso]", &m));
    assert_string_equal(m.path, "[vdso]");
}

TEST(maps_hostile)
{
    static const char text[] = "00400000-00401000 r-xp 00000000 fe:00 123 /ok";
    char line[6000];
    struct procfs_mapping m;

    assert_false(parse("7f0000000000-7f0000021000 rw-p", &m));
    assert_false(parse("nonsense", &m));
    assert_false(parse("5-4 r-xp 0 0:0 0", &m));
    /* Cut anywhere: no crash. */
    for (size_t n = 0; n <= strlen(text); n++)
        procfs_parse_mapping(text, n, &m);
    assert_string_equal(m.path, "/ok");
    /* The longest path of Linux, and one that no file has. */
    int head = snprintf(line, sizeof line, "00400000-00401000 r-xp 00000000 fe:00 123 /");
    memset(line + head, 'a', 5000);
    assert_true(procfs_parse_mapping(line, (size_t)head + 4094, &m));
    assert_int_equal(strlen(m.path), 4095);
    assert_false(procfs_parse_mapping(line, (size_t)head + 4095, &m));
}

static bool stop_after_pieces(void *ctx, size_t len_bytes)
{
    assert_true(len_bytes > 0);
    return (*(int *)ctx)-- > 0;
}

/* The mappings of this program, of which it makes many: all of them, or only what may be read. */
TEST(maps_in_pieces)
{
    enum { MANY = 2000, PAGE = 4096 };
    struct procfs_maps maps;
    struct procfs_mapping m;
    uint32_t found = 0;
    int pieces = 3;

    char *area = mmap(NULL, MANY * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(area, MAP_FAILED);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(mprotect(area + i * 2 * PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
    OK(procfs_maps_open(getpid(), &maps));
    while (procfs_maps_next(&maps, &m)) {
        uint64_t at = m.start - (uint64_t)(uintptr_t)area;
        if (m.start < (uint64_t)(uintptr_t)area || at >= MANY * 2 * PAGE)
            continue;
        assert_int_equal(at, found++ * 2 * PAGE);
        assert_int_equal(m.end - m.start, PAGE);
        assert_true(m.protection & PROT_EXEC);
    }
    assert_int_equal(found, MANY);
    assert_false(maps.cut);
    procfs_maps_close(&maps);
    OK(procfs_maps_open(getpid(), &maps));
    maps.may_read = stop_after_pieces;
    maps.ctx = &pieces;
    for (found = 0; procfs_maps_next(&maps, &m); found++)
        ;
    assert_true(maps.cut);
    assert_true(found < MANY / 2);
    procfs_maps_close(&maps);
    munmap(area, MANY * 2 * PAGE);
    struct error *err = procfs_maps_open(1 << 22, &maps);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
}

TEST(own_process)
{
    struct procfs_status status;
    struct error *err;

    OK(procfs_status(getpid(), &status));
    assert_int_equal(status.parent_tgid, getppid());
    assert_true(status.start_ticks > 0);
    err = procfs_status(1 << 22, &status);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    error_destroy(err);
}

/* ---- files as a process sees them ---- */

static void put(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];

    assert_true(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static char read_one(pid_t pid, const char *path, const struct procfs_file *file)
{
    char c = 0;
    int fd = procfs_open_mapping(pid, 0, 0, path, file);

    if (fd < 0)
        return 0;
    assert_int_equal(read(fd, &c, 1), 1);
    close(fd);
    return c;
}

/* What the kernel says of a file that is mapped. */
static struct procfs_file mapped(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (stat(path, &st))
        return (struct procfs_file){0};
    return (struct procfs_file){major(st.st_dev), minor(st.st_dev), st.st_ino, NULL, 0};
}

/* The links in a process's root are the process's to make: they must not lead to files of the host. */
TEST(other_root)
{
    char folder[] = "/tmp/pycap-unit-XXXXXX", jail[PATH_MAX], path[PATH_MAX + 64];
    int ready[2];
    char entered = 0;

    assert_non_null(mkdtemp(folder));
    snprintf(jail, sizeof jail, "%s/jail", folder);
    assert_int_equal(mkdir(jail, 0755), 0);
    put(folder, "host", "h");
    put(jail, "host", "j");
    put(jail, "own", "o");
    snprintf(path, sizeof path, "%s/host", folder);
    char absent[PATH_MAX + 64], present[PATH_MAX + 64];
    snprintf(absent, sizeof absent, "%s/absent", jail);
    snprintf(present, sizeof present, "%s/present", jail);
    assert_int_equal(symlink(path, absent), 0);
    assert_int_equal(symlink("/host", present), 0);

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        entered = !chroot(jail) || (!unshare(CLONE_NEWUSER) && !chroot(jail));
        if (write(ready[1], &entered, 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &entered, 1), 1);
    char got[6] = {0};
    const struct procfs_file own = mapped(jail, "own"), inside = mapped(jail, "host"), outside = mapped(folder, "host");
    if (entered) {
        got[0] = read_one(pid, "/own", &own);
        got[1] = read_one(pid, "/present", &inside);
        got[2] = read_one(pid, "/absent", &outside);
        got[3] = read_one(pid, path, &outside);
        got[5] = read_one(pid, "/own", &inside);
        snprintf(path, sizeof path, "%s/own", jail);
        got[4] = read_one(pid, path, &own);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    static const char *const names[] = {"jail/host", "jail/own", "jail/absent", "jail/present", "jail", "host", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(remove(path), 0);
    }
    if (!entered)
        skip();
    assert_int_equal(got[0], 'o');
    assert_int_equal(got[1], 'j');
    assert_int_equal(got[2], 0);
    assert_int_equal(got[3], 0);
    assert_int_equal(got[4], 'o'); /* as /proc prints it */
    if (geteuid() == 0)
        assert_int_equal(got[5], 0); /* not the file that was mapped */
}

/* As another user: the root of the process is closed, and what lies at the path must prove that it is the file. */
static void closed_root(pid_t pid, const char *folder, char got[7])
{
    static const uint8_t wrong_id[20] = {1};
    char path[PATH_MAX], link[64];
    struct elf_identity id = {0};
    struct stat st;

    snprintf(link, sizeof link, "/proc/%d/root", pid);
    if (readlink(link, path, sizeof path) >= 0 || errno != EACCES)
        return;
    snprintf(path, sizeof path, "%s/host", folder);
    struct procfs_file file = {0};
    got[1] = read_one(pid, path, &file);
    if (stat(path, &st))
        return;
    file = (struct procfs_file){major(st.st_dev), minor(st.st_dev), st.st_ino, NULL, 0};
    got[2] = read_one(pid, path, &file);
    file.inode++;
    got[3] = read_one(pid, path, &file);
    file = (struct procfs_file){major(st.st_dev), minor(st.st_dev) + 1, st.st_ino, NULL, 0};
    got[4] = read_one(pid, path, &file);
    /* A build ID says more than an inode, which two file systems that call themselves one device both may have. */
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return;
    error_destroy(elf_identity_read(fd, "self", &id));
    file = (struct procfs_file){0, 0, 0, id.build_id, id.build_id_len};
    got[5] = id.id_kind == ELF_ID_BUILD_ID && procfs_is_file(fd, "self", &file);
    file = (struct procfs_file){major(st.st_dev), minor(st.st_dev), st.st_ino, wrong_id, sizeof wrong_id};
    got[6] = procfs_is_file(fd, "self", &file);
    elf_identity_deinit(&id);
    close(fd);
    got[0] = 1;
}

TEST(closed_root)
{
    char folder[] = "/tmp/pycap-unit-XXXXXX", path[PATH_MAX], got[7] = {0};
    int answer[2], status;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    put(folder, "host", "h");
    snprintf(path, sizeof path, "%s/host", folder);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(pipe(answer), 0);
    pid_t pid = fork();
    if (!pid) {
        /* Ours as root; who is not root has the first process for it. */
        pid_t other = geteuid() ? 1 : getppid();
        if (geteuid() || (!setgid(65534) && !setuid(65534)))
            closed_root(other, folder, got);
        _exit(write(answer[1], got, sizeof got) != sizeof got);
    }
    assert_int_equal(read(answer[0], got, sizeof got), sizeof got);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(answer[0]);
    close(answer[1]);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
    if (!got[0])
        skip();
    assert_int_equal(got[1], 0);
    assert_int_equal(got[2], 'h');
    assert_int_equal(got[3], 0);
    assert_int_equal(got[4], 0);
    assert_int_equal(got[5], 1);
    assert_int_equal(got[6], 0);
}

/* ---- lists of CPUs ---- */

TEST(cpus)
{
    static const char *const bad[] = {"", "x", "3-1", "1,", "-1", "1-", "1,,2", "99999999999999999999", "1 2"};
    uint32_t count;
    int *cpus;

    OK(host_parse_cpus("0-2,7\n", &cpus, &count));
    assert_int_equal(count, 4);
    assert_int_equal(cpus[2], 2);
    assert_int_equal(cpus[3], 7);
    free(cpus);
    OK(host_parse_cpus("1,0-2,1", &cpus, &count)); /* each is sampled once */
    assert_int_equal(count, 3);
    assert_int_equal(cpus[0], 1);
    assert_int_equal(cpus[1], 0);
    assert_int_equal(cpus[2], 2);
    free(cpus);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error *err = host_parse_cpus(bad[i], &cpus, &count);
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_USAGE);
        error_destroy(err);
    }
}

/* What the trace says of the machine is what /proc says. */
TEST(hardware)
{
    struct host h;
    char *cpus, *memory;

    OK(host_read(&h));
    OK(procfs_read("/proc/cpuinfo", &cpus, NULL));
    OK(procfs_read("/proc/meminfo", &memory, NULL));
    unsigned long long kib = 0;
    assert_int_equal(sscanf(memory, "MemTotal: %llu kB", &kib), 1);
    assert_int_equal(h.memory_bytes, kib * 1024);
    char expected[sizeof h.cpu_model] = "";
    const char *line = strstr(cpus, "model name");
    if (line)
        sscanf(line, "model name : %127[^\n]", expected);
    assert_string_equal(h.cpu_model, expected);
    free(cpus);
    free(memory);
    host_deinit(&h);
}

/* ---- kernels that sampling can hang ---- */

TEST(kernel_hang)
{
    /* In the forms in which uname -r, uname -v and /proc/version_signature say it; `why` is part of the refusal, NULL: allowed. */
    static const struct {
        const char *release, *version, *signature, *why;
    } cases[] = {
        /* Debian */
        {"5.10.0-32-cloud-amd64", "#1 SMP Debian 5.10.223-1 (2024-08-10)", "", NULL},
        {"6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", "", "6.1.0-9-amd64 (6.1.27) can hang"},
        {"6.1.0-0.deb11.7-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.20-2~bpo11+1 (2023-04-23)", "", "(6.1.20) can hang"},
        {"6.1.0-10-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.37-1 (2023-07-03)", "", NULL},
        {"6.1.0-50-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)", "", NULL},
        {"6.3.0-1-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.3.7-1 (2023-06-12)", "", "(6.3.7) can hang"},
        {"6.12.107+deb13-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-07-20)", "", NULL},
        {"7.2.13+deb14-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1 (2026-10-28)", "", NULL},
        /* Ubuntu */
        {"5.15.0-91-generic", "#101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023", "Ubuntu 5.15.0-91.101-generic 5.15.131", NULL},
        {"5.19.0-50-generic", "#50-Ubuntu SMP PREEMPT_DYNAMIC Mon Jul 10 18:24:29 UTC 2023",
         "Ubuntu 5.19.0-50.50-generic 5.19.17", "(5.19.17) can hang"},
        {"6.2.0-39-generic", "#40~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC Thu Nov 16 10:53:04 UTC 2",
         "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16", "(6.2.16) can hang"},
        {"6.1.0-1036-oem", "#36-Ubuntu SMP PREEMPT_DYNAMIC Wed Feb 7 16:21:02 UTC 2024", "Ubuntu 6.1.0-1036.36-oem 6.1.57", NULL},
        {"6.1.0-1012-oem", "#12-Ubuntu SMP PREEMPT_DYNAMIC Mon May 8 09:15:22 UTC 2023",
         "Ubuntu 6.1.0-1012.12-oem 6.1.26", "(6.1.26) can hang"},
        {"6.8.0-40-generic", "#40-Ubuntu SMP PREEMPT_DYNAMIC Fri Jul 5 10:34:03 UTC 2024", "Ubuntu 6.8.0-40.40-generic 6.8.12", NULL},
        /* Fedora */
        {"5.17.12-300.fc36.x86_64", "#1 SMP PREEMPT Mon May 30 16:56:53 UTC 2022", "", NULL},
        {"6.0.7-301.fc37.x86_64", "#1 SMP PREEMPT_DYNAMIC Fri Nov 4 18:35:48 UTC 2022", "", "6.0.7-301.fc37.x86_64 can hang"},
        {"6.2.9-300.fc38.x86_64", "#1 SMP PREEMPT_DYNAMIC Thu Mar 30 22:32:58 UTC 2023", "", "can hang this host"},
        {"6.3.8-200.fc38.x86_64", "#1 SMP PREEMPT_DYNAMIC Thu Jun 15 02:15:40 UTC 2023", "", "can hang this host"},
        {"6.3.12-200.fc38.x86_64", "#1 SMP PREEMPT_DYNAMIC Thu Jul  6 04:05:18 UTC 2023", "", NULL},
        {"6.4.4-200.fc38.x86_64", "#1 SMP PREEMPT_DYNAMIC Wed Jul 19 16:32:49 UTC 2023", "", NULL},
        /* Red Hat and Amazon */
        {"5.14.0-427.13.1.el9_4.x86_64", "#1 SMP PREEMPT_DYNAMIC Wed Apr 10 10:29:16 EDT 2024", "", NULL},
        {"6.12.0-55.9.1.el10_0.x86_64", "#1 SMP PREEMPT_DYNAMIC Tue Apr 22 08:21:29 EDT 2025", "", NULL},
        {"6.1.25-37.47.amzn2023.x86_64", "#1 SMP PREEMPT_DYNAMIC Mon Apr 24 23:20:15 UTC 2023", "", "can hang this host"},
        {"6.1.41-63.109.amzn2023.x86_64", "#1 SMP PREEMPT_DYNAMIC Wed Aug  2 17:30:05 UTC 2023", "", NULL},
        /* built from upstream's sources, and one whose number says nothing */
        {"6.1.0", "#1 SMP PREEMPT_DYNAMIC", "", "Linux 6.1.0 can hang"},
        {"6.1.36", "#1 SMP", "", NULL},
        {"6.2.0-rc3+", "#1 SMP", "", "can hang"},
        {"6.1.0-7-vendor", "#1 SMP PREEMPT_DYNAMIC", "", "does not tell"},
        {"6.3.0-7-vendor", "#1 SMP PREEMPT_DYNAMIC", "", "does not tell"},
        {"6.18.44-fc-v669", "#1 SMP PREEMPT_DYNAMIC @0", "", NULL},
        {"nonsense", "", "", "cannot be parsed"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error *err = kernel_hang_check(cases[i].release, cases[i].version, cases[i].signature);
        if (!cases[i].why && err)
            fail_msg("%s: %s", cases[i].release, error_text(err));
        if (cases[i].why && (!err || !strstr(error_text(err), cases[i].why)))
            fail_msg("%s: '%s', wanted '%s'", cases[i].release, err ? error_text(err) : "allowed", cases[i].why);
        error_destroy(err);
    }
}

/* The check of the host goes by it, and the environment overrides it. */
TEST(kernel_hang_override)
{
    struct host h = {.machine = "x86_64", .release = "6.1.0-9-amd64", .version = "#1 SMP Debian 6.1.27-1 (2023-05-08)",
                     .kernel_major = 6, .kernel_minor = 1};

    unsetenv("PYCAP_IGNORE_KERNEL_BUG");
    struct error *err = host_check(&h);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(error_text(err), "PYCAP_IGNORE_KERNEL_BUG=1"));
    error_destroy(err);
    setenv("PYCAP_IGNORE_KERNEL_BUG", "1", 1);
    err = host_check(&h);
    unsetenv("PYCAP_IGNORE_KERNEL_BUG");
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_PERMISSION); /* the next check: this host has no capabilities */
    error_destroy(err);
}

/* ---- kernel symbols ---- */

TEST(kallsyms)
{
    static const char text[] = "ffffffff81000200 t second\nffffffff81000100 T first\nffffffff81000200 T alias\n"
                               "ffffffff81000300 D data\nffffffffc0000000 t in_module\t[ext4]\nbroken line\n"
                               "0000000000000000 T hidden\n";
    struct kernel_symbol symbol;
    struct kallsyms *k;
    bool found;

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

/* A module that was loaded meanwhile: what is not found has the file read again, at most once in five seconds. */
TEST(kallsyms_again)
{
    static const char text[] = "0000000000100000 T ours\n";
    struct kernel_symbol symbol;
    struct kallsyms *k;
    bool found;

    OK(kallsyms_create(&k));
    OK(kallsyms_load(k, NS_PER_S));
    OK(kallsyms_parse(k, text, strlen(text)));
    OK(kallsyms_lookup(k, 1, 6 * NS_PER_S, &symbol, &found));
    assert_false(found);
    OK(kallsyms_lookup(k, 0x100000, 6 * NS_PER_S, &symbol, &found));
    assert_true(found);
    OK(kallsyms_lookup(k, 1, 6 * NS_PER_S + 1, &symbol, &found));
    assert_false(found);
    /* The real file does not have ours. */
    OK(kallsyms_lookup(k, 0x100000, 6 * NS_PER_S + 2, &symbol, &found));
    assert_false(found);
    kallsyms_destroy(k);
}

static void do_nothing(void)
{
}

/* What a thread has read is what the lookup would have read. One that nobody waits for ends with the table. */
TEST(kallsyms_thread)
{
    struct kernel_symbol by_thread, at_once;
    struct kallsyms *thread, *load;
    bool found_by_thread, found_at_once;

    OK(kallsyms_create(&thread));
    OK(kallsyms_create(&load));
    kallsyms_begin(thread, do_nothing, 0);
    OK(kallsyms_load(load, 0));
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t address = 0xffffffff80000000 + i * 0x8765;
        OK(kallsyms_lookup(thread, address, 0, &by_thread, &found_by_thread));
        OK(kallsyms_lookup(load, address, 0, &at_once, &found_at_once));
        assert_int_equal(found_by_thread, found_at_once);
        if (found_at_once) {
            assert_int_equal(by_thread.address, at_once.address);
            assert_string_equal(by_thread.name, at_once.name);
            assert_string_equal(by_thread.module, at_once.module);
        }
    }
    kallsyms_destroy(thread);
    kallsyms_destroy(load);
    OK(kallsyms_create(&thread));
    kallsyms_begin(thread, do_nothing, 0);
    kallsyms_destroy(thread);
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

TEST(queue)
{
    struct seen s = {0};
    struct queue *q;

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

struct handed {
    uint64_t time_ns, until_ns;
    uint32_t arrival, count;
};

/* `data` is a message's number, by its order of arrival. */
static struct error *check_order(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len)
{
    struct handed *h = ctx;
    uint32_t arrival;

    assert_int_equal(len, sizeof arrival + kind);
    memcpy(&arrival, data, sizeof arrival);
    assert_true(time_ns > h->time_ns || (time_ns == h->time_ns && arrival > h->arrival));
    assert_true(time_ns <= h->until_ns);
    h->time_ns = time_ns;
    h->arrival = arrival;
    h->count++;
    return NULL;
}

/* Messages of some CPUs, each of which brings its own in order, or not at all in order; many have equal times. */
TEST(queue_of_cpus)
{
    struct handed h = {.arrival = UINT32_MAX};
    uint32_t random = 1, added = 0, kept_most = 0;
    struct queue *q;

    OK(queue_create(&q));
    for (uint64_t round = 1; round <= 60; round++) {
        uint32_t cpus = round % 9;
        for (uint32_t cpu = 0; cpu < cpus; cpu++) {
            uint64_t time_ns = 100 * round;
            for (uint32_t i = 0; i < 40; i++) {
                uint32_t number[4] = {added++};
                random = random * 1103515245 + 12345;
                time_ns = cpu == 7 ? 100 * round + (random >> 16) % 120 : time_ns + (random >> 16) % 4;
                OK(queue_add(q, time_ns, cpu, number, (uint32_t)sizeof *number + cpu));
            }
        }
        h.until_ns = 100 * round + 99; /* later ones stay */
        OK(queue_run(q, h.until_ns, check_order, &h));
        assert_int_equal(h.count + queue_count(q), added);
        kept_most = queue_count(q) > kept_most ? queue_count(q) : kept_most;
    }
    assert_true(kept_most > 0);
    h.until_ns = UINT64_MAX;
    OK(queue_run(q, UINT64_MAX, check_order, &h));
    assert_int_equal(h.count, added);
    queue_destroy(q);
}

/* ---- mappings and lives of processes ---- */

struct told {
    uint32_t mapped, ended, threads_forgotten;
};

static void on_mapped(void *ctx, struct process *p, struct code_mapping *m)
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

static void on_threads_forgotten(void *ctx, struct process *p)
{
    assert_true(p->threads.count > 0);
    ((struct told *)ctx)->threads_forgotten++;
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

TEST(processes)
{
    struct processes_options options = {.whole_host = true, .follow = true};
    struct told told = {0};
    struct processes_events events = {.mapped = on_mapped, .ended = on_ended, .renamed = on_renamed,
                                      .threads_forgotten = on_threads_forgotten, .ctx = &told};
    struct sideband_event e = {.kind = SIDEBAND_FORK, .tgid = 5000001, .tid = 5000001, .parent_tgid = 1, .time_ns = 1};
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    processes_set_events(p, &events);
    OK(processes_apply(p, &e));
    struct process *process = processes_find(p, 5000001);
    assert_non_null(process);
    map(p, 5000001, 0x10000, 0x10000, "/a");
    map(p, 5000001, 0x40000, 0x1000, "/b");
    map(p, 5000001, 0x10000, 0x10000, "/a"); /* told twice */
    assert_int_equal(code_mappings_count(&process->mappings), 2);
    modules_settle(modules, now_ns() + 60 * NS_PER_S); /* on a busy machine the worker is not waited for */
    OK(processes_take_modules(p));
    assert_int_equal(told.mapped, 2);
    /* In the middle of another one: that is cut in two. */
    map(p, 5000001, 0x14000, 0x2000, "/c");
    assert_int_equal(code_mappings_count(&process->mappings), 4);
    const struct code_mappings *m = &process->mappings;
    assert_int_equal(code_mappings_at(m, 0)->address, 0x10000);
    assert_int_equal(code_mappings_at(m, 0)->length, 0x4000);
    assert_string_equal(code_mappings_at(m, 1)->path, "/c");
    assert_int_equal(code_mappings_at(m, 2)->address, 0x16000);
    assert_int_equal(code_mappings_at(m, 2)->length, 0xa000);
    assert_int_equal(code_mappings_at(m, 2)->file_offset, 0x7000);
    assert_string_equal(code_mappings_at(m, 2)->path, "/a");
    assert_string_equal(code_mappings_at(m, 3)->path, "/b");
    /* Over several: they are gone. */
    map(p, 5000001, 0x12000, 0x30000, "/d");
    assert_int_equal(code_mappings_count(m), 2);
    assert_int_equal(code_mappings_at(m, 0)->length, 0x2000);
    assert_string_equal(code_mappings_at(m, 1)->path, "/d");
    /* A child has what its parent had; an exec has nothing. */
    e.tgid = e.tid = 5000002;
    e.parent_tgid = 5000001;
    OK(processes_apply(p, &e));
    assert_int_equal(code_mappings_count(&processes_find(p, 5000002)->mappings), 2);
    e.kind = SIDEBAND_EXEC;
    strcpy(e.text, "a-name-longer-than-16");
    OK(processes_apply(p, &e));
    assert_int_equal(code_mappings_count(&processes_find(p, 5000002)->mappings), 0);
    assert_string_equal(processes_find(p, 5000002)->comm, "a-name-longer-th");
    assert_int_equal(told.ended, 1);
    /* The end is noticed, but the process lingers. */
    e.kind = SIDEBAND_EXIT;
    e.time_ns = 10;
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000002)->ended_ns, 10);
    OK(processes_reap(p, 500000000));
    assert_non_null(processes_find(p, 5000002));
    /* Of very many threads none is remembered, nor is what they were called (the leak checker looks). */
    for (uint32_t tid = 1; tid <= 5000; tid++) {
        struct thread *t = process_thread(process, 6000000 + tid);
        assert_non_null(t);
        t->python_name = strdup("worker");
        assert_non_null(t->python_name);
    }
    OK(processes_reap(p, 500000001));
    assert_int_equal(process->threads.count, 0);
    assert_int_equal(told.threads_forgotten, 1);
    OK(processes_reap(p, 2000000000));
    assert_null(processes_find(p, 5000002));
    assert_int_equal(told.ended, 2);
    processes_destroy(p);
    modules_destroy(modules);
}

/* Python processes are counted once however often they are configured, and no more once they have ended. */
TEST(python_processes_are_counted)
{
    struct processes_options options = {.whole_host = true, .follow = true};
    struct sideband_event e = {.kind = SIDEBAND_FORK, .parent_tgid = 1, .time_ns = 1};
    struct module python = {0};
    struct processes *p;

    OK(processes_create(&options, NULL, &p));
    for (uint32_t tgid = 5000001; tgid <= 5000002; tgid++) {
        e.tgid = e.tid = tgid;
        OK(processes_apply(p, &e));
        struct process *process = processes_find(p, tgid);
        assert_non_null(process);
        process->selected = true;
        process->python = &python;
        OK(process_sampling_configure(&p->sampling, process));
        OK(process_sampling_configure(&p->sampling, process));
    }
    assert_int_equal(processes_counts(p).python, 2);
    process_sampling_stop(&p->sampling, processes_find(p, 5000001));
    process_sampling_stop(&p->sampling, processes_find(p, 5000001));
    assert_int_equal(processes_counts(p).python, 1);
    assert_int_equal(processes_counts(p).seen_python, 2);
    for (uint32_t tgid = 5000001; tgid <= 5000002; tgid++)
        processes_find(p, tgid)->python = NULL;
    processes_destroy(p);
}

static int count_refused(struct processes *p, const struct process *process, enum quota kind)
{
    uint64_t counts[QUOTA_COUNT] = {0};

    quotas_refused(p->quotas, process->slot, counts);
    return (int)counts[kind];
}

/* A flood of mappings at ever new addresses: what is kept of it is bounded, and the rest counts for its process. */
TEST(mapping_flood)
{
    struct processes_options options = {.whole_host = true, .follow = true};
    struct sideband_event e = {.kind = SIDEBAND_FORK, .tgid = 5000001, .tid = 5000001, .parent_tgid = 1, .time_ns = 1};
    struct modules *modules;
    struct processes *p;

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_apply(p, &e));
    struct process *process = processes_find(p, 5000001);
    for (uint64_t i = 0; i < 10000; i++)
        map(p, 5000001, 0x100000 + i * 0x2000, 0x1000, "//anon");
    assert_int_equal(code_mappings_count(&process->mappings), 10000);
    assert_int_equal(count_refused(p, process, QUOTA_mappings), 0); /* a program may have that many */
    for (uint64_t i = 10000; i < 60000; i++)
        map(p, 5000001, 0x100000 + i * 0x2000, 0x1000, "//anon");
    assert_true(code_mappings_count(&process->mappings) <= CODE_MAPPINGS_MAX);
    assert_true(code_pool_bytes(&p->code_pool) < 4 << 20);
    assert_true(count_refused(p, process, QUOTA_mappings) > 10000);
    assert_true(process->unsure);
    /* Its children cost nothing, and have what it has. */
    uint64_t bytes = code_pool_bytes(&p->code_pool);
    for (uint32_t i = 0; i < 1000; i++) {
        e.parent_tgid = 5000001;
        e.tgid = e.tid = 5100000 + i;
        OK(processes_apply(p, &e));
    }
    assert_int_equal(code_pool_bytes(&p->code_pool), bytes);
    assert_true(code_mappings_are_shared(&process->mappings, &processes_find(p, 5100999)->mappings));
    /* Changes of name are counted, too. */
    e = (struct sideband_event){.kind = SIDEBAND_COMM, .tgid = 5000001, .tid = 5000001, .time_ns = 2};
    for (uint32_t i = 0; i < 30000; i++)
        OK(processes_apply(p, &e));
    assert_in_range(count_refused(p, process, QUOTA_events), 1, 29999);
    processes_destroy(p);
    modules_destroy(modules);
}

/* A process that has ended and waits for its parent has no mappings, which is nobody's prohibition. */
TEST(zombie_is_not_forbidden)
{
    struct processes_options options = {.whole_host = true};
    struct process *process = NULL;
    struct modules *modules;
    struct processes *p;
    siginfo_t info;

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_read(p, (uint32_t)pid, true, 1, &process));
    assert_non_null(process);
    assert_false(process->forbidden);
    assert_int_equal(code_mappings_count(&process->mappings), 0);
    assert_int_equal(processes_counts(p).forbidden, 0);
    processes_destroy(p);
    modules_destroy(modules);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void wait_for_byte(void *bytes, size_t size, int *fd)
{
    (void)size;
    while (read(*fd, bytes, 1) < 0)
        continue;
}

/* One that holds up who reads it is kept without its mappings, which are asked for again. */
TEST(late_process_is_asked_again)
{
    struct processes_options options = {.whole_host = true};
    struct process *process = NULL;
    struct modules *modules;
    struct processes *p;
    int ends[2], fd;
    char byte;

    OK(errand_begin(NULL, false)); /* while there is one thread */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    while (!pid)
        pause();
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    fd = ends[0];
    assert_false(errand_run(pid, wait_for_byte, &byte, 1, &fd)); /* it is late */
    OK(processes_read(p, (uint32_t)pid, true, 1, &process));
    assert_non_null(process);
    assert_true(process->held_up);
    assert_false(process->forbidden);
    assert_int_equal(code_mappings_count(&process->mappings), 0);
    assert_int_equal(processes_counts(p).forbidden, 0);
    for (uint64_t end_ns = now_ns() + 20 * NS_PER_S; process->held_up && now_ns() < end_ns;) {
        nanosleep(&(struct timespec){.tv_nsec = 50 * NS_PER_MS}, NULL);
        OK(processes_reap(p, now_ns()));
    }
    assert_false(process->held_up);
    assert_true(code_mappings_count(&process->mappings) > 0);
    assert_int_equal(errand_late_processes(), 1);
    errand_end();
    processes_destroy(p);
    modules_destroy(modules);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 2; i++)
        close(ends[i]);
}

/* Notes go with their process: the next one that gets its slot has none. */
TEST(trace_notes)
{
    struct trace_notes notes = {0};
    struct process a = {.slot = 7}, b = {.slot = 0}, next = {.slot = 7};
    struct module m = {.index = 3};
    struct thread t = {.index = 2};

    assert_null(trace_notes_find(&notes, &a));
    struct process_note *note = trace_notes_process(&notes, &a);
    assert_non_null(note);
    assert_ptr_equal(note->process, &a);
    assert_int_equal(note->perf_map.fd, -1);
    assert_non_null(trace_notes_process(&notes, &b));
    assert_ptr_equal(trace_notes_process(&notes, &a), note);
    *trace_notes_thread(note, &t) = (struct record_id){1, 55};
    assert_int_equal(trace_notes_thread(note, &t)->id, 55);
    assert_int_equal(note->threads.data[1].epoch, 0);
    trace_notes_module(&notes, &m)->framed = true;
    assert_true(trace_notes_module(&notes, &m)->framed);
    assert_int_equal(intern_id(&note->codes.keys, "key", 3, NULL), 0);
    assert_true(trace_notes_codes_bytes(&notes) > 0);
    trace_notes_forget_codes(&notes);
    assert_int_equal(trace_notes_codes_bytes(&notes), 0);
    trace_notes_forget(&notes, &a);
    trace_notes_forget(&notes, &a);
    assert_null(trace_notes_find(&notes, &next));
    assert_ptr_equal(trace_notes_process(&notes, &next)->process, &next);
    assert_int_equal(trace_notes_find(&notes, &next)->threads.count, 0);
    trace_notes_deinit(&notes);
}

/* ---- messages ---- */

TEST(messages)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_string_equal(messages_count(0, "sample").text, "0 samples");
    assert_string_equal(messages_count(1, "sample").text, "1 sample");
    assert_string_equal(messages_count(36, "sample").text, "36 samples");
    assert_string_equal(messages_count(1, "Python process").text, "1 Python process");
    assert_string_equal(messages_count(2, "Python process").text, "2 Python processes");
    assert_string_equal(messages_count(1, "binary").text, "1 binary");
    assert_string_equal(messages_count(3, "binary").text, "3 binaries");
    assert_string_equal(messages_count(UINT64_MAX, "debug file").text, "18446744073709551615 debug files");
    assert_non_null(out);
    messages_line(out, "%s is gone", "it");
    messages_write(out, "%d of %d", 1, 2);
    /* Names from elsewhere control no terminal and begin no line of their own. */
    messages_line(out, " %s", "a\x1b]0;b\a\nc\xe2\x80\xae");
    messages_write(out, "%s\n%s", "d\x1b[31m", messages_name("e\nf\x1b").text);
    fclose(out);
    assert_string_equal(text, "pycap: it is gone\n1 of 2pycap:  a\\x1b]0;b\\x07\\x0ac\\xe2\\x80\\xae\n"
                              "d\\x1b[31m\ne\\x0af\\x1b");
    free(text);
}

/* Those that are there have different slots; the slot of one that was dropped goes to the next. */
TEST(slots)
{
    struct processes_options options = {.whole_host = true};
    struct sideband_event e = {.kind = SIDEBAND_FORK, .parent_tgid = 1, .time_ns = 1};
    struct modules *modules;
    struct processes *p;
    uint32_t slots[3];

    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    for (uint32_t i = 0; i < 3; i++) {
        e.tgid = e.tid = 5000001 + i;
        OK(processes_apply(p, &e));
        slots[i] = processes_find(p, e.tgid)->slot;
        assert_int_equal(slots[i], i);
    }
    struct process *last = processes_find(p, 5000003);
    processes_drop(p, processes_find(p, 5000001), 2);
    assert_ptr_equal(processes_find(p, 5000003), last);
    assert_int_equal(last->slot, 2);
    e.tgid = e.tid = 5000004;
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000004)->slot, slots[0]);
    /* An exec is another process. */
    e.kind = SIDEBAND_EXEC;
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000004)->slot, slots[0]);
    e.tgid = e.tid = 5000005;
    OK(processes_apply(p, &e));
    assert_int_equal(processes_find(p, 5000005)->slot, 3);
    processes_destroy(p);
    modules_destroy(modules);
}
