/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/trace/trace_builder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "capture/trace/trace_builder_state.h"
#include "formats/base/clock.h"

struct error *trace_builder_create(const struct trace_builder_options *options, struct trace_builder **out)
{
    struct trace_builder *b = calloc(1, sizeof *b);

    if (!b)
        return error_no_memory();
    b->o = *options;
    *out = b;
    return NULL;
}

void trace_builder_destroy(struct trace_builder *b)
{
    if (!b)
        return;
    map_deinit(&b->kernel_frames);
    python_names_deinit(&b->names);
    free(b);
}

const uint64_t *trace_builder_loss_counts(const struct trace_builder *b)
{
    return b->losses;
}

uint64_t trace_builder_unwanted(const struct trace_builder *b, uint32_t cpu)
{
    return cpu < CPUS_MAX ? b->unwanted[cpu] : 0;
}

struct trace_builder_counts trace_builder_counts(const struct trace_builder *b)
{
    return b->counts;
}

static void put_clock(struct trace_builder *b)
{
    struct trace_clock c = {
        .monotonic_ns = clock_ns(CLOCK_MONOTONIC),
        .realtime_ns = clock_ns(CLOCK_REALTIME),
        .boottime_ns = clock_ns(CLOCK_BOOTTIME),
    };

    trace_writer_put(b->o.writer, TRACE_clock, &c);
}

static struct error *put_perf_map(struct trace_builder *b, struct process *p, uint64_t time_ns)
{
    bool cut, full = trace_writer_full(b->o.writer);

    TRY(perf_map_file_write(b->o.writer, b->o.processes, p, b->epoch, time_ns, &cut));
    b->losses[LOSS_perf_map_cut] += cut || trace_writer_full(b->o.writer) != full;
    return NULL;
}

struct error *trace_builder_perf_maps(struct trace_builder *b, uint64_t time_ns)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(b->o.processes, &cursor));)
        TRY(put_perf_map(b, p, time_ns));
    return NULL;
}

struct error *trace_builder_begin_epoch(struct trace_builder *b, uint64_t time_ns)
{
    struct trace_writer *w = b->o.writer;
    const struct host *h = b->o.host;

    if (b->begun) {
        TRY(trace_builder_perf_maps(b, time_ns));
        put_clock(b);
        trace_writer_new_epoch(w, time_ns);
    }
    b->begun = true;
    b->epoch++;
    map_clear(&b->kernel_frames);
    put_clock(b);
    struct trace_host host = {
        .hostname = trace_writer_cstr(w, h->hostname),
        .kernel_release = trace_writer_cstr(w, h->release),
        .kernel_version = trace_writer_cstr(w, h->version),
        .machine = trace_writer_cstr(w, h->machine),
        .boot_id = {h->boot_id, h->has_boot_id ? sizeof h->boot_id : 0},
        .kernel_build_id = {h->kernel_build_id, h->kernel_build_id_len},
        .cpu_count = h->cpu_count,
        .page_size = (uint32_t)sysconf(_SC_PAGESIZE),
        .tool = trace_writer_cstr(w, "pycap " TOOL_VERSION),
    };
    trace_writer_put(w, TRACE_host, &host);
    for (uint32_t i = 0; i < b->o.settings->list.count; i++) {
        const struct setting *setting = &b->o.settings->list.data[i];
        struct trace_meta meta = {.key = trace_writer_cstr(w, setting->key), .value = trace_writer_cstr(w, setting->value)};
        trace_writer_put(w, TRACE_meta, &meta);
    }
    struct trace_event event = {
        .name = trace_writer_cstr(w, b->o.event.name),
        .unit = trace_writer_cstr(w, b->o.event.unit),
        .frequency_hz = b->o.frequency_hz,
        .period = b->o.event.period,
    };
    trace_writer_put(w, TRACE_event, &event);
    b->event = event.id;
    return NULL;
}

