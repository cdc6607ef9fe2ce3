/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects are shared by processes, and the same name may be another file in each: so each process has its own marks. */
#include "capture/trace/trace_sources.h"

#include "capture/trace/codes.h"
#include "formats/base/clock.h"
#include "formats/cpython/code.h"

/*
 * How long answers are waited for: between two epochs, while samples gather; at the end of a file, where all files are
 * looked at once more.
 */
#define EPOCH_NS (50 * NS_PER_MS)
#define ROTATED_NS (200 * NS_PER_MS)
#define END_NS (2 * NS_PER_S)

/* Marks the code object as met by the process in this epoch; *is_new: it was not. False: out of memory. */
static bool mark(struct trace_builder *b, struct process_note *n, uint32_t code, bool *is_new)
{
    struct met_codes *met = &n->met;
    uint64_t bit = UINT64_C(1) << code % 64;

    if (met->epoch != b->epoch) {
        VEC_DEINIT(&met->bits);
        met->epoch = b->epoch;
    }
    if (!VEC_EXTEND_ZERO(&met->bits, code / 64 + 1))
        return false;
    *is_new = !(met->bits.data[code / 64] & bit);
    met->bits.data[code / 64] |= bit;
    return true;
}

/* The file name of a code object; empty where it was cut. */
static struct error *name_of(struct trace_builder *b, uint32_t contents)
{
    struct trace_code code;

    codes_record(b->o.codes, contents, &code);
    const struct py_string name = {code.filename_form, code.filename_len, code.filename.data, code.filename.len_bytes};
    buf_clear(&b->source_name);
    if (py_string_complete(&name))
        py_string_text(&name, &b->source_name);
    return b->source_name.bad ? error_no_memory() : NULL;
}

struct error *trace_sources_met(struct trace_builder *b, struct process_note *n, uint32_t contents, uint32_t code)
{
    const struct process *p = n->process;
    bool is_new;

    if (!b->o.sources || !code)
        return NULL;
    if (!mark(b, n, code, &is_new))
        return error_no_memory();
    if (!is_new || !n->perf_map.known)
        return NULL;
    TRY(name_of(b, contents));
    const struct source_owner owner = {
        .asker = {(pid_t)p->tgid, p->life, n->perf_map.user, n->perf_map.root, p->owner, p->folder},
        .quotas = b->o.processes->quotas,
        .slot = p->slot,
        .time_ns = b->time_ns,
        .process = n->record.id,
    };
    return source_table_want(b->o.sources, &owner, buf_cstr(&b->source_name), b->source_name.len_bytes);
}

static struct error *end(struct trace_builder *b, bool again, uint64_t wait_ns)
{
    return b->o.sources ? source_table_end_epoch(b->o.sources, b->o.writer, again, now_ns() + wait_ns) : NULL;
}

struct error *trace_sources_end_epoch(struct trace_builder *b)
{
    return end(b, false, EPOCH_NS);
}

struct error *trace_builder_end_sources(struct trace_builder *b, bool rotated)
{
    return end(b, true, rotated ? ROTATED_NS : END_NS);
}

void trace_builder_serve_sources(struct trace_builder *b)
{
    if (b->o.sources)
        source_table_serve(b->o.sources, b->o.writer);
}
