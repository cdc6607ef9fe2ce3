/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on one process that need no other table. */
#include "capture/process/process.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"
#include "capture/host/target_memory.h"
#include "capture/process/program.h"

void process_destroy(struct process *p)
{
    if (!p)
        return;
    code_mappings_deinit(&p->mappings);
    process_forget_threads(p);
    free(p->exe);
    free(p->program);
    free(p->before);
    free(p->folder);
    free(p);
}

void process_select(struct process *p, bool in_scope, bool passes)
{
    p->in_scope = in_scope;
    p->passes = passes;
    p->selected = in_scope && passes;
}

/* ---- its folder ---- */

void process_find_folder(struct process *p)
{
    if (!p->folder_asked && p->since_ns && p->since_ns != UINT64_MAX)
        p->folder = procfs_folder((pid_t)p->tgid);
    p->folder_asked = true;
}

/* ---- threads ---- */

void process_forget_threads(struct process *p)
{
    map_deinit(&p->thread_index);
    for (size_t i = 0; i < p->threads.count; i++)
        free(p->threads.data[i].python_name);
    VEC_DEINIT(&p->threads);
}

struct thread *process_find_thread(struct process *p, uint32_t tid)
{
    uint64_t *index = map_get(&p->thread_index, tid);

    return index ? &p->threads.data[*index] : NULL;
}

struct module_asker process_asker(const struct process *p, struct quotas *quotas)
{
    return (struct module_asker){
        .pid = (pid_t)p->tgid, .life = p->life, .owner = p->owner, .slot = p->slot, .quotas = quotas};
}

struct thread *process_thread(struct process *p, uint32_t tid)
{
    struct thread *known = process_find_thread(p, tid), t = {.tid = tid, .index = (uint32_t)p->threads.count};

    if (known)
        return known;
    if (!procfs_comm((pid_t)p->tgid, (pid_t)tid, t.name))
        memcpy(t.name, p->comm, sizeof t.name);
    /* Reserve first, so that the map never has an index past the end of the array. */
    if (!VEC_RESERVE(&p->threads, p->threads.count + 1) || !map_set(&p->thread_index, tid, p->threads.count))
        return NULL;
    p->threads.data[p->threads.count++] = t;
    return &p->threads.data[p->threads.count - 1];
}

/* ---- the interpreter ---- */

bool process_has_python(const struct process *p)
{
    return p->python && !p->python->python.refused;
}

bool process_runs_python(const struct process *p, const struct module *module, uint64_t bias)
{
    const struct py_image *image = &module->python;
    const struct py_layout *l = &image->layout;
    uint64_t at = image->interpreters_vaddr, interpreter = 0, state = 0, of_state = 0;
    pid_t pid = (pid_t)p->tgid;

    if (image->refused || (!at && (!image->runtime_vaddr || l->runtime_interpreters_head == PY_NONE)))
        return false;
    at = at ? at : image->runtime_vaddr + l->runtime_interpreters_head;
    return target_read(pid, at + bias, &interpreter, sizeof interpreter) && interpreter &&
           target_read(pid, interpreter + l->interp_threads_head, &state, sizeof state) && state &&
           target_read(pid, state + l->tstate_interp, &of_state, sizeof of_state) && of_state == interpreter;
}

/* Describes to the frame walk where a thread-local variable is; "none" when part of its address is not known. */
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

static void gil_place(const struct process *p, const struct py_gil *gil, struct wire_process *out)
{
    uint64_t bias = p->python_bias;

    if (gil->kind == PY_GIL_LEARN && p->gil_len) {
        out->gil_kind = PY_GIL_RANGE;
        out->gil = p->gil;
        out->gil_len = p->gil_len;
        return;
    }
    /* Up to 3.6 it is not known which variable lies where, and with musl that is what counts. */
    if (!p->glibc && (gil->kind == PY_GIL_LEARN || (gil->kind == PY_GIL_RANGE && gil->len != PY_GIL_LEN_BYTES)))
        return;
    out->gil_kind = gil->kind;
    out->gil = gil->kind == PY_GIL_RANGE || gil->kind == PY_GIL_POINTER ? gil->address + bias : gil->address;
    out->gil_skip = gil->skip;
    out->gil_len = gil->len;
}

