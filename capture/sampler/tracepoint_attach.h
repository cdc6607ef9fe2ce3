/* SPDX-License-Identifier: Apache-2.0 */
/* Has the kernel run BPF programs at the hits of tracepoints. */
#ifndef CAPTURE_SAMPLER_TRACEPOINT_ATTACH_H
#define CAPTURE_SAMPLER_TRACEPOINT_ATTACH_H

#include <stdint.h>

#include "formats/base/err.h"

struct bpf_link;
struct bpf_program;

/*
 * Runs `program` (SEC("tp")) at each hit of the tracepoint with that id, on every CPU; `cpu` is any that is online, `name` is
 * for messages. The caller frees the link with bpf_link__destroy(), which ends it.
 */
struct error *tracepoint_attach(const struct bpf_program *program, uint32_t id, const char *name, int cpu, struct bpf_link **link);

#endif
