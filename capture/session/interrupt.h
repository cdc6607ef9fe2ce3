/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGINT and SIGTERM while pycap waits for its output. The loop reads signals from a descriptor, and would not get there
 * while write() or open() waits for the reader of a pipe, or for a disk. So they are let through for that time. After the
 * first a reader that takes nothing for INTERRUPT_GRACE_NS is not waited for any more. A second one has its default
 * effect, and ends pycap, unless it comes with the first: timeout(1) sends each signal twice.
 */
#ifndef CAPTURE_SESSION_INTERRUPT_H
#define CAPTURE_SESSION_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/clock.h"

#define INTERRUPT_GRACE_NS (3 * NS_PER_S)
#define INTERRUPT_AGAIN_NS (500 * NS_PER_MS)

/* The signals are blocked already. `command`: the first Ctrl-C at the terminal is for a command, not for pycap. */
void interrupt_init(bool command);
void interrupt_command_told(void);
/* Lets them through, until interrupt_hold(). */
void interrupt_allow(void);
void interrupt_hold(void);
/* The end was asked for, here or (interrupt_tell) elsewhere. */
bool interrupt_told(void);
void interrupt_tell(void);
/* Whether a write came to nothing. */
bool interrupt_gave_up(void);
/* Like write(2); ECANCELED: nothing went out for the time that was left. */
ssize_t interrupt_write(int fd, const void *data, size_t len_bytes);

#endif
