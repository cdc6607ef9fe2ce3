/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/event_attr.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/emit/capture_facts.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/records.h"

static_assert(EVENT_ATTR_BYTES <= sizeof(struct perf_event_attr), "the kernel's headers are of Linux 5.13 or newer");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "attributes are written as they lie in memory");

struct kind {
    const char *name;
    uint32_t type;
    uint64_t config;
    const char *name_in_perf; /* NULL: the same */
};
static const struct kind kinds[] = {
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    /* As `perf record --off-cpu` writes it. */
    {"off-cpu", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, "offcpu-time"},
};
/*
 * For all others. Some the kernel does not have; what numbers it has for tracepoints and for counters of a PMU is a matter of the
 * host, and perf wants the formats of tracepoints beside them.
 */
static const struct kind other_kind = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT};
/* Of a trace without events. */
static const struct kind no_kind = {.name_in_perf = "dummy", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};

enum { NAME_MAX_BYTES = 200 };

uint32_t event_attr_count(const struct emit_model *model)
{
    return model->event_count ? model->event_count : 1;
}

/* The letters behind a name, as in "cycles:u", or "". */
static const char *modifiers_of(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon && colon[1] && !colon[1 + strspn(colon + 1, "ukhpPGHIDSWe")] ? colon + 1 : "";
}

/* "r1a8" is event 0x1a8 of the CPU. False: it is no such name. */
static bool is_raw(const char *name, size_t len, uint64_t *config)
{
    char digits[sizeof *config * 2 + 1] = "";

    if (len < 2 || len > sizeof digits || *name != 'r' || strspn(name + 1, "0123456789abcdefABCDEF") < len - 1)
        return false;
    memcpy(digits, name + 1, len - 1);
    *config = strtoull(digits, NULL, 16);
    return true;
}

static struct kind kind_of(const struct emit_model *model, uint32_t event)
{
    if (!model->event_count)
        return no_kind;
    const char *name = model->events[event].name, *modifiers = modifiers_of(name);
    size_t len = *modifiers ? (size_t)(modifiers - name) - 1 : strlen(name);
    struct kind raw = {.type = PERF_TYPE_RAW};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].name) == len && !memcmp(name, kinds[i].name, len))
            return kinds[i];
    }
    return is_raw(name, len, &raw.config) ? raw : other_kind;
}

/* With a "u", a "k" or an "h" only what happens there is counted: in user mode, the kernel, a hypervisor. */
static void put_modifiers(const char *modifiers, struct perf_event_attr *attr)
{
    bool chosen = modifiers[strcspn(modifiers, "ukh")];

    attr->exclude_user = chosen && !strchr(modifiers, 'u');
    attr->exclude_kernel = chosen && !strchr(modifiers, 'k');
    attr->exclude_hv = chosen && !strchr(modifiers, 'h');
}

void event_attr_put(const struct emit_model *model, uint32_t event, struct buf *out)
{
    const struct kind kind = kind_of(model, event);
    const struct emit_rate rate = first_rate_of(model, event);
    struct perf_event_attr attr = {.type = kind.type,
                                   .size = EVENT_ATTR_BYTES,
                                   .config = kind.config,
                                   .sample_type = RECORDS_SAMPLE_TYPE,
                                   .inherit = 1,
                                   .mmap = 1,
                                   .comm = 1,
                                   .freq = rate.frequency_hz != 0,
                                   .task = 1,
                                   .sample_id_all = 1,
                                   .exclude_guest = 1,
                                   .mmap2 = 1,
                                   .comm_exec = 1,
                                   .use_clockid = 1,
                                   .cgroup = 1,
                                   .build_id = 1,
                                   .clockid = CLOCK_MONOTONIC};

    if (model->event_count)
        put_modifiers(modifiers_of(model->events[event].name), &attr);
    if (rate.frequency_hz)
        attr.sample_freq = rate.frequency_hz;
    else
        attr.sample_period = rate.period;
    buf_put(out, &attr, EVENT_ATTR_BYTES);
}

void event_attr_put_name(const struct emit_model *model, uint32_t event, struct buf *out)
{
    const char *known = kind_of(model, event).name_in_perf;
    struct buf name = {0};

    name_word(known ? known : model->events[event].name, &name);
    buf_put(out, name.data, name.len_bytes < NAME_MAX_BYTES ? name.len_bytes : NAME_MAX_BYTES);
    out->bad |= name.bad;
    buf_deinit(&name);
}
