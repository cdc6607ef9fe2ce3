/* SPDX-License-Identifier: Apache-2.0 */
/* The table of events that have a name of their own. */
#include "capture/event/event_table.h"

#include <linux/perf_event.h>
#include <string.h>

#include "formats/trace/trace.h"

#define SOFTWARE(name_, alias_, unit_, kind_, config_) \
    {.name = name_, .alias = alias_, .unit = unit_, .kind = kind_, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##config_}
#define HARDWARE(name_, alias_, unit_, config_) \
    {.name = name_, .alias = alias_, .unit = unit_, .kind = EVENT_HARDWARE, .type = PERF_TYPE_HARDWARE, \
     .config = PERF_COUNT_HW_##config_}
/* Events with the unit "faults" are page faults that map memory; pysym shows them as bytes, by the host's page size. */
static const struct event_source sources[] = {
    SOFTWARE("cpu-clock", NULL, "ns", EVENT_CLOCK, CPU_CLOCK),
    SOFTWARE("task-clock", NULL, "ns", EVENT_CLOCK, TASK_CLOCK),
    SOFTWARE("page-faults", "faults", "faults", EVENT_COUNTED, PAGE_FAULTS),
    SOFTWARE("minor-faults", NULL, "faults", EVENT_COUNTED, PAGE_FAULTS_MIN),
    SOFTWARE("major-faults", NULL, "faults", EVENT_COUNTED, PAGE_FAULTS_MAJ),
    SOFTWARE("context-switches", "cs", "switches", EVENT_COUNTED, CONTEXT_SWITCHES),
    SOFTWARE("cpu-migrations", "migrations", "migrations", EVENT_COUNTED, CPU_MIGRATIONS),
    SOFTWARE("alignment-faults", NULL, "traps", EVENT_COUNTED, ALIGNMENT_FAULTS),
    SOFTWARE("emulation-faults", NULL, "traps", EVENT_COUNTED, EMULATION_FAULTS),
    SOFTWARE("cgroup-switches", NULL, "switches", EVENT_COUNTED, CGROUP_SWITCHES), /* Linux 5.13 */
    HARDWARE("cycles", "cpu-cycles", "cycles", CPU_CYCLES),
    HARDWARE("instructions", NULL, "instructions", INSTRUCTIONS),
    HARDWARE("cache-references", NULL, "references", CACHE_REFERENCES),
    HARDWARE("cache-misses", NULL, "misses", CACHE_MISSES),
    HARDWARE("branches", "branch-instructions", "branches", BRANCH_INSTRUCTIONS),
    HARDWARE("branch-misses", NULL, "misses", BRANCH_MISSES),
    HARDWARE("bus-cycles", NULL, "cycles", BUS_CYCLES),
    HARDWARE("ref-cycles", NULL, "cycles", REF_CPU_CYCLES),
    HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", "cycles", STALLED_CYCLES_FRONTEND),
    HARDWARE("stalled-cycles-backend", "idle-cycles-backend", "cycles", STALLED_CYCLES_BACKEND),
    {.name = "off-cpu", .unit = "ns", .kind = EVENT_WAIT},
    {.name = "task-wait", .unit = "ns", .kind = EVENT_TASK},
    {.name = TRACE_MEMORY_GROWTH, .unit = TRACE_UNIT_BYTES, .kind = EVENT_GROWTH},
};
enum { SOURCE_COUNT = sizeof sources / sizeof *sources };

const struct event_source *event_table_row(size_t index)
{
    return index < SOURCE_COUNT ? &sources[index] : NULL;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return word && strlen(word) == len && !memcmp(text, word, len);
}

const struct event_source *event_table_find(const char *name, size_t len)
{
    for (size_t i = 0; i < SOURCE_COUNT; i++) {
        if (is_word(name, len, sources[i].name) || is_word(name, len, sources[i].alias))
            return &sources[i];
    }
    return NULL;
}

const struct event_source *event_source(const char *name)
{
    return event_table_find(name, strlen(name));
}

uint32_t event_trace_kind(const struct event_source *source)
{
    switch (source->kind) {
    case EVENT_CLOCK:
    case EVENT_HARDWARE:
        return TRACE_EVENT_ON_CPU;
    case EVENT_WAIT:
        return TRACE_EVENT_OFF_CPU;
    case EVENT_TASK:
        return TRACE_EVENT_TASK;
    default:
        return TRACE_EVENT_COUNTED;
    }
}
