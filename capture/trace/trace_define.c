/* SPDX-License-Identifier: Apache-2.0 */
/* Each function checks the note first: most samples refer to records that the epoch has already. */
#include "capture/trace/trace_define.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/host/procfs.h"
#include "capture/process/process_names.h"
#include "capture/process/process_program.h"
#include "capture/process/python_names.h"
#include "capture/trace/trace_titles.h"
#include "formats/base/clock.h"
#include "formats/trace/program_name.h"

static_assert((int)ELF_ID_NONE == TRACE_ID_NONE && (int)ELF_ID_BUILD_ID == TRACE_ID_BUILD_ID &&
                  (int)ELF_ID_CONTENT_HASH == TRACE_ID_CONTENT_HASH && (int)ELF_ID_PARTS_HASH == TRACE_ID_PARTS_HASH,
              "an identity's kind is written as it is");
static_assert(PROT_READ == TRACE_PROTECTION_READ && PROT_WRITE == TRACE_PROTECTION_WRITE &&
                  PROT_EXEC == TRACE_PROTECTION_EXECUTE,
              "the kernel's bits are written as they are");

void trace_define_event(struct trace_builder *b, uint32_t i)
{
    const struct event *asked = &b->o.events.list[i];
    struct trace_event event = {
        .name = trace_writer_cstr(b->o.writer, asked->source->name),
        .unit = trace_writer_cstr(b->o.writer, asked->source->unit),
        .frequency_hz = asked->frequency_hz,
        .period = b->events[i].period,
        .kind = event_trace_kind(asked->source),
    };

    trace_writer_put(b->o.writer, TRACE_event, &event);
    b->events[i].trace_id = event.id;
    if (event.kind == TRACE_EVENT_ON_CPU && !strcmp(asked->source->unit, "ns"))
        trace_writer_clock(b->o.writer, event.id, event.period);
}

uint32_t trace_define_module(struct trace_builder *b, struct module *m)
{
    struct trace_writer *w = b->o.writer;
    uint64_t ranges[2 * 8];

    if (!m)
        return 0;
    struct module_note *note = trace_notes_module(&b->notes, m);
    if (!note) {
        b->no_memory = true;
        return 0;
    }
    bool is_inspected = !m->pending && !m->unreadable;
    if (note->record.epoch == b->epoch && (note->is_inspected || !is_inspected))
        return note->record.id;
    note->is_inspected = is_inspected;
    for (uint32_t i = 0; i < m->python.eval_range_count; i++) {
        ranges[2 * i] = m->python.eval_ranges[i].start;
        ranges[2 * i + 1] = m->python.eval_ranges[i].end;
    }
    struct trace_module record = {
        .kind = m->kind,
        .id_kind = m->identity.id_kind,
        .build_id = {m->identity.build_id, m->identity.build_id_len},
        .path = trace_writer_cstr(w, m->path),
        .file_size = m->kind == TRACE_MODULE_VDSO ? 0 : m->identity.file_size,
        .segments = {(const uint64_t *)m->identity.segments.data, m->identity.segments.count},
        .eval_ranges = {ranges, m->python.eval_range_count},
        .flags = (m->python.switches_stacks ? TRACE_MODULE_SWITCHES_STACKS : 0) |
                 (m->python.all_python ? TRACE_MODULE_ALL_PYTHON : 0),
        .htlhash = {m->identity.htlhash, m->identity.htlhash_len},
    };
    trace_writer_put(w, TRACE_module, &record);
    note->record = (struct record_id){b->epoch, record.id};
    if (m->image) {
        struct trace_image image = {
            .module = record.id,
            .address = m->image_address,
            .data = {m->image, m->image_len_bytes},
        };
        trace_writer_put(w, TRACE_image, &image);
    }
    return record.id;
}

