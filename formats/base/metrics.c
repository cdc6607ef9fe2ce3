/* SPDX-License-Identifier: Apache-2.0 */
/* https://prometheus.io/docs/instrumenting/exposition_formats/: lines end with '\n', the last one, too. */
#include "formats/base/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/printable.h"
#include "formats/base/replacement.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS "0123456789"

/* ':' is for rules of Prometheus alone, and a label that begins with "__" is its own. */
static bool is_name(const char *name)
{
    return *name && !strchr(DIGITS, *name) && !name[strspn(name, LETTERS DIGITS)] && strncmp(name, "__", 2) != 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && !strcmp(text + len - end_len, end);
}

/* Escapes backslashes, line ends and, in values, quotes. */
static void put_escaped(struct buf *out, const char *text, bool quoted)
{
    struct buf clean = {0};

    printable_put_lines(&clean, text);
    for (const char *s = buf_cstr(&clean); *s; s++) {
        if (*s == '\n')
            buf_put_str(out, "\\n");
        else if (*s == '\\' || (quoted && *s == '"'))
            buf_printf(out, "\\%c", *s);
        else
            buf_put_u8(out, (uint8_t)*s);
    }
    out->bad |= clean.bad;
    buf_deinit(&clean);
}

void metrics_family(struct buf *out, const char *name, const char *type, const char *help)
{
    assert(is_name(name) && (!strcmp(type, "counter") || !strcmp(type, "gauge")));
    assert(ends_with(name, "_total") == !strcmp(type, "counter"));
    buf_printf(out, "# HELP %s ", name);
    put_escaped(out, help, false);
    buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

static void put_name(struct buf *out, const char *name, const char *label, const char *value)
{
    assert(is_name(name) && (!label || is_name(label)));
    buf_put_str(out, name);
    if (label) {
        buf_printf(out, "{%s=\"", label);
        put_escaped(out, value, true);
        buf_put_str(out, "\"}");
    }
}

/* The shortest text that is read as the same figure. */
static void put_figure(struct buf *out, double figure)
{
    char text[32];
    int digits = 15;

    if (isnan(figure))
        snprintf(text, sizeof text, "NaN");
    else if (isinf(figure))
        snprintf(text, sizeof text, figure > 0 ? "+Inf" : "-Inf");
    else
        do
            snprintf(text, sizeof text, "%.*g", digits, figure);
        while (digits++ < 17 && strtod(text, NULL) != figure);
    buf_printf(out, " %s\n", text);
}

void metrics_put(struct buf *out, const char *name, const char *label, const char *value, double figure)
{
    put_name(out, name, label, value);
    put_figure(out, figure);
}

void metrics_put_u64(struct buf *out, const char *name, const char *label, const char *value, uint64_t figure)
{
    put_name(out, name, label, value);
    buf_printf(out, " %" PRIu64 "\n", figure);
}

struct error *metrics_publish(const char *path, const struct buf *text)
{
    struct replacement file;

    if (text->bad)
        return error_no_memory();
    TRY(replacement_create(path, 0644, &file));
    struct error *err = replacement_write(&file, text->data, text->len_bytes);
    if (!err)
        err = replacement_commit(&file, false);
    replacement_deinit(&file);
    return err;
}
