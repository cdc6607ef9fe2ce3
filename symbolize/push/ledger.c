/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each trace has a map. Of a profile it has the number of samples and three flags; of a window and series, where that is not 0,
 * the generation of its chunks. Keys are hashes, so that the two never meet.
 */
#include "symbolize/push/ledger.h"

#include <string.h>

enum {
    SETTLED = 1,
    SENT_LAST = 2,    /* it was sent, and the answer not seen */
    SENT_EARLIER = 4, /* before it was sent last, it was sent without an answer seen, and may be stored since */
    DIVIDED = 8,      /* no profile: the number is a generation */
    FLAG_BITS = 4,
};

void ledger_init(struct ledger *l, uint64_t traces_max, uint64_t profiles_max)
{
    *l = (struct ledger){.traces_max = traces_max, .profiles_max = profiles_max};
}

void ledger_deinit(struct ledger *l)
{
    for (size_t i = 0; i < l->traces.count; i++)
        map_deinit(&l->traces.data[i].profiles);
    VEC_DEINIT(&l->traces);
    map_deinit(&l->by_number);
}

static struct ledger_trace *find_trace(const struct ledger *l, uint64_t number)
{
    const uint64_t *index = map_get(&l->by_number, number);

    return index ? &l->traces.data[*index] : NULL;
}

/* ---- room ---- */

static void forget_profiles(struct ledger *l, struct ledger_trace *t)
{
    l->profile_count -= t->profiles.count;
    t->forgotten |= t->profiles.count > 0;
    map_deinit(&t->profiles);
}

static bool drop_older_half(struct ledger *l)
{
    size_t dropped = (l->traces.count + 1) / 2;

    for (size_t i = 0; i < dropped; i++)
        forget_profiles(l, &l->traces.data[i]);
    l->traces.count -= dropped;
    memmove(l->traces.data, l->traces.data + dropped, l->traces.count * sizeof *l->traces.data);
    map_clear(&l->by_number);
    for (size_t i = 0; i < l->traces.count; i++)
        if (!map_set(&l->by_number, l->traces.data[i].number, i))
            return false;
    return true;
}

static struct error *get_trace(struct ledger *l, uint64_t number, struct ledger_trace **out)
{
    *out = find_trace(l, number);
    if (*out)
        return NULL;
    if (l->traces.count >= l->traces_max && !drop_older_half(l))
        return error_no_memory();
    if (!VEC_PUSH(&l->traces, ((struct ledger_trace){.number = number})))
        return error_no_memory();
    if (!map_set(&l->by_number, number, l->traces.count - 1)) {
        l->traces.count--;
        return error_no_memory();
    }
    *out = &l->traces.data[l->traces.count - 1];
    return NULL;
}

static struct error *make_room(struct ledger *l, struct ledger_trace *t)
{
    if (l->profile_count < l->profiles_max)
        return NULL;
    for (size_t i = 0; i < l->traces.count; i++)
        if (&l->traces.data[i] != t)
            forget_profiles(l, &l->traces.data[i]);
    if (l->profile_count < l->profiles_max)
        return NULL;
    return error_create(ERROR_LIMIT, "one trace has more than %llu profiles, which is more than is remembered: record with --rotate",
                        (unsigned long long)l->profiles_max);
}

/* ---- events ---- */

static struct error *set(struct ledger *l, struct ledger_trace *t, uint64_t key, uint64_t value)
{
    uint64_t *old = map_get(&t->profiles, key);

    if (old) {
        *old = value;
        return NULL;
    }
    TRY(make_room(l, t));
    if (!map_set(&t->profiles, key, value))
        return error_no_memory();
    l->profile_count++;
    return NULL;
}

static struct error *set_sent(struct ledger *l, struct ledger_trace *t, const struct ledger_event *e)
{
    const uint64_t *old = map_get(&t->profiles, e->key);
    uint64_t flags = SENT_LAST | (old && *old & (SENT_LAST | SENT_EARLIER) ? SENT_EARLIER : 0);

    return set(l, t, e->key, e->number << FLAG_BITS | flags);
}