uint32_t trace_builder_define_module(struct trace_builder *b, struct module *m)
{
    struct trace_writer *w = b->o.writer;
    uint64_t ranges[2 * 8];

    if (!m)
        return 0;
    if (m->trace_epoch == b->epoch)
        return m->trace_id;
    for (uint32_t i = 0; i < m->python.eval_range_count; i++) {
        ranges[2 * i] = m->python.eval_ranges[i].start;
        ranges[2 * i + 1] = m->python.eval_ranges[i].end;
    }
    struct trace_module record = {
        .kind = m->kind,
        .id_kind = m->identity.id_kind,
        .build_id = {m->identity.build_id, m->identity.build_id_len},
        .path = trace_writer_cstr(w, m->path),
        .file_size = m->kind == MODULE_VDSO ? 0 : m->identity.file_size,
        .segments = {(const uint64_t *)m->identity.segments.data, m->identity.segments.count},
        .eval_ranges = {ranges, m->python.eval_range_count},
        .flags = m->python.switches_stacks ? TRACE_MODULE_SWITCHES_STACKS : 0,
    };
    trace_writer_put(w, TRACE_module, &record);
    m->trace_epoch = b->epoch;
    m->trace_id = record.id;
    if (m->image) {
        struct trace_image image = {
            .module = record.id,
            .address = m->image_address,
            .data = {m->image, m->image_len_bytes},
        };
        trace_writer_put(w, TRACE_image, &image);
    }
    return m->trace_id;
}

static void put_mapping(struct trace_builder *b, struct process *p, struct code_mapping *m)
{
    struct trace_mapping record = {
        .process = p->trace_id,
        .time_ns = m->time_ns,
        .address = m->address,
        .length = m->length,
        .file_offset = m->file_offset,
        .protection = m->protection,
        .map_flags = m->map_flags,
        .device_major = m->device_major,
        .device_minor = m->device_minor,
        .inode = m->inode,
        .inode_generation = m->inode_generation,
        .module = code_mapping_is_generated(m) ? 0 : trace_builder_define_module(b, m->module),
        .path = trace_writer_cstr(b->o.writer, m->path),
    };

    if (code_mapping_is_generated(m)) {
        /* As a file in which everything lies at the offset that is its address. */
        record.module = perf_map_file_module(b->o.writer, p, b->epoch);
        record.file_offset = m->address;
    }
    trace_writer_put(b->o.writer, TRACE_mapping, &record);
}

static uint32_t define_process(struct trace_builder *b, struct process *p)
{
    struct trace_writer *w = b->o.writer;

    if (p->trace_epoch == b->epoch)
        return p->trace_id;
    if (!p->exe)
        p->exe = procfs_exe((pid_t)p->tgid);
    perf_map_file_remember_root(p);
    if (!p->ns_tgid || !p->parent_tgid) {
        struct procfs_status status;
        struct error *err = procfs_status((pid_t)p->tgid, &status);
        if (!err) {
            p->ns_tgid = status.ns_tgid;
            p->parent_tgid = status.parent_tgid;
        }
        error_destroy(err);
    }
    char *cgroup = procfs_cgroup((pid_t)p->tgid);
    char *cmdline = b->o.cmdline ? procfs_cmdline((pid_t)p->tgid) : NULL;
    struct trace_process record = {
        .tgid = p->tgid,
        .start_boottime_ns = p->start_boottime_ns,
        .exec_generation = p->exec_generation,
        .parent_tgid = p->parent_tgid,
        .comm = trace_writer_cstr(w, p->comm),
        .exe = trace_writer_cstr(w, p->exe),
        .ns_tgid = p->ns_tgid,
        .pid_namespace = procfs_namespace((pid_t)p->tgid, "pid"),
        .mount_namespace = procfs_namespace((pid_t)p->tgid, "mnt"),
        .cgroup = trace_writer_cstr(w, cgroup),
        .cmdline = trace_writer_cstr(w, cmdline),
    };
    free(cgroup);
    free(cmdline);
    if (p->python) {
        const struct py_layout *l = &p->python->python.layout;
        record.python_version = p->python->python.version_hex;
        record.python_flags = (l->debug_build ? TRACE_CODE_DEBUG : 0) |
                              (l->free_threaded ? TRACE_CODE_FREE_THREADED : 0);
    }
    trace_writer_put(w, TRACE_process, &record);
    p->trace_epoch = b->epoch;
    p->trace_id = record.id;
    if (!p->sample_count)
        b->counts.processes++;
    for (size_t i = 0; i < p->mappings.count; i++)
        put_mapping(b, p, &p->mappings.data[i]);
    return p->trace_id;
}

