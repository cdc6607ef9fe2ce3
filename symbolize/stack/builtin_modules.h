/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CPython's built-in modules, which the default view shows although they lie in the interpreter's
 * binary: they do what the program asked for (a match, a collection, a checksum), whereas the rest carries Python out.
 */
#ifndef SYMBOLIZE_STACK_BUILTIN_MODULES_H
#define SYMBOLIZE_STACK_BUILTIN_MODULES_H

/*
 * The built-in module that a function of the interpreter belongs to: by the function's source file, or, if that is "",
 * by its name. Returns static storage; NULL if it belongs to none.
 */
const char *builtin_module_of(const char *function, const char *file);

#endif
