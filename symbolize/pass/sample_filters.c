/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of samples. To add one, write its functions and a row, and the option's row in symbolize/options.c. */
#include <string.h>

#include "formats/trace/container.h"
#include "formats/trace/program_name.h"
#include "symbolize/pass/sample_filter.h"
#include "symbolize/trace/process_names.h"
#include "symbolize/trace/thread_names.h"
#include "symbolize/trace/wall.h"

#define ARGUMENTS const struct sample_filter_options *o, const struct sample_filter_view *v

static enum sample_filter_answer answer(bool yes)
{
    return yes ? FILTER_YES : FILTER_NO;
}

static bool is_listed(const struct option_numbers *ids, uint32_t id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->data[i] == id)
            return true;
    }
    return false;
}

/* ---- by process ---- */

static const struct epoch_process *process_of(const struct sample_filter_view *v)
{
    return &v->epoch->processes.data[v->process];
}

static void put_name(const struct sample_filter_view *v, struct buf *out)
{
    process_name_put_with_title(v->epoch, v->process, out);
}

static void describe_process(const struct sample_filter_view *v, struct buf *out)
{
    buf_printf(out, "%u ", process_of(v)->def.tgid);
    put_name(v, out);
}

static bool pid_is_enabled(const struct sample_filter_options *o)
{
    return o->pids.count;
}

static enum sample_filter_answer pid_passes(ARGUMENTS)
{
    return answer(is_listed(&o->pids, process_of(v)->def.tgid));
}

static bool comm_is_enabled(const struct sample_filter_options *o)
{
    return o->comms.count;
}

/* Whether a whole title was given, of which the kernel keeps the beginning. */
static bool is_title(const struct sample_filter_options *o, const char *kernel_name)
{
    for (size_t i = 0; i < o->comms.count; i++) {
        if (program_is_comm(pattern_text(o->comms.data[i]), kernel_name))
            return true;
    }
    return false;
}

static enum sample_filter_answer comm_passes(ARGUMENTS)
{
    struct buf name = {0};
    const char *kernel_name;

    process_name_put(v->epoch, v->process, &name);
    bool matches = patterns_find(&o->comms, buf_cstr(&name));
    for (uint32_t i = 0; !matches && (kernel_name = process_kernel_name(v->epoch, v->process, i)); i++) {
        buf_clear(&name);
        process_name_put_with(v->epoch, v->process, kernel_name, &name);
        matches = patterns_find(&o->comms, kernel_name) || patterns_find(&o->comms, buf_cstr(&name)) || is_title(o, kernel_name);
    }
    buf_deinit(&name);
    return answer(matches);
}

static void describe_comm(const struct sample_filter_view *v, struct buf *out)
{
    put_name(v, out);
}

static bool exe_is_enabled(const struct sample_filter_options *o)
{
    return o->exes.count;
}

static enum sample_filter_answer exe_passes(ARGUMENTS)
{
    return answer(patterns_find(&o->exes, epoch_text(v->epoch, process_of(v)->def.exe)));
}

static void describe_exe(const struct sample_filter_view *v, struct buf *out)
{
    buf_put_str(out, epoch_text(v->epoch, process_of(v)->def.exe));
}

static const char *cgroup_of(const struct sample_filter_view *v)
{
    return epoch_text(v->epoch, process_of(v)->def.cgroup);
}

static bool cgroup_is_enabled(const struct sample_filter_options *o)
{
    return o->cgroups.count;
}

/* Whether a cgroup is the one at `path` or lies below it. */
static bool is_below(const char *cgroup, const char *path)
{
    size_t len = strlen(path);

    while (len && path[len - 1] == '/')
        len--;
    return !strncmp(cgroup, path, len) && (cgroup[len] == 0 || cgroup[len] == '/');
}

/* A path is that in the hierarchy, or that of the folder where the hierarchy is usually mounted. */
static enum sample_filter_answer cgroup_passes(ARGUMENTS)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

    for (size_t i = 0; *cgroup_of(v) && i < o->cgroups.count; i++) {
        const char *path = o->cgroups.data[i];
        for (size_t k = 0; k < sizeof mounts / sizeof *mounts; k++) {
            if (is_below(path, mounts[k])) {
                path += strlen(mounts[k]);
                break;
            }
        }
        if (is_below(cgroup_of(v), path))
            return FILTER_YES;
    }
    return FILTER_NO;
}

static void describe_cgroup(const struct sample_filter_view *v, struct buf *out)
{
    buf_put_str(out, cgroup_of(v));
}

