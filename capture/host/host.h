/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the facts about this host that recording depends on: kernel, BTF, privileges, limits of perf and lockdown,
 * CPUs.
 */
#ifndef CAPTURE_HOST_HOST_H
#define CAPTURE_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/host/restraints.h"
#include "formats/base/err.h"

struct host {
    char hostname[256], release[256], version[256], machine[65];
    char version_signature[256]; /* of /proc/version_signature, which Ubuntu has; "" elsewhere */
    uint32_t kernel_major, kernel_minor, kernel_patch;
    uint8_t boot_id[16];
    bool has_boot_id;
    uint8_t kernel_build_id[64];
    uint32_t kernel_build_id_len;
    bool has_btf;
    bool cap_sys_admin, cap_bpf, cap_perfmon, cap_sys_ptrace, cap_checkpoint_restore, cap_syslog, cap_dac_read_search;
    bool cap_sys_nice;        /* also true when RLIMIT_NICE allows -20, or pycap was started with a nice value */
    char lockdown[32];        /* "none", "integrity", "confidentiality", "" unknown */
    int perf_event_paranoid;  /* -2 unknown */
    int kptr_restrict;        /* -2 unknown */
    uint64_t perf_max_sample_rate;
    char hidepid[RESTRAINTS_HIDEPID_MAX]; /* how /proc hides processes from pycap (restraints.h); "" not at all */
    bool own_pid_namespace;   /* host_is_pid_namespace_own() */
    char cpu_model[128];      /* "" unknown */
    uint32_t thread_count;    /* of all processes, when this was read; 0 unknown */
    uint32_t process_count;   /* likewise, a few more at most */
    uint64_t memory_bytes;    /* memory that the kernel can use; 0 unknown */
    int *cpus;                /* online; owned */
    uint32_t cpu_count;
};
struct error *host_read(struct host *h);
void host_deinit(struct host *h);
/* Whether pycap runs in a pid namespace other than the initial one: it does not see all processes then. */
bool host_is_pid_namespace_own(void);
/* Returns one more than the highest number of a CPU that was online. */
uint32_t host_cpu_end(const struct host *h);
/*
 * Stores for each of `count` CPUs how long, since boot, nothing ran on it that could be sampled: it was idle, or the hypervisor
 * had it (steal time). In ns, in steps of 10 ms; 0 when unknown.
 */
void host_idle_ns(const int *cpus, uint32_t count, uint64_t *idle_ns);
/* Allows this process to have `count` files open, as far as it may raise that limit. */
void host_want_files(uint64_t count);
/* Raises RLIMIT_MEMLOCK as far as it goes: the kernel charges buffers of perf events to it and, before 5.11, BPF's maps. */
void host_lift_memlock(void);
/* Parses a list like "0-3,5" into CPU numbers without duplicates, malloc'd. ERROR_USAGE when it is malformed. */
struct error *host_parse_cpus(const char *text, int **cpus, uint32_t *count);

#endif
