/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pycap: the command line. Parses, calls, prints errors, gives the exit code.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/archive/archive.h"
#include "capture/session/files.h"
#include "capture/process/filter.h"
#include "capture/host/host.h"
#include "capture/info.h"
#include "capture/session/session.h"
#include "formats/base/vec.h"
#include "formats/cpython/layout.h"

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INCOMPLETE = 3 };

static const char usage_text[] =
    "usage: pycap record [OPTIONS] [-o FILE] [-- COMMAND [ARG...]]\n"
    "       pycap archive TRACE... [-o FILE]\n"
    "       pycap info\n"
    "\n"
    "Samples CPython processes with eBPF and writes raw facts to FILE; pysym makes stacks of them\n"
    "later and elsewhere. Without -p and COMMAND every Python process of the host is sampled.\n"
    "\n"
    "  -o, --output FILE     the trace (trace.bin); - for standard output\n"
    "  -F, --rate HZ         samples a second and CPU (99)\n"
    "  -p, --pid PID,...     only these processes (and their children)\n"
    "  -C, --cpu LIST        only these CPUs, like 0-3,8\n"
    "  -e, --event EVENT     cpu-clock (default), cycles, instructions\n"
    "      --rotate TIME     a new file so often (90, 10m, 6h, 1d), also at SIGHUP; -o then needs %%t, like t-%%h-%%t.bin\n"
    "      --rotate-size N   a new file when one has become so large (64M)\n"
    "      --keep N          with --rotate, --rotate-size: keep the newest N of the files\n"
    "      --max-size N      sample more slowly towards a file of that size, and end at it\n"
    "      --max-cpu PERCENT sample more slowly when recording takes more of one CPU\n"
    "      --max-memory N    sample more slowly when pycap holds more (64M); it forgets what it can before\n"
    "  -d, --duration SECS   stop after that time; else at Ctrl-C, or when what is sampled has ended\n"
    "  -i, --no-inherit      not the children of the processes asked for\n"
    "  -s, --subprocesses    the children too (the default)\n"
    "  -n, --native          native frames, too (the default); --no-native: none\n"
    "      --unwind HOW      native frames by tables (the default: in the kernel, no stack memory is recorded),\n"
    "                        snapshot (a copy of the stack, unwound by pysym), both (to compare them),\n"
    "                        fp (frame pointers: wrong where code keeps none), none\n"
    "      --stack-size N    snapshot: copy at most N bytes of a user stack (65536, which is the most)\n"
    "      --unwind-memory N tables: bytes for them (32M)\n"
    "      --no-kernel       no kernel frames\n"
    "      --archive FILE    the binaries, too, as of the time they were mapped, into FILE; see pycap archive\n"
    "      --strip-code      without their code and data\n"
    "      --backend HOW     bpf; proc (no privilege: Python frames only, of the command or your own processes);\n"
    "                        auto (the default): bpf, else proc\n"
    "  -m, --ring-size N     bytes of buffer for the sampler, a power of two (by rate and CPUs)\n"
    "  -a, --all             processes that are not Python, too: their native and kernel frames\n"
    "      --comm NAME,...   of those, only processes with these names (the kernel's, of the first thread)\n"
    "      --cgroup PATH,... of those, only processes in these cgroups and below them\n"
    "      --cmdline         record command lines, too\n"
    "      --nice N          pycap's own nice value (-20, unless it was started with another than 0)\n"
    "      --no-sandbox      keep all privileges, and allow all system calls, while recording\n"
    "  -g                    accepted: stacks are always recorded\n"
    "  -q, --quiet           no status line and no summary\n"
    "  -h, --help            this; --version\n"
    "\n"
    "CPython %s on x86-64 Linux 5.10 or later. See pycap(1).\n";

static int fail(struct error *err)
{
    int code = err->code == ERROR_USAGE ? EXIT_USAGE : EXIT_FAILED;

    fprintf(stderr, "pycap: %s\n", error_text(err));
    error_destroy(err);
    return code;
}

static int usage_error(const char *fmt, const char *what)
{
    fputs("pycap: ", stderr);
    fprintf(stderr, fmt, what);
    fputs("\nTry 'pycap --help'.\n", stderr);
    return EXIT_USAGE;
}

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *rest;

    errno = 0;
    unsigned long long v = strtoull(text, &rest, 10);
    if (errno || rest == text || *rest || text[0] == '-' || v < min || v > max)
        return false;
    *out = v;
    return true;
}

