/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that grows costs 16 bytes for each entry that it has room for. One that does not costs its entries, too: it has
 * room for twice what is there, and on small hosts for what they had room for always. Mappings lie in an array, which cannot
 * grow: it has room for 32 of each process.
 * Tables that remember what was met lately (LRU) hand each CPU 128 free entries at a time; where that is most of the table, it
 * forgets what is in use.
 */
#include "capture/sampler/map_sizes.h"

#define FEW 16384
#define MANY 131072
#define PROCESSES_MANY 65536
#define MAPPINGS_FEW 262144
#define MAPPINGS_MANY 4194304
#define MAPPINGS_OF_PROCESS 32
#define RECENT_OF_CPU 256
#define SENDERS_FEW 4096

/* `want`, made a power of two, within these. */
static uint32_t between(uint32_t few, uint64_t want, uint32_t many)
{
    uint32_t size = few;

    while (size < want && size < many)
        size *= 2;
    return size;
}

struct map_sizes map_sizes_of(bool grow, const struct map_sizes_host *host)
{
    uint64_t of_cpus = (uint64_t)host->cpus * RECENT_OF_CPU;

    return (struct map_sizes){
        .grow = grow,
        .processes = grow ? PROCESSES_MANY : between(FEW, (uint64_t)host->processes * 2, PROCESSES_MANY),
        .threads = grow ? MANY : between(FEW, (uint64_t)host->threads * 2, MANY),
        .mappings = between(MAPPINGS_FEW, (uint64_t)host->processes * MAPPINGS_OF_PROCESS, MAPPINGS_MANY),
        .recent = between(FEW, of_cpus, MANY),
        .senders = between(SENDERS_FEW, of_cpus, MANY),
    };
}

bool map_sizes_can_grow(uint32_t kernel_major, uint32_t kernel_minor)
{
    return kernel_major > 6 || (kernel_major == 6 && kernel_minor >= 1);
}
