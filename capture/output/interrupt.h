/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives SIGINT and SIGTERM in a thread of their own. The main thread may wait for long: for the writer (outputs.h), and
 * that one for a pipe's reader or for a disk; or in the kernel, for another process's memory that nobody delivers. The
 * first signal asks it to end: its loop sees that, and a wait for output is given up when nothing moves for
 * INTERRUPT_GRACE_NS. A second signal has its default effect, whatever the main thread does, and ends pycap; unless it
 * comes within INTERRUPT_AGAIN_NS: timeout(1) sends each signal twice. Until interrupt_started() the first one has it, too,
 * if the main thread has not come that far INTERRUPT_START_NS later: there is nothing yet that could be lost.
 */
#ifndef CAPTURE_OUTPUT_INTERRUPT_H
#define CAPTURE_OUTPUT_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/clock.h"
#include "formats/base/err.h"

#define INTERRUPT_GRACE_NS (3 * NS_PER_S)
#define INTERRUPT_AGAIN_NS (500 * NS_PER_MS)
#define INTERRUPT_START_NS (600 * NS_PER_MS)

/*
 * Blocks both signals and starts the thread, once in a process. `begin` runs first in the thread, to give up privileges.
 * `command`: the first Ctrl-C at the terminal is meant for the command, and pycap ignores it.
 */
struct error *interrupt_init(void (*begin)(void), bool command);
/* The main thread heeds interrupt_told() from here on, within a moment. */
void interrupt_started(void);
/* The command has ended: any Ctrl-C is for pycap. */
void interrupt_command_ended(void);
/* Whether the user has asked pycap to end: by one of the signals, or by another that the caller reported. */
bool interrupt_told(void);
void interrupt_tell(void);
/* A file descriptor that is readable from then on. -1 before interrupt_init(). */
int interrupt_fd(void);
/* Whether a wait was given up. */
bool interrupt_gave_up(void);
/*
 * Waits until `fd` has one of `events` (poll(2)). False: the user has asked pycap to end, now or before, and then nothing
 * came for `grace_ns`.
 */
bool interrupt_wait(int fd, short events, uint64_t grace_ns);

#endif
