/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf side-band: a dummy event on each CPU, through which the kernel reports
 * mappings (with device and inode), names, forks, execs and exits. The times
 * are CLOCK_MONOTONIC, like those of the samples.
 *
 * It is per CPU also when only some processes are recorded. An event of a process has to be
 * opened for each of its threads on each CPU, is inherited at every fork and costs at every
 * switch to and from it; one of a CPU costs only where something is reported. Events of other
 * processes are dropped when they are applied (capture/process/processes.c).
 */
#ifndef CAPTURE_SAMPLER_SIDEBAND_H
#define CAPTURE_SAMPLER_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

enum sideband_kind {
    SIDEBAND_MMAP = 1,
    SIDEBAND_COMM,
    SIDEBAND_EXEC, /* a COMM record with the exec bit */
    SIDEBAND_FORK, /* a process or a thread */
    SIDEBAND_EXIT,
    SIDEBAND_LOST,
};

struct sideband_event {
    enum sideband_kind kind;
    uint64_t time_ns;
    uint32_t tgid, tid;
    uint32_t parent_tgid, parent_tid; /* FORK, EXIT */
    uint64_t lost;                    /* LOST */
    uint64_t address, length, file_offset;
    uint32_t protection, map_flags;
    uint32_t device_major, device_minor;
    uint64_t inode, inode_generation;
    char text[4096];       /* path, or name; the last member, so that copies can stop at its NUL */
};

struct sideband;
/* Opens one event on each CPU of `cpus`, disabled. `ring_pages` is the size of each ring, a power of two of pages. */
struct error *sideband_open(const int *cpus, uint32_t cpu_count, uint32_t ring_pages, struct sideband **out);
void sideband_close(struct sideband *s);
struct error *sideband_enable(struct sideband *s);
/*
 * File descriptors that become readable when events arrive. Stores the array, which stays owned by `s`; returns its
 * length.
 */
uint32_t sideband_fds(const struct sideband *s, const int **fds);
/*
 * Calls `fn` for all events that have arrived, CPU by CPU, so not sorted by time. The event is valid during that call.
 */
typedef struct error *(*sideband_fn)(void *ctx, const struct sideband_event *event);
struct error *sideband_drain(struct sideband *s, sideband_fn fn, void *ctx);
/*
 * Looks at the events that have arrived since the last look, and leaves them where they are: whether there is one among
 * them that matters, by `fn`, or there are so many that they should be drained. The event is valid during that call.
 */
enum sideband_news {
    SIDEBAND_NOTHING, /* none has arrived */
    SIDEBAND_OTHERS,  /* none that matters */
    SIDEBAND_NEWS,
};
typedef bool (*sideband_matters_fn)(void *ctx, const struct sideband_event *event);
enum sideband_news sideband_look(struct sideband *s, sideband_matters_fn fn, void *ctx);
/* Whether so many events have arrived since this was asked last that they will soon have no room unless they are looked at sooner. */
bool sideband_is_busy(struct sideband *s);

#endif
