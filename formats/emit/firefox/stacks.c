/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are numbered as they are first needed: a stack after its callers, as the model has them.
 *
 * Python's functions are "JavaScript" to the Profiler (isJS): its switch between all frames, JavaScript and native ones
 * then shows Python alone, or what is not Python.
 */
#include "formats/emit/firefox/stacks.h"

#include <inttypes.h>
#include <string.h>

#include "formats/emit/code_places.h"

enum { STACK_WORK = 20, FRAME_WORK = 300 }; /* see limits.h */
#define ADDRESS_MAX (UINT64_C(1) << 53)     /* beyond it JavaScript rounds numbers */

void firefox_stacks_init(struct firefox_stacks *s, const struct emit_model *model, const struct emit_options *options)
{
    *s = (struct firefox_stacks){.model = model, .options = options, .frame_of.limits = options->limits};
    s->strings.texts.arena.limits = options->limits;
    for (int i = 0; i < FIREFOX_CATEGORIES; i++)
        s->categories.below[i].arena.limits = options->limits;
    s->functions.arena.limits = s->symbols.arena.limits = s->sources.arena.limits = options->limits;
}

void firefox_stacks_deinit(struct firefox_stacks *s)
{
    firefox_strings_deinit(&s->strings);
    firefox_categories_deinit(&s->categories);
    names_deinit(&s->names);
    if (s->options)
        limits_give(s->options->limits, s->used.count * sizeof *s->used.data + s->stacks.count * sizeof *s->stacks.data +
                                            s->frames.count * sizeof *s->frames.data);
    VEC_DEINIT(&s->used);
    VEC_DEINIT(&s->stacks);
    VEC_DEINIT(&s->stack_of);
    VEC_DEINIT(&s->frames);
    map_deinit(&s->frame_of);
    intern_deinit(&s->functions);
    intern_deinit(&s->symbols);
    intern_deinit(&s->sources);
    VEC_DEINIT(&s->libraries);
    VEC_DEINIT(&s->library_of);
    VEC_DEINIT(&s->library_names);
}

bool firefox_stacks_use(struct firefox_stacks *s, uint32_t stack)
{
    if (stack == EMIT_NO_STACK) {
        s->has_empty = true;
        return true;
    }
    if (!VEC_EXTEND_COUNTED(s->options->limits, &s->used, (size_t)stack + 1))
        return false;
    s->used.data[stack] = true;
    return true;
}

/* ---- functions and binaries ---- */

/* The row of a frame's binary. Code made at run time has none: its addresses mean something in its process alone. */
static bool library_of(struct firefox_stacks *s, const struct emit_frame *f, uint32_t *library)
{
    *library = FIREFOX_NONE;
    if ((f->kind != EMIT_NATIVE && f->kind != EMIT_KERNEL) || f->mapping >= s->model->mapping_count ||
        name_is_generated(s->model->mappings[f->mapping].path))
        return true;
    if (!VEC_EXTEND_NONE(&s->library_of, s->model->mapping_count))
        return false;
    uint32_t *row = &s->library_of.data[f->mapping];
    if (*row == FIREFOX_NONE) {
        *row = (uint32_t)s->libraries.count;
        if (!VEC_PUSH(&s->libraries, f->mapping))
            return false;
    }
    *library = *row;
    return true;
}

/* FIREFOX_NONE: out of memory. */
static uint32_t function_of(struct firefox_stacks *s, const struct emit_frame *f, uint32_t library)
{
    struct firefox_function function = {.source = FIREFOX_NONE, .library = library};
    struct buf *text = &s->strings.scratch;

    buf_clear(text);
    if (f)
        names_put_function(&s->names, f, s->options->qualify, text);
    else
        buf_put_str(text, NAME_NO_FRAMES);
    function.name = firefox_string(&s->strings, text);
    if (function.name == FIREFOX_NONE)
        return FIREFOX_NONE;
    if (f && *f->file) {
        uint32_t file = firefox_plain_string(&s->strings, f->file);
        function.source = file == FIREFOX_NONE ? FIREFOX_NONE : intern_id(&s->sources, &file, sizeof file, NULL);
        if (function.source == FIREFOX_NONE)
            return FIREFOX_NONE;
    }
    function.line = f ? f->function_line : 0;
    function.is_python = f && f->kind == EMIT_PYTHON;
    return intern_id(&s->functions, &function, sizeof function, NULL);
}

/* The address of native code in its binary as it is linked, counted from the first byte that is mapped; -1: unknown. */
static int64_t address_of(const struct firefox_stacks *s, const struct emit_frame *f)
{
    if (f->kind != EMIT_NATIVE || f->mapping >= s->model->mapping_count)
        return -1;
    const struct emit_mapping *m = &s->model->mappings[f->mapping];
    uint64_t offset = f->address - f->return_address, base = UINT64_MAX;
    uint32_t segment = code_place_segment(m, offset);

    if (segment == CODE_PLACE_NO_SEGMENT)
        return -1;
    for (uint32_t i = 0; i < m->segment_count; i++)
        base = m->segments[i].vaddr < base ? m->segments[i].vaddr : base;
    uint64_t address = m->segments[segment].vaddr - base + (offset - m->segments[segment].file_offset);
    return address < ADDRESS_MAX ? (int64_t)address : -1;
}

