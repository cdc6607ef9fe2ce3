/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives out slots, and makes symbols, lines and machine code of them at the end.
 *
 * A function's slots lie in blocks. The first slot of its first block stands for no line. A function of Python whose last
 * line is known has a block with a slot for each line, in order; other lines get the slots of further blocks as they come.
 * Nothing is given back or moved, so an address is final.
 */
#include "formats/emit/perf_data/code_image.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/intern.h"
#include "formats/base/sort.h"
#include "formats/base/vec.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/code_elf.h"

enum {
    SLOT_BYTES = 2,
    BLOCK_ALIGN = 16,
    /* Slots for all lines of a function. What a table of lines claims costs nothing, so there are limits. */
    FUNCTION_LINES_MAX = 1 << 16,
    RESERVED_LINES_MAX = 1 << 24, /* of all functions */
    /* Slots for lines as they come, in the first block; each further one has four times as many. */
    PYTHON_LINES_MIN = 15,
    NATIVE_LINES_MIN = 127,
    BLOCK_SLOTS_MAX = 4096,
};
#define NO_BLOCK UINT32_MAX

struct block {
    uint32_t function;
    uint32_t start; /* address */
    uint32_t slot_count;
    uint32_t used;       /* of a block whose slots are given out in order: how many were */
    bool for_each_line;  /* a block whose slots are for consecutive lines, from the second on */
    uint32_t first_line; /* that of the second slot */
};

struct function {
    uint32_t frame; /* its first one, see frame_of() */
    uint32_t file;  /* of that frame, a text */
    uint32_t first, last; /* blocks */
};

/* A line of a function, by address. The first slot of a function has line 0. */
struct slot {
    uint32_t address, file, line;
};

/* Keys have no padding. */
struct function_key {
    uint32_t kind, name, place, line; /* place: the source file in Python, else the binary; texts */
};
struct slot_key {
    uint32_t function, file, line;
};

struct code_image {
    const struct emit_model *model;
    const struct emit_options *options;
    struct intern texts; /* with their NUL */
    struct intern function_keys, slot_keys;
    VEC(struct function) functions; /* by number of the key */
    VEC(struct slot) slots;         /* by number of the key */
    VEC(struct block) blocks;       /* by ascending address */
    VEC(uint32_t) addresses;        /* by frame; 0: not known yet */
    uint32_t no_frames, truncated;  /* the addresses of the frames that are in no model; 0 likewise */
    uint32_t end;                   /* of the last block */
    uint32_t reserved_lines;
    struct build *build;            /* NULL before the end */
};

struct error *code_image_create(const struct emit_model *model, const struct emit_options *options,
                                struct code_image **out)
{
    struct code_image *image = calloc(1, sizeof *image);

    if (!image)
        return error_no_memory();
    *image = (struct code_image){.model = model,
                                 .options = options,
                                 .texts.arena.limits = options->limits,
                                 .function_keys.arena.limits = options->limits,
                                 .slot_keys.arena.limits = options->limits,
                                 .end = CODE_ELF_TEXT_START};
    *out = image;
    return NULL;
}

/* Memory beside the tables of keys. */
static uint64_t counted_bytes(const struct code_image *image)
{
    return image->functions.count * sizeof *image->functions.data + image->slots.count * sizeof *image->slots.data +
           image->blocks.count * sizeof *image->blocks.data + image->addresses.count * sizeof *image->addresses.data;
}

bool code_image_is_used(const struct code_image *image)
{
    return image->blocks.count;
}

/* ---- slots ---- */

static struct error *add_block(struct code_image *image, struct block block)
{
    struct function *f = &image->functions.data[block.function];
    uint64_t start = ((uint64_t)image->end + BLOCK_ALIGN - 1) & ~(uint64_t)(BLOCK_ALIGN - 1);
    uint64_t end = start + SLOT_BYTES * (uint64_t)block.slot_count;

    if (end > CODE_IMAGE_MAX_BYTES)
        return error_create(ERROR_LIMIT, "there are more lines of code than perf-data can name");
    block.start = (uint32_t)start;
    if (!limits_take(image->options->limits, sizeof block + end - start) || !VEC_PUSH(&image->blocks, block))
        return error_no_memory();
    limits_give(image->options->limits, end - start); /* needed at the end only: so it fails early */
    f->last = (uint32_t)image->blocks.count - 1;
    if (f->first == NO_BLOCK)
        f->first = f->last;
    image->end = (uint32_t)end;
    return NULL;
}

/* Adds the first block of a function. */
static struct error *reserve(struct code_image *image, uint32_t function, const struct emit_frame *frame)
{
    struct block block = {.function = function, .used = 1}; /* the first stands for no line */

