/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Finds the thread state (PyThreadState) of the running thread, where the walk over its frames begins
 * (bpf/python_walk.h), and the interpreter and the asyncio task that run in it.
 *
 * CPython names a thread's state in several places, depending on its version: a thread-local variable, the runtime's
 * current state, the value of a pthread key, and the lists of interpreters and their states. A state that was found is
 * believed only when it agrees with the running thread.
 */
#ifndef BPF_PYTHON_THREAD_H
#define BPF_PYTHON_THREAD_H

#include "bpf/python_state.h"

#define WALK_TLS_MODULES_MAX 4096 /* higher numbers of a module with thread-local storage are not believed */

/* glibc's dtv_t: the address of a module's TLS block, and what to free. */
#define DTV_ENTRY_BYTES 16
/* glibc's struct pthread_key_data: a sequence number and a value. Those of the first keys lie in the thread's descriptor. */
#define PTHREAD_KEY_BYTES 16
#define PTHREAD_FIRST_KEYS 32

/* Reads a thread state's members into w->tstate, in one piece: the thread's handle is the last of them. 0: it could be read. */
WALK_INLINE int walk_read_tstate(struct py_walk *w, PY_U64 address)
{
    const struct py_layout *l = &w->config.layout;
    const PY_U8 *h = w->scratch.header;
    PY_U64 len = (PY_U64)l->tstate_thread_id + 8;

    w->tstate.address = 0;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (!address)
        return 1;
    if (WALK_READ(w, w->scratch.header, len, address)) {
        w->search.unread = 1;
        return 1;
    }
    w->tstate.address = address;
    w->tstate.handle = WALK_U64(h, l->tstate_thread_id, WALK_HEADER_MASK);
    w->tstate.interpreter = WALK_U64(h, l->tstate_interp, WALK_HEADER_MASK);
    w->tstate.newest = WALK_U64(h, l->tstate_frame, WALK_HEADER_MASK);
    w->tstate.record = l->tstate_cframe ? WALK_U64(h, l->tstate_cframe, WALK_HEADER_MASK) : w->tstate.newest;
    return 0;
}

/* Whether the state that was read names the running thread's pthread handle. */
WALK_INLINE int walk_has_handle(const struct py_walk *w)
{
    return w->tstate.handle == ARCH_PTHREAD_SELF(w->config.thread_pointer);
}

/* Whether the thread state at `address` is the running thread's, by the handle in it. */
WALK_INLINE int walk_is_own(struct py_walk *w, PY_U64 address)
{
    return !walk_read_tstate(w, address) && walk_has_handle(w);
}

/* Whether activations of the eval loop have a record (_PyCFrame) of which the outermost lies in the thread state: 3.10 to 3.12. */
WALK_INLINE int walk_has_records(const struct py_walk *w)
{
    return w->config.layout.tstate_root_cframe != PY_NONE;
}

/*
 * Whether the state that was read runs in this thread: 1 yes, 0 no, -1 if that cannot be told.
 *
 * Up to 3.12 a subinterpreter's first state has the handle of the thread that made it, whichever thread runs it. Where
 * activations have records, these show it, for they lie on the stack of the thread that runs the state: between its stack
 * pointer and its descriptor or, in the main thread, whose descriptor lies elsewhere, not far above the stack pointer.
 */
WALK_INLINE int walk_runs_here(struct py_walk *w)
{
    PY_U64 sp = w->config.stack_pointer, room = w->config.thread_pointer - sp;
    PY_U64 root = w->tstate.address + w->config.layout.tstate_root_cframe;

    if (!walk_has_records(w) || !sp || w->tstate.record == root)
        return -1;
    return w->tstate.record - sp < (room < WALK_NATIVE_STACK_BYTES ? room : WALK_NATIVE_STACK_BYTES);
}

/* The value of a thread-local variable; `kind`, `offset` and `where` as in struct wire_process. 0: it could be read. */
WALK_INLINE int walk_read_tls(struct py_walk *w, PY_U32 kind, PY_U64 offset, PY_U64 where, PY_U64 *out)
{
    PY_U64 thread = w->config.thread_pointer, module = 0, block = 0;

    if (kind == PY_TLS_LOCAL_EXEC)
        return walk_read_u64(w, thread + offset, out);
    if (kind == PY_TLS_DESCRIPTOR || kind == PY_TLS_SLOT) {
        if (walk_read_u64(w, kind == PY_TLS_SLOT ? where : where + 8, &offset))
            return 1;
        if (kind == PY_TLS_SLOT || ARCH_TLSDESC_IS_OFFSET(offset))
            return walk_read_u64(w, thread + offset, out);
        where = offset;
        if (walk_read_u64(w, where + 8, &offset))
            return 1;
    }
    /* The DTV has an entry per module; the block of one that the thread has not used yet is 0 or all ones. */
    return walk_read_u64(w, where, &module) || !module || module >= WALK_TLS_MODULES_MAX ||
           walk_read_u64(w, ARCH_DTV(thread), &block) || walk_read_u64(w, block + DTV_ENTRY_BYTES * module, &block) ||
           block + 1 <= 1 || walk_read_u64(w, block + offset, out);
}

