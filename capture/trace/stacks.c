/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames as the sampler sent them are the key of a stack; they are looked at one by one only when the key is new.
 */
#include "capture/trace/stacks.h"

#include <string.h>

#include "capture/trace/trace_define.h"
#include "capture/trace/trace_sources.h"

struct python_key {
    uint64_t address;
    uint32_t fingerprint;
    uint32_t reserved;
};

/* ---- known stacks: most samples have one of them ---- */

/* Finds the stack with these frames (as the sampler sent them), if it is in this epoch of the trace already. */
static bool find_stack(const struct trace_builder *b, struct known_stacks *s, const void *frames, size_t len_bytes,
                        uint32_t *stack)
{
    if (s->epoch != b->epoch) {
        known_stacks_clear(s);
        s->epoch = b->epoch;
    }
    uint32_t known = intern_find(&s->keys, frames, (uint32_t)len_bytes);
    if (known != INTERN_NONE)
        *stack = s->stack.data[known];
    return known != INTERN_NONE;
}

/* For stacks of one kind of one process; more are found by the writer, which takes longer. */
#define KNOWN_STACKS_MAX_BYTES (UINT64_C(2) << 20)

static struct error *keep_stack(struct known_stacks *s, const void *frames, size_t len_bytes, uint32_t stack)
{
    bool added;

    if (known_stacks_bytes(s) + len_bytes > KNOWN_STACKS_MAX_BYTES) {
        intern_deinit(&s->keys); /* with its memory: most of these stacks were seen once */
        VEC_DEINIT(&s->stack);
    }
    uint32_t id = intern_id(&s->keys, frames, (uint32_t)len_bytes, &added);

    return id == INTERN_NONE || (added && !VEC_PUSH(&s->stack, stack)) ? error_no_memory() : NULL;
}

/* ---- what new stacks of a process may take ---- */

bool stacks_are_over(struct trace_builder *b, struct process_note *n, uint32_t count, const struct native_frame *native,
                     uint32_t native_count, uint64_t time_ns)
{
    uint32_t stack;

    if (!n->stacks_over)
        return false;
    for (uint32_t i = 0; i < native_count; i++)
        b->native[i] = native[i].ip;
    bool python_known = !count || find_stack(b, &n->python_stacks, b->entries, count * sizeof *b->entries, &stack);
    bool native_known =
        !native_count || find_stack(b, &n->native_stacks, b->native, native_count * sizeof *b->native, &stack);
    if (python_known && native_known)
        return false;
    n->stacks_over = !quota_take(b->o.processes->quotas, n->process->slot, QUOTA_stack_bytes, 1, time_ns);
    return n->stacks_over;
}

void stacks_charge(struct trace_builder *b, struct process_note *n, uint64_t bytes_before, uint64_t time_ns)
{
    uint64_t bytes = trace_writer_epoch_bytes(b->o.writer) - bytes_before;

    bytes -= bytes < b->code_bytes ? bytes : b->code_bytes;
    if (bytes)
        n->stacks_over = !quota_owe(b->o.processes->quotas, n->process->slot, QUOTA_stack_bytes, bytes, time_ns);
}

/* ---- Python ---- */

const struct py_image *stacks_interpreter(const struct trace_builder *b, const struct process *p, uint64_t *bias)
{
    bool of_rival = b->of_rival && p->rival;
    const struct module *module = of_rival ? p->rival : p->python;

    *bias = of_rival ? p->rival_bias : p->python_bias;
    return module ? &module->python : NULL;
}

static struct codes_owner owner_of(const struct trace_builder *b, const struct process *p)
{
    uint64_t bias;
    const struct py_image *image = stacks_interpreter(b, p, &bias);

    return (struct codes_owner){
        .pid = (pid_t)p->tgid,
        .layout = &image->layout,
        .code_type = image->code_type_vaddr + bias,
        .quotas = b->o.processes->quotas,
        .slot = p->slot,
        .time_ns = b->time_ns,
    };
}

/* What could not be read of an object when it was met, since it was paged out, is asked for again. `index` is that of its contents. */
static struct error *complete(struct trace_builder *b, const struct process *p, const struct python_key *key, uint32_t *index)
{
    struct code_place *place = codes_place(b->o.codes, *index);
    uint32_t whole;

    if (!place->again_ns || b->time_ns < place->again_ns || !p->python)
        return NULL;
    place->again_ns = b->time_ns + CODES_AGAIN_NS;
    struct codes_owner owner = owner_of(b, p);
    TRY(codes_add_live(b->o.codes, &owner, key->address, key->fingerprint, &whole));
    if (whole != CODES_NONE)
        *index = whole;
    return NULL;
}

