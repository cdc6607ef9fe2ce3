/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles SIGINT and SIGTERM while pycap waits for its output. Otherwise the main loop reads signals from a signalfd.
 * It cannot do that while write() or open() blocks, on a pipe's reader or on a disk, so the signals are unblocked for
 * that time. After the first signal a blocked write gives up when the reader takes nothing for INTERRUPT_GRACE_NS. A
 * second signal has its default effect and ends pycap, unless it comes within INTERRUPT_AGAIN_NS: timeout(1) sends each
 * signal twice.
 */
#ifndef CAPTURE_OUTPUT_INTERRUPT_H
#define CAPTURE_OUTPUT_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
/* Unblocks the signals, until interrupt_hold() blocks them again. */
void interrupt_allow(void);
void interrupt_hold(void);
/*
 * Whether the user has asked pycap to end: by a signal handled here, or by one that the caller reported
 * (interrupt_tell).
 */
bool interrupt_told(void);
void interrupt_tell(void);
/* Whether a write was given up because the reader took nothing. */
bool interrupt_gave_up(void);
/* Like write(2), but fails with ECANCELED when it gives up. */
ssize_t interrupt_write(int fd, const void *data, size_t len_bytes);

#endif
