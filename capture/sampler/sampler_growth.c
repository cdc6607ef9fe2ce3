/* SPDX-License-Identifier: Apache-2.0 */
/* Has the BPF programs run at the system calls by which memory grows (bpf/sampler_growth.h). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include "bpf/wire.h"
#include "bpf/sampler.skel.h"
#include "capture/event/tracefs.h"
#include "capture/event/tracepoint.h"
#include "capture/sampler/sampler_state.h"
#include "capture/sampler/tracepoint_attach.h"

/* The kernel may be built without these tracepoints. Takes `why`. */
static struct error *unsupported(const char *name, struct error *why)
{
    struct error *err = error_create(why->code == ERROR_USAGE ? ERROR_UNSUPPORTED : why->code,
                                     "event memory-growth needs the kernel's tracepoint syscalls:%s: %s", name, error_text(why));

    error_destroy(why);
    return err;
}

/* The kernel's list of tracepoints cannot be read. Takes `why`. */
static struct error *unlisted(struct error *why)
{
    struct error *err = error_create(why->code, "event memory-growth needs tracepoints of system calls: %s", error_text(why));

    error_destroy(why);
    return err;
}

struct error *sampler_growth_attach(struct sampler *s)
{
    const struct {
        const char *name;
        const struct bpf_program *program;
    } calls[GROWTH_LINKS] = {
        {"sys_enter_mmap", s->skel->progs.maps},       {"sys_enter_mremap", s->skel->progs.grows},
        {"sys_enter_brk", s->skel->progs.grows},       {"sys_enter_mprotect", s->skel->progs.grows},
        {"sys_exit_mmap", s->skel->progs.grew},        {"sys_exit_munmap", s->skel->progs.grew},
        {"sys_exit_mremap", s->skel->progs.grew},      {"sys_exit_brk", s->skel->progs.grew},
        {"sys_exit_mprotect", s->skel->progs.grew},
    };
    struct tracepoint tracepoint;
    int tracefs;

    struct error *err = tracefs_open(&tracefs);
    if (err)
        return unlisted(err);
    for (int i = 0; i < GROWTH_LINKS && !err; i++) {
        err = tracepoint_find(tracefs, "syscalls", calls[i].name, NULL, &tracepoint);
        if (err)
            err = unsupported(calls[i].name, err);
        else
            err = tracepoint_attach(calls[i].program, tracepoint.id, calls[i].name, s->options.cpus[0], &s->growth_links[i]);
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
