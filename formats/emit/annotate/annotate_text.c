/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotate as text. Below a head that says what was recorded, a section for each file or function:
 *
 *     /srv/shop/cart.py: 3.21 s of 7.31 s
 *     source: /home/me/shop/cart.py (the file that ran)
 *
 *       self  native  kernel   total    time  line
 *                              44.0%  3.21 s    12  def add(self, item):
 *      12.1%   30.1%    1.8%   44.0%  3.21 s    13      return json.dumps(item)
 *
 * Shown are the lines that take at least a hundredth of the section, or options.min_share of all, with some lines around
 * them and the first line of their function; or all lines. Without a source text the functions stand in its place.
 */
#include <string.h>

#include "formats/base/code_file.h"
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/utf8.h"
#include "formats/emit/amounts.h"
#include "formats/emit/annotate/annotate.h"
#include "formats/emit/layer_colours.h"
#include "formats/emit/shown.h"
#include "formats/emit/source_lines.h"
#include "formats/emit/text_write.h"

enum {
    SHARE_COLUMNS = 8,
    TAB_COLUMNS = 8,
    TEXT_COLUMNS_LEAST = 16, /* of a narrow terminal; its lines wrap */
    HOT_PARTS = 100,         /* a line is hot that takes one of so many parts of its section */
    HEAD_LINES_MOST = 20,    /* from a decorator to the function's name */
    LINE_BYTES_MOST = 4096,  /* of a source line that are shown: more are no program */
};

/* What one section is printed with. */
struct page {
    const struct annotate_view *view;
    const struct emit_event *event;
    const struct annotate_section *section;
    uint64_t all;   /* of the event */
    uint64_t least; /* what a hot line weighs */
    const struct emit_source *source; /* NULL: none was found */
    struct source_lines text;
    bool native, kernel; /* some line has such time */
    int time_columns, line_columns;
    VEC(int32_t) marks;  /* by line of the text: is it shown? */
};

/* ---- which lines are shown ---- */

static bool is_hot(const struct page *p, const struct annotate_line *l)
{
    return l->weights.total && (l->weights.total >= p->least || p->view->options.all_lines);
}

/* Notes in `marks` where a range of shown lines begins and ends. */
static void mark(struct page *p, uint32_t from, uint32_t to)
{
    uint32_t count = source_lines_count(&p->text);
    const struct annotate_section *s = p->section;

    if (s->function != INTERN_NONE && s->first_line && s->last_line >= s->first_line) {
        from = from < s->first_line ? s->first_line : from;
        to = to > s->last_line ? s->last_line : to;
    }
    to = to > count ? count : to;
    if (!from || from > to)
        return;
    p->marks.data[from]++;
    p->marks.data[to + 1]--;
}

/* Marks the head of a function: where it begins, and below decorators the line with its name. */
static void mark_head(struct page *p, uint32_t first)
{
    for (uint32_t number = first; number && number < first + HEAD_LINES_MOST; number++) {
        size_t len, at = 0;
        const char *line = source_lines_get(&p->text, number, &len);
        while (line && at < len && (line[at] == ' ' || line[at] == '\t'))
            at++;
        bool names = line && ((len - at > 4 && !memcmp(line + at, "def ", 4)) || (len - at > 6 && !memcmp(line + at, "async ", 6)) ||
                              (len - at > 6 && !memcmp(line + at, "class ", 6)));
        if (number == first || names)
            mark(p, number, number);
        if (!line || names || (number == first && (at == len || line[at] != '@')))
            return;
    }
}

/* Marks the lines of the text that are shown. */
static bool choose(struct page *p)
{
    const struct annotate_view *v = p->view;
    uint32_t count = source_lines_count(&p->text), context = v->options.context_lines;

    if (!limits_work(v->options.limits, 4 * (uint64_t)count) || !VEC_EXTEND_ZERO(&p->marks, (size_t)count + 2))
        return false;
    if (v->options.all_lines)
        mark(p, 1, count);
    for (size_t i = p->section->line_begin; i < p->section->line_end; i++) {
        const struct annotate_line *l = &v->lines.data[i];
        uint32_t first = v->model->frames[l->frame].function_line;
        if (!is_hot(p, l) || !l->line || l->line > count)
            continue;
        mark(p, l->line > context ? l->line - context : 1, context < count - l->line ? l->line + context : count);
        mark_head(p, first);
    }
    for (uint32_t number = 1; number <= count; number++)
        p->marks.data[number] += p->marks.data[number - 1]; /* how many ranges hold the line */
    for (uint32_t number = 2; number < count; number++) {
        if (!p->marks.data[number] && p->marks.data[number - 1] && p->marks.data[number + 1])
            p->marks.data[number] = 1; /* a line takes as much room as the dots in its place */
    }
    return true;
}