static void put_python_name(struct trace_builder *b, const struct thread *t, uint64_t time_ns)
{
    struct trace_thread_name record = {
        .thread = t->trace_id, .time_ns = time_ns, .python_name = trace_writer_cstr(b->o.writer, t->python_name)};

    trace_writer_put(b->o.writer, TRACE_thread_name, &record);
}

static uint32_t define_thread(struct trace_builder *b, struct process *p, struct thread *t, const struct wire_sample *m)
{
    bool named = p->python && python_names_thread(&b->names, p, t, m);

    if (t->trace_epoch == b->epoch) {
        if (named)
            put_python_name(b, t, m->time_ns);
        return t->trace_id;
    }
    struct trace_thread record = {
        .process = p->trace_id,
        .tid = t->tid,
        .name = trace_writer_cstr(b->o.writer, t->name),
    };
    trace_writer_put(b->o.writer, TRACE_thread, &record);
    t->trace_epoch = b->epoch;
    t->trace_id = record.id;
    if (t->python_name)
        put_python_name(b, t, m->time_ns);
    return t->trace_id;
}

static void on_mapped(void *ctx, struct process *p, struct code_mapping *m)
{
    struct trace_builder *b = ctx;

    stacks_forget(&p->native); /* the same addresses may be other functions now */
    if (b->epoch && p->trace_epoch == b->epoch)
        put_mapping(b, p, m);
}

static void on_ended(void *ctx, struct process *p, uint64_t time_ns)
{
    struct trace_builder *b = ctx;

    if (!b->epoch || p->trace_epoch != b->epoch)
        return;
    /* Out of memory here costs names of generated code, and shows elsewhere. */
    error_destroy(put_perf_map(b, p, time_ns));
    struct trace_process_exit record = {.process = p->trace_id, .time_ns = time_ns};
    trace_writer_put(b->o.writer, TRACE_process_exit, &record);
}

static void on_renamed(void *ctx, struct process *p, struct thread *t, uint64_t time_ns)
{
    struct trace_builder *b = ctx;

    if (!b->epoch || p->trace_epoch != b->epoch)
        return;
    if (!t || t->tid == p->tgid) {
        struct trace_process_name record = {
            .process = p->trace_id, .time_ns = time_ns, .comm = trace_writer_cstr(b->o.writer, p->comm)};
        trace_writer_put(b->o.writer, TRACE_process_name, &record);
    }
    if (t && t->trace_epoch == b->epoch) {
        struct trace_thread_name record = {
            .thread = t->trace_id, .time_ns = time_ns, .name = trace_writer_cstr(b->o.writer, t->name)};
        trace_writer_put(b->o.writer, TRACE_thread_name, &record);
    }
}

struct processes_events trace_builder_process_events(struct trace_builder *b)
{
    return (struct processes_events){.mapped = on_mapped, .ended = on_ended, .renamed = on_renamed, .ctx = b};
}

/* ---- samples ---- */

/* One that was not wanted, as turned out: its tick belongs to the others'. */
static void count_unwanted(struct trace_builder *b, const struct wire_sample *m)
{
    b->unwanted[m->cpu < CPUS_MAX ? m->cpu : 0]++;
}

struct error *trace_builder_sample(struct trace_builder *b, const struct wire_sample *m, uint32_t len_bytes)
{
    struct trace_writer *w = b->o.writer;
    const uint8_t *at = (const uint8_t *)(m + 1);
    struct process *p;
    uint32_t run_count = 0;

