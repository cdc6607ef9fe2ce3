/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changed mappings are written to a new place each time, because a sample that is being taken may read the old place.
 */
#include "capture/process/process_sampling.h"

#include <string.h>

#include "formats/base/clock.h"
#include "formats/cpython/layout_find.h"

/* How long a sample that is being taken may still read a place that was given back. */
#define GRACE_NS (50 * NS_PER_MS)
/* Between two looks whether the sampler has room for processes that were left out. */
#define RETRY_NS NS_PER_S
/* Between two tries to find room for a list. Each refusal is counted. */
#define RETRY_PLACE_NS (10 * NS_PER_S)
/* A list is copied again after this much time for each of its mappings, some hundred times what the copy takes. */
#define COPY_PACE_NS UINT64_C(10000)

void process_sampling_init(struct process_sampling *s, struct quotas *quotas)
{
    *s = (struct process_sampling){.quotas = quotas};
}

struct error *process_sampling_begin(struct process_sampling *s, struct sampler *sampler, struct tables *tables)
{
    uint32_t count = 0;

    s->sampler = sampler;
    s->tables = tables;
    struct wire_mapping *lists = tables ? sampler_mappings(sampler, &count) : NULL;
    TRY(mapping_places_init(&s->places, s->quotas, lists, count));
    s->places.map_pages = sampler_map_pages;
    s->places.ctx = sampler;
    return NULL;
}

void process_sampling_deinit(struct process_sampling *s)
{
    mapping_places_deinit(&s->places);
    VEC_DEINIT(&s->mappings);
    VEC_DEINIT(&s->built);
    VEC_DEINIT(&s->used_numbers);
    VEC_DEINIT(&s->changed);
    VEC_DEINIT(&s->left_out);
}

/* Returns the entry of a process, valid until the next call. NULL: out of memory. */
static struct sampled_mappings *note_of(struct process_sampling *s, struct process *p)
{
    if (!VEC_EXTEND_ZERO(&s->mappings, (size_t)p->slot + 1))
        return NULL;
    s->mappings.data[p->slot].process = p;
    return &s->mappings.data[p->slot];
}

/* ---- mappings ---- */

static void hold_place(struct process_sampling *s, struct sampled_mappings *note, uint32_t place)
{
    mapping_places_hold(&s->places, place);
    note->place = place;
}

/* The process leaves a place to others, who forked from it: one of them pays for it now. */
static void pass_on(struct process_sampling *s, const struct sampled_mappings *note)
{
    for (uint32_t slot = 0; slot < s->mappings.count; slot++) {
        const struct sampled_mappings *other = &s->mappings.data[slot];
        if (other == note || other->place != note->place)
            continue;
        mapping_places_pay(&s->places, note->place, slot);
        return;
    }
}

static void release_place(struct process_sampling *s, struct sampled_mappings *note, uint64_t time_ns)
{
    if (mapping_places_release(&s->places, note->place, (uint32_t)(note - s->mappings.data), time_ns))
        pass_on(s, note);
    note->place = 0;
}

static void change_place(struct process_sampling *s, struct sampled_mappings *note, uint32_t place, uint64_t time_ns)
{
    if (place == note->place)
        return;
    release_place(s, note, time_ns);
    hold_place(s, note, place);
}

/* Returns the copy of this list that is there already; 0: there is none. */
static uint32_t known_place(const struct process_sampling *s, const struct process *p)
{
    return mapping_places_find(&s->places, code_mappings_place(&p->mappings));
}

/* Builds the list of a process as it is to lie in the array: a head with the count, and the mappings. */
static struct error *build(struct process_sampling *s, struct sampled_mappings *note, uint64_t time_ns)
{
    struct process *p = note->process;
    const struct module_asker asker = process_asker(p, s->quotas);
    uint32_t count = (uint32_t)code_mappings_count(&p->mappings);
    uint64_t lacked = tables_lacked(s->tables);

