/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which library began a thread: the one whose function the C library called at the thread's start, as OpenBLAS's, libgomp's or a
 * Rust runtime's. The paths of binaries tell it; no names of functions are needed.
 */
#ifndef SYMBOLIZE_STACK_THREAD_LIBRARY_H
#define SYMBOLIZE_STACK_THREAD_LIBRARY_H

#include <stdint.h>

#include "formats/base/buf.h"
#include "symbolize/trace/epoch.h"

enum thread_origin {
    THREAD_ORIGIN_UNKNOWN,
    THREAD_ORIGIN_PROGRAM, /* Python, or the program's own file: it is known by what it runs */
    THREAD_ORIGIN_LIBRARY,
};
/*
 * `frames` are the outermost frames of a whole native stack of a thread of that process, by their numbers in the epoch, outermost
 * first. Appends the library's name, "libgomp" of libgomp-24e2ab19.so.1.0.0, if it was one.
 */
enum thread_origin thread_origin_of(const struct epoch *e, uint32_t process, const uint32_t *frames, uint32_t count, struct buf *out);

#endif
