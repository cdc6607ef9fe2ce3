/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push_convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/numbers.h"
#include "symbolize/confine.h"
#include "symbolize/convert.h"
#include "symbolize/options.h"
#include "symbolize/push/message.h"
#include "symbolize/push/profile_sink.h"
#include "symbolize/push/series.h"
#include "symbolize/trace/file_limits.h"

/* Sends a line of what convert_run() has to say; without the program's name, which the sender puts before it. */
static void send_line(const struct profile_pipe *pipe, char *line)
{
    static const char program[] = "pysym: ";
    struct converter_message m = {.event = CONVERTER_TEXT, .text = line};

    if (!strncmp(line, program, sizeof program - 1))
        m.text += sizeof program - 1;
    error_destroy(message_write(pipe, &m)); /* a sender that is gone needs no lines */
}

static void send_lines(const struct profile_pipe *pipe, char *text)
{
    for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        send_line(pipe, line);
}

/* What the profiles leave out or put together. */
static void tell_limits(const struct push_request *r, const struct profile_sink *sink, const struct series *series, FILE *out)
{
    uint64_t cut = profile_sink_cut_count(sink), folded = series_folded_count(series);
    struct number n;

    if (cut)
        fprintf(out, "%s more than %d frames: those in the middle are left out\n", counted(cut, "sample has", "samples have", &n),
                PROFILE_DEPTH_MAX);
    if (folded)
        fprintf(out, "%s over --max-series %" PRIu32 " of a window: their samples are in service_name=\"other\"\n",
                counted(folded, "series is", "series are", &n), r->max_series);
}

static struct error *convert_to_pipe(const struct options *o, struct series *series, struct limits *limits,
                                     const struct profile_pipe *pipe, bool *damaged)
{
    struct convert_outcome outcome = {0};
    struct profile_sink *sink;
    char *text = NULL;
    size_t len;

    TRY(profile_sink_create(pipe, o->push.store, series, limits, &sink));
    FILE *trouble = open_memstream(&text, &len);
    struct error *err = !trouble ? error_no_memory()
                                 : convert_run(o, &(struct convert_output){.parts = profile_sink_parts(sink)}, trouble, &outcome);
    if (trouble)
        tell_limits(&o->push, sink, series, trouble);
    if (trouble && !fclose(trouble))
        send_lines(pipe, text);
    free(text);
    profile_sink_destroy(sink);
    *damaged = outcome.damaged;
    return err;
}

struct error *push_convert(void *own, const struct converter_trace *trace, const struct profile_pipe *pipe, bool *damaged)
{
    struct options o = *(const struct options *)own;
    const char *inputs[] = {trace->path};
    struct file_limits limits;
    struct series *series = NULL;
    char at[32];

    snprintf(at, sizeof at, "/proc/self/fd/%d", trace->fd);
    o.inputs.data = inputs;
    o.inputs.count = 1;
    o.input_at = at;
    o.emit.name = input_title(trace->path);
    o.split = PARTS_BY_SERIES;
    o.window_ns = o.push.window_ns;
    file_limits_init(&limits, o.max_memory_bytes);
    struct error *err = series_create(&o.push, &limits.limits, &series);
    if (!err)
        err = confine(&o);
    if (!err)
        err = convert_to_pipe(&o, series, &limits.limits, pipe, damaged);
    series_destroy(series);
    return file_limits_explain(&limits, err);
}