    if (!VEC_RESERVE(&s->built, (size_t)count + 1))
        return error_no_memory();
    s->built.count = (size_t)count + 1;
    s->built.data[0] = (struct wire_mapping){.count = count};
    for (uint32_t i = 0; i < count; i++)
        TRY(tables_map(s->tables, &asker, code_mappings_at(&p->mappings, i), time_ns, p->python != NULL, &s->built.data[1 + i]));
    note->lacks_number = tables_lacked(s->tables) > lacked;
    s->lacks_numbers |= note->lacks_number;
    return NULL;
}

/*
 * Gives the process the place where its list lies: where an equal one does, or a new one. Workers that were forked before the
 * capture, or that load the same libraries later, have equal lists.
 */
static struct error *copy_mappings(struct process_sampling *s, struct sampled_mappings *note, uint64_t time_ns)
{
    struct process *p = note->process;

    note->due_ns = time_ns + code_mappings_count(&p->mappings) * COPY_PACE_NS;
    TRY(build(s, note, time_ns));
    uint32_t place;
    TRY(mapping_places_lay(&s->places, p->slot, s->built.data, (uint32_t)s->built.count, time_ns, &place));
    change_place(s, note, place, time_ns); /* no room: nowhere. Its samples will report a missing mapping, not an old one */
    if (place)
        code_mappings_set_place(&p->mappings, mapping_places_at(&s->places, place)->id);
    return NULL;
}

static struct error *lay_mappings(struct process_sampling *s, struct sampled_mappings *note, uint64_t time_ns)
{
    uint32_t known = known_place(s, note->process);

    if (!known)
        return copy_mappings(s, note, time_ns);
    change_place(s, note, known, time_ns);
    return NULL;
}

/* Has the mappings copied soon, unless another process that shares them has a copy. */
static struct error *want_copy(struct process_sampling *s, struct process *p)
{
    if (!s->tables)
        return NULL;
    struct sampled_mappings *note = note_of(s, p);
    if (!note)
        return error_no_memory();
    if (note->changed)
        return NULL;
    /* A process maps many libraries at once, so copy the mappings once for all of them. */
    note->changed = true;
    if (note->due_ns < s->due_ns || !s->changed.count)
        s->due_ns = note->due_ns;
    if (note->queued)
        return NULL;
    note->queued = true;
    return VEC_PUSH(&s->changed, p->slot) ? NULL : error_no_memory();
}

struct error *process_sampling_changed(struct process_sampling *s, struct process *p)
{
    code_mappings_set_place(&p->mappings, 0);
    return want_copy(s, p);
}

/* Tries those that were left out again, until the table of processes has no room for one. */
static struct error *retry(struct process_sampling *s, uint64_t time_ns)
{
    bool full = false, layouts = layout_slots_may_have_room(&s->layouts, s->retried_ns);
    size_t kept = 0;

    if (!s->left_out.count || time_ns < s->retried_ns + RETRY_NS)
        return NULL;
    s->retried_ns = time_ns;
    for (size_t i = 0; i < s->left_out.count; i++) {
        uint32_t slot = s->left_out.data[i];
        if (s->mappings.data[slot].left_out && !full && (layouts || !s->mappings.data[slot].no_layout)) {
            TRY(process_sampling_configure(s, s->mappings.data[slot].process));
            full = s->mappings.data[slot].left_out && !s->mappings.data[slot].no_layout;
        }
        s->mappings.data[slot].listed = s->mappings.data[slot].left_out;
        if (s->mappings.data[slot].listed)
            s->left_out.data[kept++] = slot;
    }
    s->left_out.count = kept;
    return NULL;
}

/* ---- numbers of files ---- */

/* Also of what a head of a list has there, which does no harm. */
static bool note_numbers(struct process_sampling *s, uint32_t start, uint32_t count)
{
    for (uint32_t i = start; i < start + count; i++) {
        uint32_t number = s->places.lists[i].module;
        if (number == WIRE_MODULE_NONE)
            continue;
        if (!VEC_EXTEND_ZERO(&s->used_numbers, (size_t)number / 64 + 1))
            return false;
        s->used_numbers.data[number / 64] |= UINT64_C(1) << number % 64;
    }
    return true;
}

