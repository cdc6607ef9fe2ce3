/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process runs, as people call it: "gunicorn", "http.server", "app.py". It is told by the program file and by those
 * few words of the command line that CPython itself reads; what comes behind them are the program's own arguments, which
 * may be secret, and nothing of them gets into a name.
 *
 * A program may replace its command line by a title, which may hold its arguments ("gunicorn: master [app:api]"). So a
 * command line counts only while it looks like that of a Python: it begins with the name of an interpreter, or of the
 * dynamic loader that was called with one, and ends with a NUL. Otherwise it is the file of the main module that tells, if the
 * interpreter has it still (main_module.h). Where nothing does, the kind is UNKNOWN, and pysym looks at the stacks.
 */
#ifndef CAPTURE_PROCESS_PROGRAM_H
#define CAPTURE_PROCESS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/trace/trace.h"

#define PROGRAM_NAME_MAX 256 /* with the NUL; a longer name is unknown */
/* How much of a command line is looked at: the words that CPython reads stand first. */
#define PROGRAM_ARGUMENTS_MAX 4096

struct program {
    enum trace_program_kind kind;
    bool is_hashed; /* UNKNOWN, since its name is a hash */
    char name[PROGRAM_NAME_MAX];
};

/* What is known of a process. */
struct program_facts {
    const char *exe;       /* path of its program file, as /proc/PID/exe has it; NULL: unknown */
    bool is_python;        /* it has an interpreter; false: perhaps not yet */
    const char *arguments; /* as /proc/PID/cmdline has them: words that end in a NUL; one more NUL follows */
    size_t len_bytes;
    bool cut;              /* more arguments follow */
};

/* Whether the command line tells what the process runs: of a program that is no Python it does not count. */
bool program_is_told_by_arguments(const struct program_facts *facts);
/* Never fails: what does not tell is of kind UNKNOWN. */
void program_find(const struct program_facts *facts, struct program *out);
/* The same by the path of the main module's file, which the program may have made up. */
void program_find_by_main_file(const char *path, struct program *out);

#endif
