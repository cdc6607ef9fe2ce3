/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames, threads and processes as text.
 *
 * Names come from other people's processes, so each passes put_clean(), which decodes UTF-8 and replaces the characters
 * that would mislead readers of the output; which ones depends on where the text goes.
 */
#include "formats/emit/names.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/numbers.h"
#include "formats/base/size_text.h"
#include "formats/base/utf8.h"

#define UNKNOWN "[unknown]"

enum {
    CLEAN_SEPARATOR = 1 << 0, /* ';' separates frames in folded stacks */
    CLEAN_SPACE = 1 << 1,     /* white space of any script */
    CLEAN_PAREN = 1 << 2,     /* '(' is where stackcollapse-perf.pl cuts a symbol */
    CLEAN_ARROW = 1 << 3,     /* "->" is where it splits a symbol, taking the rest for an inlined function */
};

static bool is_space(uint32_t c)
{
    return c == ' ' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x205f ||
           c == 0x3000 || c == 0xfeff;
}

static void put_clean(struct buf *out, const char *text, size_t len, unsigned flags)
{
    const uint8_t *s = (const uint8_t *)text;

    while (len && *s == ' ')
        s++, len--;
    while (len && s[len - 1] == ' ')
        len--;
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        size_t n = utf8_decode(s + i, len - i, &c);
        if (!n) {
            buf_put_str(out, "\xef\xbf\xbd"); /* U+FFFD */
            i++;
            continue;
        }
        if (utf8_is_control(c) || ((flags & CLEAN_SPACE) && is_space(c)))
            buf_put_u8(out, '_');
        else if (c == ';' && (flags & CLEAN_SEPARATOR))
            buf_put_u8(out, ':');
        else if (c == '(' && (flags & CLEAN_PAREN))
            buf_put_u8(out, '[');
        else if (c == ')' && (flags & CLEAN_PAREN))
            buf_put_u8(out, ']');
        else if (c == '-' && (flags & CLEAN_ARROW) && i + 1 < len && s[i + 1] == '>')
            buf_put_str(out, "\xe2\x86\x92"), n = 2; /* U+2192, an arrow */
        else
            buf_put(out, s + i, n);
        i += n;
    }
}

static void put_clean_str(struct buf *out, const char *text, unsigned flags)
{
    put_clean(out, text, strlen(text), flags);
}

/* The same for a function; one without a name, or with nothing but blanks for a name, is unknown. */
static void put_function(struct buf *out, const char *function, unsigned flags)
{
    size_t from = out->len_bytes;

    put_clean_str(out, function, flags);
    if (out->len_bytes == from)
        buf_put_str(out, UNKNOWN);
}

/* Replaces the space before a number at the end of what was written since `from`: it would look like a count. */
static void guard_count(struct buf *out, size_t from)
{
    if (out->bad)
        return;
    size_t i = out->len_bytes;
    while (i > from && (out->data[i - 1] == '.' || (out->data[i - 1] >= '0' && out->data[i - 1] <= '9')))
        i--;
    if (i < out->len_bytes && i > from && out->data[i - 1] == ' ')
        out->data[i - 1] = '_';
}

/* ---- the shown spelling ---- */

void name_position(const struct emit_frame *f, const struct emit_options *options, enum name_detail detail,
                   uint32_t *line, uint32_t *column)
{
    *line = *column = 0;
    if (f->kind != EMIT_PYTHON && detail != NAME_LINE)
        return;
    *line = detail == NAME_FUNCTION ? f->function_line : f->line;
    if (options->columns && detail != NAME_FUNCTION && *line)
        *column = f->column;
}

bool name_is_generated(const char *module)
{
    static const char start[] = "/tmp/perf-";

    if (strncmp(module, start, sizeof start - 1))
        return false;
    module += sizeof start - 1;
    size_t digits = strspn(module, "0123456789");
    return digits && !strcmp(module + digits, ".map");
}

static void put_module(struct buf *out, const char *module, unsigned flags)
{
    if (!*module) {
        buf_put_str(out, UNKNOWN);
    } else if (name_is_generated(module)) {
        /* The file need not exist, and its number would keep equal stacks of processes apart. */
        buf_put_str(out, NAME_GENERATED);
    } else if (*module == '[') { /* [vdso] */
        put_clean_str(out, module, flags);
    } else {
        buf_put_u8(out, '[');
        put_clean_str(out, name_base(module), flags);
        buf_put_u8(out, ']');
    }
}

