/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes are called: the names that pysym gives them, too (formats/trace/program_name.h), and whether they are among
 * those that --comm asks for. A worker is called after the program that it works for, so its parents are looked at, also those
 * that the user did not ask for: of them /proc is read when a name needs it, once.
 */
#ifndef CAPTURE_PROCESS_PROCESS_NAMES_H
#define CAPTURE_PROCESS_PROCESS_NAMES_H

#include "capture/process/process_table.h"

#define PROCESS_NAME_MAX 320 /* with the NUL */
#define UNDECIDED_TRIES_MAX 20 /* how often it is tried to tell the name of an undecided process */

/*
 * The parent, if it is a Python program; else NULL. One that is not in the table is put there, in no one's scope and without its
 * mappings, unless the whole host is in it.
 */
struct process *processes_parent(struct processes *p, struct process *child);
/*
 * The process that `process` works for, of one without a name of its own: PROGRAM_PARENTS_MAX parents at most are looked at. NULL:
 * it has one, or none is known.
 */
struct process *processes_master(struct processes *p, struct process *process);
/* What a process is called, "hypercorn (spawn)"; the kernel's name if what it runs is not known. Returns `name`. */
const char *processes_name(struct processes *p, struct process *process, char name[PROCESS_NAME_MAX]);
/* The title that it gave itself, as much as the kernel keeps of it; "": none. */
const char *process_title(const struct process *process);
/*
 * Whether `text` names the process: its name, "-m" in front or not; that of the program it works for; its title, or what the kernel
 * keeps of it.
 */
bool processes_is_named(struct processes *p, struct process *process, const char *text);
/*
 * Whether the process passes the filter. Sets `undecided`, and returns false, where it is its name that decides and that cannot be
 * told yet: it is in the middle of exec, has a title and its interpreter is not found yet, or its parent is to be read.
 */
bool processes_passes(struct processes *p, struct process *process);

#endif
