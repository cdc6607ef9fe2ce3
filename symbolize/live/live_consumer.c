/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/live_consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/printable.h"

struct live_consumer {
    struct live_feed *feed;
    const struct emit_model *model;
    uint32_t setting_count; /* of those in the head */
    uint64_t block;         /* where the one begins that is being read */
    const char *ending;     /* why it ended, in good order; NULL: it has not */
};

struct error *live_consumer_create(struct live_feed *feed, const struct emit_model *model, struct live_consumer **out)
{
    struct live_consumer *c = calloc(1, sizeof *c);

    if (!c)
        return error_no_memory();
    *c = (struct live_consumer){.feed = feed, .model = model};
    *out = c;
    return live_tally_model(feed->tally, model);
}

struct error *live_consumer_renew(struct live_consumer *c, const struct emit_model *model)
{
    c->model = model;
    c->setting_count = 0;
    return live_tally_model(c->feed->tally, model);
}

static const char *setting(const struct emit_capture *capture, const char *key)
{
    for (uint32_t i = 0; i < capture->setting_count; i++) {
        if (!strcmp(capture->settings[i].key, key))
            return capture->settings[i].value;
    }
    return "";
}

/* What is recorded, for people. Of other words a later version knows more. */
static const char *scope_text(const char *scope)
{
    return !strcmp(scope, "pids") ? "chosen processes" : !strcmp(scope, "command") ? "a command" : !strcmp(scope, "all") ? "host-wide" : scope;
}

/* "web1: chosen processes, at 99 Hz". */
static void tell_recorded(struct live_consumer *c)
{
    const struct emit_capture *capture = &c->model->captures[c->model->capture_count - 1];
    struct buf text = {0};

    if (c->setting_count == capture->setting_count)
        return;
    c->setting_count = capture->setting_count;
    printable_put(&text, *capture->hostname ? capture->hostname : capture->name);
    if (*setting(capture, "scope")) {
        buf_put_str(&text, ": ");
        printable_put(&text, scope_text(setting(capture, "scope")));
    }
    if (*setting(capture, "frequency")) {
        buf_put_str(&text, ", at ");
        printable_put(&text, setting(capture, "frequency"));
        buf_put_str(&text, " Hz");
    }
    live_tally_recorded(c->feed->tally, buf_cstr(&text));
    buf_deinit(&text);
}

/* When what the record says was so; 0: it does not say. */
static uint64_t time_of(const struct trace_record *rec)
{
    switch (rec->type) {
    case TRACE_epoch: return rec->epoch.time_ns;
    case TRACE_loss: return rec->loss.time_ns;
    case TRACE_ticks: return rec->ticks.time_ns;
    case TRACE_clock: return rec->clock.monotonic_ns;
    case TRACE_end: return rec->end.time_ns;
    default: return 0;
    }
}

static struct error *take_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    struct live_consumer *c = state;
    struct live_tally *tally = c->feed->tally;
    uint64_t time_ns = time_of(rec);
    bool begins = rec->file_offset != c->block;

    atomic_store(&c->feed->begun, true);
    c->block = rec->file_offset;
    if (begins)
        TRY(live_tally_block(tally));
    if (rec->type == TRACE_meta || rec->type == TRACE_epoch)
        tell_recorded(c);
    if (rec->type == TRACE_loss)
        live_tally_loss(tally, rec->loss.reason, rec->loss.count);
    if (rec->type == TRACE_epoch) /* of the next file, perhaps */
        c->ending = NULL;
    if (rec->type == TRACE_end)
        c->ending = trace_value_meaning(TRACE_ENUM_end_reason, rec->end.reason);
    if (rec->type == TRACE_end && !c->ending)
        c->ending = "ended";
    live_tally_damages(tally, trace_reader_stats(file->reader)->damage_count);
    /* In a block of its own: all up to its time has come. Anywhere else samples from before may follow. */
    if (rec->type == TRACE_clock && begins && !rec->epoch_ends)
        return live_tally_clock(tally, time_ns);
    if (rec->type == TRACE_end)
        live_tally_last(tally, time_ns);
    if (time_ns)
        live_tally_time(tally, time_ns);
    return NULL;
}

static struct error *take_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    struct live_consumer *c = state;

    (void)file;
    return live_tally_sample(c->feed->tally, sample->shown);
}

static struct error *end(void *state)
{
    struct live_consumer *c = state;

    char text[128] = "the trace breaks off here";

    if (c->ending)
        snprintf(text, sizeof text, "the recording %s", c->ending);
    return live_tally_end(c->feed->tally, text);
}

static bool has_enough(const void *state)
{
    const struct live_consumer *c = state;

    return atomic_load(&c->feed->stop);
}

/* The model goes away after this. */
static void destroy(void *state)
{
    struct live_consumer *c = state;

    error_destroy(live_tally_model(c->feed->tally, NULL));
    free(c);
}

const struct consumer live_consumer = {.wants = CONSUMER_STACKS,
                                       .record = take_record,
                                       .sample = take_sample,
                                       .end = end,
                                       .destroy = destroy,
                                       .has_enough = has_enough};