static bool parse_nice(const char *text, int *out)
{
    char *rest;
    long v = strtol(text, &rest, 10);

    *out = (int)v;
    return rest != text && !*rest && v >= -20 && v <= 19;
}

/* "90", "90s", "10m", "6h", "1d" */
static bool parse_duration(const char *text, uint64_t *ns)
{
    static const struct { char unit; unsigned seconds; } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *rest;
    double v = strtod(text, &rest), seconds = 1;

    if (rest == text || !(v > 0))
        return false;
    if (*rest) {
        size_t i = 0;
        while (i < sizeof units / sizeof *units && units[i].unit != *rest)
            i++;
        if (i == sizeof units / sizeof *units || rest[1])
            return false;
        seconds = units[i].seconds;
    }
    v *= seconds;
    if (v > 1e9 || v < 1e-9) /* nanoseconds fit 64 bits; and 0 is no limit at all */
        return false;
    *ns = (uint64_t)(v * 1e9);
    return *ns > 0;
}

static bool parse_size(const char *text, uint64_t max, uint64_t *out)
{
    char *rest;
    unsigned shift = 0;

    errno = 0;
    unsigned long long v = strtoull(text, &rest, 10);
    if (errno || rest == text || text[0] == '-')
        return false;
    if (*rest == 'k' || *rest == 'K')
        shift = 10;
    else if (*rest == 'm' || *rest == 'M')
        shift = 20;
    else if (*rest == 'g' || *rest == 'G')
        shift = 30;
    if ((shift && rest[1]) || (!shift && *rest) || v > max >> shift)
        return false;
    *out = v << shift;
    return true;
}

struct pids {
    VEC(uint32_t) list;
};

static void pids_deinit(struct pids *pids)
{
    VEC_DEINIT(&pids->list);
}

static void cpus_free(int **cpus)
{
    free(*cpus);
    *cpus = NULL;
}

static bool parse_pids(const char *text, struct pids *pids)
{
    for (const char *p = text;;) {
        char *rest;
        errno = 0;
        unsigned long v = strtoul(p, &rest, 10);
        bool known = false;
        for (size_t i = 0; i < pids->list.count; i++)
            known |= pids->list.data[i] == v;
        if (errno || rest == p || *p == '-' || !v || v > 1u << 22 || (!known && !VEC_PUSH(&pids->list, (uint32_t)v)))
            return false;
        if (!*rest)
            return true;
        if (*rest != ',')
            return false;
        p = rest + 1;
    }
}

/* Options that belong to what does not exist yet, with the reason. */
static int refuse_idle(const char *name)
{
    fprintf(stderr,
            "pycap: %s needs off-CPU capture, which does not exist yet: only threads that run on a CPU are sampled\n",
            name);
    return EXIT_USAGE;
}

