/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/format_choice.h"

#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/nearest.h"

static const struct {
    enum output_kind kind;
    const char *name, *description;
} own_formats[] = {
    {OUTPUT_SUMMARY, "summary", "how complete the recording is, what to do about it, and who ran"},
    {OUTPUT_DUMP, "dump", "every record of the trace as text"},
    {OUTPUT_LIVE, "live", "a view for a terminal of a trace as it arrives: what is hot this second"},
    {OUTPUT_UNWIND_CHECK, "unwind-check", "stacks unwound in the kernel beside snapshots (pycap record --unwind both)"},
};
enum { OWN_FORMAT_COUNT = sizeof own_formats / sizeof *own_formats };

/* What other tools call their formats, and extensions of files. */
static const struct {
    const char *words; /* with blanks around each */
    const char *answer;
} strangers[] = {
    {" flamegraph flame htm xhtml ", "use -f html: a page with a flame graph, for any browser; -f svg: a picture"},
    {" icicle picture png pdf ", "use -f svg, or -f html: a page for any browser"},
    {" callgraph calltree calls caller callers graph ", "use -f tree"},
    {" review short markdown md llm agent ", "use -f brief"},
    {" collapsed raw stacks stackcollapse txt ", "use -f folded"},
    {" perf data hotspot samply ", "use -f perf-data, or -f perf-script for the text that perf script prints"},
    {" watch follow tail interactive curses tui ", "use -f live: a view of a trace as it arrives"},
    {" script ", "use -f perf-script"},
    {" gecko geckoprofile processed ", "use -f firefox: https://profiler.firefox.com opens it"},
    {" perfetto ", "use -f perf-script: https://ui.perfetto.dev opens it"},
    {" json chrome chrometrace ", "use -f speedscope, -f ndjson for a row for each sample, or -f top --json"},
    {" jsonl csv tsv parquet arrow sql sqlite duckdb jq ", "use -f ndjson: DuckDB and jq read it, and DuckDB writes Parquet and CSV"},
    {" pb gz prof proto go pyroscope parca grafana ", "use -f pprof"},
    {" otlp otel opentelemetry ", "use -f pprof, which the OpenTelemetry Collector receives (pprofreceiver)"},
    {" pstats snakeviz callgrind cachegrind kcachegrind ", "use -f pprof or -f speedscope: most tools read one of them"},
    {" stacks pystack dumpstacks traceback gdb faulthandler tasks pstree ", "use -f threads"},
    {" report stat stats info text table hot ", "use -f top or -f summary"},
    {" diff compare comparison delta baseline junit github annotations ", "use pysym diff OLD... -- NEW..."},
    {" check unwind ", "use -f unwind-check"},
};
enum { STRANGER_COUNT = sizeof strangers / sizeof *strangers, NAME_MAX_LEN = 24 };

void format_print(FILE *out)
{
    for (const struct emitter *const *e = emitters; *e; e++)
        fprintf(out, "  %-14s  %s\n", (*e)->name, (*e)->description);
    for (int i = 0; i < OWN_FORMAT_COUNT; i++)
        fprintf(out, "  %-14s  %s\n", own_formats[i].name, own_formats[i].description);
}

/* ---- what was probably meant ---- */

static const char *nearest_format(const char *word)
{
    struct nearest nearest = nearest_to(word, strlen(word));

    for (const struct emitter *const *e = emitters; *e; e++)
        nearest_consider(&nearest, (*e)->name);
    for (int i = 0; i < OWN_FORMAT_COUNT; i++)
        nearest_consider(&nearest, own_formats[i].name);
    return nearest.name;
}

static const char *stranger(const char *word)
{
    char spaced[NAME_MAX_LEN + 3];

    if (!*word || strlen(word) > NAME_MAX_LEN || strchr(word, ' '))
        return NULL;
    snprintf(spaced, sizeof spaced, " %s ", word);
    for (int i = 0; i < STRANGER_COUNT; i++) {
        if (strstr(strangers[i].words, spaced))
            return strangers[i].answer;
    }
    return NULL;
}

/* "`what` 'name'", what was probably meant by `word`, and all formats. */
static struct error *refuse(const char *what, const char *name, const char *word)
{
    const char *answer = stranger(word), *nearest = answer ? NULL : nearest_format(word);
    struct buf text = {0};

    buf_printf(&text, "%s '%s'", what, name);
    if (answer)
        buf_printf(&text, ": %s", answer);
    if (nearest)
        buf_printf(&text, ": did you mean %s?", nearest);
    buf_put_str(&text, " (formats are:");
    for (const struct emitter *const *e = emitters; *e; e++)
        buf_printf(&text, " %s", (*e)->name);
    for (int i = 0; i < OWN_FORMAT_COUNT; i++)
        buf_printf(&text, " %s", own_formats[i].name);
    buf_put_str(&text, ")");
    struct error *err = text.bad ? error_no_memory() : error_create(ERROR_USAGE, "%s", buf_cstr(&text));
    buf_deinit(&text);
    return err;
}

/* ---- the choice ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), end_len = strlen(end);

    return end_len && len > end_len && !strcmp(s + len - end_len, end);
}

/* The format of the longest extension of the output, a format's own or a common one. NULL: none has it. */
static const struct emitter *emitter_of_output(const char *output)
{
    static const char *const usual[][2] = {{".json", "speedscope"}, {".txt", "folded"}, {".collapsed", "folded"},
                                           {".perf", "perf-script"}, {".data", "perf-data"}, {".pprof", "pprof"},
                                           {".pb", "pprof"}, {".jsonl", "ndjson"}};
    const struct emitter *found = NULL;
    size_t longest = 0;

    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (ends_with(output, usual[i][0])) {
            found = emitter_find(usual[i][1]);
            longest = strlen(usual[i][0]);
        }
    }
    for (const struct emitter *const *e = emitters; *e; e++) {
        if (ends_with(output, (*e)->extension) && strlen((*e)->extension) > longest) {
            found = *e;
            longest = strlen((*e)->extension);
        }
    }
    return found;
}

/* An output whose name ends in .gz behind the extension of a format that pysym writes as it is. NULL: it is not one. */
static struct error *refuse_compressed(const char *output)
{
    struct buf plain = {0};
    struct error *err = NULL;

    if (ends_with(output, ".gz"))
        buf_put(&plain, output, strlen(output) - strlen(".gz"));
    if (plain.len_bytes && emitter_of_output(buf_cstr(&plain)))
        err = error_create(ERROR_USAGE, "%s: pysym does not compress this format: write %s, then gzip it", output, buf_cstr(&plain));
    buf_deinit(&plain);
    return err;
}

static struct error *choose_by_output(const char *output, struct format_choice *out)
{
    const char *dot = strrchr(output, '.');

    out->emitter = emitter_of_output(output);
    if (out->emitter)
        return NULL;
    TRY(refuse_compressed(output));
    return refuse("say which --format: none is known by the name", output, dot ? dot + 1 : "");
}

struct error *format_choose(const char *format, const char *output, struct format_choice *out)
{
    *out = (struct format_choice){.kind = OUTPUT_EMITTER};
    if (!format && output)
        return choose_by_output(output, out);
    if (!format) {
        *out = (struct format_choice){OUTPUT_PAGE, emitter_find("top")};
        return NULL;
    }
    for (int i = 0; i < OWN_FORMAT_COUNT; i++) {
        if (!strcmp(format, own_formats[i].name)) {
            out->kind = own_formats[i].kind;
            return NULL;
        }
    }
    out->emitter = emitter_find(format);
    return out->emitter ? NULL : refuse("unknown format", format, format);
}