/* ---- rows ---- */

static void put_share(const struct page *p, uint64_t weight, struct buf *out)
{
    if (weight)
        buf_printf(out, "%*.1f%%", SHARE_COLUMNS - 1, 100.0 * (double)weight / (double)p->all);
    else
        buf_printf(out, "%*s", SHARE_COLUMNS, "");
}

/* The same in the colour of a layer. */
static void put_layer(const struct page *p, uint64_t weight, enum emit_frame_kind kind, struct buf *out)
{
    buf_put_str(out, weight ? layer_colour(&p->view->options.terminal, kind) : "");
    put_share(p, weight, out);
    buf_put_str(out, weight ? layer_colour_end(&p->view->options.terminal) : "");
}

/* The columns before the source; `w` NULL: the line did not run in any sample. */
static void put_weights(const struct page *p, const struct annotate_weights *w, struct buf *out)
{
    static const struct annotate_weights none = {0};
    struct buf time = {0};

    if (w && w->total)
        amount_put(p->event, w->total, p->all, &time);
    w = w ? w : &none;
    put_layer(p, w->self, p->section->is_python ? EMIT_PYTHON : EMIT_NATIVE, out);
    if (p->native)
        put_layer(p, w->native, EMIT_NATIVE, out);
    if (p->kernel)
        put_layer(p, w->kernel, EMIT_KERNEL, out);
    put_share(p, w->total, out);
    buf_printf(out, " %*s", p->time_columns, buf_cstr(&time));
    buf_deinit(&time);
}

/*
 * A line of source as a terminal may have it: tabs as spaces, and what controls a terminal or turns text as U+FFFD. What
 * does not fit is cut off, which three dots show.
 */
static void put_text(const char *line, size_t len, size_t room, struct buf *out)
{
    const uint8_t *s = (const uint8_t *)line;
    size_t column = 0, fits = out->len_bytes;

    len = len > LINE_BYTES_MOST ? LINE_BYTES_MOST : len;
    for (size_t i = 0, n; i < len && column <= room; i += n) {
        uint32_t code = 0;
        n = utf8_decode(s + i, len - i, &code);
        if (n && code == '\t')
            buf_printf(out, "%*s", (int)(TAB_COLUMNS - column % TAB_COLUMNS), "");
        else if (n && !utf8_is_control(code))
            buf_put(out, s + i, n);
        else
            buf_put_str(out, "\xef\xbf\xbd");
        column += n && code == '\t' ? TAB_COLUMNS - column % TAB_COLUMNS : 1;
        n = n ? n : 1;
        fits = column < room ? out->len_bytes : fits;
    }
    if (column <= room || out->bad)
        return;
    out->len_bytes = fits;
    buf_put_str(out, "\xe2\x80\xa6"); /* U+2026 */
}

static size_t room_for_text(const struct page *p)
{
    size_t columns = p->view->options.terminal.columns;
    size_t used = (size_t)(SHARE_COLUMNS * (2 + p->native + p->kernel) + 1 + p->time_columns + 2 + p->line_columns + 2);

    if (!columns)
        return SIZE_MAX;
    return columns > used + TEXT_COLUMNS_LEAST ? columns - used : TEXT_COLUMNS_LEAST;
}