static bool is_used(void *ctx, uint32_t number)
{
    const struct process_sampling *s = ctx;

    return number / 64 < s->used_numbers.count && s->used_numbers.data[number / 64] >> number % 64 & 1;
}

/*
 * Files come and go; where all numbers were given away, those that no list has go to the files that got none. A sample that is
 * being taken may look at a list that was given back, as long as its place is not free.
 */
static struct error *reclaim_numbers(struct process_sampling *s, uint64_t time_ns)
{
    uint32_t count;

    s->numbers_due_ns = time_ns + RETRY_NS;
    s->used_numbers.count = 0;
    for (uint32_t i = 1; i < s->places.all.count; i++) {
        const struct mapping_place *place = mapping_places_at(&s->places, i);
        if (place->holders && !note_numbers(s, place->start, place->count))
            return error_no_memory();
    }
    const struct extents *space = &s->places.space;
    for (size_t i = 0; i < space->waiting.count; i++) {
        if (!note_numbers(s, space->waiting.data[i].start, space->waiting.data[i].count))
            return error_no_memory();
    }
    TRY(tables_reclaim(s->tables, is_used, s, time_ns, &count));
    s->lacks_numbers = !count;
    for (uint32_t slot = 0; count && slot < s->mappings.count; slot++) {
        struct sampled_mappings *note = &s->mappings.data[slot];
        if (note->process && note->lacks_number)
            TRY(process_sampling_changed(s, note->process));
    }
    return NULL;
}

/* Gives the sampler the list of one process. It stays marked as changed if there was no room for that. */
static struct error *publish_one(struct process_sampling *s, uint32_t slot, uint64_t time_ns)
{
    struct sampled_mappings *note = &s->mappings.data[slot];
    struct process *p = note->process;
    bool had_place = note->place;

    note->changed = false;
    if (!p->configured)
        return NULL;
    TRY(lay_mappings(s, note, time_ns));
    TRY(process_sampling_configure(s, p));
    process_listed(p, now_ns());
    note = &s->mappings.data[slot];
    if (note->place || !p->configured)
        return NULL;
    note->changed = true;
    /* What it had itself may be enough, once no sample reads that any more. */
    uint64_t due_ns = time_ns + (had_place ? 2 * GRACE_NS : RETRY_PLACE_NS);
    note->due_ns = due_ns > note->due_ns ? due_ns : note->due_ns;
    return NULL;
}

struct error *process_sampling_publish(struct process_sampling *s, uint64_t time_ns)
{
    size_t kept = 0;

    TRY(retry(s, time_ns));
    if (s->lacks_numbers && time_ns >= s->numbers_due_ns)
        TRY(reclaim_numbers(s, time_ns));
    if (!s->changed.count || time_ns < s->due_ns)
        return NULL;
    s->due_ns = UINT64_MAX;
    TRY(mapping_places_free(&s->places, time_ns - GRACE_NS));
    for (size_t i = 0; i < s->changed.count; i++) {
        uint32_t slot = s->changed.data[i];
        if (s->mappings.data[slot].changed && time_ns >= s->mappings.data[slot].due_ns)
            TRY(publish_one(s, slot, time_ns));
        struct sampled_mappings *note = &s->mappings.data[slot];
        note->queued = note->changed; /* not of a process that has ended */
        if (!note->queued)
            continue;
        s->due_ns = note->due_ns < s->due_ns ? note->due_ns : s->due_ns;
        s->changed.data[kept++] = slot;
    }
    s->changed.count = kept;
    return NULL;
}

/* ---- what is counted and shared ---- */

static void count_python(struct process_sampling *s, struct process *p)
{
    if (p->counted || !process_has_python(p))
        return;
    p->counted = true;
    s->python_count++;
    s->python_ever++;
}

/*
 * Returns the ticks of a Python process that were lost before it was configured. Limits them to the ticks that the CPUs
 * had since its interpreter was mapped: before that it was not a Python process.
 */
static uint64_t late_ticks(struct process_sampling *s, const struct process *p)
{
    uint64_t ticks = sampler_late_ticks(s->sampler, p->tgid, p->since_ns);

    if (!ticks || !p->python_since_ns)
        return ticks;
    uint64_t most = sampler_most_ticks(s->sampler, now_ns() - p->python_since_ns);
    return ticks < most ? ticks : most;
}

