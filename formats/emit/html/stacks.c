/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/stacks.h"

#include "formats/emit/html/packed.h"
#include "formats/emit/json.h"
#include "formats/emit/names.h"

enum { STACK_WORK = 60, FRAME_WORK = 200 }; /* see limits.h */

void html_stacks_init(struct html_stacks *s, const struct emit_model *model, const struct emit_options *options)
{
    *s = (struct html_stacks){.model = model, .options = options, .texts.arena.limits = options->limits};
    s->stacks.number_of.limits = s->frames.number_of.limits = options->limits;
}

void html_stacks_deinit(struct html_stacks *s)
{
    html_numbers_deinit(&s->stacks);
    html_numbers_deinit(&s->frames);
    intern_deinit(&s->texts);
    VEC_DEINIT(&s->outwards);
}

struct error *html_stacks_find(struct html_stacks *s, uint32_t stack, uint32_t *number)
{
    const struct emit_stack *stacks = s->model->stacks;

    s->outwards.count = 0;
    for (uint32_t at = stack; at != EMIT_NO_STACK && !html_numbers_has(&s->stacks, at); at = stacks[at].parent) {
        if (!limits_work(s->options->limits, STACK_WORK) || !VEC_PUSH(&s->outwards, at))
            return error_no_memory();
    }
    while (s->outwards.count) {
        if (!html_numbers_find(&s->stacks, s->outwards.data[--s->outwards.count], number))
            return error_no_memory();
    }
    return html_numbers_find(&s->stacks, stack, number) ? NULL : error_no_memory();
}

/* ---- frames ---- */

/* The columns of the element "frames", in this order. */
enum frame_column {
    FRAME_KIND, /* enum emit_frame_kind */
    FRAME_FUNCTION, FRAME_FILE, FRAME_MODULE, FRAME_BUILTIN, FRAME_WAIT, /* texts */
    FRAME_LINE, FRAME_COLUMN, FRAME_FUNCTION_LINE, FRAME_FUNCTION_END,
    FRAME_INLINED,
    FRAME_SHOWN,      /* text: how rows of functions name it. Frames of one such text are of one function */
    FRAME_SHOWN_LINE, /* the same of rows of lines */
    FRAME_COLUMNS,
};

/* The text of a name from a trace, in which nothing changes how the text around it looks. INTERN_NONE: out of memory. */
static uint32_t text_of(struct html_stacks *s, const char *name)
{
    struct buf text = {0};
    uint32_t id = INTERN_NONE;

    name_plain(name ? name : "", &text);
    if (!text.bad && limits_work(s->options->limits, FRAME_WORK + 4 * text.len_bytes))
        id = intern_id(&s->texts, text.data, (uint32_t)text.len_bytes, NULL);
    buf_deinit(&text);
    return id;
}

/* False: out of memory. */
static bool describe_frame(struct html_stacks *s, const struct emit_frame *f, uint32_t row[FRAME_COLUMNS])
{
    const char *const texts[] = {[FRAME_FUNCTION] = f->function, [FRAME_FILE] = f->file, [FRAME_MODULE] = f->module,
                                 [FRAME_BUILTIN] = f->builtin, [FRAME_WAIT] = f->wait};

    for (int i = FRAME_FUNCTION; i <= FRAME_WAIT; i++) {
        row[i] = text_of(s, texts[i]);
        if (row[i] == INTERN_NONE)
            return false;
    }
    row[FRAME_KIND] = f->kind;
    row[FRAME_LINE] = f->line;
    row[FRAME_COLUMN] = f->column;
    row[FRAME_FUNCTION_LINE] = f->function_line;
    row[FRAME_FUNCTION_END] = f->function_end;
    row[FRAME_INLINED] = f->inlined;
    return true;
}

struct frame_table {
    VEC(uint32_t) columns[FRAME_COLUMNS];
};

static struct error *fill_table(struct html_stacks *s, const uint32_t *shown, const uint32_t *shown_lines, struct frame_table *t)
{
    uint32_t row[FRAME_COLUMNS];