/* A row: the line's weights, its number (0: it is not known), its text. Lines that are not hot are faint. */
static void put_row(const struct page *p, const struct annotate_line *l, uint32_t number, const char *text, size_t len, struct buf *out)
{
    const struct emit_terminal *terminal = &p->view->options.terminal;
    bool hot = l && l->weights.total >= p->least && l->weights.total;

    put_weights(p, l ? &l->weights : NULL, out);
    if (number)
        buf_printf(out, "  %*u  ", p->line_columns, number);
    else
        buf_printf(out, "  %*s  ", p->line_columns, "?");
    size_t from = out->len_bytes;
    buf_put_str(out, hot ? "" : layer_colour(terminal, EMIT_MARK));
    put_text(text, len, room_for_text(p), out);
    while (!out->bad && out->len_bytes > from && out->data[out->len_bytes - 1] == ' ')
        out->len_bytes--;
    buf_put_str(out, hot ? "" : layer_colour_end(terminal));
    if (!out->bad && out->len_bytes == from)
        out->len_bytes -= 2; /* nothing behind the number of an empty line */
    buf_put_u8(out, '\n');
}

static void put_gap(const struct page *p, struct buf *out)
{
    size_t before = (size_t)(SHARE_COLUMNS * (2 + p->native + p->kernel) + 1 + p->time_columns + 2 + p->line_columns);

    buf_printf(out, "%*s\n", (int)before, "...");
}

/* Lines that ran and that the text does not have, or that have no text; and how many of those that ran are not shown. */
static void put_lines_alone(const struct page *p, uint32_t below, struct buf *out)
{
    const struct annotate_view *v = p->view;

    for (size_t i = p->section->line_begin; i < p->section->line_end; i++) {
        const struct annotate_line *l = &v->lines.data[i];
        struct buf name = {0};
        if ((l->line && l->line <= below) || !is_hot(p, l))
            continue;
        if (below)
            buf_put_str(&name, l->line ? "(not in this text) " : "(line not known) ");
        name_plain(v->model->frames[l->frame].function, &name);
        put_row(p, l, l->line, buf_cstr(&name), name.len_bytes, out);
        buf_deinit(&name);
    }
}

static void put_lines(const struct page *p, struct buf *out)
{
    const struct annotate_view *v = p->view;
    uint32_t count = source_lines_count(&p->text), last = 0;
    size_t at = p->section->line_begin;

    for (uint32_t number = 1; number <= count && !out->bad; number++) {
        size_t len;
        while (at < p->section->line_end && v->lines.data[at].line < number)
            at++;
        if (!p->marks.data[number])
            continue;
        if (last && last + 1 < number)
            put_gap(p, out);
        last = number;
        bool ran = at < p->section->line_end && v->lines.data[at].line == number;
        const char *line = source_lines_get(&p->text, number, &len);
        put_row(p, ran ? &v->lines.data[at] : NULL, number, line, len, out);
    }
    put_lines_alone(p, count, out);
}

/* "and 12 more lines, with 3.1 % of the time in their own (--all-lines shows all)" */
static void put_rest(const struct page *p, struct buf *out)
{
    const struct annotate_view *v = p->view;
    uint64_t rest = 0, count = 0;
    struct number n, s;

    for (size_t i = p->section->line_begin; i < p->section->line_end; i++) {
        const struct annotate_line *l = &v->lines.data[i];
        bool shown = p->source && l->line && l->line <= source_lines_count(&p->text) ? p->marks.data[l->line] > 0 : is_hot(p, l);
        if (!l->weights.total || shown)
            continue;
        rest += annotate_own(&l->weights);
        count++;
    }
    if (!count)
        return;
    buf_printf(out, "and %s", counted(count, "more line", "more lines", &n));
    if (rest) {
        buf_printf(out, ", with %s of the ", share_text(rest, p->all, &s));
        name_unit(p->event, out);
    }
    buf_put_str(out, " (--all-lines shows all)\n");
}

/* ---- heads ---- */

static void put_titles(const struct page *p, struct buf *out)
{
    struct buf unit = {0};

    name_unit(p->event, &unit);
    buf_printf(out, "%*s", SHARE_COLUMNS, "self");
    if (p->native)
        buf_printf(out, "%*s", SHARE_COLUMNS, "native");
    if (p->kernel)
        buf_printf(out, "%*s", SHARE_COLUMNS, "kernel");
    buf_printf(out, "%*s %*s  %*s  %s\n", SHARE_COLUMNS, "total", p->time_columns, buf_cstr(&unit), p->line_columns, "line",
               p->source ? "source" : "function");
    buf_deinit(&unit);
}

