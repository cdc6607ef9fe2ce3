/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/frames.h"

#include <assert.h>
#include <string.h>

#include "formats/base/code_file.h"
#include "formats/base/vec.h"
#include "formats/cpython/code.h"
#include "formats/elf/segment.h"
#include "formats/emit/names.h"
#include "symbolize/stack/builtin_modules.h"
#include "symbolize/stack/fingerprint.h"
#include "symbolize/stack/interpreter_names.h"
#include "symbolize/trace/epoch_code.h"

enum { INLINE_MAX = MERGE_FUNCTIONS_MAX };

/* The key that makes native addresses equal across processes and epochs. */
struct native_key {
    uint64_t offset;
    uint32_t module, path, mapping;
    uint16_t return_address, trampoline; /* booleans, and no padding */
};

void frames_init(struct frames *f, struct model *model, struct modcache *modules)
{
    *f = (struct frames){.model = model, .modules = modules, .native_keys.arena.limits = model->limits};
}

void frames_deinit(struct frames *f)
{
    if (f->model)
        limits_give(f->model->limits, f->expansions.count * sizeof *f->expansions.data + f->expanded.count * sizeof *f->expanded.data);
    intern_deinit(&f->native_keys);
    VEC_DEINIT(&f->expansions);
    VEC_DEINIT(&f->expanded);
    frame_cache_deinit(&f->cache);
    buf_deinit(&f->text);
    VEC_DEINIT(&f->segments);
    VEC_DEINIT(&f->states);
    VEC_DEINIT(&f->module_states);
    VEC_DEINIT(&f->code_states);
}

void frames_clear(struct frames *f)
{
    f->states.count = f->module_states.count = f->code_states.count = 0;
    frame_cache_end_epoch(&f->cache);
}

static struct error *text_of(struct frames *f, const char *text, size_t len_bytes, uint32_t *out)
{
    *out = model_text(f->model, text, len_bytes);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

struct error *frames_string(struct frames *f, const struct epoch *e, uint32_t string, uint32_t *out)
{
    return text_of(f, epoch_text(e, string), e->strings.data[string].len_bytes, out);
}

static struct error *put_frame(struct frames *f, const struct model_frame *frame, uint32_t *out)
{
    *out = model_frame(f->model, frame);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

static struct error *code_text(struct frames *f, const struct py_string *s, uint32_t *out)
{
    buf_clear(&f->text);
    py_string_text(s, &f->text);
    if (f->text.bad)
        return error_no_memory();
    return text_of(f, (const char *)f->text.data, f->text.len_bytes, out);
}

/* The name of a file, which of a cell of a notebook is none: code_file.h. */
static struct error *code_file(struct frames *f, const struct py_string *s, uint32_t *out)
{
    uint32_t hash;

