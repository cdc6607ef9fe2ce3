/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/source/notebook.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/code_file.h"
#include "formats/base/utf8.h"

bool notebook_is(const char *path)
{
    static const char end[] = ".ipynb";
    size_t len = strlen(path);

    return len >= sizeof end - 1 && !strcmp(path + len - (sizeof end - 1), end);
}

/* ---- one cell ---- */

/* The text without the lines at its beginning that are empty: IPython takes them away, and numbers the rest. */
static const char *from_first_line(const char *text)
{
    const char *line = text, *end;

    while (*(end = line + strspn(line, " \t\r\f\v")) == '\n')
        line = end + 1;
    return *end ? line : text;
}

static struct error *add_hashed(struct notebooks *n, const char *path, uint32_t number, const char *text, uint32_t hash)
{
    const char *shown = from_first_line(text);
    struct notebook_cell cell = {.hash = hash, .number = number, .text = strdup(shown),
                                 .len_bytes = strlen(shown), .notebook = path};

    if (cell.text && VEC_PUSH(&n->cells, cell))
        return NULL;
    free(cell.text);
    return error_no_memory();
}

/* Before 6.6 ipykernel took the low bytes of characters. */
static bool hash_of_low_bytes(const char *text, uint32_t *out)
{
    struct buf low = {0};
    size_t len = strlen(text), n;
    uint32_t code;

    for (size_t i = 0; i < len; i += n) {
        n = utf8_decode((const uint8_t *)text + i, len - i, &code);
        if (!n)
            break;
        buf_put_u8(&low, (uint8_t)code);
    }
    *out = code_file_cell_hash(buf_cstr(&low), low.len_bytes);
    bool ok = !low.bad;
    buf_deinit(&low);
    return ok;
}

static struct error *add_text(struct notebooks *n, const char *path, uint32_t number, const char *text)
{
    uint32_t hash = code_file_cell_hash(text, strlen(text)), low;

    TRY(add_hashed(n, path, number, text, hash));
    if (!hash_of_low_bytes(text, &low))
        return error_no_memory();
    return low == hash ? NULL : add_hashed(n, path, number, text, low);
}

/* `source` is a text, or an array of lines that end in newlines. */
static struct error *add_cell(struct notebooks *n, const char *path, uint32_t number, const json_t *source)
{
    struct buf text = {0};
    const json_t *line;
    size_t i;

    if (json_is_string(source))
        buf_put_str(&text, json_string_value(source));
    json_array_foreach(source, i, line) {
        if (json_is_string(line))
            buf_put_str(&text, json_string_value(line));
    }
    struct error *err = text.bad ? error_no_memory() : add_text(n, path, number, buf_cstr(&text));
    const char *body = text.bad || strncmp(buf_cstr(&text), "%%", 2) ? NULL : strchr(buf_cstr(&text), '\n');
    if (!err && body)
        err = add_text(n, path, number, body + 1);
    buf_deinit(&text);
    return err;
}

/* ---- the file ---- */

/* Numbers that Python's json writes into outputs, and JSON does not have; -Infinity becomes -0. */
static const char *const no_json[] = {"NaN", "Infinity"};

/* Puts a number that JSON has, and blanks, over one that it has not. */
static void replace_number(char *at, const char *end)
{
    for (size_t i = 0; i < sizeof no_json / sizeof *no_json; i++) {
        size_t len = strlen(no_json[i]);
        if ((size_t)(end - at) >= len && !memcmp(at, no_json[i], len)) {
            memset(at, ' ', len);
            *at = '0';
        }
    }
}

/* The end of a text that begins at `at`. */
static char *skip_text(char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return at;
}

/* Makes JSON of what Python takes for it; false: it has too many values, of which each has a comma or a bracket in front of it. */
static bool prepare(struct buf *json)
{
    char *at = (char *)json->data;
    const char *end = at + json->len_bytes;
    size_t count = 0;

    for (; at < end; at++) {
        if (*at == '"')
            at = skip_text(at, end);
        else if (*at == 'N' || *at == 'I')
            replace_number(at, end);
        else
            count += *at == ',' || *at == '[' || *at == '{';
    }
    return count <= NOTEBOOK_MAX_VALUES;
}

struct error *notebooks_parse(struct notebooks *n, const char *path, struct buf *json)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
    const char *text = buf_cstr(json);
    size_t len_bytes = json->len_bytes, skipped = strncmp(text, mark, sizeof mark - 1) ? 0 : sizeof mark - 1;
    json_error_t reason;
    struct error *err = NULL;
    uint32_t number = 0;
    const json_t *cell;
    size_t i;

    if (!prepare(json))
        return error_create(ERROR_FORMAT, "--source %s: too large a notebook; clear its outputs", path);
    json_t *root = json_loadb(text + skipped, len_bytes - skipped, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &reason);
    if (!root)
        return error_create(ERROR_FORMAT, "--source %s: not a notebook: line %d: %s", path, reason.line, reason.text);
    const json_t *cells = json_object_get(root, "cells");
    if (!json_is_array(cells))
        err = error_create(ERROR_FORMAT, "--source %s: not a notebook of nbformat 4: it has no cells", path);
    json_array_foreach(cells, i, cell) {
        const char *type = json_string_value(json_object_get(cell, "cell_type"));
        if (!err && type && !strcmp(type, "code"))
            err = add_cell(n, path, ++number, json_object_get(cell, "source"));
    }
    json_decref(root);
    return err;
}

struct error *notebooks_add(struct notebooks *n, const char *path)
{
    enum { PIECE = 1 << 16 };
    struct buf text = {0};
    ssize_t got = 1;
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        int reason = fd < 0 ? errno : EINVAL;
        if (fd >= 0)
            close(fd);
        return error_file(reason, path, "cannot be read as a notebook");
    }
    while (got > 0 && text.len_bytes <= NOTEBOOK_MAX_BYTES) {
        uint8_t *to = buf_reserve(&text, PIECE);
        got = to ? read(fd, to, PIECE) : -1;
        if (got > 0)
            text.len_bytes += (size_t)got;
        else if (got < 0 && to && errno == EINTR)
            got = 1;
    }
    struct error *err = text.bad  ? error_no_memory()
                        : got < 0 ? error_file(errno, path, "cannot be read as a notebook")
                        : got > 0 ? error_create(ERROR_FORMAT, "--source %s: too large a notebook; clear its outputs", path)
                                  : notebooks_parse(n, path, &text);
    buf_deinit(&text);
    close(fd);
    return err;
}

const struct notebook_cell *notebooks_find(const struct notebooks *n, uint32_t hash)
{
    for (size_t i = 0; i < n->cells.count; i++) {
        if (n->cells.data[i].hash == hash)
            return &n->cells.data[i];
    }
    return NULL;
}

void notebooks_deinit(struct notebooks *n)
{
    for (size_t i = 0; i < n->cells.count; i++)
        free(n->cells.data[i].text);
    VEC_DEINIT(&n->cells);
}