/* ---- frames ---- */

/* The symbol that native code with an address is in. An inlined function has that of the code it is in. False: out of memory. */
static bool symbol_of(struct firefox_stacks *s, const struct emit_frame *f, const struct firefox_frame *outer, uint32_t library,
                      struct firefox_frame *frame)
{
    struct firefox_symbol symbol = {.library = library};
    uint64_t before = f->symbol_offset - (f->return_address && f->symbol_offset);

    frame->symbol = outer ? outer->symbol : FIREFOX_NONE;
    if (outer || f->inlined || frame->address < 0 || !*f->function || before > (uint64_t)frame->address)
        return true;
    symbol.address = (uint64_t)frame->address - before;
    symbol.name = firefox_plain_string(&s->strings, f->function);
    if (symbol.name == FIREFOX_NONE)
        return false;
    frame->symbol = intern_id(&s->symbols, &symbol, sizeof symbol, NULL);
    return frame->symbol != FIREFOX_NONE;
}

/*
 * The row of a frame of the model; `outer` is the row that it is inlined into, or FIREFOX_NONE. FIREFOX_NONE: out of
 * memory.
 */
static uint32_t frame_row(struct firefox_stacks *s, uint32_t model_frame, uint32_t outer)
{
    uint64_t key = (uint64_t)model_frame << 32 | (outer + 1);
    const uint64_t *known = map_get(&s->frame_of, key);
    const struct emit_frame *f = model_frame < s->model->frame_count ? &s->model->frames[model_frame] : NULL;
    const struct firefox_frame *around = outer == FIREFOX_NONE ? NULL : &s->frames.data[outer];
    struct firefox_frame frame = {.model_frame = model_frame, .symbol = FIREFOX_NONE, .address = -1};
    uint32_t library = FIREFOX_NONE;

    if (known)
        return (uint32_t)*known;
    if (!limits_work(s->options->limits, FRAME_WORK))
        return FIREFOX_NONE;
    if (f) {
        frame.address = address_of(s, f);
        frame.inline_depth = around ? around->inline_depth + 1 : 0;
        if (!library_of(s, f, &library) || !symbol_of(s, f, around, library, &frame))
            return FIREFOX_NONE;
    }
    frame.function = function_of(s, f, library);
    if (frame.function == FIREFOX_NONE || !firefox_subcategory_of(&s->categories, f, &frame.subcategory) ||
        !map_set(&s->frame_of, key, s->frames.count) || !limits_take(s->options->limits, sizeof frame) ||
        !VEC_PUSH(&s->frames, frame))
        return FIREFOX_NONE;
    return (uint32_t)s->frames.count - 1;
}

/* ---- stacks ---- */

static uint32_t add_stack(struct firefox_stacks *s, uint32_t parent, uint32_t model_frame, uint32_t outer)
{
    struct firefox_stack stack = {.parent = parent, .frame = frame_row(s, model_frame, outer)};

    if (stack.frame == FIREFOX_NONE || !limits_work(s->options->limits, STACK_WORK) ||
        !limits_take(s->options->limits, sizeof stack) || !VEC_PUSH(&s->stacks, stack))
        return FIREFOX_NONE;
    return (uint32_t)s->stacks.count - 1;
}

/* A stack of the model whose callers are numbered. */
static uint32_t number_stack(struct firefox_stacks *s, const struct emit_stack *stack)
{
    const struct emit_model *m = s->model;
    const struct emit_frame *f = &m->frames[stack->frame];
    uint32_t parent = FIREFOX_NONE, outer = FIREFOX_NONE;

    if (stack->parent != EMIT_NO_STACK) {
        parent = s->stack_of.data[stack->parent];
        if (f->inlined && code_place_is_same(f, &m->frames[m->stacks[stack->parent].frame]))
            outer = s->stacks.data[parent].frame;
    }
    return add_stack(s, parent, stack->frame, outer);
}

struct error *firefox_stacks_number(struct firefox_stacks *s)
{
    const struct emit_model *m = s->model;

    TRY(names_init(&s->names, m, s->options));
    if (!limits_work(s->options->limits, s->used.count) || !VEC_EXTEND_NONE(&s->stack_of, s->used.count))
        return error_no_memory();
    /* The model numbers a stack after its callers. */
    for (size_t i = s->used.count; i--;) {
        if (s->used.data[i] && m->stacks[i].parent != EMIT_NO_STACK)
            s->used.data[m->stacks[i].parent] = true;
    }
    for (size_t i = 0; i < s->used.count; i++) {
        if (!s->used.data[i])
            continue;
        s->stack_of.data[i] = number_stack(s, &m->stacks[i]);
        if (s->stack_of.data[i] == FIREFOX_NONE)
            return error_no_memory();
    }
    if (!s->has_empty)
        return NULL;
    s->empty_stack = add_stack(s, FIREFOX_NONE, m->frame_count, FIREFOX_NONE);
    return s->empty_stack == FIREFOX_NONE ? error_no_memory() : NULL;
}
