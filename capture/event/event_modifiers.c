/* SPDX-License-Identifier: Apache-2.0 */
/* The letters behind an event's name mean what they mean to perf: get_event_modifier() in tools/perf/util/parse-events.c, 6.1. */
#include "capture/event/event_made.h"

#define RINGS (EVENT_NO_USER | EVENT_NO_KERNEL | EVENT_NO_HYPERVISOR)
#define MACHINES (EVENT_NO_GUEST | EVENT_NO_HOST)
#define PRECISE_MAX 3

/* Leaves one of a group counted, or adds it to those that were left before. */
static void leave(uint32_t *modifiers, bool *chosen, uint32_t group, uint32_t one)
{
    if (!*chosen)
        *modifiers |= group;
    *chosen = true;
    *modifiers &= ~one;
}

struct error *event_read_modifiers(const char *letters, size_t len, const char *who, struct event_source *source)
{
    bool ring = false, machine = false;
    uint32_t m = source->modifiers;

    for (size_t i = 0; i < len; i++) {
        switch (letters[i]) {
        case 'u':
            leave(&m, &ring, RINGS, EVENT_NO_USER);
            m |= machine ? 0 : EVENT_NO_GUEST;
            break;
        case 'k':
            leave(&m, &ring, RINGS, EVENT_NO_KERNEL);
            break;
        case 'h':
            leave(&m, &ring, RINGS, EVENT_NO_HYPERVISOR);
            break;
        case 'G':
            leave(&m, &machine, MACHINES, EVENT_NO_GUEST);
            break;
        case 'H':
            leave(&m, &machine, MACHINES, EVENT_NO_HOST);
            break;
        case 'I':
            m |= EVENT_NO_IDLE;
            break;
        case 'D':
            m |= EVENT_PINNED;
            break;
        case 'p':
            if (++source->precise > PRECISE_MAX)
                return error_create(ERROR_USAGE, "event %s: p, for precise, is written three times at most", who);
            break;
        default:
            return error_create(ERROR_USAGE, "event %s: '%c' is no modifier: write u, k, h (user, kernel, hypervisor alone), G, H "
                                "(guest, host alone), I (not idle), p, pp, ppp (precise) or D (pinned)", who, letters[i]);
        }
    }
    source->modifiers = m;
    return NULL;
}
