/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMUs, the devices that count events: each is a folder in /sys/bus/event_source/devices, whose files say its type, which
 * bits of perf_event_attr a term stands for, and what its events are called.
 */
#ifndef CAPTURE_EVENT_PMU_H
#define CAPTURE_EVENT_PMU_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

#define PMU_CPUS_MAX 1024
#define PMU_DEVICES "/sys/bus/event_source/devices"

/* An event of a PMU, for perf_event_attr. */
struct pmu_event {
    uint32_t type;
    uint64_t config[3]; /* config, config1, config2 */
    char cpus[PMU_CPUS_MAX]; /* the CPUs whose counters it has, like "0-7,16"; "": all */
};

/*
 * Finds in the folder `devices` what the terms, like "event=0x3c,umask=1" or "mem-loads,ldlat=3", mean to the PMU `device`.
 * A term is NAME=NUMBER, NAME (1, or an event of the PMU), rHEX, config=, config1= or config2=. An error says which PMUs,
 * events or terms there are instead, or why the PMU's events cannot be sampled.
 */
struct error *pmu_find(const char *devices, const char *device, const char *terms, struct pmu_event *out);

/*
 * The bits of a value as a file `format` says, like "config:0-7,32-35". Sets them in `out` and clears those that it does
 * not have. ERROR_USAGE: the value has more bits; ERROR_FORMAT: the file is not understood.
 */
struct error *pmu_put_bits(const char *format, uint64_t value, struct pmu_event *out);

/* Appends the names of the PMUs, or of the events of one, with commas between them and in order; nothing if there are none. */
void pmu_list_devices(const char *devices, struct buf *out);
void pmu_list_events(const char *devices, const char *device, struct buf *out);

#endif
