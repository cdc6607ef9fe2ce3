/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/check/unwind_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/printable.h"
#include "symbolize/check/dwfl_unwind.h"
#include "formats/base/vec.h"
#include "symbolize/stack/snapshot.h"
#include "symbolize/binary/symbols.h"
#include "symbolize/check/table_unwind.h"

enum { SPACES_MAX = 16, NO_ROW = UINT32_MAX, NS_PER_US = 1000, US_PER_S = 1000000 };

/* A frame of either stack, as the trace describes frames. */
struct stack_place {
    uint32_t module; /* the epoch's id; 0: `offset` is an address */
    uint64_t offset, address; /* address 0: unknown */
    bool return_address, guessed;
};
struct stack_places {
    VEC(struct stack_place) list; /* innermost first */
    uint32_t end;
    const char *trouble;
};

struct tuple_verdict {
    bool known, compared, kernel_reached, has_join;
    bool reached[CHECK_WITNESSES];
    uint8_t verdicts[CHECK_WITNESSES];
    uint32_t rows[CHECK_WITNESSES];
    uint32_t kernel_end, join_reason; /* join_reason 0: complete */
};

struct process_space {
    struct dwfl_space *space;
    uint64_t version; /* of the mappings */
    uint64_t used;
};

struct unwind_check {
    struct check_report report;
    struct modcache *modules;
    struct snapshots snapshots;
    struct table_unwinder *tables;
    struct witness_stack stack;
    struct stack_places kernel, witness;
    VEC(uint32_t) ids;
    VEC(struct process_space) spaces; /* by the epoch's process */
    uint32_t space_count;
    uint64_t clock;
    VEC(struct tuple_verdict) verdicts; /* by the epoch's tuple */
    struct intern row_keys, texts;      /* a row has the number of its key */
    struct buf text;
};

const char *unwind_check_witness_name(enum check_witness witness)
{
    static const char *const names[] = {"libunwind", "libdwfl", "host"};

    return names[witness];
}

struct error *unwind_check_create(struct modcache *modules, struct unwind_check **out)
{
    struct unwind_check *c = calloc(1, sizeof *c);
    struct error *err;

    if (!c)
        return error_no_memory();
    c->modules = modules;
    err = table_unwinder_create(modules, &c->tables);
    if (err) {
        free(c);
        return err;
    }
    *out = c;
    return NULL;
}

static void drop_space(struct unwind_check *c, struct process_space *p)
{
    if (!p->space)
        return;
    dwfl_space_destroy(p->space);
    p->space = NULL;
    c->space_count--;
}

void unwind_check_end_epoch(struct unwind_check *c)
{
    for (size_t i = 0; i < c->spaces.count; i++)
        drop_space(c, &c->spaces.data[i]);
    c->spaces.count = c->verdicts.count = 0;
    snapshots_clear(&c->snapshots);
}

void unwind_check_destroy(struct unwind_check *c)
{
    if (!c)
        return;
    unwind_check_end_epoch(c);
    snapshots_deinit(&c->snapshots);
    table_unwinder_destroy(c->tables);
    VEC_DEINIT(&c->kernel.list);
    VEC_DEINIT(&c->witness.list);
    VEC_DEINIT(&c->ids);
    VEC_DEINIT(&c->spaces);
    VEC_DEINIT(&c->verdicts);
    VEC_DEINIT(&c->report.rows);
    intern_deinit(&c->row_keys);
    intern_deinit(&c->texts);
    buf_deinit(&c->text);
    free(c);
}

const struct check_report *unwind_check_report(const struct unwind_check *c)
{
    return &c->report;
}

bool unwind_check_agrees(const struct unwind_check *c)
{
    for (int w = 0; w < CHECK_WITNESSES; w++) {
        if (c->report.verdicts[w][CHECK_DIFFERS])
            return false;
    }
    return true;
}

/* ---- the stacks ---- */

