/* SPDX-License-Identifier: Apache-2.0 */
/* `live` is an array without gaps, for iteration. A process keeps its slot, by which others know it, all its life. */
#include "capture/process/process_table.h"

#include <stdlib.h>
#include <string.h>

#include "capture/process/process_program.h"
#include "formats/base/clock.h"

/* A file that cannot be opened is tried again after a second, and then after twice as long each time, up to this. */
#define OPEN_WAIT_MAX_NS (64 * NS_PER_S)

struct error *processes_create(const struct processes_options *options, struct modules *modules, struct processes **out)
{
    struct processes *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    p->options = *options;
    p->modules = modules;
    owner_host_read(&p->host);
    struct error *err = quotas_create(&p->quotas);
    if (err) {
        free(p);
        return err;
    }
    process_sampling_init(&p->sampling, p->quotas);
    *out = p;
    return NULL;
}

void processes_destroy(struct processes *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->live.count; i++)
        process_destroy(p->live.data[i]);
    VEC_DEINIT(&p->live);
    code_pool_deinit(&p->code_pool);
    VEC_DEINIT(&p->free_slots);
    VEC_DEINIT(&p->waiting);
    map_deinit(&p->is_waiting);
    process_sampling_deinit(&p->sampling);
    map_deinit(&p->by_tgid);
    free(p->rescan.pids);
    quotas_destroy(p->quotas);
    free(p);
}

void processes_set_events(struct processes *p, const struct processes_events *events)
{
    p->events = *events;
}

struct processes_counts processes_counts(const struct processes *p)
{
    struct processes_counts counts = p->counts;

    counts.python = p->sampling.python_count;
    counts.seen_python = p->sampling.python_ever;
    counts.late_ticks = p->sampling.late_ticks;
    counts.left_out = p->sampling.left_out_ever;
    return counts;
}

/* ---- processes ---- */

struct process *processes_find(struct processes *p, uint32_t tgid)
{
    uint64_t *index = map_get(&p->by_tgid, tgid);

    return index ? p->live.data[*index] : NULL;
}

struct process *processes_next(struct processes *p, uint32_t *cursor)
{
    return *cursor < p->live.count ? p->live.data[(*cursor)++] : NULL;
}

void processes_drop(struct processes *p, struct process *process, uint64_t time_ns)
{
    uint64_t *index = map_get(&p->by_tgid, process->tgid);

    if (!index || p->live.data[*index] != process)
        return;
    uint64_t at = *index;
    if (p->events.ended)
        p->events.ended(p->events.ctx, process, time_ns);
    process_sampling_drop(&p->sampling, process);
    quotas_end(p->quotas, process->slot);
    map_remove(&p->by_tgid, process->tgid);
    /* The last one moves into its place. */
    struct process *last = p->live.data[--p->live.count];
    if (last != process) {
        p->live.data[at] = last;
        map_set(&p->by_tgid, last->tgid, at);
    }
    p->free_slots.data[p->free_slots.count++] = process->slot; /* there is room: processes_begin() */
    process_destroy(process);
}

/* Takes a slot for a new process, and reserves room in free_slots for all slots to be returned. */
static bool take_slot(struct processes *p, uint32_t *slot)
{
    if (p->free_slots.count) {
        *slot = p->free_slots.data[--p->free_slots.count];
        return true;
    }
    if (!VEC_RESERVE(&p->free_slots, (size_t)p->slot_count + 1))
        return false;
    *slot = p->slot_count++;
    return true;
}

static struct error *begin_slot(struct processes *p, struct process *process)
{
    if (!take_slot(p, &process->slot))
        return error_no_memory();
    struct error *err = quotas_begin(p->quotas, process->slot, process->owner, false);
    if (err)
        p->free_slots.data[p->free_slots.count++] = process->slot;
    return err;
}

struct error *processes_begin(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out)
{
    struct process *old = processes_find(p, tgid);

    if (old)
        processes_drop(p, old, old->ended_ns ? old->ended_ns : time_ns);
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return error_no_memory();
    process->life = ++p->lives;
    process->owner_facts.uid = PROCFS_UID_UNKNOWN;
    process->owner = owner_unknown();
    process->tgid = tgid;
    process->since_ns = process->read_ns = time_ns;
    process->begun_ns = now_ns();
    process->pass = p->rescan.pass;
    if (!VEC_RESERVE(&p->live, p->live.count + 1) || !map_set(&p->by_tgid, tgid, p->live.count)) {
        free(process);
        return error_no_memory();
    }
    struct error *err = begin_slot(p, process);
    if (err) {
        map_remove(&p->by_tgid, tgid);
        free(process);
        return err;
    }
    p->live.data[p->live.count++] = process;
    *out = process;
    return NULL;
}

void processes_set_owner(struct processes *p, struct process *process, const struct owner_facts *facts)
{
    process->owner_facts = *facts;
    process->owner = owner_key(facts);
    quotas_set_owner(p->quotas, process->slot, process->owner, process->in_scope && !p->options.whole_host);
    process_sampling_set_owner(&p->sampling, process);
}

