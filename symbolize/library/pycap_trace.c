/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpycaptrace: the epoch of a trace in the structs of its public header.
 *
 * Records are loaded into an epoch as pysym loads them. What a sample refers to is made into a struct of the header when a
 * sample first needs it, and kept by the epoch's id; lists of frames are put together for each sample anew.
 */
#include "symbolize/library/pycap_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/arena.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch_code.h"
#include "symbolize/trace/file_limits.h"
#include "symbolize/trace/process_names.h"
#include "symbolize/trace/thread_names.h"

enum {
    DEPTH_MAX = 4096, /* frames of one list, as the format has it */
    STEP_WORK = 30,   /* for a frame of a stack, see limits.h */
    NAME_WORK = 200,  /* for the name of a process */
};

/* A process, and what it needs to be found and named again. */
struct library_process {
    struct pycap_process shown; /* the first member: a pointer to it is one to the entry */
    uint32_t id;
    uint64_t names_version;     /* of the trace, when the names were made */
};
/* Texts of a code object. */
struct library_code {
    const char *function, *file;
};

struct pycap_trace {
    struct trace_reader *reader;
    struct epoch epoch;
    struct process_names names;
    struct file_limits limits;
    uint64_t names_version;
    struct error *error;
    struct pycap_summary summary;

    /* Of the record that is gone through. */
    struct trace_sample_iter iter;
    uint32_t event;
    bool in_samples, period_changes;

    /* Of the epoch: by id, NULL until a sample needs it. */
    struct arena arena;
    struct intern texts;
    VEC(struct pycap_event *) events;
    VEC(struct library_process *) processes;
    VEC(struct pycap_thread *) threads;
    VEC(struct library_code *) codes;
    VEC(struct pycap_module *) modules;
    VEC(const void *) frames; /* of the kind that the epoch's frame has */
    VEC(struct pycap_label *) label_sets;

    /* Of the sample. */
    struct pycap_sample sample;
    VEC(uint32_t) ids;
    VEC(const struct pycap_python_frame *) python;
    VEC(const struct pycap_native_frame *) native;
    VEC(const struct pycap_kernel_frame *) kernel;
    struct buf text;
};

/* Makes room for an id; false: out of memory, or of what the file may cost. */
#define HAS_ROOM(t, v, id) VEC_EXTEND_COUNTED(&(t)->limits.limits, v, (size_t)(id) + 1)

/* ---- texts ---- */

/* The text in t->text, once for the epoch. NULL: no memory, as below. */
static const char *keep_text(struct pycap_trace *t)
{
    buf_put_u8(&t->text, 0);
    if (t->text.bad)
        return NULL;
    uint32_t id = intern_id(&t->texts, t->text.data, (uint32_t)t->text.len_bytes, NULL);
    return id == INTERN_NONE ? NULL : (const char *)intern_get(&t->texts, id)->data;
}

static const char *code_text(struct pycap_trace *t, const struct py_string *s)
{
    if (!limits_work(&t->limits.limits, 2 * s->len_bytes))
        return NULL;
    buf_clear(&t->text);
    py_string_text(s, &t->text);
    return keep_text(t);
}

/* ---- frames ---- */

static const struct library_code *find_code(struct pycap_trace *t, uint32_t id, const struct py_code *code)
{
    if (!HAS_ROOM(t, &t->codes, id))
        return NULL;
    struct library_code **entry = &t->codes.data[id];
    if (*entry)
        return *entry;
    struct library_code *made = arena_calloc(&t->arena, 1, sizeof *made);
    if (!made || !(made->function = code_text(t, epoch_code_name(code))))
        return NULL;
    made->file = code->filename.form ? code_text(t, &code->filename) : "";
    return made->file ? *entry = made : NULL;
}