/* Sets w->search.interpreter to the beginning of the list of interpreters. 0: there is one. */
WALK_INLINE int walk_list_head(struct py_walk *w)
{
    PY_U64 head = w->config.process.interpreters;

    if (!head && w->config.layout.runtime_interpreters_head == PY_NONE)
        return 1;
    if (!head)
        head = w->config.process.runtime + w->config.layout.runtime_interpreters_head;
    return walk_read_u64(w, head, &w->search.interpreter) || !w->search.interpreter;
}

/* The thread runs in the state at `address`, and holds the GIL, since what named the state is empty otherwise. */
WALK_INLINE void walk_found_by_holder(struct py_walk *w, PY_U64 address)
{
    w->result.tstate = address;
    w->result.gil = w->config.layout.free_threaded ? 0 : WIRE_GIL_KNOWN | WIRE_GIL;
}

/*
 * By the thread-local variable of 3.12 and later, which is null while the thread has released the GIL: the thread's state,
 * and whether it holds the GIL. 1: the state was found.
 */
WALK_INLINE int walk_find_by_current(struct py_walk *w)
{
    const struct wire_process *p = &w->config.process;
    PY_U64 value = 0;

    if (walk_read_tls(w, p->tls_kind, p->tls_offset, p->tls_module, &value))
        return 0;
    if (walk_is_own(w, value) || (w->tstate.address && walk_runs_here(w) > 0)) {
        walk_found_by_holder(w, value);
        return 1;
    }
    if (!value && !w->config.layout.free_threaded)
        w->result.gil = WIRE_GIL_KNOWN;
    return 0;
}

WALK_INLINE int walk_has_key(const struct py_walk *w)
{
    return w->config.process.key_slots &&
           (w->config.process.thread_key || w->config.layout.runtime_tss_key != PY_NONE);
}

/*
 * By the runtime's current state (up to 3.11), which is that of the thread that holds the GIL. 1: it is this thread's.
 * Sets *doubted when it names this thread, but may be one of a subinterpreter that another thread runs.
 */
WALK_INLINE int walk_find_by_runtime(struct py_walk *w, PY_U64 *doubted)
{
    PY_U64 value = 0, next = 0;
    int here;

    if (walk_read_u64(w, w->config.process.runtime + w->config.layout.runtime_tstate_current, &value))
        return 0;
    w->result.gil = WIRE_GIL_KNOWN;
    if (walk_read_tstate(w, value))
        return 0;
    here = walk_runs_here(w);
    /* Without records the handle decides, but only where there is no other interpreter, or no other thread. */
    if (!walk_has_records(w) && !w->config.one_thread && walk_has_handle(w) && walk_has_key(w) &&
        (walk_read_u64(w, w->tstate.interpreter + w->config.layout.interp_next, &next) || next))
        here = 0;
    if (here > 0 || (here < 0 && walk_has_handle(w))) {
        walk_found_by_holder(w, value);
        return 1;
    }
    if (walk_has_handle(w))
        *doubted = value;
    w->search.current_interpreter = w->tstate.interpreter;
    return 0;
}

/* By the second thread-local variable of 3.15 and later, which stays set. 1: found, or the thread has no state. */
WALK_INLINE int walk_find_by_gilstate(struct py_walk *w)
{
    const struct wire_process *p = &w->config.process;
    PY_U64 value = 0;

    if (p->gilstate_kind == PY_TLS_NONE || walk_read_tls(w, p->gilstate_kind, p->gilstate_offset, p->gilstate_module, &value))
        return 0;
    if (!value)
        return 1;
    if (!walk_is_own(w, value))
        return 0;
    w->result.tstate = value;
    return 1;
}

/* The value of the pthread key that CPython keeps a thread's state under. 0: it could be read. */
WALK_INLINE int walk_read_key(struct py_walk *w, PY_U64 *out)
{
    const struct wire_process *p = &w->config.process;
    PY_U64 number = 0;

    if (!walk_has_key(w))
        return 1;
    if (p->thread_key) {
        /* Up to 3.6 the key's number is an int of its own, -1 until there is a key. */
        if (WALK_READ(w, &w->scratch.word, sizeof(PY_U32), p->thread_key)) {
            w->search.unread = 1;
            return 1;
        }
        number = (PY_U32)w->scratch.word;
    } else {
        /* Py_tss_t: an int that says whether the key was created, and the key. */
        if (walk_read_u64(w, p->runtime + w->config.layout.runtime_tss_key - 4, &number) || !(PY_U32)number)
            return 1;
        number >>= 32;
    }
    return number >= PTHREAD_FIRST_KEYS ||
           walk_read_u64(w, w->config.thread_pointer + p->key_slots + PTHREAD_KEY_BYTES * number, out);
}

