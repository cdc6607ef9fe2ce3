/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files and functions a name stands for. A file is named by its path or by the end of it, at a slash. A function is
 * named by its qualified name or the end of it, at a dot; what is defined in it, such as a comprehension before CPython
 * 3.12, belongs to it, and the name of a class stands for all of its methods. FILE:FUNCTION tells functions of one name apart.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/nearest.h"
#include "formats/emit/annotate/annotate.h"

enum { FRAME_WORK = 300 };

/* ---- names ---- */

/* Is `name` the text, or the end of it behind a `separator`? */
static bool is_end_of(const char *name, size_t name_len, const char *text, size_t text_len, char separator)
{
    return name_len && text_len >= name_len && !memcmp(text + text_len - name_len, name, name_len) &&
           (text_len == name_len || text[text_len - name_len - 1] == separator || *name == separator);
}

/* A length of the function's name that is what was named: of "Cart.add.<locals>.<lambda>" that of "Cart.add". 0: none is. */
static size_t function_len(const struct emit_frame *f, const char *name, size_t name_len)
{
    const char *function = f->function;
    size_t len = strlen(function);

    if (f->kind != EMIT_PYTHON) {
        const char *arguments = strchr(function, '(');
        bool is_it = (len == name_len || (arguments && (size_t)(arguments - function) == name_len)) && !memcmp(function, name, name_len);
        return is_it ? len : 0;
    }
    for (const char *dot = strchr(function, '.'); dot; dot = strchr(dot + 1, '.')) {
        if (is_end_of(name, name_len, function, (size_t)(dot - function), '.'))
            return (size_t)(dot - function);
    }
    return is_end_of(name, name_len, function, len, '.') ? len : 0;
}

/* What the name says of a frame. */
enum named { NAMED_NOT, NAMED_FILE, NAMED_FUNCTION };

static enum named named(const struct emit_frame *f, const char *name, size_t *function)
{
    size_t len = strlen(name);

    if (is_end_of(name, len, f->file, strlen(f->file), '/'))
        return NAMED_FILE;
    *function = function_len(f, name, len);
    if (*function)
        return NAMED_FUNCTION;
    for (const char *colon = strchr(name, ':'); colon; colon = strchr(colon + 1, ':')) {
        if (!is_end_of(name, (size_t)(colon - name), f->file, strlen(f->file), '/'))
            continue;
        *function = function_len(f, colon + 1, len - (size_t)(colon + 1 - name));
        if (*function)
            return NAMED_FUNCTION;
    }
    return NAMED_NOT;
}

/* Code of a file of source. Which of its lines ran is not known of each frame of Python. */
static bool has_lines(const struct emit_frame *f)
{
    return *f->file && (f->kind == EMIT_PYTHON || (f->kind == EMIT_NATIVE && f->line));
}

/* ---- sections ---- */

struct selection {
    struct annotate_view *view;
    struct intern keys; /* of sections: file and function */
    struct map lines;   /* section and line -> line */
    bool python, native, files, functions; /* what there is to choose from */
};

static bool find_kinds(struct selection *s)
{
    const struct emit_model *m = s->view->model;
    const char *name = s->view->options.annotate;
    size_t function;

    for (uint32_t i = 0; i < m->frame_count; i++) {
        const struct emit_frame *f = &m->frames[i];
        if (!has_lines(f))
            continue;
        s->python |= f->kind == EMIT_PYTHON;
        s->native |= f->kind == EMIT_NATIVE;
        enum named what = name ? named(f, name, &function) : NAMED_NOT;
        s->files |= what == NAMED_FILE;
        s->functions |= what == NAMED_FUNCTION;
    }
    return limits_work(s->view->options.limits, FRAME_WORK * (uint64_t)m->frame_count);
}

/* The section of a frame; *out ANNOTATE_NOWHERE: none. */
static struct error *section_of(struct selection *s, const struct emit_frame *f, uint32_t *out)
{
    struct annotate_view *v = s->view;
    struct buf key = {0};
    size_t function = 0;
    bool added = false;

    *out = ANNOTATE_NOWHERE;
    enum named what = v->options.annotate ? named(f, v->options.annotate, &function) : NAMED_FILE;
    if (what != (s->files || !v->options.annotate ? NAMED_FILE : NAMED_FUNCTION))
        return NULL;
    if (!v->options.annotate && f->kind != (s->python ? EMIT_PYTHON : EMIT_NATIVE))
        return NULL;
    buf_put(&key, f->file, strlen(f->file) + 1);
    if (what == NAMED_FUNCTION)
        buf_put(&key, f->function, function);
    *out = key.bad ? INTERN_NONE : intern_id(&s->keys, key.data, (uint32_t)key.len_bytes, &added);
    buf_deinit(&key);
    struct annotate_section section = {.file = f->file, .function = INTERN_NONE, .is_python = f->kind == EMIT_PYTHON};
    if (added && what == NAMED_FUNCTION)
        section.function = intern_id(&v->texts, f->function, (uint32_t)function, NULL);
    bool ok = *out != INTERN_NONE && (section.function != INTERN_NONE || !added || what == NAMED_FILE);
    return ok && (!added || VEC_PUSH(&v->sections, section)) ? NULL : error_no_memory();
}

static bool take_bytes(struct annotate_view *v, uint64_t len_bytes)
{
    bool ok = limits_take(v->options.limits, len_bytes);

    v->taken_bytes += ok ? len_bytes : 0;
    return ok;
}

/* A function's lines are those of its own code and of what is defined in it. */
static void widen(struct annotate_section *section, const struct emit_frame *f)
{
    if (f->function_line && (!section->first_line || f->function_line < section->first_line))
        section->first_line = f->function_line;
    if (f->function_end > section->last_line)
        section->last_line = f->function_end;
}