    for (size_t i = 0; i < s->frames.list.count; i++) {
        uint32_t frame = s->frames.list.data[i];
        if (!limits_take(s->options->limits, sizeof row) || !describe_frame(s, &s->model->frames[frame], row))
            return error_no_memory();
        row[FRAME_SHOWN] = shown[frame];
        row[FRAME_SHOWN_LINE] = shown_lines[frame];
        for (int c = 0; c < FRAME_COLUMNS; c++) {
            if (!VEC_PUSH(&t->columns[c], row[c]))
                return error_no_memory();
        }
    }
    return NULL;
}

static struct error *write_table(struct html_stacks *s, const struct frame_table *t, FILE *out)
{
    struct html_packed packed = {.limits = s->options->limits};
    struct error *err = NULL;

    for (int c = 0; c < FRAME_COLUMNS; c++) {
        for (size_t i = 0; !err && i < t->columns[c].count; i++)
            err = html_packed_put_number(&packed, t->columns[c].data[i]);
    }
    if (!err)
        err = html_packed_write(&packed, "frames", s->frames.list.count, out);
    html_packed_deinit(&packed);
    return err;
}

static struct error *write_frames(struct html_stacks *s, FILE *out)
{
    uint32_t *shown = NULL, *shown_lines = NULL;
    struct frame_table table = {0};
    struct names names;

    struct error *err = names_init(&names, s->model, s->options);
    if (!err)
        err = names_spell(&names, NAME_FUNCTION, &s->texts, &shown);
    if (!err)
        err = names_spell(&names, NAME_LINE, &s->texts, &shown_lines);
    if (!err)
        err = fill_table(s, shown, shown_lines, &table);
    if (!err)
        err = write_table(s, &table, out);
    limits_give(s->options->limits, table.columns[0].count * FRAME_COLUMNS * sizeof(uint32_t));
    for (int c = 0; c < FRAME_COLUMNS; c++)
        VEC_DEINIT(&table.columns[c]);
    free(shown);
    free(shown_lines);
    names_deinit(&names);
    return err;
}

/* ---- stacks and texts ---- */

/* Also numbers their frames. */
static struct error *write_stacks(struct html_stacks *s, FILE *out)
{
    struct html_packed packed = {.limits = s->options->limits};
    VEC(uint32_t) frames = {0};
    struct error *err = NULL;
    uint32_t parent = 0, frame = 0;

    for (uint32_t i = 0; !err && i < s->stacks.list.count; i++) {
        const struct emit_stack *stack = &s->model->stacks[s->stacks.list.data[i]];
        bool ok = html_numbers_find(&s->frames, stack->frame, &frame) && VEC_PUSH(&frames, frame);
        if (ok && stack->parent != EMIT_NO_STACK)
            ok = html_numbers_find(&s->stacks, stack->parent, &parent);
        err = ok ? html_packed_put_number(&packed, stack->parent == EMIT_NO_STACK ? 0 : i - parent) : error_no_memory();
    }
    for (size_t i = 0; !err && i < frames.count; i++)
        err = html_packed_put_number(&packed, frames.data[i]);
    if (!err)
        err = html_packed_write(&packed, "stacks", s->stacks.list.count, out);
    VEC_DEINIT(&frames);
    html_packed_deinit(&packed);
    return err;
}

static struct error *write_texts(const struct html_stacks *s, FILE *out)
{
    struct html_packed packed = {.limits = s->options->limits};
    struct error *err = NULL;
    struct buf item = {0};

    for (uint32_t i = 0; !err && i < s->texts.count; i++) {
        const struct intern_entry *text = intern_get(&s->texts, i);
        buf_clear(&item);
        buf_put_u8(&item, i ? ',' : '[');
        err = json_put(json_stringn((const char *)text->data, text->len_bytes), &item);
        if (!err && item.bad)
            err = error_no_memory();
        if (!err)
            err = html_packed_put(&packed, item.data, item.len_bytes);
    }
    if (!err)
        err = html_packed_put(&packed, "]", 1);
    if (!err)
        err = html_packed_write(&packed, "strings", s->texts.count, out);
    buf_deinit(&item);
    html_packed_deinit(&packed);
    return err;
}

struct error *html_stacks_write(struct html_stacks *s, FILE *out)
{
    if (intern_id(&s->texts, "", 0, NULL) == INTERN_NONE)
        return error_no_memory();
    TRY(write_stacks(s, out));
    TRY(write_frames(s, out));
    return write_texts(s, out);
}
