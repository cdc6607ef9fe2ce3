/* SPDX-License-Identifier: Apache-2.0 */
/* As follow() in bpf/sampler_state.h: what is added is counted before, and what is removed after, so no count is ever too low. */
#include "capture/sampler/process_map.h"

#include <bpf/bpf.h>
#include <errno.h>

static void count(const struct process_map *map, uint32_t tgid, uint32_t more)
{
    __atomic_fetch_add(&map->followed[tgid % WIRE_FOLLOWED], more, __ATOMIC_SEQ_CST);
}

struct error *process_map_set(const struct process_map *map, uint32_t tgid, const struct wire_process *process)
{
    count(map, tgid, 1);
    if (!bpf_map_update_elem(map->fd, &tgid, process, BPF_NOEXIST))
        return NULL;
    count(map, tgid, UINT32_MAX);
    if (bpf_map_update_elem(map->fd, &tgid, process, BPF_EXIST))
        return error_os(errno, "process %u cannot be configured in the sampler", tgid);
    return NULL;
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