/* Finds the contents of a frame's code object: known from a message, else read now. CODES_NONE when that fails. */
static struct error *code_of(struct trace_builder *b, struct process_note *n, uint64_t address, uint32_t fingerprint,
                             uint32_t *index)
{
    const struct process *p = n->process;
    struct python_key key = {.address = address, .fingerprint = fingerprint};
    uint32_t id = intern_find(&n->codes.keys, &key, sizeof key);

    *index = CODES_NONE;
    if (id != INTERN_NONE) {
        TRY(complete(b, p, &key, &n->codes.index.data[id]));
        *index = n->codes.index.data[id];
        return NULL;
    }
    if (!p->python || p->python->python.refused)
        return NULL;
    struct codes_owner owner = owner_of(b, p);
    TRY(codes_add_live(b->o.codes, &owner, address, fingerprint, index));
    if (*index == CODES_NONE)
        return NULL; /* not remembered: at the next sample the page may be resident */
    if (!fingerprint)
        return NULL; /* not remembered: the sample has no fingerprint to identify it by */
    id = intern_id(&n->codes.keys, &key, sizeof key, NULL);
    if (id == INTERN_NONE || !VEC_PUSH(&n->codes.index, *index))
        return error_no_memory();
    return NULL;
}

struct error *stacks_learn_code(struct trace_builder *b, struct process_note *n, const struct wire_code *message,
                                uint32_t len_bytes)
{
    struct python_key key = {.address = message->address, .fingerprint = message->fingerprint};
    const struct process *p = n->process;
    uint32_t index;
    bool added;

    if (!p->python || p->python->python.refused)
        return NULL;
    struct codes_owner owner = owner_of(b, p);
    TRY(codes_add_message(b->o.codes, &owner, message, len_bytes, &index));
    if (index == CODES_NONE)
        return NULL;
    uint32_t id = intern_id(&n->codes.keys, &key, sizeof key, &added);
    if (id == INTERN_NONE || (added && !VEC_PUSH(&n->codes.index, index)))
        return error_no_memory();
    n->codes.index.data[id] = index;
    return NULL;
}

static uint32_t define_code(struct trace_builder *b, uint32_t index)
{
    struct code_place *place = codes_place(b->o.codes, index);

    if (place->epoch != b->epoch) {
        struct trace_code record;
        uint64_t before = trace_writer_epoch_bytes(b->o.writer);
        codes_record(b->o.codes, index, &record);
        trace_writer_put(b->o.writer, TRACE_code, &record);
        b->code_bytes += trace_writer_epoch_bytes(b->o.writer) - before;
        place->epoch = b->epoch;
        place->id = record.id;
    }
    return place->id;
}

/* The sampler walks from the innermost frame, the trace has runs from the outermost. A run is a pair of numbers. */
static void reverse_runs(struct trace_builder *b, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            uint64_t swap = b->runs[2 * i + k];
            b->runs[2 * i + k] = b->runs[2 * (count - 1 - i) + k];
            b->runs[2 * (count - 1 - i) + k] = swap;
        }
    }
}

uint32_t stacks_split(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *run_count)
{
    uint32_t count = 0, runs = 0;
    bool open = false;

    for (uint32_t i = 0; i < wire_count; i++) {
        if (wire[i].address & WIRE_RUN) {
            if (!open)
                continue;
            b->entries[count - 1].address |= WIRE_RUN;
            b->runs[2 * runs] = wire[i].address & WIRE_ADDRESS;
            b->runs[2 * runs + 1] = 0;
            runs++;
            open = false;
        } else {
            b->entries[count++] = (struct wire_python){wire[i].address, wire[i].fingerprint, wire[i].offset};
            open = true;
        }
    }
    if (open) {
        /* The walk ended in the middle of a run. */
        b->entries[count - 1].address |= WIRE_RUN;
        b->runs[2 * runs] = 0;
        b->runs[2 * runs + 1] = LOSS_join_no_record;
        runs++;
    }
    reverse_runs(b, runs);
    *run_count = runs;
    return count;
}

/*
 * Up to 3.10 each frame is a run of its own. In 3.10 each frame is followed by its record. At the beginning and the end
 * of an activation there is for an instant one more of the one than of the other; the runs are unknown then.
 */
