/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where the lock (GIL) of a process or of one of its interpreters lies, for the sampler and for user space. */
#ifndef BPF_GIL_PLACE_H
#define BPF_GIL_PLACE_H

#include "bpf/python_state.h"

/*
 * The address by which the lock is known (enum py_gil_kind); 0: not known. `interpreter`: 0 where it is not known. `walk`
 * reads the process's memory; the sampler's may be NULL, as it reads that of the current process.
 */
WALK_INLINE PY_U64 gil_place(struct py_walk *walk, const struct wire_process *process, PY_U64 interpreter)
{
    PY_U64 at = process->gil, found = 0;

    (void)walk;
    if (process->gil_kind == PY_GIL_RANGE)
        return at;
    if (process->gil_kind == PY_GIL_INTERPRETER)
        at = interpreter ? interpreter + at : 0;
    else if (process->gil_kind != PY_GIL_POINTER)
        at = 0;
    if (!at || WALK_READ(walk, &found, sizeof found, at) || !found)
        return 0;
    return found + process->gil_skip;
}

#endif
