/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every change is made to the ledger, in memory, and appended to the file as an event. Before a request its event is forced to
 * disk, which takes a millisecond; that of its answer is not, since losing it can only have a profile sent once more, as one
 * whose answer was not seen.
 */
#include "symbolize/push/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "symbolize/push/ledger.h"
#include "symbolize/push/state_file.h"

enum {
    PROFILES_MAX = 1 << 21,      /* 100 MB; a week of 50 profiles per 15 s in one trace */
    KEPT_BYTES_MAX = 1 << 16,    /* a file that is not longer is not worth writing anew */
};

struct state {
    struct ledger ledger;
    struct state_file file;
};

struct keys {
    uint64_t group; /* of the window and series */
    uint64_t chunk; /* of the profile, in the group's generation */
};

/* Numbers in these come from a process that is not trusted. */
static uint64_t number_of(uint64_t number)
{
    return number < LEDGER_NUMBER_MAX ? number : LEDGER_NUMBER_MAX - 1;
}

static struct keys keys_of(const struct state *s, struct state_trace_id trace, const struct push_profile *profile)
{
    struct {
        uint64_t window_begin_ns;
        char series[PROFILE_SERIES_BYTES - 1];
    } group = {.window_begin_ns = profile->window_begin_ns};
    char series[PROFILE_SERIES_BYTES];
    struct keys keys;

    profile_series(profile, series);
    memcpy(group.series, series, sizeof group.series);
    keys.group = XXH3_64bits(&group, sizeof group);
    uint64_t chunk[] = {keys.group, ledger_generation(&s->ledger, trace.number, keys.group), profile->chunk};
    keys.chunk = XXH3_64bits(chunk, sizeof chunk);
    return keys;
}

static struct error *take_event(void *ctx, const struct ledger_event *event)
{
    return ledger_apply(ctx, event);
}

static struct error *load(struct state *s)
{
    TRY(state_file_read(&s->file, take_event, &s->ledger));
    /* Leaves out half a line, and shows at once whether the file can be replaced. */
    return state_file_rewrite(&s->file, &s->ledger);
}

struct error *state_open(const char *path, const char *destination, struct state **out)
{
    struct state *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s)
        return error_no_memory();
    ledger_init(&s->ledger, STATE_TRACES_MAX, PROFILES_MAX);
    struct error *err = state_file_open(path, destination, &s->file);
    if (!err)
        err = load(s);
    if (err)
        state_close(s);
    else
        *out = s;
    return err;
}

void state_close(struct state *s)
{
    if (!s)
        return;
    ledger_deinit(&s->ledger);
    state_file_close(&s->file);
    free(s);
}

/* ---- traces ---- */

bool state_is_complete(const struct state *s, struct state_trace_id trace, uint64_t len_bytes)
{
    uint64_t done = ledger_len_bytes(&s->ledger, trace.number);

    return done && len_bytes <= done;
}

struct error *state_set_complete(struct state *s, struct state_trace_id trace, uint64_t len_bytes, bool may_grow)
{
    const struct ledger_event event = {.kind = may_grow ? LEDGER_PAUSED : LEDGER_COMPLETE,
                                       .trace = trace.number,
                                       .number = number_of(len_bytes)};

    TRY(ledger_apply(&s->ledger, &event));
    if (s->file.len_bytes > KEPT_BYTES_MAX && s->file.len_bytes / 2 > state_file_least_bytes(&s->file, &s->ledger))
        return state_file_rewrite(&s->file, &s->ledger);
    return state_file_append(&s->file, &s->ledger, &event, 1, false);
}

/* ---- profiles ---- */

enum state_of_profile state_find(const struct state *s, struct state_trace_id trace, const struct push_profile *profile)
{
    static const enum state_of_profile answers[] = {
        [LEDGER_IS_NEW] = STATE_NEW,
        [LEDGER_IS_UNANSWERED] = STATE_UNANSWERED,
        [LEDGER_IS_SETTLED] = STATE_SETTLED,
        [LEDGER_IS_CHANGED] = STATE_CHANGED,
    };
    struct keys keys = keys_of(s, trace, profile);

    return answers[ledger_find(&s->ledger, trace.number, keys.group, keys.chunk, number_of(profile->samples))];
}

/* The profile has an entry with another number of samples: its chunks get new keys. */
static struct error *divide_anew(struct state *s, struct state_trace_id trace, struct keys keys)
{
    const struct ledger_event event = {.kind = LEDGER_DIVIDED,
                                       .trace = trace.number,
                                       .key = keys.group,
                                       .number = ledger_generation(&s->ledger, trace.number, keys.group) + 1};

    TRY(ledger_apply(&s->ledger, &event));
    return state_file_append(&s->file, &s->ledger, &event, 1, false);
}

static struct ledger_event event_of(enum ledger_kind kind, struct state_trace_id trace, struct keys keys,
                                    const struct push_profile *profile)
{
    return (struct ledger_event){
        .kind = kind, .trace = trace.number, .key = keys.chunk, .number = number_of(profile->samples)};
}

/* A message for a person whose push ends here. Takes `err`. */
static struct error *explain(struct error *err)
{
    bool full = err->os_errno == ENOSPC || err->os_errno == EDQUOT || err->os_errno == EFBIG;

    if (err->code == ERROR_NO_MEMORY)
        return err;
    struct error *told = error_create(err->code, "%s. Nothing is sent that could not be remembered there%s", error_text(err),
                                      full ? ": make room on that disk" : "");
    if (told->code != ERROR_NO_MEMORY)
        told->os_errno = err->os_errno;
    error_destroy(err);
    return told;
}

struct error *state_begin(struct state *s, struct state_trace_id trace, const struct push_profile *profile)
{
    struct keys keys = keys_of(s, trace, profile);

    if (ledger_has_other(&s->ledger, trace.number, keys.chunk, number_of(profile->samples))) {
        struct error *err = divide_anew(s, trace, keys);
        if (err)
            return explain(err);
        keys = keys_of(s, trace, profile);
    }
    const struct ledger_event sent = event_of(LEDGER_SENT, trace, keys, profile);
    const struct ledger_event not_sent = event_of(LEDGER_UNSTORED, trace, keys, profile);
    TRY(ledger_apply(&s->ledger, &sent));
    struct error *err = state_file_append(&s->file, &s->ledger, &sent, 1, true);
    if (!err)
        return NULL;
    error_destroy(ledger_apply(&s->ledger, &not_sent)); /* takes no memory */
    return explain(err);
}

struct error *state_answer(struct state *s, struct state_trace_id trace, const struct push_profile *profile, bool settled)
{
    const struct ledger_event event =
        event_of(settled ? LEDGER_SETTLED : LEDGER_UNSTORED, trace, keys_of(s, trace, profile), profile);

    TRY(ledger_apply(&s->ledger, &event));
    return state_file_append(&s->file, &s->ledger, &event, 1, false);
}