/* Where there is no text: why, and how to get it. */
static void put_no_source(const struct page *p, struct buf *out)
{
    const char *file = p->section->file;

    if (code_file_is_cell(file, NULL)) {
        buf_put_str(out, p->view->options.sources ? "source: a cell of a notebook, but of none that --source names (or of an earlier state of it)\n"
                                                  : "source: a cell of a notebook: say of which, like --source work.ipynb\n");
    } else if (!code_file_is_path(file)) {
        buf_put_str(out, "source: none, as it was no file\n");
    } else if (p->view->options.sources) {
        buf_put_str(out, "source: not found where --source says (a regular file of 4 MiB at most); if the folders have\n"
                         "        other names here: --source FROM=TO\n");
    } else {
        size_t folder = (size_t)(name_base(file) - file);
        struct buf name = {0};
        buf_put(&name, file, folder > 1 ? folder - 1 : folder);
        buf_put_str(out, "source: say where it lies, like --source ");
        name_plain(name.len_bytes ? buf_cstr(&name) : ".", out);
        buf_put_str(out, *file == '/' ? ", or --source / on the host where it ran\n" : "\n");
        buf_deinit(&name);
    }
}

static void put_source(const struct page *p, struct buf *out)
{
    const struct emit_source *source = p->source;

    if (!source) {
        put_no_source(p, out);
        return;
    }
    buf_put_str(out, "source: ");
    name_plain(source->path, out);
    if (source->match == EMIT_SOURCE_SAME && code_file_is_cell(p->section->file, NULL))
        buf_put_str(out, " (the cell that ran, by the hash of its text)");
    else if (source->match == EMIT_SOURCE_SAME)
        buf_put_str(out, " (the file that ran, by size and date)");
    else if (source->match == EMIT_SOURCE_UNKNOWN)
        buf_printf(out, " (perhaps not what ran: %s)", source->reason);
    else
        buf_printf(out, "\n%sThis is not what ran: %s. Its lines may be others.%s",
                   p->view->options.terminal.colours ? "\033[1m" : "", source->reason, layer_colour_end(&p->view->options.terminal));
    buf_put_u8(out, '\n');
}

/* "Cart.add in /srv/shop/cart.py, from line 12: 3.21 s of 7.31 s, 44.0 %" */
static void put_name(const struct page *p, struct buf *out)
{
    const struct annotate_section *s = p->section;
    struct number n;

    if (s->function != INTERN_NONE) {
        const struct intern_entry *e = intern_get(&p->view->texts, s->function);
        struct buf name = {0};
        buf_put(&name, e->data, e->len_bytes);
        name_plain(buf_cstr(&name), out);
        buf_put_str(out, " in ");
        buf_deinit(&name);
    }
    name_path(s->file, out);
    if (s->function != INTERN_NONE && s->first_line)
        buf_printf(out, ", from line %u", s->first_line);
    buf_put_str(out, ": ");
    name_weight(p->event, s->weights.total, out);
    buf_printf(out, ", %s", share_text(s->weights.total, p->all, &n));
    if (annotate_own(&s->weights)) {
        buf_put_str(out, ", of which ");
        name_weight(p->event, annotate_own(&s->weights), out);
        buf_put_str(out, " in its own lines");
    }
    buf_put_u8(out, '\n');
}

/* ---- the writer ---- */

static struct error *begin(const struct annotate_view *v)
{
    (void)v;
    return NULL;
}

static struct error *begin_event(const struct annotate_view *v, const struct annotate_event *e, bool first)
{
    struct buf text = {0};

    if (!first)
        buf_put_u8(&text, '\n');
    shown_put_samples(v->model, e->event, e->all.samples, e->all.weight, &text);
    shown_put_totals(v->model, e->event, &text);
    if (!e->section_count)
        buf_put_str(&text, v->options.annotate ? "\nnone of it in what was asked for\n" : "\nnone of it in files of source\n");
    return text_write(&text, v->out);
}

