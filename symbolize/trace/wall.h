/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall time: with --wall the time that threads ran and the time that they waited become one event. A thread is on a CPU or
 * off it at any time, so both together are all the time that it existed.
 *
 * A clock's ticks are time on a CPU; cycles and other counts are not time. What threads made others wait for (blame) is the
 * others' time, and in it already.
 */
#ifndef SYMBOLIZE_TRACE_WALL_H
#define SYMBOLIZE_TRACE_WALL_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/options.h"
#include "symbolize/trace/epoch.h"

#define WALL_EVENT "wall" /* the name of that event */

enum wall_part { WALL_NOTHING, WALL_ON_CPU, WALL_OFF_CPU };

/* Which part of wall time an event of the epoch is. */
enum wall_part wall_part_of(const struct epoch *e, uint32_t event);
/*
 * Fails with ERROR_USAGE if the events of the epoch do not make up wall time: one clock, and waits. Of several events it
 * looks at those that `chosen` names; of all, if that is empty. `name` is that of the input, for the message.
 */
struct error *wall_check(const struct epoch *e, const struct option_texts *chosen, const char *name);

#endif
