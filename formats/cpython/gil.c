/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Since 3.2 the lock is a number behind a mutex and a condition variable; a second pair is for the thread that gives the
 * lock away and waits until another has taken it (Python/ceval_gil.h, since 3.12 Python/ceval_gil.c). These are statics up
 * to 3.6, and then members of struct _gil_runtime_state (Include/internal/pycore_gil.h, in 3.7 internal/gil.h):
 *
 *      0  unsigned long interval        24  unsigned long switch_number    120  pthread_cond_t switch_cond
 *      8  last_holder, a pointer        32  pthread_cond_t cond            168  pthread_mutex_t switch_mutex
 *     16  locked                        80  pthread_mutex_t mutex          208
 *
 * 2.7 has a semaphore, to which a variable points.
 *
 * The struct is the same in 3.7 to 3.15, since glibc and musl have types of 48 and 40 bytes on x86-64. A free-threaded build puts an
 * int `enabled` in front, and threads wait there only while it is set. Source: DWARF of 3.7.16 to 3.13.0; the tables of
 * offsets of 3.13 to 3.15 agree in `last_holder` and `locked`.
 */
#include "formats/cpython/gil.h"

#include <assert.h>

#define COND_BYTES 48
#define MUTEX_BYTES 40
#define SEMAPHORE_BYTES 32
#define GIL_COND 32 /* in struct _gil_runtime_state */
#define GIL_COND_FREE_THREADED 40

static_assert(PY_GIL_SWITCH_COND == COND_BYTES + MUTEX_BYTES && PY_GIL_LEN_BYTES == 2 * PY_GIL_SWITCH_COND, "two pairs");

static bool is_variable(const Elf64_Sym *sym, uint64_t size)
{
    return sym->st_shndx != SHN_UNDEF && sym->st_size == size;
}

/* The four variables lie side by side. If they do not, other mutexes may lie between them. */
static struct py_gil find_statics(const struct py_gil_variables *v)
{
    const Elf64_Sym *const four[] = {&v->cond, &v->mutex, &v->switch_cond, &v->switch_mutex};
    uint64_t start = UINT64_MAX, end = 0;

    for (int i = 0; i < 4; i++) {
        const Elf64_Sym *s = four[i];
        if (!is_variable(s, i % 2 ? MUTEX_BYTES : COND_BYTES) || s->st_value > UINT64_MAX - PY_GIL_STATICS_MAX_BYTES)
            return (struct py_gil){PY_GIL_NONE};
        start = s->st_value < start ? s->st_value : start;
        end = s->st_value + s->st_size > end ? s->st_value + s->st_size : end;
    }
    if (end - start > PY_GIL_STATICS_MAX_BYTES)
        return (struct py_gil){PY_GIL_NONE};
    return (struct py_gil){PY_GIL_RANGE, start, 0, (uint16_t)(end - start)};
}

struct py_gil py_gil_find(const struct py_layout *layout, uint64_t runtime_vaddr, const struct py_gil_variables *variables,
                          bool may_learn)
{
    if (layout->interp_gil)
        return (struct py_gil){PY_GIL_INTERPRETER, layout->interp_gil,
                               layout->free_threaded ? GIL_COND_FREE_THREADED : GIL_COND, PY_GIL_LEN_BYTES};
    if (layout->runtime_gil)
        return (struct py_gil){PY_GIL_RANGE, runtime_vaddr + layout->runtime_gil + GIL_COND, 0, PY_GIL_LEN_BYTES};
    if (variables->lock_vaddr)
        return (struct py_gil){PY_GIL_POINTER, variables->lock_vaddr, 0, SEMAPHORE_BYTES};
    struct py_gil statics = find_statics(variables);
    if (statics.kind == PY_GIL_NONE && may_learn)
        statics.kind = PY_GIL_LEARN;
    return statics;
}