static bool container_is_enabled(const struct sample_filter_options *o)
{
    return o->containers.count;
}

/* In the container, or in one inside it. */
static enum sample_filter_answer container_passes(ARGUMENTS)
{
    const char *cgroup = cgroup_of(v), *at = cgroup + strlen(cgroup), *text;

    for (size_t len; (text = container_outwards(cgroup, &at, &len));) {
        for (size_t i = 0; i < o->containers.count; i++) {
            if (container_begins(text, len, o->containers.data[i]))
                return FILTER_YES;
        }
    }
    return FILTER_NO;
}

static void describe_container(const struct sample_filter_view *v, struct buf *out)
{
    char id[CONTAINER_NAME_MAX];

    if (container_of_cgroup(cgroup_of(v), id))
        buf_put_str(out, id);
}

/* ---- by thread ---- */

static const struct epoch_thread *thread_of(const struct sample_filter_view *v)
{
    return &v->epoch->threads.data[v->thread];
}

/* As outputs show it, where the trace has a name. */
static const char *thread_name(const struct sample_filter_view *v)
{
    return thread_name_of(v->epoch, v->thread);
}

static bool tid_is_enabled(const struct sample_filter_options *o)
{
    return o->tids.count;
}

static enum sample_filter_answer tid_passes(ARGUMENTS)
{
    return answer(is_listed(&o->tids, thread_of(v)->def.tid));
}

static void describe_tid(const struct sample_filter_view *v, struct buf *out)
{
    buf_printf(out, "%u %s", thread_of(v)->def.tid, thread_name(v));
}

static bool thread_is_enabled(const struct sample_filter_options *o)
{
    return o->threads.count;
}

static enum sample_filter_answer thread_passes(ARGUMENTS)
{
    bool kernels = !thread_is_main(v->epoch, v->thread) && patterns_find(&o->threads, epoch_text(v->epoch, thread_of(v)->name));

    return answer(kernels || patterns_find(&o->threads, thread_name(v)));
}

static void describe_thread(const struct sample_filter_view *v, struct buf *out)
{
    buf_put_str(out, thread_name(v));
}

/* ---- by event and labels ---- */

static const char *event_of(const struct sample_filter_view *v)
{
    return epoch_text(v->epoch, v->epoch->events.data[v->event].def.name);
}

static bool event_is_enabled(const struct sample_filter_options *o)
{
    return o->events.count;
}

static enum sample_filter_answer event_passes(ARGUMENTS)
{
    for (size_t i = 0; i < o->events.count; i++) {
        if (!strcmp(o->events.data[i], event_of(v)))
            return FILTER_YES;
    }
    return FILTER_NO;
}

static void describe_event(const struct sample_filter_view *v, struct buf *out)
{
    buf_put_str(out, event_of(v));
}

/* NULL: the samples have no such label. */
static const char *label_of(const struct sample_filter_view *v, enum trace_label label)
{
    const struct trace_list *pairs = &v->epoch->label_sets.data[v->label_set].pairs;

    for (uint64_t i = 0; v->label_set && i < pairs->count; i++) {
        if (!strcmp(epoch_text(v->epoch, (uint32_t)pairs->values[2 * i]), trace_label_key(label)))
            return epoch_text(v->epoch, (uint32_t)pairs->values[2 * i + 1]);
    }
    return NULL;
}

static bool task_is_enabled(const struct sample_filter_options *o)
{
    return o->tasks.count;
}

static enum sample_filter_answer task_passes(ARGUMENTS)
{
    const char *task = label_of(v, TRACE_LABEL_task);

    return answer(task && patterns_find(&o->tasks, task));
}

static void describe_task(const struct sample_filter_view *v, struct buf *out)
{
    const char *task = label_of(v, TRACE_LABEL_task);

    buf_put_str(out, task ? task : "");
}

/* A sample without the label ran in the main interpreter, whose number is 0, or in none. */
static const char *subinterpreter_of(const struct sample_filter_view *v)
{
    const char *label = label_of(v, TRACE_LABEL_interpreter);

    return label ? label : "0";
}

static bool subinterpreter_is_enabled(const struct sample_filter_options *o)
{
    return o->subinterpreters.count;
}

static enum sample_filter_answer subinterpreter_passes(ARGUMENTS)
{
    char number[16];

