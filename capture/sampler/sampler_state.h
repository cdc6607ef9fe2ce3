/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the sampler, shared by its parts: sampler_load.c loads the BPF programs, sampler.c attaches them and talks
 * to them, sampler_counts.c reads what they counted.
 */
#ifndef CAPTURE_SAMPLER_SAMPLER_STATE_H
#define CAPTURE_SAMPLER_SAMPLER_STATE_H

#include "bpf/native_unwind.h"
#include "capture/sampler/process_map.h"
#include "capture/sampler/ring_size.h"
#include "capture/sampler/rings.h"
#include "capture/sampler/sampler.h"
#include "capture/sampler/shared_array.h"
#include "capture/sampler/table_chunks.h"

#define GROWTH_LINKS 9 /* to the ends of system calls by which memory grows, and to beginnings */

struct bpf_link;
struct sampler_bpf;

struct sampler {
    struct sampler_options options;
    struct sampler_bpf *skel;
    struct ring_sizes ring_sizes;
    struct rings rings;
    bool ended;             /* sampler_disable() was called */
    struct perf_events *events;
    struct bpf_link *hit_links[WIRE_EVENT_MAX]; /* by event: tracepoints; NULL for others */
    uint64_t hits_skipped[WIRE_EVENT_MAX]; /* until sampler_enable(), by event */
    struct bpf_link *growth_links[GROWTH_LINKS];
    int possible_cpus;
    uint64_t *per_cpu;      /* buffer for all loss counters, of all possible CPUs */
    struct table_chunks tables;
    struct shared_array modules, mappings;
    struct process_map processes;
};

/* Returns the program that runs at the hits of a tracepoint that is the event with this index. */
struct bpf_program *sampler_hit_program(const struct sampler *s, uint32_t event);
/* Opens and loads the BPF programs, and maps the arrays for unwind tables. An error says what this host lacks. */
struct error *sampler_load(struct sampler *s);

/* sampler_growth.c: attaches the program for memory growth to tracepoints. An error says what this host lacks. */
struct error *sampler_growth_attach(struct sampler *s);
/* Nothing is counted from here on. May be called twice. */
void sampler_growth_detach(struct sampler *s);
/* Forgets what was counted of a process. */
void sampler_growth_forget(struct sampler *s, uint32_t tgid);

#endif