static int cmd_record(int argc, char **argv)
{
    enum { OPT_NO_NATIVE = 256, OPT_UNWIND, OPT_UNWIND_MEMORY, OPT_STACK, OPT_NO_KERNEL, OPT_BACKEND, OPT_ARCHIVE, OPT_STRIP,
           OPT_ROTATE, OPT_ROTATE_SIZE, OPT_KEEP, OPT_MAX_SIZE, OPT_MAX_CPU, OPT_MAX_MEMORY, OPT_IDLE, OPT_WALL, OPT_GIL,
           OPT_COMM, OPT_CGROUP, OPT_CMDLINE, OPT_NICE, OPT_NO_SANDBOX };
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'},
        {"rate", required_argument, NULL, 'F'},
        {"frequency", required_argument, NULL, 'F'},
        {"pid", required_argument, NULL, 'p'},
        {"cpu", required_argument, NULL, 'C'},
        {"event", required_argument, NULL, 'e'},
        {"duration", required_argument, NULL, 'd'},
        {"rotate", required_argument, NULL, OPT_ROTATE},
        {"rotate-size", required_argument, NULL, OPT_ROTATE_SIZE},
        {"keep", required_argument, NULL, OPT_KEEP},
        {"max-size", required_argument, NULL, OPT_MAX_SIZE},
        {"max-cpu", required_argument, NULL, OPT_MAX_CPU},
        {"max-memory", required_argument, NULL, OPT_MAX_MEMORY},
        {"nice", required_argument, NULL, OPT_NICE},
        {"no-inherit", no_argument, NULL, 'i'},
        {"subprocesses", no_argument, NULL, 's'},
        {"native", no_argument, NULL, 'n'},
        {"no-native", no_argument, NULL, OPT_NO_NATIVE},
        {"unwind", required_argument, NULL, OPT_UNWIND},
        {"unwind-memory", required_argument, NULL, OPT_UNWIND_MEMORY},
        {"stack-size", required_argument, NULL, OPT_STACK},
        {"backend", required_argument, NULL, OPT_BACKEND},
        {"no-kernel", no_argument, NULL, OPT_NO_KERNEL},
        {"ring-size", required_argument, NULL, 'm'},
        {"all", no_argument, NULL, 'a'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {"archive", required_argument, NULL, OPT_ARCHIVE},
        {"strip-code", no_argument, NULL, OPT_STRIP},
        {"idle", no_argument, NULL, OPT_IDLE},
        {"wall", no_argument, NULL, OPT_WALL},
        {"gil", no_argument, NULL, OPT_GIL},
        {"comm", required_argument, NULL, OPT_COMM},
        {"cgroup", required_argument, NULL, OPT_CGROUP},
        {"cmdline", no_argument, NULL, OPT_CMDLINE},
        {"no-sandbox", no_argument, NULL, OPT_NO_SANDBOX},
        {0},
    };
    struct session_options o = {
        .output = "trace.bin",
        .event = "cpu-clock",
        .frequency_hz = 99,
        .unwind = UNWIND_TABLES,
        .stack_bytes = 65536,
        .kernel = true,
        .follow = true,
        .messages = stderr,
    };
    struct pids pids __attribute__((cleanup(pids_deinit))) = {0};
    struct filter filter __attribute__((cleanup(filter_deinit))) = {0};
    int *cpus __attribute__((cleanup(cpus_free))) = NULL, option, code = EXIT_GOOD;
    uint64_t n;
    struct error *err;

    while ((option = getopt_long(argc, argv, "+o:F:p:C:e:d:isnm:agqh", longs, NULL)) != -1) {
        switch (option) {
        case 'o':
            o.output = optarg;
            break;
        case 'F':
            if (!parse_number(optarg, 1, 1000000, &o.frequency_hz))
                return usage_error("'%s' is no rate: samples a second, 1 to 1000000", optarg);
            break;
        case 'p':
            if (!parse_pids(optarg, &pids))
                return usage_error("'%s' is no list of process ids (like 123,456)", optarg);
            break;
        case 'C':
            cpus_free(&cpus);
            err = host_parse_cpus(optarg, &cpus, &o.cpu_count);
            if (err)
                return fail(err);
            o.cpus = cpus;
            break;
        case 'e':
            o.event = optarg;
            break;
        case 'd':
            if (!parse_duration(optarg, &o.duration_ns))
                return usage_error("'%s' is no duration: seconds, or 10m, 6h, 1d", optarg);
            break;
        case OPT_ROTATE:
            if (!parse_duration(optarg, &o.rotate_ns))
                return usage_error("'%s' is no duration: seconds, or 10m, 6h, 1d", optarg);
            break;
        case OPT_ROTATE_SIZE:
            if (!parse_size(optarg, UINT64_MAX, &o.rotate_bytes) || o.rotate_bytes < 4096)
                return usage_error("'%s' is no size of a file: 4096 bytes at least, or 64M", optarg);
            break;
        case OPT_MAX_SIZE:
            if (!parse_size(optarg, UINT64_MAX, &o.max_bytes) || o.max_bytes < 4096)
                return usage_error("'%s' is no size of a file: 4096 bytes at least, or 64M", optarg);
            break;
        case OPT_MAX_MEMORY:
            if (!parse_size(optarg, UINT64_MAX, &o.max_memory) || o.max_memory < 1 << 20)
                return usage_error("'%s' is no amount of memory: 1M at least, or 64M", optarg);
            break;
        case OPT_KEEP:
            if (!parse_number(optarg, 1, 1000000, &n))
                return usage_error("'%s' is no number of files to keep", optarg);
            o.keep = (uint32_t)n;
            break;
        case OPT_MAX_CPU: {
            char *rest;
            double percent = strtod(optarg, &rest);
            if (rest == optarg || (*rest && strcmp(rest, "%")) || !(percent > 0) || percent > 100)
                return usage_error("'%s' is no share of a CPU: percent, more than 0 and at most 100", optarg);
            o.max_cpu = percent / 100;
            break;
        }
        case 'i':
            o.follow = false;
            break;
        case OPT_NO_NATIVE:
            o.unwind = UNWIND_NO;
            break;
        case OPT_UNWIND:
            for (o.unwind = 0; unwind_mode_names[o.unwind] && strcmp(optarg, unwind_mode_names[o.unwind]);)
                o.unwind++;
            if (!unwind_mode_names[o.unwind])
                return usage_error("'%s' is no way to unwind: tables, snapshot, both, fp or none", optarg);
            break;
        case OPT_UNWIND_MEMORY:
            if (!parse_size(optarg, 1u << 30, &n) || n < 1 << 20)
                return usage_error("'%s' is no size for unwind tables: 1M to 1024M", optarg);
            o.table_bytes = (uint32_t)n;
            break;
        case OPT_STACK:
            if (!parse_size(optarg, 65536, &n))
                return usage_error("'%s' is no stack size: bytes, at most 65536", optarg);
            o.stack_bytes = (uint32_t)n;
            if (o.unwind == UNWIND_TABLES || o.unwind == UNWIND_NO)
                o.unwind = n ? UNWIND_SNAPSHOT : UNWIND_NO;
            break;
        case OPT_BACKEND:
            for (o.backend = 0; backend_names[o.backend] && strcmp(optarg, backend_names[o.backend]);)
                o.backend++;
            if (!backend_names[o.backend])
                return usage_error("'%s' is no backend: auto, bpf or proc", optarg);
            break;
        case OPT_NO_KERNEL:
            o.kernel = false;
            break;
        case OPT_ARCHIVE:
            o.archive = optarg;
            break;
        case OPT_STRIP:
            o.strip_code = true;
            break;
        case 'm':
            if (!parse_size(optarg, 1u << 30, &n) || n < 4096 || n & (n - 1))
                return usage_error("'%s' is no ring size: a power of two, 4096 to 1G", optarg);
            o.ring_bytes = (uint32_t)n;
            break;
        case 'a':
            o.include_non_python = true;
            break;
        case 's':
            o.follow = true;
            break;
        case 'n':
            if (o.unwind == UNWIND_NO)
                o.unwind = UNWIND_TABLES;
            break;
        case 'g':
            break;
        case 'q':
            o.quiet = true;
            break;
        case 'h':
            printf(usage_text, py_versions_known());
            return EXIT_GOOD;
        case OPT_COMM:
        case OPT_CGROUP:
            err = option == OPT_COMM ? filter_add_comms(&filter, optarg) : filter_add_cgroups(&filter, optarg);
            if (err)
                return fail(err);
            o.filter = &filter;
            break;
        case OPT_NICE:
            if (!parse_nice(optarg, &o.nice))
                return usage_error("'%s' is no nice value: -20 to 19", optarg);
            o.has_nice = true;
            break;
        case OPT_CMDLINE:
            o.cmdline = true;
            break;
        case OPT_NO_SANDBOX:
            o.no_sandbox = true;
            break;
        case OPT_IDLE:
            return refuse_idle("--idle");
        case OPT_WALL:
            return refuse_idle("--wall");
        case OPT_GIL:
            return usage_error("%s is a filter of pysym: everything is recorded here", "--gil");
        default:
            return usage_error("%s", "the options are not understood");
        }
    }
    if (o.max_bytes && (o.rotate_ns || o.rotate_bytes || o.keep))
        return usage_error("%s", "--max-size is for one file; with --rotate say --rotate-size and --keep");
    if (o.keep && !o.rotate_ns && !o.rotate_bytes)
        return usage_error("%s", "--keep is for rotated files: it goes with --rotate or --rotate-size");
    if (o.archive && !strcmp(o.archive, o.output))
        return usage_error("%s cannot be the trace and the archive", o.archive);
    if (o.strip_code && !o.archive)
        return usage_error("%s", "--strip-code goes with --archive");
    if (optind < argc) {
        if (pids.list.count)
            return usage_error("%s", "either -p or a command");
        if (strcmp(argv[optind - 1], "--"))
            return usage_error("'%s' is too much: a command stands behind --", argv[optind]);
        o.command = argv + optind;
    }
    o.pids = pids.list.data;
    o.pid_count = (uint32_t)pids.list.count;
    err = session_run(&o, &code);
    return err ? fail(err) : code;
}

