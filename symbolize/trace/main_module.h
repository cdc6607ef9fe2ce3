/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from the outermost frames of a process's first thread what program it runs: the file of the first <module>. What
 * only starts it is passed over: runpy, which runs modules for -m, and what a pex brings along. That unpacks itself into a
 * folder whose name is a hash, and runs a __main__.py or a script called "pex" there: then it is the file of the <module>
 * or of the function that this runs (pex 2.92: pex/pex.py, PEX.execute_entry).
 */
#ifndef SYMBOLIZE_TRACE_MAIN_MODULE_H
#define SYMBOLIZE_TRACE_MAIN_MODULE_H

#include <stdbool.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"

struct main_module {
    enum trace_program_kind kind; /* of what was found */
    const char *program;          /* of its kind; until the next call */
    struct buf function, file, text, starter;
};

/* {0} is one to begin with. */
void main_module_deinit(struct main_module *m);
/* Looks into a Python stack of the epoch that is complete. */
struct error *main_module_find(struct main_module *m, const struct epoch *e, uint32_t stack, bool *found);
/* Is it the name of a script that tells nobody what runs: that of a folder which is a hash, or "pex"? */
bool main_module_says_nothing(const char *script);

#endif