/* What holds for each interpreter of a process. */
static void describe(const struct process *p, const struct py_image *image, uint64_t bias, struct wire_process *out)
{
    out->runtime = image->runtime_vaddr + bias;
    out->code_type = image->code_type_vaddr + bias;
    out->tls_kind = tls_place(&image->tls_tstate, bias, &out->tls_offset, &out->tls_module);
    out->gilstate_kind = tls_place(&image->tls_gilstate, bias, &out->gilstate_offset, &out->gilstate_module);
    out->interpreters = image->interpreters_vaddr ? image->interpreters_vaddr + bias : 0;
    out->thread_key = image->thread_key_vaddr ? image->thread_key_vaddr + bias : 0;
    out->key_slots = p->glibc ? ARCH_GLIBC_KEY_VALUES : 0;
}

bool process_python(const struct process *p, struct wire_process *out)
{
    if (!process_has_python(p))
        return false;
    const struct py_image *image = &p->python->python;
    describe(p, image, p->python_bias, out);
    out->code_counter = image->code_counter_vaddr ? image->code_counter_vaddr + p->python_bias : 0;
    if (program_is_told_by_arguments(&(struct program_facts){.exe = p->exe}))
        out->flags |= WIRE_PROCESS_BEGINS_ONCE;
    gil_place(p, &image->gil, out);
    if (image->behaviour->asyncio_offsets) {
        out->running_task = p->asyncio.running_task;
        out->task_name = p->asyncio.task_name;
        out->task_is_task = p->asyncio.task_is_task;
        out->task_size = p->asyncio.task_size;
    }
    return true;
}

bool process_rival(const struct process *p, struct wire_process *out)
{
    if (!p->rival_runs || !process_has_python(p) || p->rival->python.refused)
        return false;
    describe(p, &p->rival->python, p->rival_bias, out);
    return true;
}

const char *process_unopened(const struct process *p)
{
    for (size_t i = 0; i < code_mappings_count(&p->mappings); i++) {
        const struct code_mapping *m = code_mappings_at(&p->mappings, i);
        if (m->looked_up && !code_mapping_is_anonymous(m) && (!m->module || m->module->unreadable))
            return m->path;
    }
    return NULL;
}

void process_replaced(struct process *p, uint64_t time_ns, bool cut)
{
    p->replaced_ns = time_ns > p->replaced_ns ? time_ns : p->replaced_ns;
    p->cut_ns = cut && time_ns > p->cut_ns ? time_ns : p->cut_ns;
}

void process_listed(struct process *p, uint64_t time_ns)
{
    if (p->lists[0].since_ns && p->lists[0].upto_ns == p->replaced_ns)
        return;
    memmove(p->lists + 1, p->lists, sizeof p->lists - sizeof *p->lists);
    p->lists[0] = (struct sampler_list){.since_ns = time_ns, .upto_ns = p->replaced_ns};
}

uint32_t process_trusted_frames(const struct process *p, const struct native_frame *frames, uint32_t count, uint64_t taken_ns)
{
    uint64_t upto_ns = 0; /* of a list that is not kept nothing is known */

    for (size_t i = 0; i < SAMPLER_LISTS_KEPT; i++) {
        if (!p->lists[i].since_ns)
            return count;
        if (taken_ns >= p->lists[i].since_ns) {
            upto_ns = p->lists[i].upto_ns;
            break;
        }
    }
    if (p->replaced_ns <= upto_ns)
        return count;
    for (uint32_t i = 0; i + 1 < count; i++) {
        const struct code_mapping *m = code_mappings_find(&p->mappings, native_frame_code(&frames[i]));
        /* Where something was cut out, only that can have had rows. */
        uint64_t replaced_ns = m ? m->replaced_ns : p->cut_ns;
        if (replaced_ns > upto_ns && replaced_ns <= taken_ns)
            return i + 1;
    }
    return count;
}

bool process_is_inspected(const struct process *p)
{
    for (size_t i = 0; i < code_mappings_count(&p->mappings); i++) {
        const struct module *module = code_mappings_at(&p->mappings, i)->module;
        if (module && module->pending)
            return true;
    }
    return false;
}
