/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles SIGINT and SIGTERM while pycap waits for its output. Otherwise the main loop reads signals from a signalfd.
 * It cannot do that while it waits for the writer (outputs.h), and that one for a pipe's reader or for a disk, so the
 * signals are unblocked for that time. After the first signal it gives up when nothing moves for INTERRUPT_GRACE_NS. A
 * second signal has its default effect and ends pycap, unless it comes within INTERRUPT_AGAIN_NS: timeout(1) sends each
 * signal twice.
 */
#ifndef CAPTURE_OUTPUT_INTERRUPT_H
#define CAPTURE_OUTPUT_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/clock.h"

#define INTERRUPT_GRACE_NS (3 * NS_PER_S)
#define INTERRUPT_AGAIN_NS (500 * NS_PER_MS)

/*
 * Installs the handlers. The signals must be blocked already. `command`: the first Ctrl-C at the terminal is meant for
 * the command, and pycap ignores it.
 */
void interrupt_init(bool command);
/* The command has received its Ctrl-C: the next one is for pycap. */
void interrupt_command_told(void);
/* Unblocks the signals: from now on they are handled here alone. */
void interrupt_allow(void);
/*
 * Whether the user has asked pycap to end: by a signal handled here, or by one that the caller reported
 * (interrupt_tell).
 */
bool interrupt_told(void);
void interrupt_tell(void);
/* Whether a wait was given up. */
bool interrupt_gave_up(void);
/*
 * Waits until `fd` has one of `events` (poll(2)), while a signal comes through. False: a signal came, now or before, and
 * then nothing for `grace_ns`.
 */
bool interrupt_wait(int fd, short events, uint64_t grace_ns);

#endif
