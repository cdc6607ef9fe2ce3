/* SPDX-License-Identifier: Apache-2.0 */
/* Has the BPF program run at the end of the system calls by which memory grows (bpf/sampler_growth.h). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "bpf/wire.h"
#include "bpf/sampler.skel.h"
#include "capture/event/tracefs.h"
#include "capture/event/tracepoint.h"
#include "capture/sampler/sampler_state.h"
#include "capture/sampler/tracepoint_attach.h"

struct error *sampler_growth_attach(struct sampler *s)
{
    /* What a mapping gives is known by its arguments; what the others do, only by what there was before. */
    static const char *const names[GROWTH_LINKS] = {"sys_enter_mremap", "sys_enter_brk", "sys_enter_mprotect", "sys_exit_mmap",
                                                    "sys_exit_munmap",  "sys_exit_mremap", "sys_exit_brk",     "sys_exit_mprotect"};
    struct tracepoint tracepoint;
    int tracefs;

    TRY(tracefs_open(&tracefs));
    struct error *err = NULL;
    for (int i = 0; i < GROWTH_LINKS && !err; i++) {
        bool begins = !strncmp(names[i], "sys_enter", strlen("sys_enter"));
        err = tracepoint_find(tracefs, "syscalls", names[i], NULL, &tracepoint);
        if (!err)
            err = tracepoint_attach(begins ? s->skel->progs.grows : s->skel->progs.grew, tracepoint.id, names[i],
                                    s->options.cpus[0], &s->growth_links[i]);
    }
    close(tracefs);
    return err;
}

void sampler_growth_detach(struct sampler *s)
{
    for (int i = 0; i < GROWTH_LINKS; i++) {
        bpf_link__destroy(s->growth_links[i]);
        s->growth_links[i] = NULL;
    }
}

void sampler_growth_forget(struct sampler *s, uint32_t tgid)
{
    if (s->growth_links[0])
        bpf_map_delete_elem(bpf_map__fd(s->skel->maps.growths), &tgid);
}
