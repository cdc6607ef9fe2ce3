/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CPython's built-in modules, which the default view shows although they lie in the interpreter's
 * binary: they do what the program asked for (a match, a collection, a checksum), whereas the rest carries Python out.
 */
#ifndef SYMBOLIZE_STACK_BUILTIN_MODULES_H
#define SYMBOLIZE_STACK_BUILTIN_MODULES_H

#include <stdbool.h>

/*
 * True for a function of the interpreter that belongs to a built-in module: by its source file, or, if that is "",
 * by its name.
 */
bool builtin_module_has(const char *function, const char *file);

#endif