static struct error *add_frame(struct selection *s, uint32_t frame)
{
    struct annotate_view *v = s->view;
    const struct emit_frame *f = &v->model->frames[frame];
    uint32_t section;

    v->line_of_frame[frame] = ANNOTATE_NOWHERE;
    if (!has_lines(f))
        return NULL;
    TRY(section_of(s, f, &section));
    if (section == ANNOTATE_NOWHERE)
        return NULL;
    widen(&v->sections.data[section], f);
    uint64_t key = (uint64_t)section << 32 | f->line;
    const uint64_t *line = map_get(&s->lines, key);
    v->line_of_frame[frame] = line ? (uint32_t)*line : (uint32_t)v->lines.count;
    if (line)
        return NULL;
    bool ok = take_bytes(v, sizeof(struct annotate_line)) && map_set(&s->lines, key, v->lines.count) &&
              VEC_PUSH(&v->lines, ((struct annotate_line){.section = section, .line = f->line, .frame = frame}));
    return ok ? NULL : error_no_memory();
}

/* ---- order ---- */

static int compare_lines(const void *a, const void *b, void *arg)
{
    const struct annotate_line *lines = arg, *la = &lines[*(const uint32_t *)a], *lb = &lines[*(const uint32_t *)b];

    if (la->section != lb->section)
        return la->section < lb->section ? -1 : 1;
    return (la->line > lb->line) - (la->line < lb->line);
}

/* Puts lines in order, which frames follow. */
static struct error *sort_lines(struct annotate_view *v)
{
    size_t count = v->lines.count;
    uint32_t *order = malloc((count + 1) * sizeof *order), *places = malloc((count + 1) * sizeof *places);
    struct annotate_line *sorted = malloc((count + 1) * sizeof *sorted);
    bool ok = order && places && sorted && limits_work(v->options.limits, 200 * (uint64_t)count);

    for (size_t i = 0; ok && i < count; i++)
        order[i] = (uint32_t)i;
    if (ok)
        qsort_r(order, count, sizeof *order, compare_lines, v->lines.data);
    for (size_t i = 0; ok && i < count; i++) {
        sorted[i] = v->lines.data[order[i]];
        places[order[i]] = (uint32_t)i;
        struct annotate_section *section = &v->sections.data[sorted[i].section];
        if (section->line_end == 0)
            section->line_begin = i;
        section->line_end = i + 1;
    }
    for (uint32_t i = 0; ok && i < v->model->frame_count; i++) {
        if (v->line_of_frame[i] != ANNOTATE_NOWHERE)
            v->line_of_frame[i] = places[v->line_of_frame[i]];
    }
    if (ok && count)
        memcpy(v->lines.data, sorted, count * sizeof *sorted);
    free(order);
    free(places);
    free(sorted);
    return ok ? NULL : error_no_memory();
}

/* ---- a name that nothing has ---- */

static const char *last_part(const char *function)
{
    const char *dot = strrchr(function, '.');

    return dot && dot[1] ? dot + 1 : function;
}

/* The length of a name without the line behind it, as in "cart.py:12", which rows of other formats have. */
static size_t len_without_line(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon && colon > name && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? (size_t)(colon - name)
                                                                                                       : strlen(name);
}

static struct error *refuse(const struct annotate_view *v)
{
    const struct emit_model *m = v->model;
    const char *name = v->options.annotate, *base = name_base(name);
    struct nearest file = nearest_to(base, len_without_line(base)), function = nearest_to(name, strlen(name)), part = function;
    size_t ignored;

    for (uint32_t i = 0; i < m->frame_count; i++) {
        const struct emit_frame *f = &m->frames[i];
        if (f->kind != EMIT_PYTHON && !has_lines(f) && named(f, name, &ignored) == NAMED_FUNCTION)
            return error_create(ERROR_NOT_FOUND, "'%s' ran, but its lines are not known: it is native code without debug symbols, "
                                                 "or of the kernel; -f tree shows who called it", name);
        if (!has_lines(f))
            continue;
        nearest_consider(&file, name_base(f->file));
        if (*f->function == '<')
            continue;
        nearest_consider(&function, f->function);
        nearest_consider(&part, last_part(f->function));
    }
    const char *near = function.name ? function.name : part.name;
    if (!file.name && !near)
        return error_create(ERROR_NOT_FOUND, "no file or function '%s' ran in the samples (pysym annotate [FILE|FUNCTION] TRACE...); "
                                             "without a name annotate shows the hottest files, and -f top the hottest functions", name);
    return error_create(ERROR_NOT_FOUND, "no file or function '%s' ran in the samples: did you mean %s%s%s?", name,
                        file.name ? file.name : "", file.name && near ? " or " : "", near ? near : "");
}

struct error *annotate_select(struct annotate_view *v)
{
    struct selection s = {.view = v, .keys.arena.limits = v->options.limits, .lines.limits = v->options.limits};
    uint32_t count = v->model->frame_count;
    struct error *err = NULL;

    if (!take_bytes(v, count * sizeof *v->line_of_frame) || !find_kinds(&s))
        return error_no_memory();
    v->line_of_frame = malloc((count + 1) * sizeof *v->line_of_frame);
    if (!v->line_of_frame)
        return error_no_memory();
    for (uint32_t i = 0; !err && i < count; i++)
        err = add_frame(&s, i);
    if (!err)
        err = sort_lines(v);
    /* (What one part of an output does not have may come in the next.) */
    if (!err && v->options.annotate && !v->sections.count && !v->options.part)
        err = refuse(v);
    intern_deinit(&s.keys);
    map_deinit(&s.lines);
    return err;
}
