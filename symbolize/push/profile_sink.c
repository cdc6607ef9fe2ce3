/* SPDX-License-Identifier: Apache-2.0 */
/* A profile is written to memory, and from there to the pipe. See profile_sink.h. */
#include "symbolize/push/profile_sink.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/emit/pprof/losses.h"

/* What the C library takes for a stream when it is opened, about. */
enum { STREAM_BYTES = BUFSIZ + 1024 };

/* The memory of a part's stream. */
struct stream {
    FILE *file;
    char *data;
    size_t len_bytes; /* both are right after a flush */
    struct stream *next, **link; /* of those that are open, and what points to this one */
};

struct profile_sink {
    struct part_sink sink; /* first: its functions get a pointer to it */
    const struct profile_pipe *pipe;
    struct series *series;
    struct limits *limits;
    struct stream *streams;
    uint64_t cut_count;
};

/* ---- streams ---- */

static struct error *open_stream(struct profile_sink *p, struct stream **out)
{
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    if (!limits_take(p->limits, STREAM_BYTES)) {
        free(s);
        return error_no_memory();
    }
    s->file = open_memstream(&s->data, &s->len_bytes);
    if (!s->file) {
        limits_give(p->limits, STREAM_BYTES);
        free(s);
        return error_no_memory();
    }
    s->next = p->streams;
    s->link = &p->streams;
    if (s->next)
        s->next->link = &s->next;
    p->streams = s;
    *out = s;
    return NULL;
}

static void close_stream(struct profile_sink *p, struct stream *s)
{
    limits_give(p->limits, STREAM_BYTES);
    fclose(s->file);
    free(s->data);
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    free(s);
}

/* ---- profiles ---- */

static struct error *send_profile(struct profile_sink *p, uint32_t series, struct stream *s, struct push_profile profile)
{
    struct converter_message message = {.event = CONVERTER_PROFILE, .profile = profile};

    if (fflush(s->file))
        return error_os(errno, "cannot write a profile to memory");
    message.profile.labels = series_labels(p->series, series, &message.profile.label_count);
    message.profile.data = s->data;
    message.profile.len_bytes = s->len_bytes;
    return message_write(p->pipe, &message);
}

static struct error *send_chunk(struct profile_sink *p, const struct emit_part *part, const struct part_output *out)
{
    const struct push_profile profile = {.window_begin_ns = part->window_begin_ns,
                                         .window_end_ns = part->window_end_ns,
                                         .last_ns = part->last_ns,
                                         .chunk = out->chunk_number,
                                         .samples = out->chunk.samples,
                                         .rows = out->chunk.rows,
                                         .raw_len_bytes = out->chunk.raw_bytes};

    p->cut_count += out->chunk.cut_samples;
    return send_profile(p, part->series, out->own, profile);
}

/* ---- the sink ---- */

static struct error *open_part(struct part_sink *sink, struct part_output *out)
{
    struct stream *s;

    TRY(open_stream((struct profile_sink *)sink, &s));
    out->file = s->file;
    out->own = s;
    return NULL;
}

static struct error *take_chunk(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                                struct part_output *out)
{
    (void)model;
    TRY(send_chunk((struct profile_sink *)sink, part, out));
    rewind(out->file);
    return NULL;
}

static struct error *close_part(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                                struct part_output *out)
{
    (void)model;
    struct error *err = send_chunk((struct profile_sink *)sink, part, out);

    close_stream((struct profile_sink *)sink, out->own);
    return err;
}

static struct error *find_series(struct part_sink *sink, const struct emit_model *model, const struct emit_sample *sample,
                                 uint64_t window_begin_ns, uint32_t *series)
{
    return series_find(((struct profile_sink *)sink)->series, model, sample, window_begin_ns, series);
}

/* The profile first: a sender that knows it from before leaves the messages out of its counts. */
static struct error *send_losses(struct profile_sink *p, struct stream *s, uint32_t series, const struct emit_part *part,
                                 const struct window_losses *losses)
{
    struct push_profile profile = {.window_begin_ns = part->window_begin_ns, .window_end_ns = part->window_end_ns,
                                   .last_ns = part->last_ns, .samples = losses->count, .rows = losses->count};
    uint64_t raw_bytes;

    TRY(pprof_losses_write(part, losses->losses, losses->count, p->limits, s->file, &raw_bytes));
    profile.raw_len_bytes = raw_bytes;
    TRY(send_profile(p, series, s, profile));
    for (uint32_t i = 0; i < losses->count; i++) {
        const struct converter_message message = {.event = CONVERTER_LOST, .text = losses->losses[i].name, .count = losses->losses[i].count,
                                                  .is_sample = losses->losses[i].is_sample};
        TRY(message_write(p->pipe, &message));
    }
    return NULL;
}

static struct error *take_losses(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                                 const struct window_losses *losses)
{
    struct profile_sink *p = (struct profile_sink *)sink;
    struct stream *s;
    uint32_t series;

    TRY(series_of_losses(p->series, model, losses->capture, &series));
    TRY(open_stream(p, &s));
    struct error *err = send_losses(p, s, series, part, losses);
    close_stream(p, s);
    return err;
}

struct error *profile_sink_create(const struct profile_pipe *pipe, const struct store_kind *store, struct series *series,
                                  struct limits *limits, struct profile_sink **out)
{
    struct profile_sink *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    *p = (struct profile_sink){.sink = {.open = open_part, .close = close_part, .take = take_chunk,
                                        .find_series = find_series, .losses = take_losses,
                                        .most = {.rows = store->max_rows, .depth = PROFILE_DEPTH_MAX, .raw_bytes = store->max_raw_bytes}},
                               .pipe = pipe, .series = series, .limits = limits};
    *out = p;
    return NULL;
}

struct part_sink *profile_sink_parts(struct profile_sink *p)
{
    return &p->sink;
}

uint64_t profile_sink_cut_count(const struct profile_sink *p)
{
    return p->cut_count;
}

void profile_sink_destroy(struct profile_sink *p)
{
    if (!p)
        return;
    while (p->streams)
        close_stream(p, p->streams);
    free(p);
}
