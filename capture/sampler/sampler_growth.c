/* SPDX-License-Identifier: Apache-2.0 */
/* Has the BPF program run at the end of the system calls by which memory grows (bpf/sampler_growth.h). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <unistd.h>

#include "bpf/wire.h"
#include "bpf/sampler.skel.h"
#include "capture/event/tracefs.h"
#include "capture/event/tracepoint.h"
#include "capture/sampler/sampler_state.h"
#include "capture/sampler/tracepoint_attach.h"

static struct error *attach(struct sampler *s, int tracefs, const char *call, struct bpf_link **link)
{
    struct tracepoint tracepoint;
    char name[32];

    snprintf(name, sizeof name, "sys_exit_%s", call);
    TRY(tracepoint_find(tracefs, "syscalls", name, NULL, &tracepoint));
    return tracepoint_attach(s->skel->progs.grew, tracepoint.id, name, s->options.cpus[0], link);
}

struct error *sampler_growth_attach(struct sampler *s)
{
    static const char *const calls[GROWTH_CALLS] = {"mmap", "munmap", "mremap", "brk", "mprotect"};
    int tracefs;

    TRY(tracefs_open(&tracefs));
    struct error *err = NULL;
    for (int i = 0; i < GROWTH_CALLS && !err; i++)
        err = attach(s, tracefs, calls[i], &s->growth_links[i]);
    close(tracefs);
    return err;
}

void sampler_growth_detach(struct sampler *s)
{
    for (int i = 0; i < GROWTH_CALLS; i++) {
        bpf_link__destroy(s->growth_links[i]);
        s->growth_links[i] = NULL;
    }
}

void sampler_growth_forget(struct sampler *s, uint32_t tgid)
{
    if (s->growth_links[0])
        bpf_map_delete_elem(bpf_map__fd(s->skel->maps.growths), &tgid);
}
