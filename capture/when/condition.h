/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on which a recorder that stands by writes down what it has: `--when cpu>2.5,for=2s`. Each sets a limit to a
 * number of threads of the recorded processes: so many on average do something at the same time, for so long.
 */
#ifndef CAPTURE_WHEN_CONDITION_H
#define CAPTURE_WHEN_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

/* What threads do that are counted. */
enum when_fact {
    WHEN_CPU,  /* run on a CPU */
    WHEN_RUNQ, /* wait for a CPU */
    WHEN_GIL,  /* wait for the lock of their interpreter */
    WHEN_FACTS,
};

#define WHEN_CONDITIONS_MAX 16

struct when_condition {
    enum when_fact fact;
    double limit;      /* threads; more than 0 */
    bool percent;      /* the limit was given in percent of one */
    uint64_t for_ns;   /* it is exceeded for so long */
    uint64_t every_ns; /* so long, at least, from one event to the next */
};

struct when_list {
    struct when_condition list[WHEN_CONDITIONS_MAX];
    const char *texts[WHEN_CONDITIONS_MAX]; /* as they were given; borrowed */
    uint32_t count;
};
/* Adds a condition to the list. ERROR_USAGE: the text is none, or there are too many. */
struct error *when_list_add(struct when_list *l, const char *text);
/* Whether one of the conditions is about this. NULL has none. */
bool when_list_has(const struct when_list *l, enum when_fact fact);

/* Reads "FACT>N", "FACT>N%", with ",for=TIME" and ",every=TIME" behind. ERROR_USAGE says what is wrong with the text. */
struct error *when_read(const char *text, struct when_condition *out);
/* "cpu 2.71 > 2.5 for 2s": the condition, exceeded with this level. */
void when_put_reason(const struct when_condition *c, double level, struct buf *out);

#endif
