/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/snapshot.h"

#include <string.h>

enum { FRAMES_MAX = 4096, FRAME_WORK = 400, MAPPING_WORK = 40, UNWINDERS_MAX = 64 };

static void drop_unwinder(struct snapshots *s, struct snapshot_process *p)
{
    if (!p->unwinder)
        return;
    unwinder_destroy(p->unwinder);
    p->unwinder = NULL;
    s->unwinder_count--;
}

void snapshots_clear(struct snapshots *s)
{
    for (size_t i = 0; i < s->processes.count; i++) {
        drop_unwinder(s, &s->processes.data[i]);
        VEC_DEINIT(&s->processes.data[i].mappings);
    }
    s->processes.count = 0;
    s->frames.count = 0;
}

void snapshots_deinit(struct snapshots *s)
{
    snapshots_clear(s);
    VEC_DEINIT(&s->processes);
    VEC_DEINIT(&s->frames);
}

static void make_room(struct snapshots *s)
{
    struct snapshot_process *oldest = NULL;

    if (s->unwinder_count < UNWINDERS_MAX)
        return;
    for (size_t i = 0; i < s->processes.count; i++) {
        struct snapshot_process *p = &s->processes.data[i];
        if (p->unwinder && (!oldest || p->used < oldest->used))
            oldest = p;
    }
    if (oldest)
        drop_unwinder(s, oldest);
}

/* Mappings that may contain code: executable ones, and those whose protection is unknown. */
static struct error *show_mappings(struct snapshots *s, struct snapshot_process *p, struct modcache *modules,
                                   struct epoch *e, const struct address_space *mappings)
{
    p->mappings.count = 0;
    if (!limits_work(e->limits, MAPPING_WORK * mappings->now.count))
        return error_no_memory();
    for (size_t i = 0; i < mappings->now.count; i++) {
        const struct mapping *m = &mappings->now.data[i];
        struct unwind_mapping shown = {.address = m->address,
                                       .length = m->end - m->address,
                                       .file_offset = m->file_offset,
                                       .module_id = m->module};
        if (!(m->protection & TRACE_PROTECTION_EXECUTE) &&
            (m->protection & (TRACE_PROTECTION_READ | TRACE_PROTECTION_WRITE)))
            continue;
        if (m->module) {
            uint32_t index;
            TRY(modcache_index(modules, e, m->module, &index));
            TRY(modcache_unwind(modules, index, &shown.module));
        }
        if (!VEC_PUSH(&p->mappings, shown))
            return error_no_memory();
    }
    unwinder_set_mappings(p->unwinder, p->mappings.data, (uint32_t)p->mappings.count, ++s->generation);
    p->version = mappings->version;
    return NULL;
}

struct error *snapshots_unwind(struct snapshots *s, struct modcache *modules, struct epoch *e, uint32_t snapshot,
                               uint64_t time_ns, uint32_t *end)
{
    const struct trace_snapshot *shot = &e->snapshots.data[snapshot];
    struct address_space *mappings = &e->processes.data[shot->process].mappings;

    s->frames.count = 0;
    const struct machine *machine = epoch_machine(e);
    if (!machine) {
        *end = LOSS_machine_unknown;
        return NULL;
    }
    if (shot->registers.count != machine->register_count) {
        *end = LOSS_no_user_registers;
        return NULL;
    }
    while (s->processes.count <= shot->process) {
        if (!VEC_PUSH(&s->processes, (struct snapshot_process){0}))
            return error_no_memory();
    }
    if (!VEC_RESERVE(&s->frames, FRAMES_MAX) || !address_space_move(mappings, time_ns))
        return error_no_memory();

    struct snapshot_process *p = &s->processes.data[shot->process];
    bool fresh = !p->unwinder;
    p->used = ++s->clock;
    if (fresh) {
        make_room(s);
        TRY(unwinder_create(machine, &p->unwinder));
        s->unwinder_count++;
    }
    if (fresh || p->version != mappings->version)
        TRY(show_mappings(s, p, modules, e, mappings));
    s->frames.count = unwinder_run(p->unwinder, shot->registers.values, shot->stack.data, shot->stack_address,
                                   shot->stack.len_bytes, s->frames.data, FRAMES_MAX, end);
    return limits_work(e->limits, FRAME_WORK * s->frames.count) ? NULL : error_no_memory();
}

struct snapshot_frame snapshots_frame(const struct snapshots *s, const struct epoch *e, uint32_t snapshot, uint32_t i)
{
    const struct unwind_frame *f = &s->frames.data[i];
    const struct snapshot_process *p = &s->processes.data[e->snapshots.data[snapshot].process];
    struct snapshot_frame frame = {.offset = f->ip, .return_address = f->return_address};

    if (f->mapping < p->mappings.count && p->mappings.data[f->mapping].module_id) {
        const struct unwind_mapping *m = &p->mappings.data[f->mapping];
        frame.module = m->module_id;
        frame.offset = f->ip - m->address + m->file_offset;
    }
    return frame;
}

struct merge_run snapshots_join(const struct snapshots *s, uint64_t address, uint64_t reason)
{
    if (!address)
        return (struct merge_run){.reason = reason < UINT32_MAX ? (uint32_t)reason : UINT32_MAX};
    for (size_t i = 0; i < s->frames.count; i++) {
        const struct unwind_frame *f = &s->frames.data[i];
        /* If the last step failed, the extent of the frame is unknown. */
        if (f->sp <= address && address < f->cfa && f->cfa != UINT64_MAX)
            return (struct merge_run){.native = (uint32_t)(s->frames.count - i)};
    }
    return (struct merge_run){.reason = LOSS_join_outside};
}
