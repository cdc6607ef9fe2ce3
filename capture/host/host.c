/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small files of /proc and /sys, each once. */
#include "capture/host/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "formats/base/bytes.h"
#include "formats/base/clock.h"
#include "formats/base/hex.h"
#include "formats/base/vec.h"

/* Inode number of the initial pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE UINT64_C(0xEFFFFFFC)
#define CPUS_MAX 65536

/* Reads the first line of a small file, without the newline; "" when it cannot be read. */
static void read_line(const char *path, char *out, size_t cap)
{
    char *text;
    struct error *err = procfs_read(path, &text, NULL);

    out[0] = 0;
    if (err) {
        error_destroy(err);
        return;
    }
    text[strcspn(text, "\n")] = 0;
    snprintf(out, cap, "%s", text);
    free(text);
}

static long read_number(const char *path, long otherwise)
{
    char text[64], *rest;

    read_line(path, text, sizeof text);
    long n = strtol(text, &rest, 10);
    return rest == text ? otherwise : n;
}

struct error *host_parse_cpus(const char *text, int **cpus, uint32_t *count)
{
    VEC(int) list = {0};
    bool listed[CPUS_MAX] = {false};
    const char *p = text;

    for (;;) {
        char *rest;
        errno = 0;
        long first = strtol(p, &rest, 10), last = first;
        if (rest == p || !isdigit((unsigned char)*p))
            goto bad;
        if (*rest == '-') {
            p = rest + 1;
            if (!isdigit((unsigned char)*p))
                goto bad;
            last = strtol(p, &rest, 10);
        }
        if (errno || first < 0 || last < first || last >= CPUS_MAX)
            goto bad;
        for (long c = first; c <= last; c++) {
            if (!listed[c] && !VEC_PUSH(&list, (int)c)) {
                VEC_DEINIT(&list);
                return error_no_memory();
            }
            listed[c] = true;
        }
        if (!*rest || *rest == '\n')
            break;
        if (*rest != ',')
            goto bad;
        p = rest + 1;
    }
    *cpus = list.data;
    *count = (uint32_t)list.count;
    return NULL;
bad:
    VEC_DEINIT(&list);
    return error_create(ERROR_USAGE, "'%s' is not a list of CPUs (like 0-3,8)", text);
}

static void read_boot_id(struct host *h)
{
    char text[64];

    read_line("/proc/sys/kernel/random/boot_id", text, sizeof text);
    h->has_boot_id = hex_read(text, h->boot_id, sizeof h->boot_id) == sizeof h->boot_id;
}

/* /sys/kernel/notes: ELF notes of the running kernel. */
static void read_kernel_build_id(struct host *h)
{
    char *text;
    size_t len;
    struct error *err = procfs_read("/sys/kernel/notes", &text, &len);

    if (err) {
        error_destroy(err);
        return;
    }
    struct bytes b = bytes_of(text, len);
    while (bytes_left(&b) >= 12) {
        uint32_t name_len = bytes_u32(&b), desc_len = bytes_u32(&b), type = bytes_u32(&b);
        const uint8_t *name = bytes_take(&b, ((uint64_t)name_len + 3) & ~UINT64_C(3));
        const uint8_t *desc = bytes_take(&b, ((uint64_t)desc_len + 3) & ~UINT64_C(3));
        if (!name || !desc)
            break;
        if (type == 3 && name_len == 4 && !memcmp(name, "GNU", 4) && desc_len <= sizeof h->kernel_build_id) {
            memcpy(h->kernel_build_id, desc, desc_len);
            h->kernel_build_id_len = desc_len;
            break;
        }
    }
    free(text);
}

/* "model name" of the first CPU in /proc/cpuinfo (x86). The file is long with many CPUs, so reading stops there. */
static void read_cpu_model(struct host *h)
{
    static const char key[] = "model name";
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];

    while (f && !h->cpu_model[0] && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(h->cpu_model, sizeof h->cpu_model, "%.*s", (int)strcspn(value, "\n"), value);
    }
    if (f)
        fclose(f);
}

static void read_memory(struct host *h)
{
    struct sysinfo info;

    if (!sysinfo(&info))
        h->memory_bytes = (uint64_t)info.totalram * info.mem_unit;
}

/* "0.20 0.18 0.12 1/80 11206": the fourth field has threads that run, and all. Each process is a link to the folder /proc. */
static void read_threads(struct host *h)
{
    char text[128];
    struct stat proc;

    read_line("/proc/loadavg", text, sizeof text);
    const char *all = strchr(text, '/');
    h->thread_count = all ? (uint32_t)strtoul(all + 1, NULL, 10) : 0;
    h->process_count = stat("/proc", &proc) ? 0 : (uint32_t)proc.st_nlink;
}

static void read_capabilities(struct host *h)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    if (syscall(SYS_capget, &header, data))
        return;
    uint64_t set = data[0].effective | (uint64_t)data[1].effective << 32;