bool processes_wants(const struct processes *p, const struct process *process)
{
    return process->selected && (p->options.include_non_python || process_has_python(process));
}

struct error *processes_configure(struct processes *p, struct process *process)
{
    /* Now, because later the program may have replaced its command line, or may have ended. */
    if (process->selected && process_has_python(process)) {
        process_find_program(process, false);
        process_find_folder(process);
    }
    return process_sampling_configure(&p->sampling, process);
}

struct error *processes_begin_sampling(struct processes *p, struct sampler *sampler, struct tables *tables)
{
    TRY(process_sampling_begin(&p->sampling, sampler, tables));
    for (size_t i = 0; i < p->live.count; i++) {
        if (processes_wants(p, p->live.data[i]))
            TRY(processes_configure(p, p->live.data[i]));
    }
    return NULL;
}

/* ---- mappings ---- */

static uint64_t waiting_key(uint32_t tgid, uint32_t module)
{
    return (uint64_t)tgid << 32 | module;
}

static struct error *wait_for_module(struct processes *p, const struct process *process, const struct module *module)
{
    const struct waiting_process w = {process->tgid, module->index};
    uint64_t key = waiting_key(w.tgid, w.module);

    if (map_get(&p->is_waiting, key))
        return NULL;
    return VEC_PUSH(&p->waiting, w) && map_set(&p->is_waiting, key, 1) ? NULL : error_no_memory();
}

static void set_python(struct processes *p, struct process *process, struct module *module, uint64_t bias)
{
    process->python = module;
    process->python_bias = bias;
    process->gil_len = 0; /* it was learnt of another one */
    p->counts.refused += module->python.refused != NULL;
    p->counts.learned++;
}

bool processes_choose_python(struct processes *p, struct process *process)
{
    struct module *python = process->python;
    uint64_t bias = process->python_bias;

    if (process->rival_runs && !process->rival_known)
        return true; /* there was no room for it */
    if (!process->rival || process->rival_runs || !quota_take(p->quotas, process->slot, QUOTA_events, 1, now_ns()))
        return false;
    process->python_sure = process->python_sure || process_runs_python(process, python, bias);
    bool rival_runs = process_runs_python(process, process->rival, process->rival_bias);
    if (process->python_sure) {
        process->rival_runs = rival_runs;
        return rival_runs;
    }
    if (!rival_runs)
        return false;
    set_python(p, process, process->rival, process->rival_bias);
    process->rival = python;
    process->rival_bias = bias;
    process->python_sure = true;
    return true;
}

/* An interpreter is mapped. Returns whether it is the one that the process runs, as far as is known now. */
static bool take_python(struct processes *p, struct process *process, const struct code_mapping *m)
{
    struct module *module = m->module;
    uint64_t bias = 0;

    if (!elf_load_bias(&module->identity.segments, m->address, m->file_offset, m->length, ARCH_PAGE_BYTES, &bias) &&
        !module->python.refused)
        return false;
    if (!process->python) {
        set_python(p, process, module, bias);
        process->python_since_ns = process->since_ns ? code_mappings_time(&process->mappings, m) : 0;
        return true;
    }
    if (process->python == module && process->python_bias == bias)
        return false;
    if (!process->rival || !process->python_sure) { /* the one that is asked about is the last */
        process->rival = module;
        process->rival_bias = bias;
    }
    return processes_choose_python(p, process);
}

/*
 * Finds the module behind a mapping, and configures the sampler if the module matters to it (an interpreter, _asyncio).
 * Another process that shares the mapping may have found the module already.
 */
static struct error *look_at(struct processes *p, struct process *process, struct code_mapping *m)
{
    bool news = false; /* the sampler's configuration has to change */

    const struct module_asker asker = process_asker(process, p->quotas);

    if (!m->looked_up)
        TRY(modules_find(p->modules, &asker, m, &m->module));
    m->looked_up = true;
    if (!m->module)
        return NULL;
    if (m->module->pending)
        return wait_for_module(p, process, m->module);
    process->unopened |= m->module->unreadable;
    if (m->module->python.switches_stacks && !process->switches_stacks) {
        process->switches_stacks = true;
        news = true;
    }
    if (m->module->python.asyncio.running_task && !process->asyncio.running_task) {
        process->asyncio = m->module->python.asyncio;
        p->counts.learned++;
        news = true;
    }
    if (m->module->is_glibc && !process->glibc) {
        process->glibc = true;
        news = true;
    }
    news |= m->module->python.is_python && take_python(p, process, m);
    return news && process_has_python(process) ? processes_configure(p, process) : NULL;
}

struct error *processes_look(struct processes *p, struct process *process)
{
    for (size_t i = 0; i < code_mappings_count(&process->mappings); i++)
        TRY(look_at(p, process, code_mappings_at(&process->mappings, i)));
    return NULL;
}

/* The same addresses may mean something else now. */
static struct error *list_changed(struct processes *p, struct process *process)
{
    if (p->events.remapped)
        p->events.remapped(p->events.ctx, process);
    return process->configured ? process_sampling_changed(&p->sampling, process) : NULL;
}

static struct error *add_mapping(struct processes *p, struct process *process, const struct code_mapping *m)
{
    size_t at = 0;

