/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns where threads wait for the GIL in a CPython of 3.3 to 3.6 without symbols, from the stack of one that waits.
 *
 * There the lock's condition variables and mutexes are four static variables, whose names are gone. But a thread that
 * waits on a variable of the interpreter, in a call of the C library that the eval loop or PyEval_RestoreThread() made, by
 * themselves or through one function, waits for the GIL: neither has another lock, and locks of Python programs are
 * allocated. So the first waits are seen as waits for a lock, and later ones for what they are.
 */
#ifndef CAPTURE_PROCESS_GIL_LEARN_H
#define CAPTURE_PROCESS_GIL_LEARN_H

#include <stdbool.h>

#include "capture/process/process.h"

/*
 * Looks at a whole sample, a message of the sampler's. Returns whether p->gil or p->gil_len were set by it: then the sampler
 * is to be configured anew. Does nothing for a sample of another program than the one that `p` runs.
 */
bool gil_learn(struct process *p, const struct wire_sample *m);

#endif
