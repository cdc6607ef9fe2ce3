/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A syscall file has the number of the system call and its arguments (proc(5)): "202 0x7f… 0x189 …", "-1 SP PC" outside of a
 * call, or "running".
 */
#include "capture/proc/task_wait.h"

#include <limits.h>
#include <stdlib.h>

#include "bpf/gil_place.h"

static enum wire_wait_kind kind_of(char state, bool is_lock)
{
    switch (state) {
    case 'S':
        return is_lock ? WIRE_WAIT_LOCK : WIRE_WAIT_BLOCKED;
    case 'D':
        return WIRE_WAIT_UNINTERRUPTIBLE;
    case 'T':
    case 't':
        return WIRE_WAIT_STOPPED;
    default:
        return WIRE_WAIT_NONE;
    }
}

struct task_wait task_wait_of(char state, const char *text)
{
    struct task_wait wait = {.system_call = WIRE_NO_SYSTEM_CALL};
    char *rest = NULL;
    long number = text ? strtol(text, &rest, 10) : -1;
    bool is_call = text && rest != text && number >= 0 && number <= INT_MAX;

    if (is_call)
        wait.system_call = (int)number;
    if (is_call && arch_is_futex_address(wait.system_call))
        wait.futex = strtoull(rest, NULL, 16);
    wait.kind = kind_of(state, is_call && arch_is_futex(wait.system_call));
    return wait;
}

bool task_wait_is_for_gil(struct python_reader *r, uint64_t futex, uint64_t interpreter)
{
    const struct wire_process *process = &r->walk.config.process;
    uint64_t gil = futex ? gil_place(&r->walk, process, interpreter) : 0;

    return gil && futex - gil < process->gil_len;
}