    if (frame->kind == EMIT_MARK) {
        block.slot_count = 1;
    } else if (frame->kind != EMIT_PYTHON) {
        block.slot_count = 1 + NATIVE_LINES_MIN;
    } else {
        uint64_t lines = frame->function_line && frame->function_end >= frame->function_line
                             ? (uint64_t)frame->function_end - frame->function_line + 1
                             : 0;
        bool fits = lines && lines <= FUNCTION_LINES_MAX && lines <= RESERVED_LINES_MAX - image->reserved_lines;
        block.slot_count = 1 + (fits ? (uint32_t)lines : PYTHON_LINES_MIN);
        if (fits) {
            image->reserved_lines += (uint32_t)lines;
            block.for_each_line = true;
            block.first_line = frame->function_line;
        }
    }
    return add_block(image, block);
}

/* Sets *address to that of a line's slot, which has none yet. */
static struct error *place_line(struct code_image *image, uint32_t function, uint32_t line, uint32_t *address)
{
    const struct block *first = &image->blocks.data[image->functions.data[function].first];
    const struct block *last = &image->blocks.data[image->functions.data[function].last];
    uint32_t index;

    if (!line) {
        *address = first->start + 1;
        return NULL;
    }
    index = line - first->first_line + 1;
    if (first->for_each_line && line >= first->first_line && index < first->slot_count) {
        *address = first->start + SLOT_BYTES * index + 1;
        return NULL;
    }
    if (last->for_each_line || last->used == last->slot_count) {
        uint32_t count = last->for_each_line ? 1 + PYTHON_LINES_MIN : 4 * last->slot_count;
        TRY(add_block(image, (struct block){.function = function,
                                            .slot_count = count < BLOCK_SLOTS_MAX ? count : BLOCK_SLOTS_MAX}));
    }
    struct block *block = &image->blocks.data[image->functions.data[function].last];
    *address = block->start + SLOT_BYTES * block->used++ + 1;
    return NULL;
}

static uint32_t text_of(struct code_image *image, const char *text)
{
    size_t len = strlen(text) + 1;

    return len < UINT32_MAX ? intern_id(&image->texts, text, (uint32_t)len, NULL) : INTERN_NONE;
}

static const char *text_get(const struct code_image *image, uint32_t text)
{
    return (const char *)intern_get(&image->texts, text)->data;
}

/* A frame by what code_image_address() takes. */
static const struct emit_frame *frame_of(const struct code_image *image, uint32_t frame)
{
    static const struct emit_frame no_frames = {.kind = EMIT_MARK, .function = NAME_NO_FRAMES, .file = "", .module = ""};
    static const struct emit_frame truncated = {.kind = EMIT_MARK, .function = "[truncated]", .file = "", .module = ""};

    return frame == CODE_IMAGE_NO_FRAMES ? &no_frames : frame == CODE_IMAGE_TRUNCATED ? &truncated : &image->model->frames[frame];
}

static struct error *function_of(struct code_image *image, uint32_t number, const struct emit_frame *frame,
                                 uint32_t file, uint32_t *out)
{
    const struct function_key key = {.kind = frame->kind,
                                     .name = text_of(image, frame->function),
                                     .place = frame->kind == EMIT_PYTHON ? file : text_of(image, frame->module),
                                     .line = frame->function_line};
    bool added;

    if (key.name == INTERN_NONE || key.place == INTERN_NONE)
        return error_no_memory();
    *out = intern_id(&image->function_keys, &key, sizeof key, &added);
    if (*out == INTERN_NONE)
        return error_no_memory();
    if (!added)
        return NULL;
    struct function function = {.frame = number, .file = file, .first = NO_BLOCK, .last = NO_BLOCK};
    if (!limits_take(image->options->limits, sizeof function) || !VEC_PUSH(&image->functions, function))
        return error_no_memory();
    return reserve(image, *out, frame);
}

static struct error *find_slot(struct code_image *image, uint32_t number, uint32_t *address)
{
    const struct emit_frame *frame = frame_of(image, number);
    struct slot slot = {.file = text_of(image, frame->file)};
    struct slot_key key = {.file = slot.file};
    bool added;

    if (slot.file == INTERN_NONE)
        return error_no_memory();
    TRY(function_of(image, number, frame, slot.file, &key.function));
    slot.line = key.line = *frame->file && frame->line <= INT32_MAX ? frame->line : 0;
    if (!key.line)
        key.file = 0;
    uint32_t id = intern_id(&image->slot_keys, &key, sizeof key, &added);
    if (id == INTERN_NONE)
        return error_no_memory();
    if (added) {
        TRY(place_line(image, key.function, key.line, &slot.address));
        if (!limits_take(image->options->limits, sizeof slot) || !VEC_PUSH(&image->slots, slot))
            return error_no_memory();
    }
    *address = image->slots.data[id].address;
    return NULL;
}