static void put_shown(const struct names *n, const struct emit_frame *f, enum name_detail detail, struct buf *out)
{
    uint32_t line, column;
    size_t from = out->len_bytes;

    name_position(f, n->options, detail, &line, &column);
    put_clean_str(out, f->function, CLEAN_SEPARATOR);
    if (out->len_bytes == from) {
        if (f->kind == EMIT_NATIVE || f->kind == EMIT_KERNEL)
            put_module(out, f->module, CLEAN_SEPARATOR);
        else
            buf_put_str(out, UNKNOWN);
    }
    if (f->kind == EMIT_KERNEL)
        buf_put_str(out, "_[k]");
    if (*f->file && (f->kind == EMIT_PYTHON || line)) {
        buf_put_str(out, " (");
        put_clean_str(out, names_file(n, f), CLEAN_SEPARATOR);
        if (line)
            buf_printf(out, ":%u", line);
        if (column)
            buf_printf(out, ":%u", column);
        buf_put_u8(out, ')');
    } else if (f->builtin) {
        buf_printf(out, " (%s)", f->builtin);
    }
    guard_count(out, from);
}

/* pprof's flame graph shows of a name what follows its last dot when there is little room: of "<module app.py>" "py>". */
static size_t len_without_py(const char *file)
{
    size_t len = strlen(file);

    return len > 3 && !memcmp(file + len - 3, ".py", 3) ? len - 3 : len;
}

/* "shop/cart/__init__.py" as the import has it: "shop.cart"; of "<frozen abc>" "abc". */
static void put_module_of_file(const char *file, struct buf *out)
{
    static const char frozen[] = "<frozen ", init[] = "__init__";
    size_t len = len_without_py(file), from = out->len_bytes;

    if (!strncmp(file, frozen, sizeof frozen - 1) && file[len - 1] == '>')
        file += sizeof frozen - 1, len -= sizeof frozen;
    if (len > sizeof init && !memcmp(file + len - (sizeof init - 1), init, sizeof init - 1) && file[len - sizeof init] == '/')
        len -= sizeof init;
    put_clean(out, file, len, CLEAN_SEPARATOR);
    for (size_t i = from; !out->bad && i < out->len_bytes; i++)
        out->data[i] = out->data[i] == '/' ? '.' : out->data[i];
}

void names_put_python(const struct names *n, const struct emit_frame *f, bool by_module, struct buf *out)
{
    static const char module_code[] = "<module>";
    const char *file = names_file(n, f);
    bool is_module = !strcmp(f->function, module_code);

    if (is_module && *file && !by_module) {
        buf_put_str(out, "<module ");
        put_clean(out, file, len_without_py(file), CLEAN_SEPARATOR);
        buf_put_u8(out, '>');
        return;
    }
    if (by_module && *file) {
        if (is_module)
            put_clean_str(out, file, CLEAN_SEPARATOR);
        else
            put_module_of_file(n->starts ? file : names_import_path(f->file), out);
        buf_put_u8(out, is_module ? ':' : '.');
    }
    put_function(out, f->function, CLEAN_SEPARATOR);
}

void name_module(const struct emit_frame *f, struct buf *out)
{
    put_module(out, f->module, CLEAN_SEPARATOR);
}

void names_put_function(const struct names *n, const struct emit_frame *f, bool by_module, struct buf *out)
{
    size_t from = out->len_bytes;

    if (f->kind == EMIT_PYTHON) {
        names_put_python(n, f, by_module, out);
        return;
    }
    name_plain(f->function, out);
    if (f->kind == EMIT_MARK)
        return;
    if (out->len_bytes == from)
        name_module(f, out);
    else if (f->builtin)
        buf_printf(out, " (%s)", f->builtin);
}

struct error *names_spell(const struct names *n, enum name_detail detail, struct intern *texts, uint32_t **ids)
{
    uint32_t count = n->model->frame_count;
    struct buf text = {0};
    bool ok = true;

    *ids = malloc((count + 1) * sizeof **ids);
    if (!*ids)
        return error_no_memory();
    for (uint32_t i = 0; ok && i < count; i++) {
        buf_clear(&text);
        put_shown(n, &n->model->frames[i], detail, &text);
        ok = limits_work(n->options->limits, 100 + 4 * text.len_bytes);
        (*ids)[i] = text.bad ? INTERN_NONE : intern_id(texts, text.data, (uint32_t)text.len_bytes, NULL);
        ok = ok && (*ids)[i] != INTERN_NONE;
    }
    buf_deinit(&text);
    (*ids)[count] = intern_id(texts, NAME_NO_FRAMES, sizeof NAME_NO_FRAMES - 1, NULL);
    if (ok && (*ids)[count] != INTERN_NONE)
        return NULL;
    free(*ids);
    *ids = NULL;
    return error_no_memory();
}