/* A process that was just forked begins with its parent's mappings, where there is a copy of them. */
static struct error *share_place(struct process_sampling *s, struct process *p)
{
    uint32_t place = known_place(s, p);
    struct sampled_mappings *note = place ? note_of(s, p) : NULL;

    if (place && !note)
        return error_no_memory();
    if (note && !note->place)
        hold_place(s, note, place);
    return NULL;
}

/* ---- layouts ---- */

/* Another process that holds a layout; where there is none, the same one, which may hold it for both of its interpreters. */
static uint32_t heir_of(const struct process_sampling *s, uint32_t self, uint32_t layout)
{
    for (uint32_t slot = 0; slot < s->mappings.count; slot++) {
        if (slot != self && (s->mappings.data[slot].layout == layout || s->mappings.data[slot].rival_layout == layout))
            return slot;
    }
    return self;
}

/* `held`: of a note's `layout` and `rival_layout` the one that is left. */
static void leave_layout(struct process_sampling *s, struct sampled_mappings *note, uint32_t *held)
{
    uint32_t slot = (uint32_t)(note - s->mappings.data), heir = 0;

    if (!*held)
        return;
    if (layout_slots_wants_heir(&s->layouts, *held - 1, slot))
        heir = heir_of(s, slot, *held);
    layout_slots_leave(&s->layouts, s->quotas, *held - 1, slot, heir, now_ns());
    *held = 0;
}

static void leave_layouts(struct process_sampling *s, struct sampled_mappings *note)
{
    leave_layout(s, note, &note->layout);
    leave_layout(s, note, &note->rival_layout);
}

/* Has the sampler know the layout of an interpreter of the process, the first or the rival. `*full`: it has no room for another one. */
static struct error *set_layout(struct process_sampling *s, struct process *p, bool rival, uint32_t *index, bool *full)
{
    struct py_layout layout = (rival ? p->rival : p->python)->python.layout;
    struct sampled_mappings *note = note_of(s, p);
    bool fresh = false;

    py_layout_of_walk(&layout);
    if (!note)
        return error_no_memory();
    uint32_t *held = rival ? &note->rival_layout : &note->layout;
    if (!*held || memcmp(&s->layouts.all[*held - 1].layout, &layout, sizeof layout)) {
        leave_layout(s, note, held);
        uint32_t found = layout_slots_take(&s->layouts, s->quotas, p->slot, &layout, now_ns(), &fresh);
        *full = found == LAYOUT_NONE;
        *held = *full ? 0 : found + 1;
    }
    *index = *full ? 0 : *held - 1;
    return fresh && !*full ? sampler_set_layout(s->sampler, *index, &layout) : NULL;
}

/* ---- the process's configuration ---- */

/* There is no room for the process in the sampler. It is tried again later; until then nothing is known of it there. */
static struct error *leave_out(struct process_sampling *s, struct process *p, bool no_layout)
{
    struct sampled_mappings *note = note_of(s, p);

    if (!note)
        return error_no_memory();
    note->no_layout = no_layout;
    process_sampling_disinherit(s, p->tgid);
    p->configured = false;
    release_place(s, note, now_ns());
    leave_layouts(s, note);
    if (note->left_out)
        return NULL;
    note->left_out = true;
    s->left_out_ever += !no_layout;
    quota_refuse(s->quotas, p->slot, QUOTA_layouts, no_layout);
    if (note->listed)
        return NULL;
    note->listed = true;
    return VEC_PUSH(&s->left_out, p->slot) ? NULL : error_no_memory();
}

/* Has the sampler know the second interpreter that runs in the process, if there is room. */
static struct error *configure_rival(struct process_sampling *s, struct process *p, uint32_t *flags)
{
    struct wire_process wire = {0};
    bool full = false;