bool stacks_split_objects(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *frame_count)
{
    uint32_t count = 0, records = 0;
    bool matched = true;

    for (uint32_t i = 0; i < wire_count; i++) {
        if (wire[i].address & WIRE_RUN) {
            matched &= records < count && (wire[i].address & WIRE_ADDRESS);
            if (records < count)
                b->runs[2 * records++] = wire[i].address & WIRE_ADDRESS;
        } else {
            b->entries[count++] = (struct wire_python){wire[i].address | WIRE_RUN, wire[i].fingerprint, wire[i].offset};
        }
    }
    matched &= count && records == count;
    for (uint32_t i = 0; matched && i < count; i++)
        b->runs[2 * i + 1] = 0;
    if (matched)
        reverse_runs(b, count);
    *frame_count = count;
    return matched;
}

/* Whether the instruction of a frame is known. If the object was read later than the frame it has to be one of its own. */
static bool has_instruction(const struct trace_builder *b, const struct wire_python *e, uint32_t index)
{
    struct trace_code code = {0};

    if (e->offset == WIRE_OFFSET_UNKNOWN)
        return false;
    if (e->address & WIRE_UNREAD)
        codes_record(b->o.codes, index, &code);
    return e->offset < 0 || !code.code_len_bytes || (uint32_t)e->offset < code.code_len_bytes;
}

/* Most samples have a known stack, and return early. */
struct error *stacks_python(struct trace_builder *b, struct process_note *n, uint32_t count, uint32_t *stack)
{
    bool certain = true;

    *stack = 0;
    if (!count)
        return NULL;
    if (find_stack(b, &n->python_stacks, b->entries, count * sizeof *b->entries, stack))
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_python *e = &b->entries[i];
        struct trace_python_frame frame = {
            .offset = e->offset,
            .flags = (e->address & WIRE_RUN ? TRACE_FRAME_RUN_END : 0) |
                     (e->address & WIRE_GENERATOR ? TRACE_FRAME_GENERATOR : 0),
        };
        uint32_t index;
        TRY(code_of(b, n, e->address & WIRE_ADDRESS, e->address & WIRE_UNREAD ? 0 : e->fingerprint, &index));
        if (index != CODES_NONE) {
            frame.code = define_code(b, index);
            TRY(trace_sources_met(b, n, index, frame.code));
            certain &= !codes_place(b->o.codes, index)->again_ns;
            if (!has_instruction(b, e, index)) {
                frame.offset = -1; /* for programs that do not know the flag */
                frame.flags |= TRACE_FRAME_LINE_UNKNOWN;
                b->losses[LOSS_line_unknown]++;
                certain = false;
            }
        } else {
            b->losses[LOSS_code_unknown]++;
            certain = false;
        }
        if (e->address & WIRE_UNREAD)
            certain = false;
        b->frames[count - 1 - i] = trace_writer_intern(b->o.writer, TRACE_python_frame, &frame);
    }
    *stack = trace_writer_stack(b->o.writer, b->frames, count);
    /* A stack with an unknown code object is not remembered: the next sample may tell. */
    return certain ? keep_stack(&n->python_stacks, b->entries, count * sizeof *b->entries, *stack) : NULL;
}

/* ---- native ---- */

static void mark_framed(struct trace_builder *b, const struct module *m)
{
    struct module_note *note = trace_notes_module(&b->notes, m);

    if (note)
        note->framed = true;
    else
        b->no_memory = true;
}

struct error *stacks_native(struct trace_builder *b, struct process_note *n, const struct native_frame *wire, uint32_t count,
                            uint32_t *stack)
{
    uint32_t frames[WIRE_NATIVE_MAX];

    *stack = 0;
    if (!count)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        b->native[i] = wire[i].ip;
    if (find_stack(b, &n->native_stacks, b->native, count * sizeof *b->native, stack))
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        bool returns = !(b->native[i] & NATIVE_EXACT);
        uint64_t address = b->native[i] & NATIVE_ADDRESS;
        /*
         * Look up the byte before a return address, which is in the call; the address itself may be past the mapping.
         */
        struct code_mapping *m = code_mappings_find(&n->process->mappings, address - returns);
        struct trace_native_frame frame = {
            .offset = address,
            .flags = (returns ? TRACE_FRAME_RETURN : 0) | (b->native[i] & NATIVE_GUESSED ? TRACE_FRAME_GUESSED : 0) |
                     (b->native[i] & NATIVE_TRAMPOLINE ? TRACE_FRAME_TRAMPOLINE : 0),
        };
        if (m && code_mapping_is_generated(m)) {
            frame.module = perf_map_file_module(&n->perf_map, n->process, b->o.writer, b->epoch);
        } else if (m && m->module) {
            frame.module = trace_define_module(b, m->module);
            mark_framed(b, m->module);
            frame.offset = address - m->address + m->file_offset;
        }
        frames[count - 1 - i] = trace_writer_intern(b->o.writer, TRACE_native_frame, &frame);
    }
    *stack = trace_writer_stack(b->o.writer, frames, count);
    return keep_stack(&n->native_stacks, b->native, count * sizeof *b->native, *stack);
}