#define HAS(cap) (set >> (cap) & 1)
    bool admin = h->cap_sys_admin = HAS(CAP_SYS_ADMIN);
    h->cap_bpf = admin || HAS(CAP_BPF);
    h->cap_perfmon = admin || HAS(CAP_PERFMON);
    h->cap_sys_ptrace = HAS(CAP_SYS_PTRACE);
    h->cap_checkpoint_restore = admin || HAS(CAP_CHECKPOINT_RESTORE);
    h->cap_syslog = admin || HAS(CAP_SYSLOG);
    h->cap_dac_read_search = HAS(CAP_DAC_READ_SEARCH) || HAS(CAP_DAC_OVERRIDE);
    struct rlimit nice = {0};
    getrlimit(RLIMIT_NICE, &nice);
    h->cap_sys_nice = HAS(CAP_SYS_NICE) || nice.rlim_cur >= 20 + 20 /* RLIMIT_NICE is 20 minus the lowest nice value allowed */ || getpriority(PRIO_PROCESS, 0);
#undef HAS
}

bool host_is_pid_namespace_own(void)
{
    struct stat st;

    return !stat("/proc/self/ns/pid", &st) && st.st_ino != INITIAL_PID_NAMESPACE;
}

/* A security module may refuse what the file's mode allows: so it is opened. */
static bool has_btf(void)
{
    int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool has = fd >= 0 && !fstat(fd, &st) && st.st_size > 0;

    if (fd >= 0)
        close(fd);
    return has;
}

struct error *host_read(struct host *h)
{
    struct utsname name;
    char text[4096];

    *h = (struct host){0};
    uname(&name);
    snprintf(h->hostname, sizeof h->hostname, "%s", name.nodename);
    snprintf(h->release, sizeof h->release, "%s", name.release);
    snprintf(h->version, sizeof h->version, "%s", name.version);
    snprintf(h->machine, sizeof h->machine, "%s", name.machine);
    sscanf(name.release, "%u.%u.%u", &h->kernel_major, &h->kernel_minor, &h->kernel_patch);
    read_line("/proc/version_signature", h->version_signature, sizeof h->version_signature);
    read_boot_id(h);
    read_kernel_build_id(h);
    read_capabilities(h);
    read_cpu_model(h);
    read_memory(h);
    read_threads(h);
    h->has_btf = has_btf();
    h->perf_event_paranoid = (int)read_number("/proc/sys/kernel/perf_event_paranoid", -2);
    h->kptr_restrict = (int)read_number("/proc/sys/kernel/kptr_restrict", -2);
    h->perf_max_sample_rate = (uint64_t)read_number("/proc/sys/kernel/perf_event_max_sample_rate", 0);
    if (!h->cap_sys_ptrace)
        restraints_hidepid(h->hidepid);
    h->own_pid_namespace = host_is_pid_namespace_own();
    read_line("/sys/kernel/security/lockdown", text, sizeof text);
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (close)
        snprintf(h->lockdown, sizeof h->lockdown, "%.*s", (int)(close - open - 1), open + 1);
    read_line("/sys/devices/system/cpu/online", text, sizeof text);
    return host_parse_cpus(text[0] ? text : "0", &h->cpus, &h->cpu_count);
}

void host_deinit(struct host *h)
{
    free(h->cpus);
    *h = (struct host){0};
}

uint32_t host_cpu_end(const struct host *h)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < h->cpu_count; i++)
        end = (uint32_t)h->cpus[i] >= end ? (uint32_t)h->cpus[i] + 1 : end;
    return end;
}

/* A line of /proc/stat: "cpu12 user nice system idle iowait irq softirq steal". */
static uint64_t idle_of_line(const char *line)
{
    unsigned long long idle = 0, wait = 0, steal = 0;

    if (sscanf(line, "cpu%*d %*u %*u %*u %llu %llu %*u %*u %llu", &idle, &wait, &steal) != 3)
        return 0;
    return (idle + wait + steal) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

void host_idle_ns(const int *cpus, uint32_t count, uint64_t *idle_ns)
{
    char *text;
    uint32_t next = 0; /* lines and, nearly always, `cpus` are in order of CPU */

    memset(idle_ns, 0, count * sizeof *idle_ns);
    struct error *err = procfs_read("/proc/stat", &text, NULL);
    if (err) {
        error_destroy(err);
        return;
    }
    for (const char *line = strstr(text, "\ncpu"); line; line = strstr(line + 1, "\ncpu")) {
        int cpu = (int)strtol(line + strlen("\ncpu"), NULL, 10);
        uint32_t i = 0;
        while (i < count && cpus[(next + i) % count] != cpu)
            i++;
        if (i == count)
            continue;
        next = (next + i) % count;
        idle_ns[next] = idle_of_line(line + 1);
    }
    free(text);
}

void host_want_files(uint64_t count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= count)
        return;
    limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : count;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void host_lift_memlock(void)
{
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

    setrlimit(RLIMIT_MEMLOCK, &unlimited);
}