/*
 * Whether `kept`, the state that the pthread key names, is the thread's; if so it is the result. Up to 3.11 the key goes on
 * naming the thread's first state, while the thread may run in a subinterpreter: then w->search.subinterpreters asks for a
 * look at their states, too. `doubted` is what walk_find_by_runtime() was not sure of, or 0.
 */
WALK_INLINE int walk_accept_kept(struct py_walk *w, PY_U64 kept, PY_U64 doubted)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 next = 0;

    if (!walk_is_own(w, kept) && (!w->tstate.address || walk_runs_here(w) <= 0))
        return 0;
    w->result.tstate = kept;
    if (doubted && !walk_has_records(w) && kept != doubted) {
        /* Frames in both: the thread has called the subinterpreter, or another thread runs that one. */
        if (w->tstate.newest) {
            w->result.tstate = 0;
            w->result.ambiguous = 1;
            return 1;
        }
        w->result.tstate = kept = doubted;
    }
    if (kept == doubted) {
        w->result.gil = WIRE_GIL_KNOWN | WIRE_GIL;
        return 1;
    }
    if (w->config.process.tls_kind == PY_TLS_NONE && l->runtime_tstate_current != PY_NONE && !walk_list_head(w) &&
        !walk_read_u64(w, w->search.interpreter + l->interp_next, &next))
        w->search.subinterpreters = next != 0;
    return 1;
}

/*
 * Finds the running thread's state by what costs a read or two: w->result.tstate, and w->result.gil as far as that is
 * known. Returns 1 when no search is needed: it was found, or the thread surely has none.
 */
WALK_INLINE int walk_find_tstate(struct py_walk *w)
{
    PY_U64 kept = 0, doubted = 0;

    w->result.tstate = w->tstate.address = w->search.current_interpreter = 0;
    w->result.gil = w->search.subinterpreters = w->result.ambiguous = w->search.unread = 0;
    if (w->config.process.tls_kind != PY_TLS_NONE) {
        if (walk_find_by_current(w))
            return 1;
    } else if (w->config.layout.runtime_tstate_current != PY_NONE) {
        if (walk_find_by_runtime(w, &doubted))
            return 1;
    }
    if (walk_find_by_gilstate(w) || (!walk_read_key(w, &kept) && !kept)) {
        w->search.unread = 0; /* either found, or there surely is none */
        return 1;
    }
    if (!kept)
        return 0;
    return walk_accept_kept(w, kept, doubted) && !w->search.subinterpreters;
}

/* ---- the search over the lists of interpreters and thread states, where nothing else names the state ---- */

/* Begins it; `limit` is the number of states to look at. 0: there are steps to make. */
WALK_INLINE int walk_list_begin(struct py_walk *w, PY_U32 limit)
{
    w->search.tstate = 0;
    w->search.left = limit;
    w->search.nearest = WALK_DISTANCE_NONE;
    if (w->search.subinterpreters && !walk_has_records(w))
        w->search.nearest = w->tstate.newest ? 0 : WALK_DISTANCE_NONE;
    else if (w->search.subinterpreters && walk_runs_here(w) > 0)
        w->search.nearest = w->tstate.record - w->config.stack_pointer;
    return walk_list_head(w);
}

/*
 * Looks at a subinterpreter's state, when the thread is known by another one. The thread runs in the state whose record is
 * nearest to the stack pointer. Without records it runs in the only one that has frames. If two have, that can't be told;
 * nor when the GIL's holder runs a subinterpreter that this thread may have entered. 1: the search has ended.
 */
WALK_INLINE int walk_list_subinterpreter(struct py_walk *w)
{
    PY_U64 distance;

    if (walk_read_tstate(w, w->search.tstate))
        return 0;
    if (!walk_has_records(w)) {
        if (!w->tstate.newest || (!walk_has_handle(w) && (w->search.nearest ||
                                                          w->tstate.interpreter != w->search.current_interpreter)))
            return 0;
        w->result.ambiguous = !w->search.nearest;
        w->result.tstate = w->result.ambiguous ? 0 : w->search.tstate;
        w->search.nearest = 0;
        return (int)w->result.ambiguous;
    }
    distance = w->tstate.record - w->config.stack_pointer;
    if (walk_runs_here(w) > 0 && distance < w->search.nearest) {
        w->search.nearest = distance;
        w->result.tstate = w->search.tstate;
    }
    return 0;
}

/*
 * Looks at one thread state. 1: the search has ended; w->result.tstate is set if it found one, and w->search.left is 0 if
 * the limit ended it.
 */
