/* SPDX-License-Identifier: Apache-2.0 */
/* Each line answers one question about this host; whether sampling works is tried. */
#include "capture/info.h"

#include <inttypes.h>
#include <unistd.h>

#include "capture/binary/modules.h"
#include "capture/host/errand.h"
#include "capture/host/host_check.h"
#include "capture/host/privileges.h"
#include "capture/process/process_names.h"
#include "capture/process/process_program.h"
#include "capture/process/processes.h"
#include "capture/host/procfs.h"
#include "capture/sampler/sampler.h"
#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/job_text.h"
#include "formats/base/printable.h"
#include "formats/cpython/version.h"

/* How long the inspection of all mapped files may take. */
#define INSPECT_NS (5 * NS_PER_S)

static const char *yes_no(bool yes)
{
    return yes ? "yes" : "no";
}

static void print_host(const struct host *h, FILE *out)
{
    char module[RESTRAINTS_TEXT_MAX];

    fprintf(out, "host            %s, %s, %u CPUs\n", h->hostname, h->machine, h->cpu_count);
    fprintf(out, "kernel          %s (%s)\n", h->release, h->version);
    fprintf(out, "type info (BTF) %s\n", yes_no(h->has_btf));
    fprintf(out, "lockdown        %s\n", h->lockdown[0] ? h->lockdown : "not known (/sys/kernel/security is not mounted or may not be read, or the kernel has none)");
    fprintf(out, "perf            paranoid %d, at most %llu Hz; kptr_restrict %d\n", h->perf_event_paranoid,
            (unsigned long long)h->perf_max_sample_rate, h->kptr_restrict);
    fprintf(out, "capabilities    bpf %s, perfmon %s, sys_ptrace %s, checkpoint_restore %s, syslog %s, dac_read_search %s\n",
            yes_no(h->cap_bpf), yes_no(h->cap_perfmon), yes_no(h->cap_sys_ptrace), yes_no(h->cap_checkpoint_restore),
            yes_no(h->cap_syslog), yes_no(h->cap_dac_read_search));
    privileges_print_missing(h, "                ", out);
    restraints_module(module);
    if (*module)
        fprintf(out, "confined        by %s\n", module);
    if (restraints_seccomp())
        fprintf(out, "system calls    filtered (seccomp), as in containers\n");
    filter_print_hierarchy(out);
}

/* Loads the sampler and lets it go again: the only sure answer. */
static struct error *try_sampler(const struct host *h)
{
    const struct map_sizes_host sizes = {h->process_count, h->thread_count, h->cpu_count};
    struct sampler_options options = {
        .cpus = h->cpus,
        .cpu_count = h->cpu_count,
        .cpu_end = host_cpu_end(h),
        .sizes = map_sizes_of(map_sizes_can_grow(h->kernel_major, h->kernel_minor), &sizes),
        .stack_bytes = 65536,
        .kernel = true,
        .python = true,
        .ring_bytes = 1 << 20,
    };
    struct sampler *s;

    TRY(host_check(h));
    TRY(event_list_complete(&options.events, 0, 0));
    TRY(sampler_open(&options, &s));
    sampler_close(s);
    return NULL;
}

/* How the interpreter's thread states will be found, in a word. */
static const char *tls_text(const struct process *p)
{
    switch (p->python->python.tls_tstate.kind) {
    case PY_TLS_LOCAL_EXEC:
        return "thread-local";
    case PY_TLS_MODULE:
        return "thread-local (shared)";
    case PY_TLS_SLOT:
        return "thread-local (slot)";
    case PY_TLS_DESCRIPTOR:
        return "thread-local (descriptor)";
    default:
        break;
    }
    /* 2.7 has no key: the state of the GIL's holder is known, any other's comes from the list. */
    bool has_key = p->python->python.thread_key_vaddr || p->python->python.layout.runtime_tss_key != PY_NONE;
    return p->glibc && has_key ? "pthread key" : "thread list";
}

/* A table's widths; what is longer moves the rest of its line. */
enum { NAME_WIDTH = 32, TITLE_WIDTH = 16 };