static void put_mapping(struct trace_builder *b, struct process_note *n, const struct code_mapping *m)
{
    /* A build ID names the file; device and inode would only make the trace larger. */
    bool named = m->module && m->module->identity.build_id_len;
    struct trace_mapping record = {
        .process = n->record.id,
        .time_ns = code_mappings_time(&n->process->mappings, m),
        .address = m->address,
        .length = m->length,
        .file_offset = m->file_offset,
        .protection = m->protection,
        .map_flags = m->map_flags,
        .device_major = named ? 0 : m->device_major,
        .device_minor = named ? 0 : m->device_minor,
        .inode = named ? 0 : m->inode,
        .inode_generation = named ? 0 : m->inode_generation,
        .module = code_mapping_is_generated(m) ? 0 : trace_define_module(b, m->module),
        .path = trace_writer_cstr(b->o.writer, m->path),
        .flags = m->module && m->module == n->process->python ? TRACE_MAPPING_INTERPRETER : 0,
    };

    if (code_mapping_is_generated(m)) {
        /* Generated code is described as a file whose offsets are the addresses. */
        record.module = perf_map_file_module(&n->perf_map, n->process, b->o.writer, b->epoch);
        record.file_offset = m->address;
    }
    trace_writer_put(b->o.writer, TRACE_mapping, &record);
}

void trace_define_mapping(struct trace_builder *b, struct process_note *n, const struct code_mapping *m)
{
    struct quotas *quotas = b->o.processes->quotas;
    uint32_t slot = n->process->slot;
    uint64_t time_ns = now_ns(), bytes = trace_writer_epoch_bytes(b->o.writer);

    if (n->mappings_over && !quota_take(quotas, slot, QUOTA_definition_bytes, 1, time_ns))
        return;
    put_mapping(b, n, m);
    bytes = trace_writer_epoch_bytes(b->o.writer) - bytes;
    n->mappings_over = !quota_owe(quotas, slot, QUOTA_definition_bytes, bytes, time_ns);
}

/* ---- processes ---- */

/* The unit of start times in /proc (USER_HZ). */
#define CLOCK_TICK_NS (10 * NS_PER_MS)

/* Reads from /proc what is not known of a process yet. */
static void look_up(struct process_note *n)
{
    struct process *p = n->process;
    struct procfs_status status;
    bool is_known = p->ns_tgid && p->parent_tgid && (p->bound || p->start_ticks);

    process_find_program(p, true);
    perf_map_file_remember_root(&n->perf_map, p);
    if (is_known)
        return;
    struct error *err = procfs_status((pid_t)p->tgid, &status);
    if (!err) {
        p->ns_tgid = status.ns_tgid;
        p->parent_tgid = status.parent_tgid;
        p->start_ticks = status.start_ticks;
    }
    error_destroy(err);
}

/* One process is the same in all epochs, though its first sample, which has its exact start, may come after its record. */
static void identify(struct process_note *n)
{
    const struct process *p = n->process;

    if (n->identified)
        return;
    n->identified = true;
    n->start_boottime_ns = p->bound ? p->start_boottime_ns : p->start_ticks * CLOCK_TICK_NS;
    n->exec_generation = p->bound ? p->exec_generation : p->expected_generation;
}

/* What is said of each process: what its name takes. */
static struct trace_process record_of(struct trace_builder *b, struct process_note *n)
{
    struct trace_writer *w = b->o.writer;
    const struct process *p = n->process;

    identify(n);
    return (struct trace_process){
        .tgid = p->tgid,
        .start_boottime_ns = n->start_boottime_ns,
        .exec_generation = n->exec_generation,
        .parent_tgid = p->parent_tgid,
        .comm = trace_writer_cstr(w, p->comm),
        .exe = trace_writer_cstr(w, p->exe),
        .ns_tgid = p->ns_tgid,
        .program_kind = p->program_kind,
        .program = trace_writer_cstr(w, p->program),
    };
}

/* Adds what is said of those that were asked for. */
static void describe(struct trace_builder *b, struct process_note *n, struct trace_process *record)
{
    const struct process *p = n->process;
    char *cgroup = procfs_cgroup((pid_t)p->tgid);

    record->pid_namespace = procfs_namespace((pid_t)p->tgid, "pid");
    record->mount_namespace = procfs_namespace((pid_t)p->tgid, "mnt");
    record->cgroup = trace_writer_cstr(b->o.writer, cgroup);
    record->cmdline = trace_writer_cstr(b->o.writer, b->o.cmdline ? trace_titles_cmdline(n) : NULL);
    free(cgroup);
    if (!p->python)
        return;
    const struct py_layout *l = &p->python->python.layout;
    record->python_version = p->python->python.version_hex;
    record->python_flags = (l->debug_build ? TRACE_CODE_DEBUG : 0) | (l->free_threaded ? TRACE_CODE_FREE_THREADED : 0);
}

