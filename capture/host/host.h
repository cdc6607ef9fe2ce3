/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host offers: kernel, BTF, privileges, perf and lockdown limits, CPUs.
 */
#ifndef CAPTURE_HOST_HOST_H
#define CAPTURE_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

struct host {
    char hostname[256], release[256], version[256], machine[65];
    char version_signature[256]; /* Ubuntu's; "" elsewhere */
    uint32_t kernel_major, kernel_minor, kernel_patch;
    uint8_t boot_id[16];
    bool has_boot_id;
    uint8_t kernel_build_id[64];
    uint32_t kernel_build_id_len;
    bool has_btf;
    bool cap_bpf, cap_perfmon, cap_sys_ptrace, cap_checkpoint_restore, cap_syslog, cap_dac_read_search;
    bool cap_sys_nice;        /* or RLIMIT_NICE allows it, or somebody has given the process a nice value */
    char lockdown[32];        /* "none", "integrity", "confidentiality", "" unknown */
    int perf_event_paranoid;  /* -2 unknown */
    int kptr_restrict;        /* -2 unknown */
    uint64_t perf_max_sample_rate;
    bool own_pid_namespace;   /* of the recorder: not the initial one */
    char cpu_model[128];      /* "" unknown */
    uint64_t memory_bytes;    /* that the kernel can use; 0 unknown */
    int *cpus;                /* online; owned */
    uint32_t cpu_count;
};
struct error *host_read(struct host *h);
void host_deinit(struct host *h);
/*
 * How long a CPU has been idle since boot, or taken away by a hypervisor: when nothing ran that could be sampled. In
 * steps of 10 ms; 0 when unknown.
 */
uint64_t host_idle_ns(int cpu);
/* "0-3,5" into numbers, each once, malloc'd. ERROR_USAGE when it is no such list. */
struct error *host_parse_cpus(const char *text, int **cpus, uint32_t *count);

#endif
