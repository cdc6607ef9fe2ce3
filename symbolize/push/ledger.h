/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of traces and their profiles, in memory: made of events, and told as events, which state_file.h keeps.
 *
 * A profile is known by a key, which tells apart windows, series and chunks of one trace, and by the number of its samples.
 * If a profile comes with another number, its trace has grown, or a newer pysym divides windows into other chunks; then
 * nothing can be said of the chunks of that window and series, since samples may have moved from one to another. They get
 * keys of another generation, and all of them count as LEDGER_CHANGED until they are sent again.
 */
#ifndef SYMBOLIZE_PUSH_LEDGER_H
#define SYMBOLIZE_PUSH_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

/* Numbers of events are smaller. */
#define LEDGER_NUMBER_MAX (UINT64_C(1) << 60)

enum ledger_kind {
    LEDGER_SENT,     /* of a profile; number: of its samples. Its answer is not seen yet */
    LEDGER_SETTLED,  /* likewise; accepted, or refused for good */
    LEDGER_UNSTORED, /* likewise; surely not stored when it was sent last */
    LEDGER_DIVIDED,  /* key: of a window and series; number: the generation of keys of its chunks from now on */
    LEDGER_COMPLETE, /* of a trace, without a key; number: its length. Its profiles are forgotten */
    LEDGER_PAUSED,   /* likewise, but its profiles are kept, since it may grow */
};

struct ledger_event {
    enum ledger_kind kind;
    uint64_t trace;
    uint64_t key;
    uint64_t number;
};

struct ledger_trace {
    uint64_t number;
    uint64_t len_bytes;  /* so much of it is dealt with; 0: it never was complete */
    bool forgotten;      /* profiles were sent that have no entry any more */
    struct map profiles; /* by key: ledger.c */
};

struct ledger {
    VEC(struct ledger_trace) traces; /* as they came */
    struct map by_number;            /* of a trace: its index */
    uint64_t profile_count;          /* entries of all traces */
    uint64_t traces_max;             /* from 2. If there are more, the older half is dropped */
    uint64_t profiles_max;           /* if there are more, those of the other traces are forgotten */
};

enum ledger_answer {
    LEDGER_IS_NEW,
    LEDGER_IS_UNANSWERED,
    LEDGER_IS_SETTLED,
    LEDGER_IS_CHANGED,
};

void ledger_init(struct ledger *l, uint64_t traces_max, uint64_t profiles_max);
void ledger_deinit(struct ledger *l);
/* ERROR_LIMIT: one trace has more profiles than profiles_max. */
struct error *ledger_apply(struct ledger *l, const struct ledger_event *event);
typedef struct error *ledger_taker(void *ctx, const struct ledger_event *event);
/* Calls `take` with events that make the same ledger, in the order of traces. */
struct error *ledger_tell(const struct ledger *l, ledger_taker *take, void *ctx);
/* About as many as ledger_tell() tells. */
uint64_t ledger_event_count(const struct ledger *l);

/* How much of a trace is dealt with; 0: nothing is known. */
uint64_t ledger_len_bytes(const struct ledger *l, uint64_t trace);
/* The generation of the chunks of a window and series, whose key this is; from 0. */
uint64_t ledger_generation(const struct ledger *l, uint64_t trace, uint64_t group);
/* Has the profile an entry, with another number of samples? `key`: of the chunk in that generation, as below. */
bool ledger_has_other(const struct ledger *l, uint64_t trace, uint64_t key, uint64_t samples);
enum ledger_answer ledger_find(const struct ledger *l, uint64_t trace, uint64_t group, uint64_t key, uint64_t samples);

#endif