static const char archive_usage[] =
    "usage: pycap archive TRACE... [-o FILE]\n"
    "\n"
    "Gathers the binaries that a trace refers to, with their debug files, from this host into one\n"
    "file for 'pysym --archive'. Unpacked into ~/.debug it serves perf, too.\n"
    "\n"
    "  -o, --output FILE     the archive (TRACE.tar.zst); packed as its name says: .tar, .tar.gz, .tar.bz2,\n"
    "                        .tar.xz, else zstd; - for standard output\n"
    "      --strip-code      leave out what neither unwinding nor naming needs: code and data\n"
    "      --strict          exit with 3 when something could not be had\n"
    "  -q, --quiet           tell only what could not be had\n"
    "  -h, --help            this\n";

/* "trace.bin" becomes "trace.tar.zst". */
static char *archive_name(const char *trace)
{
    size_t len = strlen(trace);
    char *name;

    if (len > 4 && !strcmp(trace + len - 4, ".bin"))
        len -= 4;
    return asprintf(&name, "%.*s.tar.zst", (int)len, trace) < 0 ? NULL : name;
}

static int cmd_archive(int argc, char **argv)
{
    enum { OPT_STRIP = 256, OPT_STRICT };
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'}, {"strip-code", no_argument, NULL, OPT_STRIP},
        {"strict", no_argument, NULL, OPT_STRICT}, {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    struct archive_options o = {.messages = stderr};
    bool strict = false, complete;
    char *name = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "o:qh", longs, NULL)) != -1) {
        switch (option) {
        case 'o':
            o.output = optarg;
            break;
        case OPT_STRIP:
            o.strip_code = true;
            break;
        case OPT_STRICT:
            strict = true;
            break;
        case 'q':
            o.quiet = true;
            break;
        case 'h':
            fputs(archive_usage, stdout);
            return EXIT_GOOD;
        default:
            return usage_error("%s", "the options are not understood");
        }
    }
    if (optind == argc)
        return usage_error("%s", "name a trace, such as trace.bin");
    o.inputs = (const char *const *)argv + optind;
    o.input_count = (uint32_t)(argc - optind);
    if (!o.output && !strcmp(o.inputs[0], "-"))
        return usage_error("%s", "name the archive with -o");
    if (o.output && !strcmp(o.output, "-") && isatty(STDOUT_FILENO))
        return usage_error("%s", "an archive is not for the terminal: name a file with -o, or redirect");
    for (uint32_t i = 0; o.output && i < o.input_count; i++) {
        if (files_are_one(o.output, o.inputs[i]))
            return usage_error("%s is a trace and cannot be the archive too", o.output);
    }
    if (!o.output)
        o.output = name = archive_name(o.inputs[0]);
    struct error *err = o.output ? archive_run(&o, &complete) : error_no_memory();
    free(name);
    if (err)
        return fail(err);
    return strict && !complete ? EXIT_INCOMPLETE : EXIT_GOOD;
}

