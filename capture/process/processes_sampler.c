/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampler is told of processes: where the interpreter is and how its frames
 * are walked, the flags that its libraries bring, and the mappings for unwinding.
 */
#include <string.h>

#include "capture/process/processes_state.h"
#include "formats/base/clock.h"

/* A sample that is being taken may read what was given back less long ago. */
#define GRACE_NS (50 * NS_PER_MS)

void processes_disinherit(struct processes *p, uint32_t tgid)
{
    if (p->options.sampler)
        sampler_remove_process(p->options.sampler, tgid);
}

/* Lays the process's mappings into the sampler's array, in a new place: a sample may be reading the old one. */
static struct error *lay_mappings(struct processes *p, struct process *process, uint64_t time_ns)
{
    uint32_t start, count = (uint32_t)process->mappings.count;

    if (!p->options.tables)
        return NULL;
    if (!extents_take(&p->mapping_space, count, &start))
        return NULL; /* its samples say that they found no mapping */
    TRY(sampler_map_pages(p->options.sampler, p->wire_mappings + start, count * sizeof *p->wire_mappings));
    for (uint32_t i = 0; i < count; i++) {
        struct error *err = tables_map(p->options.tables, (pid_t)process->tgid, &process->mappings.data[i], time_ns,
                                       process->python != NULL, &p->wire_mappings[start + i]);
        if (err) {
            extents_give(&p->mapping_space, start, count, time_ns);
            return err;
        }
    }
    extents_give(&p->mapping_space, process->mapping_start, process->mapping_count, time_ns);
    process->mapping_start = start;
    process->mapping_count = count;
    return NULL;
}

/* The sampler's copy is made anew once all that has come is applied: libraries are mapped in droves. */
static struct error *mappings_changed(struct processes *p, struct process *process)
{
    if (!p->options.tables || process->mappings_dirty)
        return NULL;
    process->mappings_dirty = true;
    return VEC_PUSH(&p->dirty, process->tgid) ? NULL : error_no_memory();
}

bool process_has_python(const struct process *process)
{
    return process->python && !process->python->python.refused;
}

/* A variable's place as the walk wants it; none where the linker's part in it is not known. */
static uint32_t tls_place(const struct py_tls *tls, uint64_t bias, uint64_t *offset, uint64_t *where)
{
    if (tls->kind == PY_TLS_MODULE && !tls->module_id_vaddr)
        return PY_TLS_NONE;
    *offset = (uint64_t)tls->offset;
    if (tls->kind == PY_TLS_MODULE)
        *where = tls->module_id_vaddr + bias;
    else if (tls->kind == PY_TLS_SLOT || tls->kind == PY_TLS_DESCRIPTOR)
        *where = tls->slot_vaddr + bias;
    return tls->kind;
}

bool process_python(const struct process *p, struct wire_process *out)
{
    if (!process_has_python(p))
        return false;
    const struct py_image *image = &p->python->python;
    uint64_t bias = p->python_bias;
    out->runtime = image->runtime_vaddr + bias;
    out->code_type = image->code_type_vaddr + bias;
    out->tls_kind = tls_place(&image->tls_tstate, bias, &out->tls_offset, &out->tls_module);
    out->gilstate_kind = tls_place(&image->tls_gilstate, bias, &out->gilstate_offset, &out->gilstate_module);
    out->interpreters = image->interpreters_vaddr ? image->interpreters_vaddr + bias : 0;
    out->thread_key = image->thread_key_vaddr ? image->thread_key_vaddr + bias : 0;
    out->key_slots = p->glibc ? ARCH_GLIBC_KEY_VALUES : 0;
    if (image->behaviour->asyncio_offsets) {
        out->running_task = p->asyncio.running_task;
        out->task_name = p->asyncio.task_name;
        out->task_is_task = p->asyncio.task_is_task;
        out->task_size = p->asyncio.task_size;
    }
    return true;
}

static void count_python(struct processes *p, struct process *process)
{
    if (process->counted || !process_has_python(process))
        return;
    process->counted = true;
    p->counts.python++;
    p->counts.seen_python++;
}

bool processes_wants(const struct processes *p, const struct process *process)
{
    return process->selected && (p->options.include_non_python || process_has_python(process));
}

/*
 * Ticks that went by unseen before a Python process was known. Those before its interpreter was mapped are none: there
 * can't be more than the CPUs had ticks since then.
 */
static uint64_t late_ticks(struct processes *p, const struct process *process)
{
    uint64_t ticks = sampler_late_ticks(p->options.sampler, process->tgid, process->since_ns);

    if (!ticks || !process->python_since_ns)
        return ticks;
    uint64_t most = sampler_most_ticks(p->options.sampler, now_ns() - process->python_since_ns);
    return ticks < most ? ticks : most;
}

