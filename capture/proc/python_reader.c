/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/proc/python_reader.h"

#include <errno.h>

#include "bpf/python_retry.h"
#include "capture/host/target_memory.h"

/* Thread states that are looked at in search of one. */
#define STATES_MAX 4096

static int read_memory(void *ctx, void *out, uint32_t len, uint64_t address)
{
    struct python_reader *r = ctx;

    if (target_read(r->pid, address, out, len))
        return 0;
    r->read_errno = errno;
    return 1;
}

void python_reader_init(struct python_reader *r)
{
    r->walk.memory = (struct walk_memory){.read = read_memory, .ctx = r};
}

void python_reader_find(struct python_reader *r)
{
    struct py_walk *w = &r->walk;

    if (walk_find_tstate(w) || walk_list_begin(w, STATES_MAX))
        return;
    while (!walk_list_step(w)) {
    }
}

void python_reader_walk(struct python_reader *r, uint64_t state, struct wire_sample *sample, struct wire_python *entries)
{
    struct py_walk *w = &r->walk;

    w->result.tstate = state;
    w->result.end = 0;
    w->tstate.address = 0;
    walk_interpreter(w);
    sample->thread_handle = w->tstate.address ? w->tstate.handle : 0;
    sample->interpreter = w->result.interpreter;
    sample->interpreter_id = w->result.interpreter_id;
    walk_all(w, NULL, entries);
    sample->python_count = w->result.entry_count;
    sample->python_end = w->result.end;
}
