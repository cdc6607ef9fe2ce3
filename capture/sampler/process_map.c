/* SPDX-License-Identifier: Apache-2.0 */
/* As follow() in bpf/sampler_state.h: what is added is counted before, and what is removed after, so no count is ever too low. */
#include "capture/sampler/process_map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <time.h>

static void count(const struct process_map *map, uint32_t tgid, uint32_t more)
{
    __atomic_fetch_add(&map->followed[tgid % WIRE_FOLLOWED], more, __ATOMIC_SEQ_CST);
}

/*
 * A map that grows gets memory for a few entries at a time, a moment after the last of these was taken. Where memory is really
 * short, that is waited for once, and then not before there was some again.
 */
#define TRIES 100
#define WAIT_NS 1000000

/* Returns 0, or what the kernel says. A changed entry takes memory, too. */
static int update(struct process_map *map, uint32_t tgid, const struct wire_process *process, uint64_t flags)
{
    int error = 0;

    for (int i = 0; i < (map->short_of_memory ? 1 : TRIES); i++) {
        error = bpf_map_update_elem(map->fd, &tgid, process, flags) ? errno : 0;
        if (error != ENOMEM)
            break;
        nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    }
    map->short_of_memory = error == ENOMEM;
    return error;
}

struct error *process_map_set(struct process_map *map, uint32_t tgid, const struct wire_process *process, bool *full)
{
    *full = false;
    count(map, tgid, 1);
    int error = update(map, tgid, process, BPF_NOEXIST);
    if (!error)
        return NULL;
    count(map, tgid, UINT32_MAX);
    if (error == EEXIST)
        error = update(map, tgid, process, BPF_EXIST);
    *full = error == E2BIG || error == ENOMEM;
    if (*full) /* what it says now is no longer true */
        process_map_remove(map, tgid);
    return !error || *full ? NULL : error_os(error, "process %u cannot be configured in the sampler", tgid);
}

bool process_map_get(const struct process_map *map, uint32_t tgid, struct wire_process *process)
{
    return !bpf_map_lookup_elem(map->fd, &tgid, process);
}

void process_map_remove(const struct process_map *map, uint32_t tgid)
{
    if (!bpf_map_delete_elem(map->fd, &tgid))
        count(map, tgid, UINT32_MAX);
}

void process_map_prune(const struct process_map *map, bool (*wanted)(void *ctx, uint32_t tgid), void *ctx)
{
    uint32_t tgid, next, *at = NULL;

    while (!bpf_map_get_next_key(map->fd, at, &next)) {
        /* The next key cannot be found from a removed one, so remove a key after finding its successor. */
        if (at && !wanted(ctx, tgid))
            process_map_remove(map, tgid);
        tgid = next;
        at = &tgid;
    }
    if (at && !wanted(ctx, tgid))
        process_map_remove(map, tgid);
}
