/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the main functions of both programs share, and nobody else includes: exit codes, and how errors are printed.
 */
#ifndef FORMATS_BASE_PROGRAM_H
#define FORMATS_BASE_PROGRAM_H

#include <errno.h>
#include <stdio.h>

#include "formats/base/err.h"

enum exit_code { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INCOMPLETE = 3 };

/* Prints the error, which it takes, and gives the exit code that it stands for. */
static inline int program_fail(const char *program, struct error *err)
{
    int code = err->code == ERROR_USAGE ? EXIT_USAGE : EXIT_FAILED;

    fprintf(stderr, "%s: %s\n", program, error_text(err));
    error_destroy(err);
    return code;
}

/* The same for a command line that is not understood: says where to read on. */
static inline int program_usage(const char *program, struct error *err)
{
    bool usage = err->code == ERROR_USAGE;
    int code = program_fail(program, err);

    if (usage)
        fprintf(stderr, "Try '%s --help'.\n", program);
    return code;
}

/* After the last thing that was printed: a full disk is an error. */
static inline int program_end_output(const char *program)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_GOOD;
    return program_fail(program, error_file(errno, "standard output", "could not be written"));
}

#endif