static const struct unwind_mapping *mappings_of(const struct unwind_check *c, const struct trace_snapshot *shot,
                                                uint32_t *count)
{
    const struct snapshot_process *p = &c->snapshots.processes.data[shot->process];

    *count = (uint32_t)p->mappings.count;
    return p->mappings.data;
}

static struct error *put_kernel(struct unwind_check *c, const struct epoch *e, const struct trace_tuple *t)
{
    uint32_t depth = e->stacks.data[t->native_stack].depth;

    c->kernel.list.count = 0;
    c->kernel.end = t->native_end;
    if (!VEC_RESERVE(&c->ids, depth) || !VEC_RESERVE(&c->kernel.list, depth))
        return error_no_memory();
    uint32_t count = epoch_stack_frames(e, t->native_stack, c->ids.data, depth);
    for (uint32_t i = count; i--;) {
        const struct epoch_frame *f = &e->frames.data[c->ids.data[i]];
        struct stack_place place = {.module = f->ref, .offset = (uint64_t)f->at,
                              .return_address = f->flags & TRACE_FRAME_RETURN,
                              .guessed = f->flags & TRACE_FRAME_GUESSED};
        if (f->type != TRACE_native_frame)
            continue;
        if (!place.module)
            place.address = place.offset;
        if (!VEC_PUSH(&c->kernel.list, place))
            return error_no_memory();
    }
    return NULL;
}

static struct error *put_witness(struct unwind_check *c, const struct trace_snapshot *shot)
{
    uint32_t mapping_count;
    const struct unwind_mapping *mappings = mappings_of(c, shot, &mapping_count);

    c->witness.end = c->stack.end;
    c->witness.trouble = c->stack.trouble;
    if (!VEC_RESERVE(&c->witness.list, c->stack.count))
        return error_no_memory();
    c->witness.list.count = c->stack.count;
    for (uint32_t i = 0; i < c->stack.count; i++) {
        const struct witness_frame *f = &c->stack.frames[i];
        struct stack_place *place = &c->witness.list.data[i];
        const struct unwind_mapping *m = witness_mapping(mappings, mapping_count, f->address - f->return_address);
        *place = (struct stack_place){.offset = f->address, .address = f->address, .return_address = f->return_address};
        if (m && m->module_id) {
            place->module = m->module_id;
            place->offset = f->address - m->address + m->file_offset;
        }
    }
    return NULL;
}

static struct error *space_of(struct unwind_check *c, const struct epoch *e, const struct trace_snapshot *shot,
                              struct dwfl_space **out)
{
    uint64_t version = c->snapshots.processes.data[shot->process].version;
    uint32_t count;
    const struct unwind_mapping *mappings = mappings_of(c, shot, &count);

    if (!VEC_EXTEND_ZERO(&c->spaces, shot->process + 1))
        return error_no_memory();
    struct process_space *p = &c->spaces.data[shot->process], *oldest = NULL;
    if (p->space && p->version != version)
        drop_space(c, p);
    if (!p->space) {
        for (size_t i = 0; c->space_count >= SPACES_MAX && i < c->spaces.count; i++) {
            struct process_space *other = &c->spaces.data[i];
            if (other->space && (!oldest || other->used < oldest->used))
                oldest = other;
        }
        if (oldest)
            drop_space(c, oldest);
        TRY(dwfl_space_create(c->modules, e, mappings, count, &p->space));
        p->version = version;
        c->space_count++;
    }
    p->used = ++c->clock;
    *out = p->space;
    return NULL;
}

/* Unwinds into c->witness. Call for libunwind first: that moves the mappings to the sample's time. */
static struct error *ask(struct unwind_check *c, struct epoch *e, const struct trace_tuple *t, uint64_t time_ns,
                         enum check_witness witness)
{
    const struct trace_snapshot *shot = &e->snapshots.data[t->snapshot];
    struct dwfl_space *space = NULL;
    uint32_t count;