    for (size_t i = 0; i < o->subinterpreters.count; i++) {
        snprintf(number, sizeof number, "%u", o->subinterpreters.data[i]);
        if (!strcmp(number, subinterpreter_of(v)))
            return FILTER_YES;
    }
    return FILTER_NO;
}

static void describe_subinterpreter(const struct sample_filter_view *v, struct buf *out)
{
    buf_put_str(out, subinterpreter_of(v));
}

/* ---- by the sample itself ---- */

static bool cpu_is_enabled(const struct sample_filter_options *o)
{
    return o->cpus.count;
}

static enum sample_filter_answer cpu_passes(ARGUMENTS)
{
    for (size_t i = 0; i < o->cpus.count; i++) {
        if (v->sample->cpu >= o->cpus.data[i].first && v->sample->cpu <= o->cpus.data[i].last)
            return FILTER_YES;
    }
    return FILTER_NO;
}

static void describe_cpu(const struct sample_filter_view *v, struct buf *out)
{
    buf_printf(out, "%u", v->sample->cpu);
}

static bool time_is_enabled(const struct sample_filter_options *o)
{
    return !time_range_is_open(&o->time);
}

static enum sample_filter_answer time_passes(ARGUMENTS)
{
    (void)o;
    if (!v->file->time_known)
        return FILTER_UNKNOWN;
    return answer(v->since_start_ns >= v->file->from_ns && v->since_start_ns < v->file->to_ns);
}

static bool around_is_enabled(const struct sample_filter_options *o)
{
    return o->around;
}

static enum sample_filter_answer around_passes(ARGUMENTS)
{
    const struct file_scouted *scouted = &v->file->scouted;

    (void)o;
    return answer(scouted->matched && v->since_start_ns >= scouted->first_ns && v->since_start_ns <= scouted->last_ns);
}

static bool wall_is_enabled(const struct sample_filter_options *o)
{
    return o->wall;
}

static enum sample_filter_answer wall_passes(ARGUMENTS)
{
    (void)o;
    return answer(wall_part_of(v->epoch, v->event) != WALL_NOTHING);
}

static bool gil_is_enabled(const struct sample_filter_options *o)
{
    return o->gil;
}

static enum sample_filter_answer gil_passes(ARGUMENTS)
{
    (void)o;
    if (!(v->sample->flags & TRACE_SAMPLE_GIL_KNOWN))
        return FILTER_UNKNOWN;
    return answer(v->sample->flags & TRACE_SAMPLE_GIL);
}

/* ---- the table ---- */

/* At most 32, see struct sample_filter_answers. */
const struct sample_filter_row sample_filters[] = {
    {"pid", "processes", FILTER_PROCESS, pid_is_enabled, pid_passes, describe_process, NULL},
    {"comm", "commands", FILTER_PROCESS, comm_is_enabled, comm_passes, describe_comm, NULL},
    {"exe", "programs", FILTER_PROCESS, exe_is_enabled, exe_passes, describe_exe, NULL},
    {"cgroup", "cgroups", FILTER_PROCESS, cgroup_is_enabled, cgroup_passes, describe_cgroup, NULL},
    {"container", "containers", FILTER_PROCESS, container_is_enabled, container_passes, describe_container, NULL},
    {"tid", "threads", FILTER_THREAD, tid_is_enabled, tid_passes, describe_tid, NULL},
    {"thread", "threads", FILTER_THREAD, thread_is_enabled, thread_passes, describe_thread, NULL},
    {"event", "events", FILTER_EVENT, event_is_enabled, event_passes, describe_event, NULL},
    {"wall", "events", FILTER_EVENT, wall_is_enabled, wall_passes, describe_event, NULL},
    {"task", "asyncio tasks", FILTER_LABELS, task_is_enabled, task_passes, describe_task, NULL},
    {"subinterpreter", "interpreters", FILTER_LABELS, subinterpreter_is_enabled, subinterpreter_passes,
     describe_subinterpreter, NULL},
    {"cpu", "CPUs", FILTER_SAMPLE, cpu_is_enabled, cpu_passes, describe_cpu, NULL},
    {"time", NULL, FILTER_SAMPLE, time_is_enabled, time_passes, NULL, "the trace does not say what time it was",
     true},
    {"around", NULL, FILTER_SAMPLE, around_is_enabled, around_passes, NULL, NULL},
    {"gil", NULL, FILTER_SAMPLE, gil_is_enabled, gil_passes, NULL, "the trace does not say which thread held the GIL"},
};
const size_t sample_filter_count = sizeof sample_filters / sizeof *sample_filters;
