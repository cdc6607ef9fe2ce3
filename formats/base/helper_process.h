/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes have in common that pycap and pysym fork beside the first one, each for one task. */
#ifndef FORMATS_BASE_HELPER_PROCESS_H
#define FORMATS_BASE_HELPER_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * The helper's first call: gives it its name in lists of processes, has it ignore the signals that end the first
 * process, and closes all descriptors but those in `keep`, in any order (-1 is passed over). Standard input, output and
 * error become /dev/null unless they are among them.
 */
void helper_begin(const char *name, const int *keep, size_t count);
/* Waits for the end of a helper that has nothing to do any more, for a second at most. */
void helper_wait(pid_t pid);
/*
 * The same open file under a number above standard error's, closed by exec; closes `fd`. Where the program was started
 * without standard input, output or error their numbers are free, but must be used for nothing else. -1, which is passed
 * on: errno says why.
 */
int helper_descriptor(int fd);

#endif
