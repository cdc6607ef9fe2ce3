/* SPDX-License-Identifier: Apache-2.0 */
/* Files of plain lines. See lines.h. */
#include "formats/base/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

char *line_trim(char *line)
{
    char *end = line;

    while (*end && !(*end == '#' && (end == line || is_blank(end[-1]))))
        end++;
    while (end > line && is_blank(end[-1]))
        end--;
    *end = 0;
    while (is_blank(*line))
        line++;
    return line;
}

/* The whole file with a 0 byte behind it; the caller deinits `out` also after an error. */
static struct error *read_whole(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "re");
    char chunk[4096];
    size_t len;

    if (!f)
        return error_file(errno, path, "could not be opened");
    errno = 0;
    while ((len = fread(chunk, 1, sizeof chunk, f)) > 0 && out->len_bytes <= LINES_MAX_BYTES)
        buf_put(out, chunk, len);
    int why = ferror(f) ? errno : 0;
    fclose(f);
    if (why)
        return error_file(why, path, "could not be read");
    if (out->len_bytes > LINES_MAX_BYTES)
        return error_path(ERROR_LIMIT, path, "is longer than 1 MiB, which no list of lines is");
    buf_put_u8(out, 0);
    if (out->bad)
        return error_no_memory();
    return memchr(out->data, 0, out->len_bytes - 1) ? error_path(ERROR_FORMAT, path, "is no text") : NULL;
}

static struct error *take_lines(const char *path, char *text, line_taker take, void *ctx)
{
    struct buf origin = {0};
    struct error *err = NULL;
    unsigned number = 0;

    for (char *line = text, *next; !err && line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        number++;
        line = line_trim(line);
        if (!*line)
            continue;
        buf_clear(&origin);
        buf_printf(&origin, "%s:%u", path, number);
        err = origin.bad ? error_no_memory() : take(ctx, line, buf_cstr(&origin));
    }
    buf_deinit(&origin);
    return err;
}

struct error *lines_read(const char *path, line_taker take, void *ctx)
{
    struct buf text = {0};
    struct error *err = read_whole(path, &text);

    if (!err)
        err = take_lines(path, (char *)text.data, take, ctx);
    buf_deinit(&text);
    return err;
}