static const char info_usage[] =
    "usage: pycap info\n"
    "\n"
    "Tells what this host offers for recording, and which Python processes it runs.\n"
    "\n"
    "  -h, --help            this\n";

static int cmd_info(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
        fputs(info_usage, stdout);
        return EXIT_GOOD;
    }
    if (argc > 1)
        return usage_error("%s", "info takes no arguments");
    struct error *err = info_print(stdout);
    if (!err && (fflush(stdout) || ferror(stdout)))
        err = error_os(errno, "standard output cannot be written");
    return err ? fail(err) : EXIT_GOOD;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (!strcmp(verb, "record"))
        return cmd_record(argc - 1, argv + 1);
    if (!strcmp(verb, "archive"))
        return cmd_archive(argc - 1, argv + 1);
    if (!strcmp(verb, "info"))
        return cmd_info(argc - 1, argv + 1);
    if (!strcmp(verb, "-h") || !strcmp(verb, "--help") || !strcmp(verb, "help")) {
        printf(usage_text, py_versions_known());
        return EXIT_GOOD;
    }
    if (!strcmp(verb, "--version") || !strcmp(verb, "version")) {
        printf("pycap %s\n", TOOL_VERSION);
        return EXIT_GOOD;
    }
    if (!*verb)
        return usage_error("%s", "say what to do: record, archive or info");
    return usage_error("'%s' is not known: record, archive or info", verb);
}