/* ---- processes and threads ---- */

static void put_first(const char *name, unsigned flags, struct buf *out)
{
    size_t from = out->len_bytes;

    put_clean_str(out, name, flags);
    if (out->bad)
        return;
    if (out->len_bytes == from)
        buf_put_str(out, "unknown");
    else if (strchr("#{[", out->data[from])) /* starts a comment, or looks like JSON at the start of the file */
        out->data[from] = '_';
}

void name_word(const char *name, struct buf *out)
{
    put_first(name, CLEAN_SEPARATOR | CLEAN_SPACE, out);
}

void name_plain(const char *name, struct buf *out)
{
    put_clean_str(out, name, CLEAN_SEPARATOR);
}

/* A quote in a title would look like its end. */
static void put_title(const struct emit_process *process, struct buf *out)
{
    if (!process->title)
        return;
    buf_put_str(out, " \"");
    size_t from = out->len_bytes;
    put_clean_str(out, process->title, CLEAN_SEPARATOR);
    for (size_t i = from; !out->bad && i < out->len_bytes; i++)
        out->data[i] = out->data[i] == '"' ? '\'' : out->data[i];
    buf_put_u8(out, '"');
}

void name_process_plain(const struct emit_process *process, struct buf *out)
{
    size_t from = out->len_bytes;

    name_plain(process->name, out);
    if (out->len_bytes == from)
        buf_put_str(out, "unknown");
    put_title(process, out);
}

void name_process(const struct emit_process *process, struct buf *out)
{
    put_first(process->name, CLEAN_SEPARATOR, out);
    put_title(process, out);
    buf_printf(out, "-%u", process->pid);
}

void name_thread(const struct emit_thread *thread, struct buf *out)
{
    size_t from = out->len_bytes;

    name_plain(thread->name, out);
    if (out->len_bytes == from)
        buf_put_str(out, "thread");
    buf_printf(out, "-%u", thread->tid);
}

static void put_plain_process(const struct emit_process *process, struct buf *out)
{
    name_process_plain(process, out);
    buf_printf(out, " %u", process->pid);
}

void name_owner(const struct emit_model *model, enum emit_merge merge, uint32_t owner, struct buf *out)
{
    if (merge == EMIT_MERGE_PROCESS) {
        put_plain_process(&model->processes[owner], out);
        return;
    }
    const struct emit_thread *thread = &model->threads[owner];
    const struct emit_process *process = &model->processes[thread->process];
    put_plain_process(process, out);
    buf_put_str(out, " \xc2\xb7 ");
    size_t from = out->len_bytes;
    name_plain(thread->name, out);
    if (out->len_bytes == from)
        buf_put_str(out, "thread");
    if (thread->tid != process->pid)
        buf_printf(out, " %u", thread->tid);
}

void name_weight(const struct emit_event *event, uint64_t weight, struct buf *out)
{
    static const struct {
        uint64_t ns;
        const char *unit;
    } times[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "\xc2\xb5s"}, {1, "ns"}};
    struct size_text size;
    struct number digits;
    size_t i = 0;

    if (event_is_bytes(event->kind)) {
        buf_put_str(out, size_text(weight, &size));
    } else if (!event_is_time(event->kind)) {
        buf_printf(out, "%s ", grouped(weight, &digits));
        name_word(*event->unit ? event->unit : event->name, out);
    } else {
        while (i < sizeof times / sizeof *times - 1 && weight < times[i].ns)
            i++;
        double value = (double)weight / (double)times[i].ns;
        buf_printf(out, "%.*f %s", value < 100 && times[i].ns > 1 ? 1 : 0, value, times[i].unit);
    }
}

void name_unit(const struct emit_event *event, struct buf *out)
{
    if (event_is_time(event->kind) || event_is_bytes(event->kind))
        buf_put_str(out, event_is_time(event->kind) ? "time" : "bytes");
    else
        name_word(*event->unit ? event->unit : event->name, out);
}

/* ---- the perf spelling ---- */