static void print_process(struct processes *all, struct process *p, uint64_t own_mount_namespace, bool verbose, FILE *out)
{
    const struct py_image *image = &p->python->python;
    uint64_t mount = procfs_namespace((pid_t)p->tgid, "mnt");
    char version[64], other_version[32], text[PROCESS_NAME_MAX];
    struct buf flavour = {0}, name = {0}, title = {0}, path = {0};

    process_find_program(p, true);
    printable_put(&name, processes_name(all, p, text));
    printable_put(&title, *process_title(p) ? process_title(p) : "-");
    printable_put(&path, p->python->path);
    py_version_text(image->version_hex, version);
    if (p->rival && process_runs_python(p, p->rival, p->rival_bias))
        snprintf(version + strlen(version), sizeof version - strlen(version), ", %s", py_version_text(p->rival->python.version_hex, other_version));

    if (image->layout.debug_build)
        buf_put_str(&flavour, " debug");
    if (image->layout.free_threaded)
        buf_put_str(&flavour, " free-threaded");
    job_text_print(out, "%8u  %-*s  %-*s  %-8s%s  %-6s  %s  %s\n", p->tgid, NAME_WIDTH, buf_cstr(&name), TITLE_WIDTH,
            buf_cstr(&title), version, buf_cstr(&flavour), p->glibc ? "glibc" : "other", buf_cstr(&path),
            mount && mount != own_mount_namespace ? "(own mount namespace)" : "");
    if (image->refused)
        fprintf(out, "%8s  cannot be recorded: %s\n", "", image->refused);
    else if (verbose)
        fprintf(out, "%8s  thread states by %s\n", "", tls_text(p));
    buf_deinit(&flavour);
    buf_deinit(&name);
    buf_deinit(&title);
    buf_deinit(&path);
}

struct error *info_print(bool verbose, FILE *out)
{
    struct host host;
    struct modules *modules = NULL;
    struct processes *processes = NULL;
    struct processes_options options = {.whole_host = true};
    uint64_t own_mount = procfs_namespace(getpid(), "mnt");
    uint32_t cursor = 0, found = 0;

    TRY(errand_begin(privileges_drop_for_errands, true)); /* before there are threads */
    TRY(host_read(&host));
    print_host(&host, out);
    struct error *why = try_sampler(&host);
    if (why)
        fprintf(out, "sampling        no: %s\n", error_text(why));
    else
        fprintf(out, "sampling        yes\n");
    error_destroy(why);
    info_print_events(&host, out);
    fprintf(out, "interpreters    CPython %s\n\n", py_versions_known());

    struct error *err = modules_create(&modules);
    if (!err)
        err = processes_create(&options, modules, &processes);
    if (!err)
        err = processes_scan(processes, NULL, 0);
    if (!err) {
        modules_settle(modules, now_ns() + INSPECT_NS);
        err = processes_take_modules(processes);
    }
    if (!err) {
        fprintf(out, "%8s  %-*s  %-*s  %-8s  %-6s  %s\n", "PID", NAME_WIDTH, "NAME", TITLE_WIDTH, "TITLE", "CPYTHON", "LIBC",
                "INTERPRETER");
        for (struct process *p; (p = processes_next(processes, &cursor));) {
            if (p->python) {
                print_process(processes, p, own_mount, verbose, out);
                found++;
            }
        }
        uint64_t forbidden = processes_counts(processes).forbidden;
        if (forbidden)
            fprintf(out, "Processes whose /proc/PID/maps may not be read%s: %" PRIu64 ".\n",
                    host.cap_sys_ptrace ? "" : " without CAP_SYS_PTRACE", forbidden);
        errand_settle();
        errand_print_late(out);
        if (!found)
            fprintf(out, "No Python process is visible%s.\n",
                    host.cap_sys_ptrace ? "" : " without CAP_SYS_PTRACE: run as root to see those of other users");
    }
    processes_destroy(processes);
    modules_destroy(modules);
    errand_end();
    host_deinit(&host);
    return err;
}
