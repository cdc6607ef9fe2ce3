/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/part_files.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/printable.h"
#include "formats/base/utf8.h"

/* What is added at most, but for names: two numbers, a time, a number for equal names, and dots. */
enum { ADDED_MAX = 60, NAMES_MIN = 2 * 8, NAME_LEN_MAX = 64 };

/* Characters of ASCII that mean something to file systems or shells. */
static bool is_special(uint32_t code)
{
    return code < 0x80 && strchr(" \"#$&'()*/:;<>?[\\]`{|}!~", (int)code);
}

/* Appends what can stand in a file's name of a text, `len_max` bytes at most; never nothing. */
static void put_name(const char *text, size_t len_max, struct buf *out)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t begun = out->len_bytes;

    for (size_t left = strlen(text), n; left; s += n, left -= n) {
        uint32_t code;
        n = utf8_decode(s, left, &code);
        bool bad = !n || utf8_is_control(code) || is_special(code);
        n = n ? n : 1;
        if (out->len_bytes - begun + (bad ? 1 : n) > len_max)
            break;
        if (bad && out->len_bytes > begun && out->data[out->len_bytes - 1] == '_')
            continue;
        buf_put(out, bad ? "_" : (const char *)s, bad ? 1 : n);
    }
    if (out->len_bytes == begun)
        buf_put_u8(out, '_');
}

/* When a window begins, such as ".20261122T101500Z". */
static void put_time(uint64_t begin_ns, uint64_t window_ns, struct buf *out)
{
    time_t seconds = (time_t)(begin_ns / NS_PER_S);
    char text[32];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y%m%dT%H%M%S", &tm);
    buf_printf(out, ".%s", text);
    if (window_ns % NS_PER_MS)
        buf_printf(out, ".%09" PRIu64, begin_ns % NS_PER_S);
    else if (window_ns % NS_PER_S)
        buf_printf(out, ".%03" PRIu64, begin_ns % NS_PER_S / NS_PER_MS);
    buf_put_u8(out, 'Z');
}

/* The name but for the extension. */
static void put_part(const struct part_files *p, const struct emit_model *m, const struct emit_part *part, struct buf *out)
{
    size_t space = (NAME_MAX - ADDED_MAX - strlen(p->name)) / 2, len_max = space < NAME_LEN_MAX ? space : NAME_LEN_MAX;

    buf_put(out, p->name, p->stem_len);
    if (part->process != EMIT_PART_ALL) {
        buf_put_u8(out, '.');
        put_name(m->processes[part->process].name, len_max, out);
        buf_printf(out, "-%u", m->processes[part->process].pid);
    }
    if (part->thread != EMIT_PART_ALL) {
        buf_put_u8(out, '.');
        put_name(m->threads[part->thread].name, len_max, out);
        buf_printf(out, "-%u", m->threads[part->thread].tid);
    }
    if (part->window_end_ns)
        put_time(part->window_begin_ns, p->window_ns, out);
}

/* Appends a number if there has been such a name. */
static struct error *tell_apart(struct part_files *p, struct buf *name)
{
    size_t len = name->len_bytes;
    uint32_t first = INTERN_NONE;

    for (;;) {
        bool added = false;
        uint32_t id = name->bad ? INTERN_NONE : intern_id(&p->names, name->data, (uint32_t)name->len_bytes, &added);
        if (id == INTERN_NONE || !VEC_EXTEND_ZERO(&p->numbers, (size_t)id + 1))
            return error_no_memory();
        if (added)
            return NULL;
        first = first == INTERN_NONE ? id : first;
        unsigned *number = &p->numbers.data[first];
        *number = *number ? *number + 1 : 2;
        name->len_bytes = len;
        buf_printf(name, ".%u", *number);
    }
}

static struct error *open_part(struct part_sink *sink, struct part_output *out)
{
    struct part_files *p = (struct part_files *)sink;
    struct output_file *file;

    TRY(output_files_create(p->files, &file, &out->file));
    out->own = file;
    return NULL;
}

static struct error *close_part(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                                struct part_output *out)
{
    struct part_files *p = (struct part_files *)sink;
    struct buf name = {0};

    put_part(p, model, part, &name);
    struct error *err = tell_apart(p, &name);
    buf_put_str(&name, p->name + p->stem_len);
    if (!err && name.bad)
        err = error_no_memory();
    if (!err)
        err = output_files_close(out->own, buf_cstr(&name));
    buf_deinit(&name);
    p->count += !err;
    return err;
}

struct error *part_files_init(struct part_files *p, struct output_files *files, const char *path, const char *extension,
                              uint64_t window_ns)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    size_t len = strlen(name), extension_len = strlen(extension);

    *p = (struct part_files){.sink = {open_part, close_part}, .files = files, .path = path, .name = name, .window_ns = window_ns};
    if (len > extension_len && !strcmp(name + len - extension_len, extension))
        p->stem_len = len - extension_len;
    else
        p->stem_len = dot && dot != name ? (size_t)(dot - name) : len;
    return len <= NAME_MAX - ADDED_MAX - NAMES_MIN
               ? NULL
               : error_create(ERROR_USAGE, "%s is too long a name for several files: choose a shorter one", path);
}

void part_files_deinit(struct part_files *p)
{
    intern_deinit(&p->names);
    VEC_DEINIT(&p->numbers);
}

void part_files_print(const struct part_files *p, FILE *out)
{
    struct buf text = {0};

    buf_printf(&text, "pysym: wrote %" PRIu64 " file%s: ", p->count, p->count == 1 ? "" : "s");
    char *names = NULL;
    if (asprintf(&names, "%.*s.*%s", (int)(p->name - p->path) + (int)p->stem_len, p->path, p->name + p->stem_len) >= 0)
        printable_put(&text, names);
    free(names);
    buf_put_u8(&text, '\n');
    fputs(buf_cstr(&text), out);
    buf_deinit(&text);
}
