/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process runs, and what it is called. Its name is the one that pysym gives it, by formats/trace/program_name.h; where
 * what it runs is not known it is the kernel's.
 */
#ifndef CAPTURE_PROCESS_PROCESS_PROGRAM_H
#define CAPTURE_PROCESS_PROCESS_PROGRAM_H

#include "capture/process/process.h"

/*
 * Finds out what the process runs, unless that is known: a child has what its parent had. Reads the command line of a
 * Python once, of no other program; where a title has replaced it, the file of the main module. `finally`: what cannot be read
 * now stays UNKNOWN; else it is tried again.
 */
void process_find_program(struct process *p, bool finally);
/* Whether its program is a Python one, as far as is known: also one that is not sampled, of which no mapping was read. */
bool process_is_python_program(const struct process *p);
/* Whether what it runs is to be told by its interpreter, which is not found yet: its mappings are to be read. */
bool process_awaits_python(const struct process *p);
/* `p` is what exec has made of `old`: remembers what that ran. */
void process_keep_program(struct process *p, const struct process *old);
/* Moves what is known of the program of `from`, which is the same process. */
void process_take_program(struct process *p, struct process *from);
void process_forget_program(struct process *p);

#endif
