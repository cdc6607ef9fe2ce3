/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the report of a comparison. See report_choice.h. */
#include "symbolize/report_choice.h"

#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/nearest.h"

static const char page[] = "html", page_extension[] = ".html";

/* What others call these reports, and extensions that several programs use. */
static const char *const also[][2] = {{"txt", "text"}, {"md", "markdown"}, {"xml", "junit"}, {"htm", "html"},
                                      {"page", "html"}, {"annotations", "github"}, {"flamegraph", "folded"}};

void report_choice_print(FILE *out)
{
    for (const struct report_format *const *f = report_formats; *f; f++)
        fprintf(out, "  %-14s  %s\n", (*f)->name, (*f)->description);
    fprintf(out, "  %-14s  %s\n", page, "a page for any browser: flame graph of both sides, what surely changed in colours");
}

static const char *usual_name(const char *word)
{
    for (size_t i = 0; i < sizeof also / sizeof *also; i++) {
        if (!strcmp(also[i][0], word))
            return also[i][1];
    }
    return NULL;
}

/* "`what` 'name'", what was probably meant by `word`, and all formats. */
static struct error *refuse(const char *what, const char *name, const char *word)
{
    struct nearest nearest = nearest_to(word, strlen(word));
    struct buf text = {0};

    buf_printf(&text, "%s '%s'", what, name);
    for (const struct report_format *const *f = report_formats; *f; f++)
        nearest_consider(&nearest, (*f)->name);
    nearest_consider(&nearest, page);
    const char *meant = usual_name(word) ? usual_name(word) : *word ? nearest.name : NULL;
    if (meant)
        buf_printf(&text, ": did you mean -f %s?", meant);
    buf_put_str(&text, " (formats of pysym diff are:");
    for (const struct report_format *const *f = report_formats; *f; f++)
        buf_printf(&text, " %s", (*f)->name);
    buf_printf(&text, " %s)", page);
    struct error *err = text.bad ? error_no_memory() : error_create(ERROR_USAGE, "%s", buf_cstr(&text));
    buf_deinit(&text);
    return err;
}

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), end_len = strlen(end);

    return len > end_len && !strcmp(s + len - end_len, end);
}

static const char *name_by_output(const char *output)
{
    const char *dot = strrchr(output, '.');

    if (ends_with(output, page_extension))
        return page;
    for (const struct report_format *const *f = report_formats; *f; f++) {
        if ((*f)->extension && ends_with(output, (*f)->extension))
            return (*f)->name;
    }
    return dot ? usual_name(dot + 1) : NULL;
}

struct error *report_choose(const char *format, const char *output, struct format_choice *choice, const struct report_format **report)
{
    const char *name = format ? format : output ? name_by_output(output) : report_formats[0]->name;

    *choice = (struct format_choice){.kind = OUTPUT_DIFF};
    *report = NULL;
    if (!name)
        return refuse("say which --format: none is known by the name", output, "");
    if (!strcmp(name, page)) {
        choice->emitter = emitter_find(page);
        return NULL;
    }
    *report = report_format_find(name);
    return *report ? NULL : refuse("unknown format", name, name);
}
