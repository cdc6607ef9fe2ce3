/* SPDX-License-Identifier: Apache-2.0 */
/* A source that is in no table: made of what the user wrote, with the texts that its members point to. */
#ifndef CAPTURE_EVENT_EVENT_MADE_H
#define CAPTURE_EVENT_EVENT_MADE_H

#include "capture/event/event.h"
#include "capture/event/pmu.h"

/* No text is longer than that of the event, but for the name, in which a row's may stand for its alias. */
struct event_made {
    struct event_source source; /* the first member: it stands for the whole */
    char cpus[PMU_CPUS_MAX];
    char name[2 * EVENT_TEXT_MAX + 40], unit[EVENT_TEXT_MAX + 1], device[EVENT_TEXT_MAX + 1], terms[EVENT_TEXT_MAX + 1],
        category[EVENT_TEXT_MAX + 1], point[EVENT_TEXT_MAX + 1], weight[EVENT_TEXT_MAX + 1];
};

/* The made source that an event refers to; NULL: it refers to a row of the table. */
struct event_made *event_made_of(const struct event *event);

/*
 * Reads modifiers, the letters behind an event's name, into `source`: u, k, h (user, kernel, hypervisor alone), G, H
 * (guest, host alone), I (not idle), p (precise; up to three), D (pinned). `who` is the event for the error's text.
 */
struct error *event_read_modifiers(const char *letters, size_t len, const char *who, struct event_source *source);

#endif