    if (!process_rival(p, &wire))
        return NULL;
    TRY(set_layout(s, p, true, &wire.layout, &full));
    p->rival_known = !full && sampler_set_rival(s->sampler, p->tgid, &wire);
    *flags |= p->rival_known ? WIRE_PROCESS_RIVAL : 0;
    return NULL;
}

static uint16_t wire_owner(const struct process *p)
{
    return (uint16_t)owner_number(p->owner, WIRE_OWNERS);
}

struct error *process_sampling_configure(struct process_sampling *s, struct process *p)
{
    struct wire_process wire = {0}, now;
    bool full = false;

    if (!p->selected)
        return NULL;
    count_python(s, p);
    p->rival_known = !s->sampler;
    if (!s->sampler)
        return NULL;
    /* Keep what the sampler has found out about the process itself, or copied at a fork. */
    bool known = sampler_get_process(s->sampler, p->tgid, &now);
    bool inherited = known && now.flags & WIRE_PROCESS_INHERITED;
    if (known && (p->configured || inherited)) {
        wire.start_boottime_ns = now.start_boottime_ns;
        wire.exec_generation = now.exec_generation;
        wire.flags = now.flags & (WIRE_PROCESS_BOUND | WIRE_PROCESS_COUNTER_WRONG);
        wire.gils = now.gils;
        /* What it has had of this second: it may have itself configured as often as it maps code. */
        wire.wait_second = now.wait_second;
        wire.wait_stacks = now.wait_stacks;
        wire.wait_bytes = now.wait_bytes;
        wire.hit_stacks = now.hit_stacks;
    }
    if (process_python(p, &wire))
        TRY(set_layout(s, p, false, &wire.layout, &full));
    if (full)
        return leave_out(s, p, true);
    TRY(configure_rival(s, p, &wire.flags));
    wire.owner = wire_owner(p);
    if (p->switches_stacks)
        wire.flags |= WIRE_PROCESS_GREENLETS;
    if (!p->glibc)
        wire.flags |= WIRE_PROCESS_MUSL;
    if (!p->configured)
        TRY(share_place(s, p));
    if (p->slot < s->mappings.count) {
        const struct mapping_place *place = mapping_places_at(&s->places, s->mappings.data[p->slot].place);
        wire.mapping_start = place->start;
        wire.mapping_key = mapping_place_key(place);
    }
    TRY(sampler_set_process(s->sampler, p->tgid, &wire, &full));
    if (full)
        return leave_out(s, p, false);
    if (p->slot < s->mappings.count)
        s->mappings.data[p->slot].left_out = false;
    if (process_has_python(p) && !p->configured && !inherited)
        s->late_ticks += late_ticks(s, p);
    if (p->configured)
        return NULL;
    p->configured = true;
    return want_copy(s, p);
}

void process_sampling_set_owner(struct process_sampling *s, const struct process *p)
{
    struct wire_process wire;
    bool full;

    if (!s->sampler || !p->configured || !sampler_get_process(s->sampler, p->tgid, &wire) || wire.owner == wire_owner(p))
        return;
    wire.owner = wire_owner(p);
    error_destroy(sampler_set_process(s->sampler, p->tgid, &wire, &full));
}

void process_sampling_disinherit(struct process_sampling *s, uint32_t tgid)
{
    if (s->sampler)
        sampler_remove_process(s->sampler, tgid);
}

void process_sampling_stop(struct process_sampling *s, struct process *p)
{
    if (p->configured)
        process_sampling_disinherit(s, p->tgid);
    if (p->counted)
        s->python_count--;
    if (p->slot < s->mappings.count) {
        /* From now on, not from the process's end: a sample may be under way that still looks there. */
        release_place(s, &s->mappings.data[p->slot], now_ns());
        leave_layouts(s, &s->mappings.data[p->slot]);
        s->mappings.data[p->slot].left_out = false;
    }
    p->configured = p->counted = false;
}

void process_sampling_drop(struct process_sampling *s, struct process *p)
{
    process_sampling_stop(s, p);
    if (p->slot >= s->mappings.count)
        return;
    struct sampled_mappings *note = &s->mappings.data[p->slot];
    *note = (struct sampled_mappings){.listed = note->listed, .queued = note->queued};
}