static uint32_t put_process(struct trace_builder *b, struct process_note *n)
{
    look_up(n);
    struct trace_process record = record_of(b, n);
    if (n->process->selected)
        describe(b, n, &record);
    trace_writer_put(b->o.writer, TRACE_process, &record);
    n->record = (struct record_id){b->epoch, record.id};
    return n->record.id;
}

/*
 * Finds the parents of a process that have no record in this epoch yet, its own first: all those that are sampled, or would be if
 * they ran, and of the others those that its name takes.
 */
static uint32_t find_parents(struct trace_builder *b, struct process *p, struct process *parents[PROGRAM_PARENTS_MAX])
{
    const struct process *master = processes_master(b->o.processes, p);
    uint32_t count = 0, wanted = 0;

    while (count < PROGRAM_PARENTS_MAX && (master || processes_find(b->o.processes, p->parent_tgid)) &&
           (p = processes_parent(b->o.processes, p))) {
        const struct process_note *n = trace_notes_find(&b->notes, p);
        if (n && n->record.epoch == b->epoch)
            break;
        parents[count++] = p;
        wanted = p->selected || master ? count : wanted;
        master = p == master ? NULL : master;
    }
    return wanted;
}

/* A worker is named after its parent, and a reader draws the tree: parents come first, and also where they have no sample. */
static void put_parents(struct trace_builder *b, struct process *p)
{
    struct process *parents[PROGRAM_PARENTS_MAX];

    for (uint32_t count = find_parents(b, p, parents); count--;) {
        struct process_note *n = trace_notes_process(&b->notes, parents[count]);
        if (!n)
            b->no_memory = true;
        else
            put_process(b, n);
    }
}

uint32_t trace_name_process(struct trace_builder *b, struct process_note *n)
{
    if (n->record.epoch == b->epoch)
        return n->record.id;
    look_up(n);
    put_parents(b, n->process);
    return put_process(b, n);
}

uint32_t trace_define_process(struct trace_builder *b, struct process_note *n)
{
    const struct process *p = n->process;

    trace_name_process(b, n);
    if (n->mapped_epoch == b->epoch)
        return n->record.id;
    n->mapped_epoch = b->epoch;
    for (size_t i = 0; i < code_mappings_count(&p->mappings); i++)
        trace_define_mapping(b, n, code_mappings_at(&p->mappings, i));
    return n->record.id;
}

/* ---- threads ---- */

static void put_python_name(struct trace_builder *b, const struct thread *t, uint32_t id, uint64_t time_ns)
{
    struct trace_thread_name record = {
        .thread = id, .time_ns = time_ns, .python_name = trace_writer_cstr(b->o.writer, t->python_name)};

    trace_writer_put(b->o.writer, TRACE_thread_name, &record);
}

struct error *trace_define_thread(struct trace_builder *b, struct process_note *n, struct thread *t,
                                  const struct wire_sample *m, uint32_t *id)
{
    bool named = n->process->python && !(m->flags & WIRE_RIVAL) && python_names_thread(&b->names, n->process, t, m);
    struct record_id *known = trace_notes_thread(n, t);

    if (!known)
        return error_no_memory();
    bool is_new = known->epoch != b->epoch;
    if (is_new) {
        struct trace_thread record = {
            .process = n->record.id,
            .tid = t->tid,
            .name = trace_writer_cstr(b->o.writer, t->name),
        };
        trace_writer_put(b->o.writer, TRACE_thread, &record);
        *known = (struct record_id){b->epoch, record.id};
    }
    *id = known->id;
    if (named || (is_new && t->python_name))
        put_python_name(b, t, *id, m->time_ns);
    return NULL;
}