WALK_INLINE int walk_list_step(struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;
    struct walk_search *s = &w->search;

    if (!s->left)
        return 1;
    s->left--;
    if (!s->tstate) {
        if (!s->interpreter || walk_read_u64(w, s->interpreter + l->interp_threads_head, &s->tstate) ||
            walk_read_u64(w, s->interpreter + l->interp_next, &s->interpreter))
            return 1;
        /* The main interpreter is the last one. */
        return !s->interpreter && (!s->tstate || s->subinterpreters);
    }
    if (s->subinterpreters) {
        if (walk_list_subinterpreter(w))
            return 1;
    } else if (walk_is_own(w, s->tstate)) {
        w->result.tstate = s->tstate;
        return 1;
    }
    return walk_read_u64(w, s->tstate + l->tstate_next, &s->tstate);
}

/* ---- what runs in the state that was found ---- */

/* Whether the process has a counter of code objects, as far as its place is known. */
WALK_INLINE int walk_has_counter(const struct py_walk *w)
{
    return w->config.layout.interp_code_counter || w->config.process.code_counter;
}

/*
 * The interpreter: from w->result.tstate to w->result.interpreter and its id. Where there is a counter of code objects,
 * w->result.alone as well.
 */
WALK_INLINE void walk_interpreter(struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 words[2] = {0}; /* interpreters.main of _PyRuntime, whose id is 0, and interpreters.next_id */

    w->result.alone = 0;
    w->result.interpreter = 0;
    w->result.interpreter_id = WIRE_INTERPRETER_ID_NONE;
    if (w->tstate.address != w->result.tstate && walk_read_tstate(w, w->result.tstate))
        return;
    w->result.interpreter = w->tstate.interpreter;
    if (walk_has_counter(w) && !WALK_READ(w, words, sizeof words, w->config.process.runtime + l->runtime_interpreters_head + 8) &&
        words[0] && words[0] == w->result.interpreter) {
        w->result.interpreter_id = 0;
        w->result.alone = words[1] == 1;
        return;
    }
    if (w->result.interpreter && l->interp_id != PY_NONE)
        walk_read_u64(w, w->result.interpreter + l->interp_id, &w->result.interpreter_id);
}

/* Bytes of the str object whose beginning is in w->result.task, from its header on; at most WIRE_TASK_MAX. */
WALK_INLINE PY_U64 walk_task_name_len(const struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 chars = WALK_U64(w->result.task, l->str_length, WALK_HEADER_MASK), len;
    PY_U32 state = WALK_U32(w->result.task, l->str_state, WALK_HEADER_MASK);
    PY_U32 kind = state >> l->str_kind_shift & 7;

    if (chars >= WIRE_TASK_MAX)
        return WIRE_TASK_MAX;
    len = (state >> l->str_ascii_shift & 1 ? l->str_ascii_data : l->str_compact_data) + chars * kind;
    return len < WIRE_TASK_MAX ? len : WIRE_TASK_MAX;
}

/*
 * The name of the asyncio task that runs in the thread, into w->result.task, as the object lies in memory: a str as far as
 * it fits, or the int of a task whose name nobody has asked for. The reader tells them apart by the object's type. A task
 * whose type is smaller than asyncio's own is written in Python and has its name elsewhere.
 */
WALK_INLINE void walk_task(struct py_walk *w)
{
    const struct py_layout *l = &w->config.layout;
    const struct wire_process *p = &w->config.process;
    PY_U64 task, name, size, wanted, len = (PY_U64)p->task_name + 8;

    w->result.task_len_bytes = 0;
    if (!p->running_task || walk_read_u64(w, w->result.tstate + p->running_task, &task) || !task)
        return;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (WALK_READ(w, w->scratch.header, len, task) ||
        (PY_U8)WALK_U64(w->scratch.header, p->task_is_task, WALK_HEADER_MASK) != 1)
        return;
    name = WALK_U64(w->scratch.header, p->task_name, WALK_HEADER_MASK);
    /* tp_basicsize: behind the type's own header and its name. */
    size = WALK_U64(w->scratch.header, l->code_type, WALK_HEADER_MASK);
    if (!name || walk_read_u64(w, size + l->code_type + 24, &size) || size < p->task_size)
        return;
    /* The smallest str is as long as this, since small objects come in multiples of 16 bytes. */
    len = (PY_U64)l->str_ascii_data + 8;
    WALK_BOUND(len, WALK_HEADER_MASK);
    if (WALK_READ(w, w->result.task, len, name))
        return;
    wanted = walk_task_name_len(w);
    if (wanted > len) {
        len = wanted;
        WALK_BOUND(len, 2 * WIRE_TASK_MAX - 1);
        if (len > WIRE_TASK_MAX || WALK_READ(w, w->result.task, len, name))
            return;
    }
    w->result.task_len_bytes = len;
}

#endif