    if (len_bytes < sizeof *m || m->kernel_count > WIRE_KERNEL_MAX || m->python_count > WIRE_PYTHON_MAX ||
        m->native_count > WIRE_NATIVE_MAX ||
        len_bytes - sizeof *m <
            m->kernel_count * UINT64_C(8) + m->python_count * sizeof(struct wire_python) +
                m->native_count * sizeof(struct native_frame) + (uint64_t)m->task_len_bytes + m->stack_len_bytes)
        return error_create(ERROR_FORMAT, "the sampler sent a message that breaks its own form");
    const uint64_t *kernel = (const uint64_t *)at;
    at += m->kernel_count * 8;
    const struct wire_python *python = (const struct wire_python *)at;
    at += m->python_count * sizeof *python;
    struct late_unwind_result native = {(const struct native_frame *)at, m->native_count, m->native_end, m->native_last_cfa};
    at += m->native_count * sizeof *native.frames;
    const uint8_t *task = at;
    at += m->task_len_bytes;

    TRY(processes_of_sample(b->o.processes, m, &p));
    if (!p) {
        /* Nothing had told of it, so it is none of those that are followed; when all are, it may have been one. */
        if (m->flags & WIRE_UNCONFIGURED && !b->o.whole_host)
            count_unwanted(b, m);
        else
            b->losses[LOSS_process_gone]++;
        return NULL;
    }
    /* One that was sampled in case it were Python, or the new image of one that was. */
    if (!processes_wants(b->o.processes, p)) {
        count_unwanted(b, m);
        return NULL;
    }
    if (trace_writer_full(w)) {
        b->losses[LOSS_file_full]++;
        return NULL;
    }
    if (!p->configured && b->o.include_non_python)
        TRY(processes_configure(b->o.processes, p));
    struct thread *t = process_thread(p, m->tid);
    if (!t)
        return error_no_memory();
    define_process(b, p);
    if (b->o.late_unwind && m->stack_len_bytes && native.end != LOSS_complete)
        TRY(late_unwind_run(b->o.late_unwind, p, m, at, &native));
    if (native.end > LOSS_complete)
        b->losses[native.end]++;
    uint32_t python_end = m->python_end;
    if (m->flags & WIRE_STALE)
        python_end = LOSS_stale_config;
    else if (m->flags & WIRE_UNCONFIGURED && p->python)
        python_end = LOSS_not_yet_known;
    if (python_end != m->python_end)
        b->losses[python_end]++;
    /* Where not every process is wanted, the sampler leaves out the native part of one that may be none of them, too. */
    if (python_end == LOSS_not_yet_known && !native.end && b->o.late_unwind)
        native.end = LOSS_not_yet_known;
    struct trace_tuple tuple = {.python_end = python_end, .native_end = native.end};
    if (m->kernel_count)
        TRY(stacks_kernel(b, kernel, m->kernel_count, m->time_ns, &tuple.kernel_stack));
    bool by_count = false;
    uint32_t frame_count;
    if (p->python && p->python->python.layout.frame_kind == PY_FRAMES_OBJECT) {
        /* Greenlet puts records of its own into the chain: one at its outer end would hide that another is missing. */
        by_count = !stacks_split_objects(b, python, m->python_count, &frame_count) || p->switches_stacks;
        run_count = frame_count;
    } else {
        frame_count = stacks_split(b, python, m->python_count, &run_count);
    }
    TRY(stacks_python(b, p, frame_count, &tuple.python_stack));
    TRY(stacks_native(b, p, native.frames, native.count, &tuple.native_stack));
    struct trace_join count_join = {.kind = TRACE_JOIN_COUNT};
    if (native.count && run_count)
        tuple.join = by_count ? trace_writer_intern(w, TRACE_join, &count_join) : stacks_join(b, &native, run_count);
    if (m->stack_len_bytes && b->o.snapshots) {
        uint64_t registers[WIRE_REGISTERS];
        memcpy(registers, m->registers, sizeof registers);
        struct trace_snapshot snapshot = {
            .process = p->trace_id,
            .stack_address = m->registers[7] - wire_stack_below(m),
            .stack_size = m->stack_size ? m->stack_size + wire_stack_below(m) : 0,
            .registers = {registers, WIRE_REGISTERS},
            .stack = {at, m->stack_len_bytes},
        };
        trace_writer_put(w, TRACE_snapshot, &snapshot);
        tuple.snapshot = snapshot.id;
        if (run_count && !tuple.join) {
            struct trace_join join = {.kind = TRACE_JOIN_RECORD, .runs = {b->runs, run_count}};
            if (by_count)
                join = count_join;
            tuple.join = trace_writer_intern(w, TRACE_join, &join);
        }
    }
    /* A snapshot is never met again, and so is the tuple that holds it: not worth remembering. */
    if (tuple.snapshot)
        trace_writer_put(w, TRACE_tuple, &tuple);
    else
        tuple.id = trace_writer_intern(w, TRACE_tuple, &tuple);
    struct trace_sample sample = {
        .time_ns = m->time_ns,
        .thread = define_thread(b, p, t, m),
        .tuple = tuple.id,
        .cpu = m->cpu,
        .flags = (m->flags & WIRE_IN_KERNEL ? TRACE_SAMPLE_KERNEL : 0) |
                 (m->flags & WIRE_GIL_KNOWN ? TRACE_SAMPLE_GIL_KNOWN : 0) |
                 (m->flags & WIRE_GIL ? TRACE_SAMPLE_GIL : 0),
    };
    if (p->python && (sample.label_set = python_names_labels(&b->names, w, p, m, task)))
        sample.flags |= TRACE_SAMPLE_LABELS;
    if (m->period != b->o.event.period) {
        sample.flags |= TRACE_SAMPLE_VALUE;
        sample.value = m->period;
    }
    trace_writer_sample(w, b->event, &sample);
    if (trace_writer_full(w)) {
        b->losses[LOSS_file_full]++;
        return NULL;
    }
    p->sample_count++;
    b->counts.samples++;
    b->file_samples++;
    if (m->python_end == LOSS_complete)
        b->counts.python_complete++;
    else if (m->python_end)
        b->counts.python_cut++;
    else
        b->counts.no_python++;
    return NULL;
}