static bool frame_holds(const struct late_unwind_result *native, uint32_t i, uint64_t record)
{
    uint64_t cfa = i + 1 < native->count ? native->frames[i + 1].sp : native->last_cfa;

    return record >= native->frames[i].sp && record < cfa && cfa != WIRE_CFA_NONE;
}

/*
 * Returns the index (0 is the innermost) of the native frame whose part of the stack contains `record`; native->count
 * when there is no such frame. Callers go from the outermost run inwards, so the search starts at `near`, the previous
 * result, and mostly ends soon.
 */
static uint32_t frame_of_record(const struct late_unwind_result *native, uint32_t near, uint64_t record)
{
    for (uint32_t i = near + 1; i-- > 0;) {
        if (frame_holds(native, i, record))
            return i;
    }
    for (uint32_t i = near + 1; i < native->count; i++) {
        if (frame_holds(native, i, record))
            return i;
    }
    return native->count;
}

uint32_t stacks_join(struct trace_builder *b, const struct late_unwind_result *native, uint32_t run_count)
{
    uint32_t near = native->count - 1;

    for (uint32_t i = 0; i < run_count; i++) {
        uint64_t record = b->runs[2 * i], reason = b->runs[2 * i + 1], index = 0;
        uint32_t at = record ? frame_of_record(native, near, record) : native->count;
        if (at < native->count)
            index = native->count - (near = at);
        else if (!reason)
            reason = native->end == LOSS_complete ? LOSS_join_outside : LOSS_join_no_native;
        b->joined[2 * i] = index;
        b->joined[2 * i + 1] = reason;
    }
    struct trace_join join = {.kind = TRACE_JOIN_INDEX, .runs = {b->joined, run_count}};
    return trace_writer_intern(b->o.writer, TRACE_join, &join);
}

uint32_t stacks_join_innermost(struct trace_builder *b, const struct process *p, const struct late_unwind_result *native,
                               uint32_t run_count)
{
    uint64_t bias;
    const struct py_image *image = stacks_interpreter(b, p, &bias);
    uint32_t run = run_count;

    for (uint32_t i = 0; i < native->count && run; i++) {
        if (!py_image_in_eval(image, native_frame_code(&native->frames[i]) - bias))
            continue;
        run--;
        b->joined[2 * run] = native->count - i;
        b->joined[2 * run + 1] = 0;
    }
    while (run--) {
        b->joined[2 * run] = 0;
        b->joined[2 * run + 1] = native->end == LOSS_complete ? LOSS_join_mismatch : LOSS_join_no_native;
    }
    struct trace_join join = {.kind = TRACE_JOIN_INDEX, .runs = {b->joined, run_count}};
    return trace_writer_intern(b->o.writer, TRACE_join, &join);
}

/* ---- kernel ---- */

struct error *stacks_kernel(struct trace_builder *b, const uint64_t *addresses, uint32_t count, uint64_t time_ns,
                                  uint32_t *stack)
{
    uint32_t frames[WIRE_KERNEL_MAX];

    for (uint32_t i = 0; i < count; i++) {
        uint64_t *known = map_get(&b->kernel_frames, addresses[i]);
        uint32_t id = known ? (uint32_t)*known : 0;
        if (!known) {
            struct kernel_symbol symbol;
            struct trace_kernel_frame frame = {.address = addresses[i]};
            bool found;
            TRY(kallsyms_lookup(b->o.kallsyms, addresses[i], time_ns, &symbol, &found));
            if (found) {
                struct trace_kernel_symbol record = {
                    .address = symbol.address,
                    .name = trace_writer_cstr(b->o.writer, symbol.name),
                    .module = trace_writer_cstr(b->o.writer, symbol.module),
                };
                frame.symbol = trace_writer_intern(b->o.writer, TRACE_kernel_symbol, &record);
            }
            id = trace_writer_intern(b->o.writer, TRACE_kernel_frame, &frame);
            if (!map_set(&b->kernel_frames, addresses[i], id))
                return error_no_memory();
        }
        frames[count - 1 - i] = id;
    }
    *stack = trace_writer_stack(b->o.writer, frames, count);
    return NULL;
}
