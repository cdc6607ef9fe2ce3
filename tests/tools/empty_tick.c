/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tick costs before anybody looks at anything: the floor under every sampler.
 *
 * empty_tick hold HZ
 *     opens the clock event of pycap on every CPU with a BPF program that returns at once, until a signal comes.
 * empty_tick gaps HZ SECONDS CPU
 *     reads the clock in a loop on CPU. What is missing between two readings went to interrupts. Windows of 50 ticks,
 *     but at least 50 ms, without and with such an event come in turns; prints the median of what the event adds,
 *     in ns a tick.
 * empty_tick taken CPU
 *     reads the clock in such a loop until SIGTERM, with a task that gives way to all others; prints what share of the time was
 *     missing: what others and interrupts took of CPU, their way in and out included. Longer gaps are left out of both: then
 *     another program had its turn, or the host of this virtual machine.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_LEAST_NS 50000000ll
#define WINDOW_TICKS 50
/* Shorter ones are the loop itself, longer ones another task that was run. */
#define GAP_LEAST_NS 400
#define GAP_MOST_NS 200000
#define TAKEN_MOST_NS 2000000

static int die(const char *what)
{
    fprintf(stderr, "empty_tick: %s: %s\n", what, strerror(errno));
    return 1;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int load_empty(void)
{
    const struct bpf_insn insns[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };

    return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "empty", "GPL", insns, 2, NULL);
}

static int open_tick(int program, uint64_t hz, int cpu)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = hz,
        .disabled = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int hold(uint64_t hz)
{
    int program = load_empty();
    sigset_t set;
    int got;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (program < 0)
        return die("no BPF program");
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        int fd = open_tick(program, hz, cpu);
        if (fd < 0 && errno == ENODEV)
            continue; /* offline */
        if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
            return die("no event");
    }
    puts("ready");
    fflush(stdout);
    sigwait(&set, &got);
    return 0;
}

/* Time that was taken from us, for a window. */
static int64_t taken_ns(int64_t window_ns)
{
    int64_t start = now_ns(), last = start, taken = 0;

    while (last - start < window_ns) {
        int64_t now = now_ns(), gap = now - last;
        if (gap >= GAP_LEAST_NS && gap < GAP_MOST_NS)
            taken += gap;
        last = now;
    }
    return taken;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int gaps(uint64_t hz, double seconds, int cpu)
{
    int64_t window_ns = WINDOW_TICKS * 1000000000ll / (int64_t)hz;
    if (window_ns < WINDOW_LEAST_NS)
        window_ns = WINDOW_LEAST_NS;
    int rounds = (int)(seconds * 1e9 / (2 * (double)window_ns)) + 1;
    int64_t *added = calloc((size_t)rounds, sizeof *added);
    int program = load_empty();
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (!added || sched_setaffinity(0, sizeof set, &set))
        return die("that CPU is not to be had");
    int fd = program < 0 ? -1 : open_tick(program, hz, cpu);
    if (fd < 0)
        return die("no event");
    for (int i = 0; i < rounds; i++) {
        int64_t without = taken_ns(window_ns);
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
        int64_t with = taken_ns(window_ns);
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        added[i] = with - without;
    }
    qsort(added, (size_t)rounds, sizeof *added, compare);
    double ticks = (double)hz * (double)window_ns / 1e9;
    printf("%.0f\n", (double)added[rounds / 2] / ticks);
    free(added);
    return 0;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
    (void)signal;
    ended = 1;
}

static int taken(int cpu)
{
    const struct sched_param least = {0};
    cpu_set_t set;
    int64_t start, last, gaps_ns = 0;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) || sched_setscheduler(0, SCHED_IDLE, &least))
        return die("that CPU is not to be had");
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    start = last = now_ns();
    while (!ended) {
        int64_t now = now_ns();
        if (now - last >= TAKEN_MOST_NS)
            start += now - last;
        else if (now - last >= GAP_LEAST_NS)
            gaps_ns += now - last;
        last = now;
    }
    printf("%.6f\n", last > start ? (double)gaps_ns / (double)(last - start) : 0);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t hz = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

    if (hz && argc == 3 && !strcmp(argv[1], "hold"))
        return hold(hz);
    if (hz && argc == 5 && !strcmp(argv[1], "gaps"))
        return gaps(hz, atof(argv[3]), atoi(argv[4]));
    if (argc == 3 && !strcmp(argv[1], "taken"))
        return taken(atoi(argv[2]));
    fprintf(stderr, "usage: empty_tick hold HZ | gaps HZ SECONDS CPU | taken CPU\n");
    return 2;
}