void trace_builder_losses(struct trace_builder *b, uint64_t time_ns, const uint64_t losses[LOSS_LIMIT])
{
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        if (i == LOSS_complete || losses[i] <= b->written[i])
            continue;
        struct trace_loss record = {
            .time_ns = time_ns,
            .reason = i,
            .name = trace_writer_cstr(b->o.writer, trace_loss_name(i)),
            .count = losses[i] - b->written[i],
        };
        trace_writer_put(b->o.writer, TRACE_loss, &record);
        if (trace_writer_full(b->o.writer))
            return; /* the end will hold it */
        b->written[i] = losses[i];
    }
}

void trace_builder_period(struct trace_builder *b, uint64_t time_ns, uint64_t period, const char *why)
{
    struct trace_period record = {.event = b->event, .time_ns = time_ns, .period = period,
                                  .reason = trace_writer_cstr(b->o.writer, why)};

    trace_writer_put(b->o.writer, TRACE_period, &record);
    b->o.event.period = period;
}

struct error *trace_builder_next_file(struct trace_builder *b, struct trace_writer *writer, uint64_t time_ns)
{
    struct process *p;

    b->o.writer = writer;
    b->begun = false;
    b->file_samples = 0;
    for (uint32_t cursor = 0; (p = processes_next(b->o.processes, &cursor));)
        p->perf_map.written_size = 0; /* a file has to hold them itself */
    return trace_builder_begin_epoch(b, time_ns);
}

void trace_builder_ticks(struct trace_builder *b, uint64_t time_ns, const struct sampler_ticks *ticks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct trace_ticks record = {
            .event = b->event,
            .cpu = (uint32_t)ticks[i].cpu,
            .time_ns = time_ns,
            .count = ticks[i].count,
            .enabled_ns = ticks[i].enabled_ns,
            .running_ns = ticks[i].running_ns,
            .seen = ticks[i].seen,
            .idle = ticks[i].seen_idle,
            .unsampled = ticks[i].seen_others,
        };
        trace_writer_put(b->o.writer, TRACE_ticks, &record);
    }
}

void trace_builder_end(struct trace_builder *b, uint64_t time_ns, uint32_t reason, uint64_t lost)
{
    put_clock(b);
    struct trace_end record = {
        .time_ns = time_ns,
        .reason = reason,
        .sample_count = b->file_samples,
        .lost_count = lost,
    };
    trace_writer_put(b->o.writer, TRACE_end, &record);
}