static void take_sending_back(struct ledger *l, struct ledger_trace *t, uint64_t key)
{
    uint64_t *old = map_get(&t->profiles, key);

    if (!old || !(*old & SENT_LAST))
        return;
    if (*old & SENT_EARLIER) {
        *old &= ~(uint64_t)SENT_LAST;
        return;
    }
    map_remove(&t->profiles, key);
    l->profile_count--;
}

struct error *ledger_apply(struct ledger *l, const struct ledger_event *e)
{
    struct ledger_trace *t;

    TRY(get_trace(l, e->trace, &t));
    switch (e->kind) {
    case LEDGER_SENT:
        return set_sent(l, t, e);
    case LEDGER_SETTLED:
        return set(l, t, e->key, e->number << FLAG_BITS | SETTLED);
    case LEDGER_UNSTORED:
        take_sending_back(l, t, e->key);
        return NULL;
    case LEDGER_DIVIDED:
        return set(l, t, e->key, e->number << FLAG_BITS | DIVIDED);
    case LEDGER_COMPLETE:
        forget_profiles(l, t);
        t->forgotten = true;
        t->len_bytes = e->number;
        return NULL;
    case LEDGER_PAUSED:
        t->len_bytes = e->number;
    }
    return NULL;
}

/* ---- telling ---- */

static struct error *tell_profile(uint64_t trace, const struct map_slot *slot, ledger_taker *take, void *ctx)
{
    struct ledger_event e = {.kind = LEDGER_SENT, .trace = trace, .key = slot->key, .number = slot->value >> FLAG_BITS};

    if (slot->value & DIVIDED)
        e.kind = LEDGER_DIVIDED;
    else if (slot->value & SETTLED)
        e.kind = LEDGER_SETTLED;
    else if ((slot->value & (SENT_LAST | SENT_EARLIER)) == (SENT_LAST | SENT_EARLIER))
        TRY(take(ctx, &e)); /* twice in all */
    return take(ctx, &e);
}

static struct error *tell_trace(const struct ledger_trace *t, ledger_taker *take, void *ctx)
{
    struct ledger_event e = {.kind = t->forgotten ? LEDGER_COMPLETE : LEDGER_PAUSED, .trace = t->number, .number = t->len_bytes};

    if (t->forgotten || t->len_bytes)
        TRY(take(ctx, &e));
    for (uint64_t i = 0; i < t->profiles.slot_count; i++)
        if (t->profiles.slots[i].used)
            TRY(tell_profile(t->number, &t->profiles.slots[i], take, ctx));
    return NULL;
}

struct error *ledger_tell(const struct ledger *l, ledger_taker *take, void *ctx)
{
    for (size_t i = 0; i < l->traces.count; i++)
        TRY(tell_trace(&l->traces.data[i], take, ctx));
    return NULL;
}

uint64_t ledger_event_count(const struct ledger *l)
{
    return l->traces.count + l->profile_count;
}

/* ---- answers ---- */

uint64_t ledger_len_bytes(const struct ledger *l, uint64_t trace)
{
    const struct ledger_trace *t = find_trace(l, trace);

    return t ? t->len_bytes : 0;
}

/* The value of a key; 0: it has none. */
static uint64_t value_of(const struct ledger_trace *t, uint64_t key)
{
    const uint64_t *value = t ? map_get(&t->profiles, key) : NULL;

    return value ? *value : 0;
}

uint64_t ledger_generation(const struct ledger *l, uint64_t trace, uint64_t group)
{
    return value_of(find_trace(l, trace), group) >> FLAG_BITS;
}

bool ledger_has_other(const struct ledger *l, uint64_t trace, uint64_t key, uint64_t samples)
{
    uint64_t value = value_of(find_trace(l, trace), key);

    return value && value >> FLAG_BITS != samples;
}

enum ledger_answer ledger_find(const struct ledger *l, uint64_t trace, uint64_t group, uint64_t key, uint64_t samples)
{
    const struct ledger_trace *t = find_trace(l, trace);
    uint64_t value = value_of(t, key);

    if (!value)
        return t && (t->forgotten || value_of(t, group)) ? LEDGER_IS_CHANGED : LEDGER_IS_NEW;
    if (value >> FLAG_BITS != samples)
        return LEDGER_IS_CHANGED;
    return value & SETTLED ? LEDGER_IS_SETTLED : LEDGER_IS_UNANSWERED;
}
