/* SPDX-License-Identifier: Apache-2.0 */
/* What names tell of the interpreter's functions and of binaries, for the rules in merge.h. */
#ifndef SYMBOLIZE_STACK_INTERPRETER_NAMES_H
#define SYMBOLIZE_STACK_INTERPRETER_NAMES_H

#include <stdbool.h>

#include "symbolize/stack/merge.h"

/* Whose the binary at that path is: decided by the last part of the path. Of an interpreter the trace says it, since 0.2. */
enum merge_owner path_owner(const char *path);
/* True for the name of a function of CPython's C API, or one that is meant to be no part of it. */
bool name_is_of_api(const char *function);
/* True for the name of a function of CPython's headers, such as Py_DECREF. */
bool name_is_of_header(const char *function);
/*
 * True for the name of a function with which an extension module's generated code (Cython's) only calls another or
 * resumes a generator.
 */
bool name_is_call_helper(const char *function);
/* True for the name of a function that compilers call for their own purposes: to reach a thread-local variable. */
bool name_serves_caller(const char *function);
/* True if there is nothing in the binary but the dynamic linker: musl's is its C library, too. */
bool path_is_linker(const char *path);
/*
 * Whether a function of a binary that has an interpreter in it, and is no Python, is certainly the program's own: its
 * source file lies in no folder of CPython's, or, without one, its name is none of C. Without either nobody can tell.
 */
bool function_is_of_program(const char *function, const char *file);
/* True for the name of an interpreter function that only passes a call on. Ignores suffixes like .cold. */
bool name_is_call_machinery(const char *function);
/* True for the name of an interpreter function that clears a frame at the end of its call. */
bool name_clears_frame(const char *function);

#endif