    c->stack.trouble = NULL;
    if (witness == CHECK_LIBUNWIND) {
        TRY(snapshots_unwind(&c->snapshots, c->modules, e, t->snapshot, time_ns, &c->stack.end));
        c->stack.count = (uint32_t)c->snapshots.frames.count;
        for (uint32_t i = 0; i < c->stack.count; i++) {
            const struct unwind_frame *f = &c->snapshots.frames.data[i];
            c->stack.frames[i] = (struct witness_frame){f->ip, f->return_address};
        }
    } else if (witness == CHECK_LIBDWFL) {
        TRY(space_of(c, e, shot, &space));
        dwfl_space_unwind(space, shot, &c->stack);
    } else {
        const struct unwind_mapping *mappings = mappings_of(c, shot, &count);
        TRY(table_unwinder_run(c->tables, e, shot, mappings, count, &c->stack));
    }
    return put_witness(c, shot);
}

/* ---- comparing ---- */

static struct error *same_place(struct unwind_check *c, const struct epoch *e, const struct stack_place *a,
                                const struct stack_place *b, bool *same)
{
    uint32_t x, y;

    *same = a->return_address == b->return_address;
    if (!*same)
        return NULL;
    if (!a->module || !b->module) {
        *same = a->address && a->address == b->address;
        return NULL;
    }
    *same = a->offset == b->offset;
    if (!*same || a->module == b->module)
        return NULL;
    TRY(modcache_index(c->modules, e, a->module, &x));
    TRY(modcache_index(c->modules, e, b->module, &y));
    *same = x == y;
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static const char *module_name(const struct epoch *e, const struct stack_place *place)
{
    return place->module ? base_name(epoch_text(e, e->modules.data[place->module].def.path)) : "[no module]";
}

/* Appends "module+0x123 (function+0x10)" to c->text. */
static struct error *describe(struct unwind_check *c, const struct epoch *e, const struct stack_place *place)
{
    struct symbol_frame found[1];
    struct symbols *symbols;
    uint32_t index;
    uint64_t vaddr;

    if (!place->module) {
        buf_printf(&c->text, "%#" PRIx64, place->offset);
        return NULL;
    }
    buf_printf(&c->text, "%s+%#" PRIx64, module_name(e, place), place->offset);
    TRY(modcache_index(c->modules, e, place->module, &index));
    TRY(modcache_symbols(c->modules, index, &symbols));
    if (symbols_vaddr(symbols, place->offset - place->return_address, &vaddr) && symbols_lookup(symbols, vaddr, found, 1) &&
        found[0].function[0])
        buf_printf(&c->text, " (%s+%#" PRIx64 ")", found[0].function, found[0].offset + place->return_address);
    if (!place->return_address)
        buf_printf(&c->text, " exact");
    return NULL;
}

static const char *loss_text(uint32_t reason)
{
    const char *name = reason < LOSS_LIMIT ? trace_loss_name(reason) : NULL;

    return name ? name : "a reason unknown to this version";
}

/* The sampler learns of mappings and tables a little later than the trace says. */
static bool is_pending(const struct stack_places *kernel)
{
    const struct stack_place *last = kernel->list.count ? &kernel->list.data[kernel->list.count - 1] : NULL;

    return trace_loss_class(kernel->end) == LOSS_CLASS_pending && last && last->module;
}

/* Writes to c->text why the stacks differ after `shared` frames, or why both stop before the thread's start. */
static enum check_verdict judge(struct unwind_check *c, uint32_t shared)
{
    const struct stack_places *k = &c->kernel, *w = &c->witness;
    bool kernel_ends = shared == k->list.count, witness_ends = shared == w->list.count;
    bool by_pointer = !kernel_ends && k->list.data[shared].guessed;

    buf_clear(&c->text);
    if (kernel_ends && is_pending(k) && (!witness_ends || w->end == LOSS_complete)) {
        buf_printf(&c->text, "%s at the sample", loss_text(k->end));
        return CHECK_PENDING;
    }
    if (kernel_ends && witness_ends) {
        if (k->end != LOSS_complete)
            buf_printf(&c->text, "identical, but stops: %s", loss_text(k->end));
        return CHECK_SAME;
    }
    if (witness_ends && w->end == LOSS_native_fault) {
        buf_printf(&c->text, "the snapshot holds no more");
        return CHECK_CUT;
    }
    if (!kernel_ends && !witness_ends)
        buf_printf(&c->text, by_pointer ? "differs, recorded by frame pointer" : "differs");
    else if (kernel_ends && k->end == LOSS_complete)
        buf_printf(&c->text, "recorded is at the thread's start, witness goes on");
    else if (kernel_ends)
        buf_printf(&c->text, "recorded stops: %s", loss_text(k->end));
    else if (w->end == LOSS_complete)
        buf_printf(&c->text, "witness is at the thread's start, recorded goes on");
    else
        buf_printf(&c->text, "witness stops: %s%s", w->end ? loss_text(w->end) : w->trouble,
                   by_pointer ? ", recorded by frame pointer" : "");
    return CHECK_DIFFERS;
}

static struct error *describe_side(struct unwind_check *c, const struct epoch *e, const char *name,
                                   const struct stack_places *side, uint32_t at)
{
    buf_printf(&c->text, ", %s ", name);
    if (at < side->list.count)
        return describe(c, e, &side->list.data[at]);
    buf_printf(&c->text, "ends (%s)", side->end ? loss_text(side->end) : side->trouble);
    return NULL;
}

static struct error *put_example(struct unwind_check *c, const struct epoch *e, enum check_witness witness,
                                 const struct trace_tuple *t, uint64_t since_ns, uint32_t shared, const char **out)
{
    uint32_t process = e->snapshots.data[t->snapshot].process;

    buf_clear(&c->text);
    buf_printf(&c->text, "at %" PRIu64 ".%06" PRIu64 " s pid %u frame %u: behind ", since_ns / NS_PER_US / US_PER_S,
               since_ns / NS_PER_US % US_PER_S, e->processes.data[process].def.tgid, shared);
    if (shared)
        TRY(describe(c, e, &c->kernel.list.data[shared - 1]));
    else
        buf_printf(&c->text, "nothing");
    TRY(describe_side(c, e, "recorded", &c->kernel, shared));
    TRY(describe_side(c, e, unwind_check_witness_name(witness), &c->witness, shared));
    *out = printable_keep(&c->texts, buf_cstr(&c->text));
    return *out ? NULL : error_no_memory();
}

/* The row that c->text names the cause of. */
static struct error *find_row(struct unwind_check *c, enum check_witness witness, enum check_verdict verdict,
                              const char *module, uint32_t *out)
{
    struct check_row row = {.first = witness, .verdict = verdict, .module = printable_keep(&c->texts, module),
                            .cause = printable_keep(&c->texts, buf_cstr(&c->text))};
    struct buf key = {0};
    bool added;

    if (!row.module || !row.cause || c->text.bad)
        return error_no_memory();
    buf_put_str(&key, row.module);
    buf_put_u8(&key, 0);
    buf_put_str(&key, row.cause);
    *out = key.bad ? INTERN_NONE : intern_id(&c->row_keys, key.data, (uint32_t)key.len_bytes, &added);
    buf_deinit(&key);
    if (*out == INTERN_NONE)
        return error_no_memory();
    return !added || VEC_PUSH(&c->report.rows, row) ? NULL : error_no_memory();
}

static struct error *compare(struct unwind_check *c, const struct epoch *e, const struct trace_tuple *t,
                             uint64_t since_ns, enum check_witness witness, struct tuple_verdict *v)
{
    const struct stack_places *k = &c->kernel, *w = &c->witness;
    uint32_t shared = 0;
    bool same = true;

    while (shared < k->list.count && shared < w->list.count) {
        TRY(same_place(c, e, &k->list.data[shared], &w->list.data[shared], &same));
        if (!same)
            break;
        shared++;
    }
    enum check_verdict verdict = judge(c, shared);
    v->verdicts[witness] = (uint8_t)verdict;
    v->rows[witness] = NO_ROW;
    if (!c->text.len_bytes)
        return NULL;
    const struct stack_place *last = shared ? &k->list.data[shared - 1] : &k->list.data[0];
    TRY(find_row(c, witness, verdict, k->list.count ? module_name(e, last) : "[no frames]", &v->rows[witness]));
    struct check_row *row = &c->report.rows.data[v->rows[witness]];
    for (int i = 0; row->first == witness && i < CHECK_EXAMPLES_MAX; i++) {
        if (!row->examples[i])
            return put_example(c, e, witness, t, since_ns, shared, &row->examples[i]);
    }
    return NULL;
}

static void judge_join(const struct epoch *e, const struct trace_tuple *t, struct tuple_verdict *v)
{
    const struct epoch_join *join = &e->joins.data[t->join];

    v->has_join = join->run_count != 0;
    if (v->has_join && join->kind != TRACE_JOIN_INDEX)
        v->join_reason = LOSS_join_mismatch;
    for (uint32_t i = 0; i < join->run_count && !v->join_reason; i++) {
        if (!join->runs[2 * i]) {
            uint64_t reason = join->runs[2 * i + 1];
            v->join_reason = reason && reason < LOSS_LIMIT ? (uint32_t)reason : CHECK_UNKNOWN_LOSS;
        }
    }
}

static struct error *check_tuple(struct unwind_check *c, struct epoch *e, const struct trace_tuple *t,
                                 const struct trace_sample *sample, uint64_t since_ns, struct tuple_verdict *v)
{
    const struct machine *machine = epoch_machine(e);

    v->known = true;
    v->compared = t->native_stack && t->snapshot && machine &&
                  e->snapshots.data[t->snapshot].registers.count == machine->register_count;
    if (!v->compared)
        return NULL;
    TRY(put_kernel(c, e, t));
    v->kernel_end = t->native_end < CHECK_UNKNOWN_LOSS ? t->native_end : CHECK_UNKNOWN_LOSS;
    v->kernel_reached = t->native_end == LOSS_complete;
    judge_join(e, t, v);
    for (int witness = 0; witness < CHECK_WITNESSES; witness++) {
        TRY(ask(c, e, t, sample->time_ns, witness));
        v->reached[witness] = c->witness.end == LOSS_complete;
        TRY(compare(c, e, t, since_ns, witness, v));
    }
    return NULL;
}

struct error *unwind_check_sample(struct unwind_check *c, struct epoch *e, const struct trace_sample *sample,
                                  uint64_t since_ns)
{
    struct check_report *r = &c->report;

    if (!VEC_EXTEND_ZERO(&c->verdicts, e->tuples.count))
        return error_no_memory();
    struct tuple_verdict *v = &c->verdicts.data[sample->tuple];
    if (!v->known)
        TRY(check_tuple(c, e, &e->tuples.data[sample->tuple], sample, since_ns, v));
    r->sample_count++;
    if (!v->compared)
        return NULL;
    r->compared_count++;
    r->kernel_reached += v->kernel_reached;
    r->kernel_ends[v->kernel_end]++;
    r->join_count += v->has_join;
    r->join_complete_count += v->has_join && !v->join_reason;
    if (v->join_reason)
        r->join_reasons[v->join_reason]++;
    for (int witness = 0; witness < CHECK_WITNESSES; witness++) {
        r->reached[witness] += v->reached[witness];
        r->verdicts[witness][v->verdicts[witness]]++;
        if (v->rows[witness] != NO_ROW)
            r->rows.data[v->rows[witness]].sample_counts[witness]++;
    }
    return NULL;
}
