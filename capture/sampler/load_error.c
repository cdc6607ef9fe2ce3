/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel says little more than an errno: what limits there are is looked up. */
#include "capture/sampler/load_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "capture/host/memory_limit.h"
#include "capture/host/privileges.h"

/* What pycap itself holds besides, when it begins. */
#define OWN_BYTES (UINT64_C(8) << 20)

/* About what the kernel allocates for the maps: hash tables have some overhead for each entry, arrays have none. With
 * `at_once` without those that take memory for an entry when it is made. */
static uint64_t map_bytes(const struct bpf_object *obj, bool at_once)
{
    enum { OVERHEAD = 64 };
    uint64_t sum = 0;
    const struct bpf_map *map;

    bpf_object__for_each_map(map, obj) {
        enum bpf_map_type type = bpf_map__type(map);
        uint64_t value = (bpf_map__value_size(map) + 7) / 8 * 8, entry = bpf_map__key_size(map) + value + OVERHEAD;
        if (type == BPF_MAP_TYPE_RINGBUF)
            entry = 1;
        else if (type == BPF_MAP_TYPE_ARRAY)
            entry = value;
        if (!at_once || !(bpf_map__map_flags(map) & BPF_F_NO_PREALLOC))
            sum += entry * bpf_map__max_entries(map);
    }
    return sum;
}

/* Since Linux 5.11 what maps take is charged to the cgroup of the process that makes them; this helper came with it. */
static bool maps_are_charged(void)
{
    return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_ktime_get_coarse_ns, NULL) == 1;
}

static struct error *too_small(uint64_t allowed, uint64_t needed)
{
    return error_create(ERROR_UNSUPPORTED,
                        "the cgroup's memory limit of %" PRIu64 " MB is too small: the sampler needs about %" PRIu64 " MB",
                        allowed >> 20, needed >> 20);
}

struct error *load_check_memory(const struct bpf_object *obj)
{
    uint64_t allowed = memory_limit();

    return allowed < map_bytes(obj, true) + OWN_BYTES && maps_are_charged() ? too_small(allowed, map_bytes(obj, false) + OWN_BYTES)
                                                                            : NULL;
}

struct error *load_error(const struct bpf_object *obj, int e)
{
    uint64_t needed = map_bytes(obj, false) + OWN_BYTES, allowed = memory_limit();
    struct rlimit limit;

    if (e == ENOMEM && allowed < needed)
        return too_small(allowed, needed);
    return error_os(e, "the kernel refuses to load the sampler%s (PYCAP_LIBBPF_DEBUG=1 shows why%s)", privileges_filter_hint(e),
                    e == EPERM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
                        ? "; before Linux 5.11 it needs ulimit -l unlimited, too"
                        : "");
}
