/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For main.c of both programs only: exit codes, and how errors are printed.
 */
#ifndef FORMATS_BASE_PROGRAM_H
#define FORMATS_BASE_PROGRAM_H

#include <errno.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/job_text.h"

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INCOMPLETE = 3,
    EXIT_BROKEN = 4,    /* pysym diff: a rule is surely broken */
    EXIT_UNDECIDED = 5, /* pysym diff: the runs do not tell, and the rules say that this fails */
};

/* Prints the error, destroys it and returns its exit code. */
static inline int program_fail(const char *program, struct error *err)
{
    int code = err->code == ERROR_USAGE ? EXIT_USAGE : EXIT_FAILED;

    job_text_print(stderr, "%s: %s\n", program, error_text(err));
    error_destroy(err);
    return code;
}

/* The same for an error in the command line of `command`, such as "pycap record": points to its --help. */
static inline int program_usage(const char *program, const char *command, struct error *err)
{
    bool usage = err->code == ERROR_USAGE;
    int code = program_fail(program, err);

    if (usage)
        fprintf(stderr, "Try '%s --help'.\n", command);
    return code;
}

/* Call it after the last output to stdout: flushes it, and reports what could not be written (a full disk). */
static inline int program_end_output(const char *program)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_GOOD;
    return program_fail(program, error_file(errno, "standard output", "could not be written"));
}

#endif
