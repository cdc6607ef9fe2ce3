/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/event_attr.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "formats/emit/capture_facts.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/records.h"

static_assert(EVENT_ATTR_BYTES <= sizeof(struct perf_event_attr), "the kernel's headers are of Linux 5.13 or newer");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "attributes are written as they lie in memory");

static const struct kind {
    const char *name;
    uint32_t type, config;
    const char *name_in_perf; /* NULL: the same */
} kinds[] = {
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
/* For other events that the kernel does not have. */
static const struct kind other_kind = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT};
/* Of a trace without events. */
static const struct kind no_kind = {.name_in_perf = "dummy", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};

enum { NAME_MAX_BYTES = 200 };

uint32_t event_attr_count(const struct emit_model *model)
{
    return model->event_count ? model->event_count : 1;
}

static const struct kind *kind_of(const struct emit_model *model, uint32_t event)
{
    if (!model->event_count)
        return &no_kind;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(model->events[event].name, kinds[i].name))
            return &kinds[i];
    }
    return &other_kind;
}

void event_attr_put(const struct emit_model *model, uint32_t event, struct buf *out)
{
    const struct kind *kind = kind_of(model, event);
    const struct emit_rate rate = first_rate_of(model, event);
    struct perf_event_attr attr = {.type = kind->type,
                                   .size = EVENT_ATTR_BYTES,
                                   .config = kind->config,
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

    if (rate.frequency_hz)
        attr.sample_freq = rate.frequency_hz;
    else
        attr.sample_period = rate.period;
    buf_put(out, &attr, EVENT_ATTR_BYTES);
}

void event_attr_put_name(const struct emit_model *model, uint32_t event, struct buf *out)
{
    const char *known = kind_of(model, event)->name_in_perf;
    struct buf name = {0};

    name_word(known ? known : model->events[event].name, &name);
    buf_put(out, name.data, name.len_bytes < NAME_MAX_BYTES ? name.len_bytes : NAME_MAX_BYTES);
    out->bad |= name.bad;
    buf_deinit(&name);
}