    buf_clear(&f->text);
    py_string_text(s, &f->text);
    if (!f->text.bad && code_file_is_of_ipykernel(buf_cstr(&f->text), &hash)) {
        buf_clear(&f->text);
        code_file_put_cell(hash, &f->text);
    }
    if (f->text.bad)
        return error_no_memory();
    return text_of(f, (const char *)f->text.data, f->text.len_bytes, out);
}

static uint32_t line_of(int64_t line)
{
    return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

/* The code of the model for one of the epoch. */
static struct error *find_code(struct frames *f, const struct epoch *e, uint32_t code, uint32_t *out)
{
    const struct trace_code *r = &e->codes.data[code];

    if (!VEC_EXTEND_NONE(&f->code_states, e->codes.count))
        return error_no_memory();
    uint32_t *state = &f->code_states.data[code];
    if (*state == MODEL_NONE) {
        if (!limits_work(f->model->limits, 500 + 10 * r->line_table.len_bytes))
            return error_no_memory();
        *state = model_code(f->model, &(struct emit_code){.fingerprint = fingerprint_of_code(r),
                                                          .table_bytes = (uint32_t)r->line_table.len_bytes,
                                                          .first_line = line_of(r->first_line),
                                                          .is_qualified = r->qualname_form});
    }
    *out = *state;
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

static struct error *make_python_frame(struct frames *f, const struct epoch *e, const struct epoch_frame *from,
                                  uint32_t interpreter, uint32_t *out)
{
    const struct py_code code = epoch_code(e, from->ref);
    struct model_frame frame = {.kind = EMIT_PYTHON, .module = interpreter, .mapping = EMIT_NO_MAPPING};

    if (!limits_work(f->model->limits, 2 * (code.name.len_bytes + code.qualname.len_bytes + code.filename.len_bytes) +
                                           10 * code.line_table.len_bytes))
        return error_no_memory();
    TRY(code_text(f, epoch_code_name(&code), &frame.function));
    if (code.filename.form)
        TRY(code_file(f, &code.filename, &frame.file));
    if (from->ref) {
        if (f->names_codes)
            TRY(find_code(f, e, from->ref, &frame.code));
        frame.function_line = line_of(code.first_line);
        if (frame.function_line) {
            int32_t last_line = py_code_last_line(&code);
            frame.function_end = last_line > 0 ? (uint32_t)last_line : 0;
        }
        struct py_position position = epoch_position(&code, from->at);
        if (position.has_line && position.line > 0)
            frame.line = (uint32_t)position.line;
        if (position.has_columns && position.column >= 0)
            frame.column = (uint32_t)position.column + 1;
    }
    return put_frame(f, &frame, out);
}

static struct error *python_frame(struct frames *f, const struct epoch *e, const struct epoch_frame *from,
                                  uint32_t interpreter, uint32_t *out)
{
    uint32_t *known = frame_cache_find(&f->cache, e, from->ref, from->at, interpreter);

    if (!known)
        return error_no_memory();
    if (*known == FRAME_CACHE_NONE)
        TRY(make_python_frame(f, e, from, interpreter, known));
    *out = *known;
    return NULL;
}

/* HOST has the build ID of the kernel itself, not of its modules. */
static struct error *kernel_mapping(struct frames *f, const struct epoch *e, uint32_t module, uint32_t path,
                                    uint32_t *out)
{
    struct model_mapping mapping = {.path = path};

    if (!module) {
        mapping.build_id = e->kernel_build_id;
        mapping.build_id_len = e->kernel_build_id_len;
    }
    *out = model_mapping(f->model, &mapping);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

static struct error *kernel_frame(struct frames *f, const struct epoch *e, const struct epoch_frame *from,
                                  uint32_t *out)
{
    const struct trace_kernel_symbol *symbol = &e->kernel_symbols.data[from->ref];
    struct model_frame frame = {.kind = EMIT_KERNEL, .address = (uint64_t)from->at};

    if (from->ref) {
        TRY(frames_string(f, e, symbol->name, &frame.function));
        frame.symbol_offset = frame.address - symbol->address;
    }
    if (symbol->module) {
        buf_clear(&f->text);
        buf_printf(&f->text, "[%s]", epoch_text(e, symbol->module));
        if (f->text.bad)
            return error_no_memory();
        TRY(text_of(f, (const char *)f->text.data, f->text.len_bytes, &frame.module));
    } else {
        TRY(text_of(f, "[kernel.kallsyms]", sizeof "[kernel.kallsyms]" - 1, &frame.module));
    }
    TRY(kernel_mapping(f, e, symbol->module, frame.module, &frame.mapping));
    return put_frame(f, &frame, out);
}

struct error *frames_mark(struct frames *f, const char *mark, uint32_t *out)
{
    struct model_frame frame = {.kind = EMIT_MARK, .mapping = EMIT_NO_MAPPING};

    TRY(text_of(f, mark, strlen(mark), &frame.function));
    return put_frame(f, &frame, out);
}

static bool segment_vaddr(const struct trace_list *segments, uint64_t offset, uint64_t *vaddr)
{
    const struct elf_segments rows = elf_segments_of(segments->values, segments->count);

    return elf_offset_to_vaddr(&rows, offset, vaddr);
}

static bool in_ranges(const struct trace_list *ranges, uint64_t vaddr)
{
    for (uint64_t i = 0; i < ranges->count; i++) {
        if (vaddr >= ranges->values[2 * i] && vaddr < ranges->values[2 * i + 1])
            return true;
    }
    return false;
}

/* Code made at run time: its offset is its address. */
static struct error *look_up_generated(struct frames *f, uint32_t module, uint64_t address, struct symbol_frame *out)
{
    struct perf_map *map;

    TRY(modcache_perf_map(f->modules, module, &map));
    const struct perf_map_line *line = map ? perf_map_find(map, address) : NULL;
    if (line) {
        out->function = line->name;
        out->offset = address - line->start;
    }
    return NULL;
}

/* What is known of the binary that a native address lies in, for its functions. */
struct place {
    const struct native_key *key;
    bool own, has_loop; /* there is nothing in it but the interpreter; it has an eval loop */
};

/* Adds the next function of an expansion, from the outermost. */
static struct error *add_function(struct frames *f, struct expansion *x, const struct place *at,
                                  const struct symbol_frame *s)
{
    struct model_frame frame = {.kind = EMIT_NATIVE,
                                .module = at->key->path,
                                .mapping = at->key->mapping,
                                .line = s->line,
                                .column = s->column,
                                .address = at->key->offset,
                                .inlined = s->inlined && x->count,
                                .return_address = at->key->return_address};
    const char *builtin = at->own || at->has_loop ? builtin_module_of(s->function, s->file) : NULL;
    bool machinery = name_is_call_machinery(s->function);
    uint64_t bit = UINT64_C(1) << x->count;
    uint32_t number;

    if (s->function[0] && !frame.inlined)
        frame.symbol_offset = s->offset + at->key->return_address;
    x->merge.outer_machinery += machinery && x->merge.outer_machinery == x->count;
    x->merge.inner_machinery = machinery ? x->merge.inner_machinery + 1 : 0;
    x->merge.clears_frame |= name_clears_frame(s->function);
    x->merge.kept |= builtin || (at->has_loop && !at->own && function_is_of_program(s->function, s->file)) ? bit : 0;
    x->merge.foreign |= s->function[0] && !name_is_of_api(s->function) ? bit : 0;
    x->merge.helpers |= (frame.inlined && name_is_of_header(s->function)) || name_is_call_helper(s->function) ? bit : 0;
    if (builtin && f->names_modules)
        TRY(text_of(f, builtin, strlen(builtin), &frame.builtin));
    TRY(text_of(f, s->function, TRACE_TEXT_LIMIT_BYTES, &frame.function));
    TRY(text_of(f, s->file, TRACE_TEXT_LIMIT_BYTES, &frame.file));
    TRY(put_frame(f, &frame, &number));
    x->count++;
    return VEC_PUSH(&f->expanded, ((struct expanded){.frame = number, .layer = s->layer})) ? NULL : error_no_memory();
}

/* Names a native address. A return address is looked up at the call before it. */
static struct error *expand(struct frames *f, const struct epoch *e, uint32_t module, const struct native_key *key)
{
    struct expansion x = {.first = (uint32_t)f->expanded.count, .module = key->module};
    struct symbol_frame found[INLINE_MAX] = {{.function = "", .file = ""}};
    struct place at = {.key = key};
    bool nameless = false; /* code made at run time that has no name but that of a trampoline */
    uint32_t count = 1;

    if (key->module != FRAMES_NO_MODULE) {
        struct symbols *symbols;
        uint64_t offset = key->offset - key->return_address, vaddr;
        TRY(modcache_symbols(f->modules, key->module, &symbols));
        const char *path = model_text_get(f->model, key->path);
        if (!binary_files_are_at(&modcache_get(f->modules, key->module)->files, path, name_path_len(path)))
            model_mapping_is_elsewhere(f->model, key->mapping);
        const struct trace_module *def = &e->modules.data[module].def;
        if (!limits_work(f->model->limits, 1000 + 2 * (def->segments.count + def->eval_ranges.count)))
            return error_no_memory();
        if (def->kind == TRACE_MODULE_ELF)
            x.merge.owner = def->flags & TRACE_MODULE_ALL_PYTHON ? MERGE_OWNER_INTERPRETER : path_owner(path);
        at.own = x.merge.owner == MERGE_OWNER_INTERPRETER;
        at.has_loop = def->eval_ranges.count;
        x.merge.serves_caller = path_is_linker(path);
        x.merge.switches_stacks = def->flags & TRACE_MODULE_SWITCHES_STACKS;
        if (segment_vaddr(&def->segments, offset, &vaddr))
            x.merge.eval_loop = in_ranges(&def->eval_ranges, vaddr);
        if (modcache_get(f->modules, key->module)->kind == TRACE_MODULE_ANONYMOUS) {
            TRY(look_up_generated(f, key->module, offset, &found[0]));
            x.merge.trampoline = !strncmp(found[0].function, "py::", 4);
            nameless = x.merge.trampoline || !*found[0].function;
        } else if (symbols_vaddr(symbols, offset, &vaddr) || segment_vaddr(&def->segments, offset, &vaddr)) {
            count = symbols_lookup(symbols, vaddr, found, INLINE_MAX);
        }
    }
    x.unresolved = !found[count - 1].function[0];
    x.merge.serves_caller |= name_serves_caller(found[count - 1].function);
    for (uint32_t i = count; i--;)
        TRY(add_function(f, &x, &at, &found[i]));
    x.merge.function_count = x.count;
    static_assert(FRAMES_NO_MODULE == MERGE_NO_MODULE, "one number for both");
    x.merge.module = nameless ? MERGE_NO_MODULE : x.module;
    x.merge.forwards = x.merge.trampoline || (nameless && key->trampoline);
    if (!limits_take(f->model->limits, sizeof x + x.count * sizeof(struct expanded)))
        return error_no_memory();
    return VEC_PUSH(&f->expansions, x) ? NULL : error_no_memory();
}

static struct error *module_mapping(struct frames *f, const struct trace_module *def, uint32_t path, uint32_t *out)
{
    struct model_mapping mapping = {.path = path};

    f->segments.count = 0;
    for (uint64_t i = 0; i < def->segments.count; i++) {
        const uint64_t *s = def->segments.values + 5 * i;
        if (!VEC_PUSH(&f->segments, ((struct emit_segment){s[0], s[1], s[2], s[3], (uint32_t)s[4]})))
            return error_no_memory();
    }
    mapping.segments = f->segments.data;
    mapping.segment_count = (uint32_t)f->segments.count;
    if (def->id_kind == TRACE_ID_BUILD_ID) {
        mapping.build_id = def->build_id.data;
        mapping.build_id_len = (uint32_t)def->build_id.len_bytes;
    }
    *out = model_mapping(f->model, &mapping);
    return *out == MODEL_NONE ? error_no_memory() : NULL;
}

struct error *frames_native(struct frames *f, const struct epoch *e, uint32_t module, uint64_t offset, uint32_t flags,
                            uint32_t *out)
{
    struct native_key key = {.offset = offset,
                             .module = FRAMES_NO_MODULE,
                             .mapping = EMIT_NO_MAPPING,
                             .return_address = (flags & TRACE_FRAME_RETURN) != 0,
                             .trampoline = (flags & TRACE_FRAME_TRAMPOLINE) != 0};
    bool added;

    if (module) {
        if (!VEC_EXTEND_NONE(&f->module_states, e->modules.count))
            return error_no_memory();
        struct module_state *state = &f->module_states.data[module];
        if (state->index == MODEL_NONE) {
            uint32_t index;
            TRY(modcache_index(f->modules, e, module, &index));
            TRY(frames_string(f, e, e->modules.data[module].def.path, &state->path));
            TRY(module_mapping(f, &e->modules.data[module].def, state->path, &state->mapping));
            state->index = index;
        }
        key.module = state->index;
        key.path = state->path;
        key.mapping = state->mapping;
    }
    *out = intern_id(&f->native_keys, &key, sizeof key, &added);
    if (*out == INTERN_NONE)
        return error_no_memory();
    return added ? expand(f, e, module, &key) : NULL;
}

struct error *frames_number(struct frames *f, const struct epoch *e, uint32_t id, uint32_t interpreter, uint32_t *out)
{
    const struct epoch_frame *from = &e->frames.data[id];
    bool python = from->type == TRACE_python_frame;

    if (!VEC_EXTEND_NONE(&f->states, e->frames.count))
        return error_no_memory();
    struct frame_state *state = &f->states.data[id];
    if (state->number != MODEL_NONE && (!python || state->interpreter == interpreter)) {
        *out = state->number;
        return NULL;
    }
    if (python)
        TRY(python_frame(f, e, from, interpreter, out));
    else if (from->type == TRACE_native_frame)
        TRY(frames_native(f, e, from->ref, (uint64_t)from->at, from->flags, out));
    else
        TRY(kernel_frame(f, e, from, out));
    *state = (struct frame_state){.number = *out, .interpreter = interpreter};
    return NULL;
}