static uint32_t positive(int64_t line)
{
    return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

static const void *make_python(struct pycap_trace *t, const struct epoch_frame *from)
{
    const struct py_code code = epoch_code(&t->epoch, from->ref);
    const struct library_code *texts = find_code(t, from->ref, &code);
    struct pycap_python_frame *f = texts ? arena_calloc(&t->arena, 1, sizeof *f) : NULL;

    if (!f || !limits_work(&t->limits.limits, 10 * code.line_table.len_bytes))
        return NULL;
    f->function = texts->function;
    f->file = texts->file;
    f->first_line = positive(code.first_line);
    f->python_version = code.python_version;
    f->is_entry = from->flags & TRACE_FRAME_RUN_END;
    f->is_generator = from->flags & TRACE_FRAME_GENERATOR;
    const struct py_position at = epoch_position(&code, from->at);
    if (from->ref && at.has_line)
        f->line = positive(at.line);
    if (f->line && at.has_columns)
        f->column = positive((int64_t)at.column + 1);
    return f;
}

static struct pycap_module *find_module(struct pycap_trace *t, uint32_t id)
{
    if (!HAS_ROOM(t, &t->modules, id))
        return NULL;
    struct pycap_module **entry = &t->modules.data[id];
    if (*entry || !(*entry = arena_calloc(&t->arena, 1, sizeof **entry)))
        return *entry;
    const struct trace_module *def = &t->epoch.modules.data[id].def;
    (*entry)->path = epoch_text(&t->epoch, def->path);
    if (def->id_kind == TRACE_ID_BUILD_ID && def->build_id.len_bytes) {
        (*entry)->build_id = def->build_id.data;
        (*entry)->build_id_len = def->build_id.len_bytes;
    }
    return *entry;
}

static const void *make_native(struct pycap_trace *t, const struct epoch_frame *from)
{
    struct pycap_native_frame *f = arena_calloc(&t->arena, 1, sizeof *f);

    if (!f || (from->ref && !(f->module = find_module(t, from->ref))))
        return NULL;
    f->offset = (uint64_t)from->at;
    f->is_return_address = from->flags & TRACE_FRAME_RETURN;
    return f;
}

static const void *make_kernel(struct pycap_trace *t, const struct epoch_frame *from)
{
    const struct trace_kernel_symbol *symbol = &t->epoch.kernel_symbols.data[from->ref];
    struct pycap_kernel_frame *f = arena_calloc(&t->arena, 1, sizeof *f);

    if (!f)
        return NULL;
    f->function = epoch_text(&t->epoch, symbol->name);
    f->module = epoch_text(&t->epoch, symbol->module);
    f->address = (uint64_t)from->at;
    return f;
}

static const void *find_frame(struct pycap_trace *t, uint32_t id)
{
    const struct epoch_frame *from = &t->epoch.frames.data[id];

    if (!HAS_ROOM(t, &t->frames, id))
        return NULL;
    const void **entry = &t->frames.data[id];
    if (!*entry)
        *entry = from->type == TRACE_python_frame   ? make_python(t, from)
                 : from->type == TRACE_native_frame ? make_native(t, from)
                                                    : make_kernel(t, from);
    return *entry;
}

/* Puts the ids of a stack's frames into t->ids, and sees that they are made. Frames of another kind than the list's are left out. */
static bool list_frames(struct pycap_trace *t, uint32_t stack, uint8_t type, uint32_t *count)
{
    uint32_t *ids = t->ids.data;
    const uint32_t depth = epoch_stack_frames(&t->epoch, stack, ids, DEPTH_MAX);

    *count = 0;
    for (uint32_t i = 0; i < depth; i++) {
        if (t->epoch.frames.data[ids[i]].type != type)
            continue;
        if (!find_frame(t, ids[i]))
            return false;
        ids[(*count)++] = ids[i];
    }
    return limits_work(&t->limits.limits, STEP_WORK * depth);
}

/* The frames that list_frames() listed, as pointers of their own kind. */
#define PUT_FRAMES(t, list, listed)                               \
    do {                                                          \
        for (uint32_t i_ = 0; i_ < (listed); i_++)                \
            (list)[i_] = (t)->frames.data[(t)->ids.data[i_]];     \
    } while (0)

static bool find_stacks(struct pycap_trace *t, uint32_t id)
{
    const struct trace_tuple *tuple = &t->epoch.tuples.data[id];
    struct pycap_sample *s = &t->sample;

    s->python_end = t->epoch.stacks.data[tuple->python_stack].depth > DEPTH_MAX ? LOSS_python_too_deep : tuple->python_end;
    s->native_end = t->epoch.stacks.data[tuple->native_stack].depth > DEPTH_MAX ? LOSS_native_too_deep : tuple->native_end;
    if (!list_frames(t, tuple->python_stack, TRACE_python_frame, &s->python_count))
        return false;
    PUT_FRAMES(t, t->python.data, s->python_count);
    if (!list_frames(t, tuple->native_stack, TRACE_native_frame, &s->native_count))
        return false;
    PUT_FRAMES(t, t->native.data, s->native_count);
    if (!list_frames(t, tuple->kernel_stack, TRACE_kernel_frame, &s->kernel_count))
        return false;
    PUT_FRAMES(t, t->kernel.data, s->kernel_count);
    s->python = t->python.data;
    s->native = t->native.data;
    s->kernel = t->kernel.data;
    return true;
}

/* ---- whose sample it is ---- */

static const struct pycap_event *find_event(struct pycap_trace *t, uint32_t id)
{
    if (!HAS_ROOM(t, &t->events, id))
        return NULL;
    struct pycap_event **entry = &t->events.data[id];
    if (*entry || !(*entry = arena_calloc(&t->arena, 1, sizeof **entry)))
        return *entry;
    const struct trace_event *def = &t->epoch.events.data[id].def;
    **entry = (struct pycap_event){.name = epoch_text(&t->epoch, def->name), .unit = epoch_text(&t->epoch, def->unit),
                                   .kind = def->kind, .bytes = epoch_event_bytes(&t->epoch, id)};
    return *entry;
}

static bool name_process(struct pycap_trace *t, struct library_process *entry)
{
    if (!limits_work(&t->limits.limits, NAME_WORK))
        return false;
    buf_clear(&t->text);
    process_name_put(&t->epoch, entry->id, &t->text);
    entry->shown.name = keep_text(t);
    entry->shown.comm = epoch_text(&t->epoch, t->epoch.processes.data[entry->id].comm);
    entry->names_version = t->names_version + t->epoch.renamed.count;
    return entry->shown.name;
}

static const struct pycap_process *find_process(struct pycap_trace *t, uint32_t id)
{
    if (!HAS_ROOM(t, &t->processes, id))
        return NULL;
    struct library_process **entry = &t->processes.data[id];
    if (!*entry) {
        const struct trace_process *def = &t->epoch.processes.data[id].def;
        struct library_process *made = arena_calloc(&t->arena, 1, sizeof *made);
        if (!made)
            return NULL;
        made->id = id;
        made->shown = (struct pycap_process){.pid = def->tgid,
                                             .parent_pid = def->parent_tgid,
                                             .exe = epoch_text(&t->epoch, def->exe),
                                             .cgroup = epoch_text(&t->epoch, def->cgroup),
                                             .start_boottime_ns = def->start_boottime_ns,
                                             .exec_generation = def->exec_generation,
                                             .python_version = def->python_version};
        *entry = made;
    }
    bool named = (*entry)->shown.name && (*entry)->names_version == t->names_version + t->epoch.renamed.count;
    return named || name_process(t, *entry) ? &(*entry)->shown : NULL;
}

static const struct pycap_thread *find_thread(struct pycap_trace *t, uint32_t id)
{
    const struct epoch_thread *from = &t->epoch.threads.data[id];

    if (!HAS_ROOM(t, &t->threads, id))
        return NULL;
    struct pycap_thread **entry = &t->threads.data[id];
    if (!*entry && !(*entry = arena_calloc(&t->arena, 1, sizeof **entry)))
        return NULL;
    (*entry)->tid = from->def.tid;
    (*entry)->name = thread_name_of(&t->epoch, id);
    (*entry)->process = find_process(t, from->def.process);
    return (*entry)->process ? *entry : NULL;
}

static bool find_labels(struct pycap_trace *t, uint32_t id)
{
    const struct trace_list *pairs = &t->epoch.label_sets.data[id].pairs;

    t->sample.label_count = id ? (uint32_t)pairs->count : 0;
    if (!t->sample.label_count)
        return true;
    if (!HAS_ROOM(t, &t->label_sets, id))
        return false;
    struct pycap_label **entry = &t->label_sets.data[id];
    if (!*entry) {
        if (!(*entry = arena_calloc(&t->arena, pairs->count, sizeof **entry)))
            return false;
        for (uint64_t i = 0; i < pairs->count; i++)
            (*entry)[i] = (struct pycap_label){.key = epoch_text(&t->epoch, (uint32_t)pairs->values[2 * i]),
                                               .value = epoch_text(&t->epoch, (uint32_t)pairs->values[2 * i + 1])};
    }
    t->sample.labels = *entry;
    return true;
}

static struct error *make_sample(struct pycap_trace *t, const struct trace_sample *raw)
{
    TRY(process_names_sample(&t->names, &t->epoch, raw, 1));
    t->sample = (struct pycap_sample){.time_ns = raw->time_ns, .weight = raw->value, .cpu = raw->cpu, .flags = raw->flags};
    t->sample.event = find_event(t, t->event);
    t->sample.thread = find_thread(t, raw->thread);
    bool ok = t->sample.event && t->sample.thread && find_stacks(t, raw->tuple) && find_labels(t, raw->label_set);
    return ok ? NULL : error_no_memory();
}

/* ---- records ---- */

static void forget_epoch(struct pycap_trace *t)
{
    struct limits *limits = &t->limits.limits;
    size_t rooms = t->events.count + t->processes.count + t->threads.count + t->codes.count + t->modules.count + t->frames.count +
                   t->label_sets.count;

    limits_give(limits, rooms * sizeof(void *)); /* what HAS_ROOM took */
    t->events.count = t->processes.count = t->threads.count = t->codes.count = 0;
    t->modules.count = t->frames.count = t->label_sets.count = 0;
    intern_clear(&t->texts);
    arena_deinit(&t->arena);
}

static void begin_samples(struct pycap_trace *t, const struct trace_record *rec)
{
    const struct trace_samples *samples = &rec->samples;

    trace_samples_begin_checked(&t->iter, rec, epoch_period_at(&t->epoch, samples->event, samples->time_ns));
    t->event = samples->event;
    t->period_changes = t->epoch.events.data[samples->event].changes.count != 0;
    t->in_samples = true;
}

static struct error *take_record(struct pycap_trace *t, const struct trace_record *rec)
{
    TRY(file_limits_record(&t->limits, rec, trace_reader_stats(t->reader)));
    if (rec->type == TRACE_epoch)
        forget_epoch(t);
    TRY(epoch_load(&t->epoch, rec));
    TRY(process_names_record(&t->names, &t->epoch, rec, 1));
    t->names_version += rec->type == TRACE_process_name;
    if (rec->type == TRACE_loss && loss_class_is_sample(trace_loss_class(rec->loss.reason)))
        t->summary.lost_count += rec->loss.count;
    if (rec->type == TRACE_samples)
        begin_samples(t, rec);
    return NULL;
}

static struct error *next(struct pycap_trace *t, bool *found)
{
    struct trace_record rec;
    struct trace_sample raw;

    for (;;) {
        *found = t->in_samples && trace_samples_next(&t->iter, &raw);
        if (*found)
            break;
        t->in_samples = false;
        TRY(trace_reader_next(t->reader, &rec, found));
        if (!*found)
            return NULL;
        TRY(take_record(t, &rec));
    }
    if (t->period_changes && !(raw.flags & TRACE_SAMPLE_VALUE))
        raw.value = epoch_period_at(&t->epoch, t->event, raw.time_ns);
    t->summary.sample_count++;
    return make_sample(t, &raw);
}

/* ---- the functions of the header ---- */

/* What a limit has caused looks as if memory had run out. */
static struct error *explain(const struct pycap_trace *t, struct error *err)
{
    if (!err || err->code != ERROR_NO_MEMORY || !t->limits.limits.exceeded)
        return err;
    error_destroy(err);
    return error_create(ERROR_LIMIT, "the trace takes more memory or work than one of its size may");
}

int pycap_trace_next(struct pycap_trace *t, const struct pycap_sample **sample)
{
    bool found = false;

    *sample = NULL;
    if (!t->error)
        t->error = explain(t, next(t, &found));
    if (t->error)
        return -1;
    if (found)
        *sample = &t->sample;
    return found;
}

const char *pycap_trace_error(const struct pycap_trace *t)
{
    return t->error ? error_text(t->error) : "";
}

const struct pycap_summary *pycap_trace_summary(struct pycap_trace *t)
{
    const struct trace_reader_stats *stats = trace_reader_stats(t->reader);
    uint32_t count;
    const struct trace_damage *damage = trace_reader_damage(t->reader, &count);

    t->summary.ended = stats->ended;
    t->summary.damaged_bytes = stats->damaged_bytes;
    t->summary.damage = count ? damage->reason : NULL;
    return &t->summary;
}

const struct pycap_module *pycap_trace_find(struct pycap_trace *t, const struct pycap_process *process, uint64_t time_ns,
                                            uint64_t address, uint64_t *offset)
{
    const struct library_process *entry = (const struct library_process *)process;
    struct address_space *space = &t->epoch.processes.data[entry->id].mappings;
    const struct mapping *at = address_space_move(space, time_ns) ? address_space_find(space, address) : NULL;

    if (!at || !at->module)
        return NULL;
    *offset = at->file_offset + (address - at->address);
    return find_module(t, at->module);
}

const char *pycap_loss_meaning(uint32_t reason)
{
    return trace_loss_meaning(reason);
}

void pycap_trace_close(struct pycap_trace *t)
{
    if (!t)
        return;
    trace_reader_close(t->reader);
    forget_epoch(t);
    intern_deinit(&t->texts);
    process_names_deinit(&t->names);
    epoch_deinit(&t->epoch);
    VEC_DEINIT(&t->events);
    VEC_DEINIT(&t->processes);
    VEC_DEINIT(&t->threads);
    VEC_DEINIT(&t->codes);
    VEC_DEINIT(&t->modules);
    VEC_DEINIT(&t->frames);
    VEC_DEINIT(&t->label_sets);
    VEC_DEINIT(&t->ids);
    VEC_DEINIT(&t->python);
    VEC_DEINIT(&t->native);
    VEC_DEINIT(&t->kernel);
    buf_deinit(&t->text);
    error_destroy(t->error);
    free(t);
}

static struct error *open_trace(const char *path, struct pycap_trace **out)
{
    struct pycap_trace *t = calloc(1, sizeof *t);

    *out = t;
    if (!t || !VEC_RESERVE(&t->ids, DEPTH_MAX) || !VEC_RESERVE(&t->python, DEPTH_MAX) || !VEC_RESERVE(&t->native, DEPTH_MAX) ||
        !VEC_RESERVE(&t->kernel, DEPTH_MAX))
        return error_no_memory();
    file_limits_init(&t->limits, 0);
    process_names_init(&t->names, &t->limits.limits);
    t->arena.limits = t->texts.arena.limits = t->epoch.limits = &t->limits.limits;
    t->epoch.left_out = EPOCH_SNAPSHOT_CONTENTS;
    return trace_reader_open(path, &t->reader);
}

struct pycap_trace *pycap_trace_open(const char *path, char *message, size_t message_size)
{
    struct pycap_trace *t;
    struct error *err = open_trace(path, &t);

    if (!err)
        return t;
    if (message_size)
        snprintf(message, message_size, "%s", error_text(err));
    error_destroy(err);
    pycap_trace_close(t);
    return NULL;
}
