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
    uint32_t frame;

    s->outwards.count = 0;
    for (uint32_t at = stack; at != EMIT_NO_STACK && !html_numbers_has(&s->stacks, at); at = stacks[at].parent) {
        if (!limits_work(s->options->limits, STACK_WORK) || !VEC_PUSH(&s->outwards, at))
            return error_no_memory();
    }
    while (s->outwards.count) {
        uint32_t at = s->outwards.data[--s->outwards.count];
        if (!html_numbers_find(&s->stacks, at, number) || !html_numbers_find(&s->frames, stacks[at].frame, &frame))
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

/* How rows of tables name the model's frames: ids of `texts`, which holds the names of frames that are not here, too. */
struct spelling {
    struct intern texts;
    uint32_t *of_functions, *of_lines;
};

static struct error *spell(struct html_stacks *s, struct spelling *spelling)
{
    struct names names;

    struct error *err = names_init(&names, s->model, s->options);
    if (!err)
        err = names_spell(&names, NAME_FUNCTION, &spelling->texts, &spelling->of_functions);
    if (!err)
        err = names_spell(&names, NAME_LINE, &spelling->texts, &spelling->of_lines);
    names_deinit(&names);
    return err;
}

static void spelling_deinit(struct spelling *spelling)
{
    free(spelling->of_functions);
    free(spelling->of_lines);
    intern_deinit(&spelling->texts);
}

static uint32_t shown_text(struct html_stacks *s, const struct spelling *spelling, uint32_t id)
{
    const struct intern_entry *text = intern_get(&spelling->texts, id);

    return intern_id(&s->texts, text->data, text->len_bytes, NULL);
}

struct frame_table {
    VEC(uint32_t) columns[FRAME_COLUMNS];
};

static struct error *fill_table(struct html_stacks *s, const struct spelling *spelling, struct frame_table *t)
{
    uint32_t row[FRAME_COLUMNS];

    for (size_t i = 0; i < s->frames.list.count; i++) {
        uint32_t frame = s->frames.list.data[i];
        if (!limits_take(s->options->limits, sizeof row) || !describe_frame(s, &s->model->frames[frame], row))
            return error_no_memory();
        row[FRAME_SHOWN] = shown_text(s, spelling, spelling->of_functions[frame]);
        row[FRAME_SHOWN_LINE] = shown_text(s, spelling, spelling->of_lines[frame]);
        if (row[FRAME_SHOWN] == INTERN_NONE || row[FRAME_SHOWN_LINE] == INTERN_NONE)
            return error_no_memory();
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
    struct spelling spelling = {.texts.arena.limits = s->options->limits};
    struct frame_table table = {0};

    struct error *err = spell(s, &spelling);
    if (!err)
        err = fill_table(s, &spelling, &table);
    if (!err)
        err = write_table(s, &table, out);
    limits_give(s->options->limits, table.columns[0].count * FRAME_COLUMNS * sizeof(uint32_t));
    for (int c = 0; c < FRAME_COLUMNS; c++)
        VEC_DEINIT(&table.columns[c]);
    spelling_deinit(&spelling);
    return err;
}

/* ---- stacks and texts ---- */

static struct error *write_stacks(const struct html_stacks *s, FILE *out)
{
    struct html_packed packed = {.limits = s->options->limits};
    struct error *err = NULL;

    for (uint32_t i = 0; !err && i < s->stacks.list.count; i++) {
        uint32_t parent = s->model->stacks[s->stacks.list.data[i]].parent;
        err = html_packed_put_number(&packed, parent == EMIT_NO_STACK ? 0 : i - html_numbers_get(&s->stacks, parent));
    }
    for (size_t i = 0; !err && i < s->stacks.list.count; i++) {
        uint32_t frame = s->model->stacks[s->stacks.list.data[i]].frame;
        err = html_packed_put_number(&packed, html_numbers_get(&s->frames, frame));
    }
    if (!err)
        err = html_packed_write(&packed, "stacks", s->stacks.list.count, out);
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
