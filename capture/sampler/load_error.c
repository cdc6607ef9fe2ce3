/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel says little more than an errno: what limits there are is looked up, and what may have been refused is tried alone. */
#include "capture/sampler/load_error.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/host/host_check.h"
#include "capture/host/memory_limit.h"
#include "capture/host/restraints.h"

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

/* Loads a program that calls a helper as the sampler does; 0 or an errno. 5.10 has all that it asks for. */
static int try_program(enum bpf_func_id helper)
{
    const struct bpf_insn program[] = {
        /* r1: 8 bytes of the stack; r2: 8; r3: address 0 */
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0},
        {.code = BPF_JMP | BPF_CALL, .imm = (int)helper},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    int fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "pycap_try", "GPL", program, sizeof program / sizeof *program, NULL);

    if (fd < 0)
        return -fd;
    close(fd);
    return 0;
}

/* What the kernel or somebody on this host forbids; NULL: it is something else. */
static struct error *forbidden(int e)
{
    char suspects[RESTRAINTS_TEXT_MAX];
    int plain = try_program(BPF_FUNC_ktime_get_ns), reads = plain ? 0 : try_program(BPF_FUNC_probe_read_kernel);

    restraints_suspects(suspects);
    if (plain == EPERM || plain == EACCES)
        return error_create(ERROR_PERMISSION, "BPF programs may not be loaded, though pycap has CAP_BPF (%s): %s", strerror(plain), suspects);
    if (!reads)
        return NULL;
    return error_create(ERROR_UNSUPPORTED,
                        "this kernel forbids BPF programs to read memory (%s): it is locked down to 'confidentiality' (lockdown= on its "
                        "command line, or Secure Boot), or a security module does so",
                        strerror(e));
}

struct error *load_error(const struct bpf_object *obj, int e)
{
    uint64_t needed = map_bytes(obj, false) + OWN_BYTES, allowed = memory_limit();
    struct rlimit limit;

    if (e == ENOMEM && allowed < needed)
        return too_small(allowed, needed);
    struct error *why = e == EPERM || e == EACCES || e == EINVAL ? forbidden(e) : NULL;
    if (why)
        return host_check_say_rest(why);
    return error_os(e, "the kernel refuses to load the sampler (PYCAP_LIBBPF_DEBUG=1 shows why%s)",
                    e == EPERM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
                        ? "; before Linux 5.11 it needs ulimit -l unlimited, too"
                        : "");
}
