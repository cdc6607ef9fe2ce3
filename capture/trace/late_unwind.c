/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's unwinder over a copied stack, with pycap's own tables and mappings. */
#include "capture/trace/late_unwind.h"
#include "capture/host/target_memory.h"

#include <stdlib.h>
#include <string.h>

/* The unwinder reads a few bytes of code: to recognize the signal trampoline, and at return addresses. */
#define CODE_READ_MAX 16

struct late_unwind {
    struct tables *tables;
    struct native_unwind native;
    struct native_frame frames[WIRE_NATIVE_MAX];
    struct unwind_table view;
    /* of the sample that is being unwound */
    const struct process *process;
    const struct wire_sample *sample;
    const uint8_t *stack;
    uint32_t missed; /* why the stack bytes did not have what was read last: a loss reason; 0: they had it, or it is no stack */
    struct error *err;
};

/*
 * Copies from the stack bytes. Stores in u->missed why they do not have all of it, if it belongs to the stack at all; the
 * stack's upper end may not be known.
 */
static bool read_stack(struct late_unwind *u, void *out, uint32_t len_bytes, uint64_t address)
{
    const struct wire_sample *m = u->sample;
    uint64_t start = wire_stack_address(m), at = address - start;

    u->missed = 0;
    if (address < start || at >= (m->stack_size ? m->stack_size + wire_stack_below(m) : m->stack_len_bytes))
        return false;
    if (wire_stack_is_hole(m, address) || wire_stack_is_hole(m, address + len_bytes - 1)) {
        u->missed = LOSS_stack_fault;
        return false;
    }
    if (at >= m->stack_len_bytes || len_bytes > m->stack_len_bytes - at) {
        u->missed = LOSS_stack_cut;
        return false;
    }
    memcpy(out, u->stack + at, len_bytes);
    return true;
}

/* Code does not change, so it is read from the process, if that still runs. */
static int read_memory(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct late_unwind *u = ctx;

    if (read_stack(u, out, len_bytes, address))
        return 0;
    if (len_bytes > CODE_READ_MAX || !code_mappings_find(&u->process->mappings, address))
        return 1;
    return !target_read((pid_t)u->process->tgid, address, out, len_bytes);
}

static __u32 find(void *ctx, __u64 address, struct native_mapping *mapping, const struct unwind_table **table)
{
    struct late_unwind *u = ctx;
    const struct code_mapping *m = code_mappings_find(&u->process->mappings, address);
    uint64_t base;
    uint32_t reason;

    if (!u->tables) {
        *mapping = (struct native_mapping){.end = UINT64_MAX, .flags = NATIVE_NO_TABLE | NATIVE_BY_POINTERS};
        return 0;
    }
    if (!m)
        return LOSS_no_mapping;
    *mapping = (struct native_mapping){.start = m->address, .end = m->address + m->length};
    if (!m->module && code_mapping_is_anonymous(m)) {
        mapping->flags = NATIVE_NO_TABLE;
        return 0;
    }
    const struct module_asker asker = process_asker(u->process, NULL);
    u->err = tables_view(u->tables, &asker, m, u->sample->time_ns, &u->view, &base, &reason);
    if (u->err)
        return LOSS_table_missing;
    if (reason)
        return reason;
    mapping->base = base;
    mapping->row_count = u->view.row_count;
    mapping->index_first = u->view.index_first;
    mapping->index_count = u->view.index_count;
    mapping->wide_count = u->view.wide_count;
    *table = &u->view;
    return 0;
}

struct error *late_unwind_create(struct tables *tables, struct late_unwind **out)
{
    struct late_unwind *u = calloc(1, sizeof *u);

    if (!u)
        return error_no_memory();
    u->tables = tables;
    u->native.memory = (struct walk_memory){.read = read_memory, .ctx = u};
    u->native.host = (struct native_host){.find = find, .ctx = u};
    *out = u;
    return NULL;
}

void late_unwind_destroy(struct late_unwind *u)
{
    free(u);
}

struct error *late_unwind_run(struct late_unwind *u, const struct process *p, const struct wire_sample *sample,
                           const uint8_t *stack, struct late_unwind_result *out)
{
    u->process = p;
    u->sample = sample;
    u->stack = stack;
    u->missed = 0;
    u->err = NULL;
    for (int i = 0; i < WIRE_REGISTERS; i++)
        u->native.registers[i] = sample->registers[i];
    native_begin(&u->native);
    for (int i = 0; i < WIRE_NATIVE_MAX + 1; i++) {
        if (native_step(&u->native, u->frames))
            break;
    }
    *out = (struct late_unwind_result){
        .frames = u->frames,
        .count = u->native.count,
        /* The unwinder ends at the read that failed last. */
        .end = u->native.end == LOSS_native_fault && u->missed ? u->missed : u->native.end,
        .last_cfa = u->native.last_cfa,
    };
    return u->err;
}

static bool cut_untrusted(const struct process *p, const struct wire_sample *m, struct late_unwind_result *out)
{
    uint32_t trusted = process_trusted_frames(p, out->frames, out->count, m->taken_ns ? m->taken_ns : m->time_ns);

    if (trusted == out->count)
        return false;
    out->last_cfa = out->frames[trusted].sp;
    out->count = trusted;
    out->end = LOSS_no_mapping;
    return true;
}

struct error *late_unwind_complete(struct late_unwind *u, const struct process *p, const struct wire_sample *sample,
                                   const uint8_t *stack, struct late_unwind_result *out)
{
    bool was_cut = cut_untrusted(p, sample, out);

    if (!u || out->end == LOSS_complete)
        return NULL;
    /*
     * One that the sampler could not unwind brings its stack, or what could be read of that, which may be nothing; unless that
     * was left out. One that was cut here brings none, for the sampler saw no need: its frames are all there is.
     */
    bool brings = native_needs_help(out->end) && !was_cut && !(sample->flags & WIRE_CUT);
    return sample->stack_len_bytes || brings ? late_unwind_run(u, p, sample, stack, out) : NULL;
}