static int digits(uint64_t v)
{
    int count = 1;

    for (; v >= 10; v /= 10)
        count++;
    return count;
}

/* The widths of columns, and which there are. */
static void measure(struct page *p)
{
    const struct annotate_view *v = p->view;
    const struct annotate_section *s = p->section;
    uint32_t last = p->source ? source_lines_count(&p->text) : 0;
    struct buf text = {0};

    if (s->line_end > s->line_begin && v->lines.data[s->line_end - 1].line > last)
        last = v->lines.data[s->line_end - 1].line;
    p->line_columns = digits(last) > 4 ? digits(last) : 4;
    p->native = s->weights.native > 0;
    p->kernel = s->weights.kernel > 0;
    amount_put(p->event, s->weights.total, p->all, &text);
    p->time_columns = (int)columns_of(text.data, text.len_bytes);
    buf_clear(&text);
    name_unit(p->event, &text);
    p->time_columns = (int)text.len_bytes > p->time_columns ? (int)text.len_bytes : p->time_columns;
    buf_deinit(&text);
    double share = emit_min_share(&v->options, -1);
    p->least = share >= 0 ? (uint64_t)(share * (double)p->all) : s->weights.total / HOT_PARTS;
}

static struct error *section(const struct annotate_view *v, const struct annotate_event *e, const struct annotate_section *s, bool first)
{
    struct page p = {.view = v, .event = &v->model->events[e->event], .section = s, .all = e->all.weight};
    struct buf text = {0};

    (void)first;
    TRY(annotate_source(v, s, &p.source));
    bool ok = !p.source || source_lines_init(&p.text, p.source->text, p.source->len_bytes);
    measure(&p);
    if (ok && p.source)
        ok = choose(&p);
    if (ok) {
        buf_put_u8(&text, '\n');
        put_name(&p, &text);
        put_source(&p, &text);
        buf_put_u8(&text, '\n');
        put_titles(&p, &text);
        if (p.source)
            put_lines(&p, &text);
        else
            put_lines_alone(&p, 0, &text);
        put_rest(&p, &text);
    }
    source_lines_deinit(&p.text);
    VEC_DEINIT(&p.marks);
    text.bad |= !ok;
    return text_write(&text, v->out);
}

/* Of the hottest files: how much of the event is in none of them, such as threads of C libraries. */
static void put_lineless(const struct annotate_view *v, const struct annotate_event *e)
{
    uint64_t rest = e->all.weight;
    struct buf unit = {0};
    struct number n;

    for (uint32_t i = 0; i < e->section_count; i++)
        rest -= annotate_own(&v->sections.data[e->order[i]].weights);
    if (!v->options.annotate && rest) {
        name_unit(&v->model->events[e->event], &unit);
        fprintf(v->out, "\n%s of the %s has no line of %s: -f top shows it\n", share_text(rest, e->all.weight, &n), buf_cstr(&unit),
                v->sections.count && !v->sections.data[0].is_python ? "source" : "Python");
    }
    buf_deinit(&unit);
}

static struct error *end_event(const struct annotate_view *v, const struct annotate_event *e)
{
    uint32_t shown = annotate_shown(v, e->section_count);
    bool functions = e->section_count && v->sections.data[e->order[0]].function != INTERN_NONE;
    uint64_t rest = 0;
    struct number n, s;

    for (uint32_t i = shown; i < e->section_count; i++)
        rest += annotate_own(&v->sections.data[e->order[i]].weights);
    if (shown < e->section_count)
        fprintf(v->out, "\nand %s, with %s (--top 0 lists all)\n",
                counted(e->section_count - shown, functions ? "more function" : "more file", functions ? "more functions" : "more files", &n),
                share_text(rest, e->all.weight, &s));
    put_lineless(v, e);
    return NULL;
}

static struct error *end(const struct annotate_view *v, bool empty)
{
    if (empty)
        fputs("0 samples\n", v->out);
    else
        fputs("\nself: the line itself; native: C code that it called; kernel: what either had the kernel do; total: with all\n"
              "that it called\n", v->out);
    return NULL;
}

const struct annotate_writer annotate_text_writer = {
    .begin = begin, .begin_event = begin_event, .section = section, .end_event = end_event, .end = end};