static void put_native_name(const struct emit_frame *f, struct buf *out)
{
    static const char anonymous[] = "(anonymous namespace)";
    const size_t from = out->len_bytes;
    const char *s = f->function;

    /* stackcollapse-perf.pl and the Firefox Profiler skip a symbol that begins with '('; "{anonymous}" is GCC's spelling. */
    for (const char *hit; (hit = strstr(s, anonymous)); s = hit + sizeof anonymous - 1) {
        put_clean(out, s, (size_t)(hit - s), CLEAN_ARROW);
        buf_put_str(out, "{anonymous}");
    }
    put_clean_str(out, s, CLEAN_ARROW);
    if (!out->bad && out->len_bytes > from && out->data[from] == '(')
        out->data[from] = '{';
}

static void put_native_symbol(const struct emit_frame *f, struct buf *out)
{
    size_t from = out->len_bytes;

    put_native_name(f, out);
    if (out->len_bytes == from)
        buf_put_str(out, UNKNOWN);
    guard_count(out, from);
    if (*f->function && !f->inlined)
        buf_printf(out, "+0x%llx", (unsigned long long)f->symbol_offset);
}

/* As in the maps that CPython writes for perf. */
static void put_python_symbol(const struct emit_frame *f, const char *file, struct buf *out)
{
    const unsigned flags = CLEAN_SEPARATOR | CLEAN_PAREN | CLEAN_ARROW;

    buf_put_str(out, "py::");
    put_function(out, f->function, flags);
    if (!*file)
        return;
    buf_put_u8(out, ':');
    put_clean_str(out, file, flags);
}

static void put_python_position(const struct emit_frame *f, const struct emit_options *options, struct buf *out)
{
    uint32_t line, column;

    name_position(f, options, NAME_AS_ASKED, &line, &column);
    if (!*f->file)
        return;
    if (line)
        buf_printf(out, ":%u", line);
    if (column)
        buf_printf(out, ":%u", column);
}

/* The binary; readers end it at a space or a ')'. */
static void put_binary(const struct emit_frame *f, struct buf *out)
{
    const unsigned flags = CLEAN_SPACE | CLEAN_PAREN;
    const char *module = f->module;
    size_t len = name_path_len(module);

    if (f->kind == EMIT_MARK || !len) {
        buf_put_str(out, f->kind == EMIT_KERNEL ? "[kernel.kallsyms]" : UNKNOWN);
        return;
    }
    bool bracketed = len > 2 && module[0] == '[' && module[len - 1] == ']';
    if (f->kind != EMIT_KERNEL) {
        /* stackcollapse-perf.pl takes a bracket for the kernel's, so [vdso] is written without. */
        put_clean(out, module + bracketed, len - 2 * bracketed, flags);
    } else if (strstr(module, "kallsyms")) {
        put_clean(out, module, len, flags);
    } else {
        /* A kernel module: the Firefox Profiler recognises kernel frames by this word only. */
        buf_put_str(out, "[kernel.kallsyms:");
        put_clean(out, module + bracketed, len - 2 * bracketed, flags);
        buf_put_u8(out, ']');
    }
}

static void put_mark(const struct emit_frame *f, struct buf *out)
{
    put_function(out, f->function, CLEAN_SEPARATOR | CLEAN_PAREN | CLEAN_ARROW);
}

void name_perf(const struct emit_frame *f, const struct emit_options *options, struct buf *out)
{
    size_t from = out->len_bytes;

    switch (f->kind) {
    case EMIT_PYTHON:
        put_python_symbol(f, f->file, out);
        put_python_position(f, options, out);
        break;
    case EMIT_NATIVE:
    case EMIT_KERNEL:
        put_native_symbol(f, out);
        break;
    case EMIT_MARK:
        put_mark(f, out);
        break;
    }
    guard_count(out, from);
    buf_put_str(out, " (");
    if (f->inlined)
        buf_put_str(out, "inlined");
    else
        put_binary(f, out);
    buf_put_u8(out, ')');
}

void names_symbol(const struct names *n, const struct emit_frame *f, struct buf *out)
{
    size_t from = out->len_bytes;

    switch (f->kind) {
    case EMIT_PYTHON:
        put_python_symbol(f, *f->file ? names_file(n, f) : "", out);
        break;
    case EMIT_NATIVE:
    case EMIT_KERNEL:
        put_native_name(f, out);
        if (out->len_bytes == from)
            put_module(out, f->module, CLEAN_SEPARATOR);
        break;
    case EMIT_MARK:
        put_mark(f, out);
        break;
    }
    guard_count(out, from);
}

void name_path(const char *path, struct buf *out)
{
    size_t from = out->len_bytes;

    put_clean_str(out, path, 0);
    if (out->len_bytes == from)
        buf_put_str(out, UNKNOWN);
}
