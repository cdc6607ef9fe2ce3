/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that is asleep waits for, as /proc says: its state, and the system call that it is in. */
#ifndef CAPTURE_PROC_TASK_WAIT_H
#define CAPTURE_PROC_TASK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/proc/python_reader.h"

struct task_wait {
    enum wire_wait_kind kind; /* WIRE_WAIT_NONE: it does not sleep */
    int system_call;          /* or WIRE_NO_SYSTEM_CALL */
    uint64_t futex;           /* the address that it waits on; 0: none, or not known */
};

/*
 * `state` is that of a stat file, `text` what a syscall file says; NULL: it may not be read, so that locks and system calls
 * are not told apart.
 */
struct task_wait task_wait_of(char state, const char *text);
/*
 * Whether an address that a thread waits on belongs to the lock (GIL) of its interpreter, by its process's configuration
 * (r->walk.config.process). `interpreter`: that thread's; 0: not known.
 */
bool task_wait_is_for_gil(struct python_reader *r, uint64_t futex, uint64_t interpreter);

#endif