struct error *processes_configure(struct processes *p, struct process *process)
{
    struct wire_process wire = {0}, now;

    if (!process->selected)
        return NULL;
    count_python(p, process);
    if (!p->options.sampler)
        return NULL;
    /* What the sampler has learnt of the image stays, also what it inherited at a fork. */
    bool known = sampler_get_process(p->options.sampler, process->tgid, &now);
    bool inherited = known && now.flags & WIRE_PROCESS_INHERITED;
    if (known && (process->configured || inherited)) {
        wire.start_boottime_ns = now.start_boottime_ns;
        wire.exec_generation = now.exec_generation;
        wire.flags = now.flags & WIRE_PROCESS_BOUND;
    }
    if (process_python(process, &wire)) {
        TRY(sampler_layout(p->options.sampler, &process->python->python.layout, &process->layout_index));
        wire.layout = process->layout_index;
    }
    if (process->switches_stacks)
        wire.flags |= WIRE_PROCESS_GREENLETS;
    wire.mapping_start = process->mapping_start;
    wire.mapping_count = process->mapping_count;
    TRY(sampler_set_process(p->options.sampler, process->tgid, &wire));
    if (process_has_python(process) && !process->configured && !inherited)
        p->counts.late_ticks += late_ticks(p, process);
    if (process->configured)
        return NULL;
    process->configured = true;
    return mappings_changed(p, process);
}

struct error *processes_look_at(struct processes *p, struct process *process, struct code_mapping *m)
{
    struct module_mapping key = {
        .pid = (pid_t)process->tgid,
        .address = m->address,
        .length = m->length,
        .path = m->path,
        .file = code_mapping_file(m),
    };

    bool news = false; /* of what the sampler needs to know */

    m->looked_up = true;
    TRY(modules_find(p->modules, &key, &m->module));
    if (!m->module)
        return NULL;
    if (m->module->python.switches_stacks && !process->switches_stacks) {
        process->switches_stacks = true;
        news = true;
    }
    if (m->module->python.asyncio.running_task && !process->asyncio.running_task) {
        process->asyncio = m->module->python.asyncio;
        news = true;
    }
    if (m->module->is_glibc && !process->glibc) {
        process->glibc = true;
        news = true;
    }
    if (m->module->python.is_python && !process->python &&
        (m->module->python.refused || elf_load_bias(&m->module->identity.segments, m->address, m->file_offset, m->length,
                                                     ARCH_PAGE_BYTES, &process->python_bias))) {
        process->python = m->module;
        process->python_since_ns = process->since_ns ? m->time_ns : 0;
        p->counts.refused += m->module->python.refused != NULL;
        news = true;
    }
    return news && process_has_python(process) ? processes_configure(p, process) : NULL;
}

static struct error *add_mapping(struct processes *p, struct process *process, const struct code_mapping *m)
{
    size_t at;

    if (!m->length || m->address + m->length < m->address)
        return NULL;
    if (!code_mappings_add(&process->mappings, m, &at))
        return error_no_memory();
    /* Processes that will not be sampled cost no looking at files. */
    if (process->selected)
        TRY(processes_look_at(p, process, &process->mappings.data[at]));
    if (process->configured) {
        TRY(mappings_changed(p, process));
        p->counts.loaded_ns = m->time_ns;
    }
    p->events.mapped(p->events.ctx, process, &process->mappings.data[at]);
    return NULL;
}

struct error *processes_map(struct processes *p, struct process *process, const struct code_mapping *mapping)
{
    size_t at = code_mappings_first_behind(&process->mappings, mapping->address);

    if (at < process->mappings.count) {
        const struct code_mapping *m = &process->mappings.data[at];
        if (m->address == mapping->address && m->length == mapping->length && m->file_offset == mapping->file_offset &&
            !strcmp(m->path, mapping->path))
            return NULL;
    }
    return add_mapping(p, process, mapping);
}

bool processes_need_publishing(const struct processes *p)
{
    return p->dirty.count;
}

struct error *processes_publish(struct processes *p, uint64_t time_ns)
{
    if (!p->dirty.count)
        return NULL;
    extents_free_after_grace(&p->mapping_space, time_ns - GRACE_NS);
    for (size_t i = 0; i < p->dirty.count; i++) {
        struct process *process = processes_find(p, p->dirty.data[i]);
        if (!process || !process->mappings_dirty)
            continue;
        process->mappings_dirty = false;
        if (process->configured) {
            TRY(lay_mappings(p, process, time_ns));
            TRY(processes_configure(p, process));
        }
    }
    p->dirty.count = 0;
    return NULL;
}