    if (!m->length || m->address + m->length < m->address)
        return NULL;
    enum code_mappings_result result = code_mappings_add(&process->mappings, &p->code_pool, m, &at);
    if (result == CODE_MAPPINGS_NO_MEMORY)
        return error_no_memory();
    struct code_mapping *added = result == CODE_MAPPINGS_ADDED ? code_mappings_at(&process->mappings, at) : NULL;
    if (!added) {
        quota_refuse(p->quotas, process->slot, QUOTA_mappings, 1);
        process->unsure = true;
    }
    if (added || result == CODE_MAPPINGS_CUT)
        process_replaced(process, added ? added->replaced_ns : m->time_ns, !added);
    if (added)
        TRY(look_at(p, process, added));
    if (result != CODE_MAPPINGS_UNCHANGED)
        TRY(list_changed(p, process));
    if (process->configured || !p->options.whole_host)
        p->counts.loaded_ns = m->time_ns;
    if (added && p->events.mapped && !(added->module && added->module->pending))
        p->events.mapped(p->events.ctx, process, added);
    return NULL;
}

/* What was put off in add_mapping() because the module was pending. */
static struct error *module_is_known(struct processes *p, struct process *process, const struct module *module)
{
    TRY(processes_look(p, process));
    if (process->configured)
        TRY(process_sampling_changed(&p->sampling, process));
    for (size_t i = 0; p->events.mapped && i < code_mappings_count(&process->mappings); i++) {
        struct code_mapping *m = code_mappings_at(&process->mappings, i);
        if (m->module == module)
            p->events.mapped(p->events.ctx, process, m);
    }
    return NULL;
}

/* Tries again to open the file behind a mapping. */
static struct error *open_again(struct processes *p, struct process *process, size_t at)
{
    struct code_mapping *m = code_mappings_at(&process->mappings, at);
    struct module *before = m->module;

    m->looked_up = false;
    struct error *err = look_at(p, process, m);
    if (!m->module)
        m->module = before;
    m->looked_up = true;
    return err || m->module->pending || m->module->unreadable ? err : module_is_known(p, process, m->module);
}

struct error *processes_open_again(struct processes *p, struct process *process, uint64_t time_ns)
{
    if (time_ns < process->open_due_ns)
        return NULL;
    process->open_wait_ns = process->open_wait_ns && process->open_wait_ns < OPEN_WAIT_MAX_NS ? 2 * process->open_wait_ns : NS_PER_S;
    process->open_due_ns = time_ns + process->open_wait_ns;
    process->unopened = false;
    for (size_t i = 0; i < code_mappings_count(&process->mappings); i++) {
        const struct code_mapping *m = code_mappings_at(&process->mappings, i);
        if (m->looked_up && m->module && m->module->unreadable)
            TRY(open_again(p, process, i));
    }
    /* Another process may have had one opened. */
    return process->configured ? process_sampling_changed(&p->sampling, process) : NULL;
}

struct error *processes_take_modules(struct processes *p)
{
    struct module *module;

    while ((module = modules_next_known(p->modules))) {
        size_t kept = 0, count = p->waiting.count;
        struct error *err = NULL;
        for (size_t i = 0; i < count; i++) {
            const struct waiting_process w = p->waiting.data[i];
            struct process *process = w.module == module->index ? processes_find(p, w.tgid) : NULL;
            if (w.module != module->index) {
                p->waiting.data[kept++] = w;
                continue;
            }
            map_remove(&p->is_waiting, waiting_key(w.tgid, w.module));
            if (!err && process && (process->selected || process->undecided))
                err = module_is_known(p, process, module);
        }
        /* Those that came meanwhile: a process may wait for another module still. */
        for (size_t i = count; i < p->waiting.count; i++)
            p->waiting.data[kept++] = p->waiting.data[i];
        p->waiting.count = kept;
        TRY(err);
    }
    return NULL;
}

bool processes_has_mapping(const struct process *process, const struct code_mapping *mapping)
{
    size_t at = code_mappings_first_behind(&process->mappings, mapping->address);

    if (at == code_mappings_count(&process->mappings))
        return false;
    const struct code_mapping *m = code_mappings_at(&process->mappings, at);
    return m->address == mapping->address && m->length == mapping->length && m->file_offset == mapping->file_offset &&
           !strcmp(m->path, mapping->path) && !code_mapping_is_other_file(m, mapping);
}

struct error *processes_refuse_mapping(struct processes *p, struct process *process, const struct code_mapping *mapping)
{
    enum code_mappings_result result =
        code_mappings_cut(&process->mappings, &p->code_pool, mapping->address, mapping->length);

    process->unsure = true;
    if (result != CODE_MAPPINGS_CUT)
        return result == CODE_MAPPINGS_NO_MEMORY ? error_no_memory() : NULL;
    process_replaced(process, mapping->time_ns, true);
    return list_changed(p, process);
}

struct error *processes_map(struct processes *p, struct process *process, const struct code_mapping *mapping)
{
    return processes_has_mapping(process, mapping) ? NULL : add_mapping(p, process, mapping);
}
