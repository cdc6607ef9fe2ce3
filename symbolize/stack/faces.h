/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes and threads are called, in the model. A process has the name that process_names.h says, and a thread that of
 * threading.Thread. Where there is none, its stacks tell: it is called after the library that began it, "libgomp"; else after
 * its outermost function outside of threading.py, "worker (pool.py)", unless an interpreter begins there.
 *
 * A thread has no name if threading knows none and the kernel's is that of the process, which it has from there
 * (thread_names.h). Such names become known with the first samples whose stacks are whole; until then the kernel's are shown.
 * In traces whose kind is UNRECORDED, made before there were such names, the kernel's stay.
 */
#ifndef SYMBOLIZE_STACK_FACES_H
#define SYMBOLIZE_STACK_FACES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "symbolize/stack/frames.h"
#include "symbolize/stack/model.h"

struct faces {
    struct model *model;
    struct frames *frames;
    VEC(uint32_t) threads; /* by number of the model: a text found in a stack; 0: none */
    struct buf text; /* scratch */
};

/* `model` and `frames` are borrowed. */
void faces_init(struct faces *f, struct model *model, struct frames *frames);
void faces_deinit(struct faces *f);
/* Puts a process of the epoch into the model, or its new name; *number is the model's. */
struct error *faces_process(struct faces *f, const struct epoch *e, uint32_t process,
                            const struct process_identity *identity, uint32_t *number);
/*
 * The same for a thread. `process` is the model's number of its process. *tries: how many of its samples may still tell its
 * name; 0: it has one.
 */
struct error *faces_thread(struct faces *f, const struct epoch *e, uint32_t thread, uint32_t process, uint32_t *number,
                           uint32_t *tries);
/*
 * Looks into the stack of a sample of a thread of the epoch for its name. Call it while *tries is not 0, and counts them. `of_thread` is
 * the model's number of the thread, `interpreter` the text that Python frames get as their module.
 */
struct error *faces_look(struct faces *f, const struct epoch *e, uint32_t tuple, uint32_t thread, uint32_t of_thread,
                         uint32_t interpreter, uint32_t *tries);

#endif
