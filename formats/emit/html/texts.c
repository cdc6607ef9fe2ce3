/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/texts.h"

#include <stdlib.h>

#include "formats/base/intern.h"
#include "formats/emit/json.h"

/* ---- the summary ---- */

static struct error *put_printed(struct html_rows *rows, const char *key, struct emit_summary *summary, bool brief)
{
    char *text = NULL;
    size_t len_bytes;
    FILE *out = open_memstream(&text, &len_bytes);

    if (!out)
        return error_no_memory();
    struct error *err = summary ? summary->print(summary, brief, out) : NULL;
    if (fclose(out) && !err)
        err = error_no_memory();
    if (!err)
        err = html_rows_put_text(rows, key, text);
    free(text);
    return err;
}

struct error *html_texts_put_summary(struct html_rows *rows, const struct emit_options *options)
{
    TRY(put_printed(rows, "summary", options->summary, false));
    return put_printed(rows, "verdict", options->summary, true);
}

/* ---- comparisons ---- */

struct error *html_texts_put_comparison(struct html_rows *rows, const struct emit_options *options)
{
    char *text = NULL;
    size_t len_bytes;
    FILE *out = options->comparison ? open_memstream(&text, &len_bytes) : NULL;

    if (!out)
        return options->comparison ? error_no_memory() : NULL;
    struct error *err = options->comparison->write(options->comparison, out);
    if (fclose(out) && !err)
        err = error_no_memory();
    if (!err)
        err = html_rows_put_plain(rows, ",");
    if (!err)
        err = html_rows_put_plain(rows, text);
    free(text);
    return err;
}

/* ---- sources ---- */

static struct error *put_source(struct html_rows *rows, const char *file, const struct emit_source *source)
{
    static const char *const matches[] = {
        [EMIT_SOURCE_UNKNOWN] = "unknown", [EMIT_SOURCE_SAME] = "same", [EMIT_SOURCE_CHANGED] = "changed"};
    json_t *object = json_object();
    bool ok = object && json_set_name(object, "file", file) && json_set_name(object, "path", source->path) &&
              json_set(object, "match", json_string(matches[source->match])) &&
              json_set(object, "text", json_stringn(source->text, source->len_bytes));

    return html_rows_put(rows, object, ok);
}

struct error *html_texts_put_sources(struct html_rows *rows, const struct emit_model *model, const struct emit_options *options,
                                     const struct html_numbers *frames)
{
    struct intern files = {.arena.limits = options->limits};
    struct error *err = NULL;

    for (size_t i = 0; options->embed_source && options->sources && !err && i < frames->list.count; i++) {
        const struct emit_frame *f = &model->frames[frames->list.data[i]];
        const struct emit_source *source = NULL;
        bool added = false;
        if (f->kind != EMIT_PYTHON || !*f->file)
            continue;
        if (intern_id(&files, f->file, (uint32_t)strlen(f->file), &added) == INTERN_NONE)
            err = error_no_memory();
        if (!err && added)
            err = options->sources->find(options->sources, model, f->file, &source);
        if (!err && source)
            err = put_source(rows, f->file, source);
    }
    intern_deinit(&files);
    return err;
}