struct error *code_image_address(struct code_image *image, uint32_t frame, uint64_t *address)
{
    uint32_t *known = frame == CODE_IMAGE_TRUNCATED ? &image->truncated : &image->no_frames;

    if (frame < CODE_IMAGE_TRUNCATED) {
        if (!VEC_EXTEND_COUNTED(image->options->limits, &image->addresses, (size_t)frame + 1))
            return error_no_memory();
        known = &image->addresses.data[frame];
    }
    if (!*known)
        TRY(find_slot(image, frame, known));
    *address = *known;
    return NULL;
}

/* ---- the file ---- */

/* What is made of the blocks at the end. */
struct build {
    const struct code_image *image;
    uint64_t taken_bytes; /* from the limits */
    const struct names *names;
    struct slot *slots; /* by ascending address */
    const char **paths; /* by text: the file that it names; NULL: none needed it yet */
    struct arena arena; /* of paths */
    struct intern symbols;         /* names with their NUL */
    VEC(uint32_t) symbol_offsets;  /* of the names in .strtab */
    VEC(struct code_symbol) map_symbols;
    VEC(struct code_line) map_lines;
    struct buf scratch;
    struct code_elf elf;
};

static int by_address(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

/* What the arrays of a build take, in bytes: all grow with those of the image. */
static uint64_t build_bytes(const struct code_image *image)
{
    return image->end + image->slots.count * (sizeof(struct slot) + sizeof(struct code_line)) +
           image->blocks.count * (sizeof(struct code_symbol) + 24) + image->texts.count * sizeof(char *);
}

static struct error *build_start(struct build *b)
{
    const struct code_image *image = b->image;
    struct limits *limits = image->options->limits;
    size_t count = image->slots.count;
    uint64_t bytes = build_bytes(image);

    if (!limits_take(limits, bytes) || !limits_work(limits, 10 * bytes))
        return error_no_memory();
    b->taken_bytes = bytes;
    b->slots = malloc((count + 1) * sizeof *b->slots);
    b->paths = calloc((size_t)image->texts.count + 1, sizeof *b->paths);
    if (!b->slots || !b->paths)
        return error_no_memory();
    if (count)
        memcpy(b->slots, image->slots.data, count * sizeof *b->slots);
    return !count || sort_stable(b->slots, count, sizeof *b->slots, by_address) ? NULL : error_no_memory();
}

static void build_destroy(struct build *b)
{
    if (!b)
        return;
    limits_give(b->image->options->limits, b->taken_bytes);
    free(b->slots);
    free(b->paths);
    arena_deinit(&b->arena);
    intern_deinit(&b->symbols);
    VEC_DEINIT(&b->symbol_offsets);
    VEC_DEINIT(&b->map_symbols);
    VEC_DEINIT(&b->map_lines);
    buf_deinit(&b->scratch);
    code_elf_deinit(&b->elf);
    free(b);
}

/* Makes sure that the file has a path. */
static struct error *need_path(struct build *b, uint32_t file)
{
    if (b->paths[file])
        return NULL;
    buf_clear(&b->scratch);
    name_path(text_get(b->image, file), &b->scratch);
    if (!b->scratch.bad)
        b->paths[file] = arena_strndup(&b->arena, (const char *)b->scratch.data, b->scratch.len_bytes);
    return b->paths[file] ? NULL : error_no_memory();
}

/* Spells a function and puts its name into .strtab, once for equal ones. */
static struct error *name_function(struct build *b, const struct function *f, struct code_symbol *symbol,
                                   uint32_t *offset)
{
    struct buf *strings = &b->elf.strings;
    bool added;

    buf_clear(&b->scratch);
    names_symbol(b->names, frame_of(b->image, f->frame), &b->scratch);
    buf_put_u8(&b->scratch, 0);
    if (b->scratch.bad || b->scratch.len_bytes > UINT32_MAX)
        return error_no_memory();
    uint32_t id = intern_id(&b->symbols, b->scratch.data, (uint32_t)b->scratch.len_bytes, &added);
    if (id == INTERN_NONE || (added && !VEC_PUSH(&b->symbol_offsets, (uint32_t)strings->len_bytes)))
        return error_no_memory();
    if (added)
        buf_put(strings, b->scratch.data, b->scratch.len_bytes);
    if (strings->len_bytes > UINT32_MAX)
        return error_create(ERROR_LIMIT, "the names of all functions take more than 4 GiB");
    *offset = b->symbol_offsets.data[id];
    symbol->name = (const char *)intern_get(&b->symbols, id)->data;
    return NULL;
}

/* Instructions that do nothing, one for the slot at the start and as few as possible behind it. */
static void put_slot(struct buf *text, uint32_t len_bytes)
{
    static const uint8_t nops[][10] = {{0x66, 0x90},
                                       {0x0f, 0x1f, 0x40, 0},
                                       {0x66, 0x0f, 0x1f, 0x44, 0, 0},
                                       {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
                                       {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}};

    buf_put(text, nops[0], SLOT_BYTES);
    for (uint32_t left = len_bytes - SLOT_BYTES, part; left; left -= part) {
        part = left < sizeof nops[0] ? left : sizeof nops[0];
        buf_put(text, nops[part / 2 - 1], part);
    }
}

static void pad_text(struct buf *text, uint32_t address)
{
    while (!text->bad && CODE_ELF_TEXT_START + text->len_bytes < address)
        buf_put_u8(text, 0xcc); /* int3: nothing runs into the next function */
}

/* Makes the symbol, the lines and the code of a block, whose slots are `slots`. */
static struct error *build_block(struct build *b, const struct block *block, const struct slot *slots, size_t count)
{
    const struct function *f = &b->image->functions.data[block->function];
    const struct emit_frame *frame = frame_of(b->image, f->frame);
    uint32_t end = block->start + SLOT_BYTES * block->slot_count, name = 0;
    struct code_symbol symbol = {.start = block->start, .end = end, .file = CODE_NO_FILE,
                                 .is_python = frame->kind == EMIT_PYTHON,
                                 .line_first = b->map_lines.count};

    TRY(name_function(b, f, &symbol, &name));
    pad_text(&b->elf.text, block->start);
    if (!count || slots[0].address - 1 > block->start)
        put_slot(&b->elf.text, (count ? slots[0].address - 1 : end) - block->start);
    for (size_t i = 0; i < count; i++) {
        uint32_t start = slots[i].address - 1, next = i + 1 < count ? slots[i + 1].address - 1 : end;
        put_slot(&b->elf.text, next - start);
        if (!slots[i].line)
            continue;
        TRY(need_path(b, slots[i].file));
        if (!VEC_PUSH(&b->map_lines, ((struct code_line){start, slots[i].file, slots[i].line})))
            return error_no_memory();
        if (symbol.file == CODE_NO_FILE)
            symbol.file = slots[i].file;
    }
    if (symbol.is_python && *frame->file) {
        TRY(need_path(b, f->file));
        symbol.file = f->file;
        symbol.line = frame->function_line;
    }
    symbol.line_count = b->map_lines.count - symbol.line_first;
    code_elf_symbol(&b->elf, name, symbol.start, symbol.end);
    return VEC_PUSH(&b->map_symbols, symbol) ? NULL : error_no_memory();
}

static struct error *build_all(struct build *b)
{
    const struct code_image *image = b->image;
    size_t from = 0, to;

    buf_put_u8(&b->elf.strings, 0);
    for (size_t i = 0; i < image->blocks.count; i++) {
        const struct block *block = &image->blocks.data[i];
        uint32_t end = block->start + SLOT_BYTES * block->slot_count;
        for (to = from; to < image->slots.count && b->slots[to].address < end;)
            to++;
        TRY(build_block(b, block, b->slots + from, to - from));
        from = to;
    }
    const struct code_map map = {.symbols = b->map_symbols.data,
                                 .symbol_count = b->map_symbols.count,
                                 .lines = b->map_lines.data,
                                 .files = b->paths,
                                 .file_count = image->texts.count};
    return code_dwarf_encode(&map, &b->elf.dwarf);
}

struct error *code_image_finish(struct code_image *image, const struct names *names)
{
    struct limits *limits = image->options->limits;

    image->build = calloc(1, sizeof *image->build);
    if (!image->build)
        return error_no_memory();
    *image->build = (struct build){.image = image, .names = names, .arena.limits = limits, .symbols.arena.limits = limits,
                                   .elf.dwarf.limits = limits};
    TRY(build_start(image->build));
    TRY(build_all(image->build));
    return code_elf_identify(&image->build->elf);
}

const uint8_t *code_image_build_id(const struct code_image *image)
{
    return image->build->elf.build_id;
}

struct error *code_image_write(const struct code_image *image, FILE *out)
{
    return code_elf_write(&image->build->elf, out);
}

void code_image_destroy(struct code_image *image)
{
    if (!image)
        return;
    limits_give(image->options->limits, counted_bytes(image));
    build_destroy(image->build);
    intern_deinit(&image->texts);
    intern_deinit(&image->function_keys);
    intern_deinit(&image->slot_keys);
    VEC_DEINIT(&image->functions);
    VEC_DEINIT(&image->slots);
    VEC_DEINIT(&image->blocks);
    VEC_DEINIT(&image->addresses);
    free(image);
}
