/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user may have meant instead: mistakes that would end in an empty trace are said by name, with what to do, when the
 * recording begins where that can be known, else at its end.
 */
#ifndef CAPTURE_SESSION_ADVICE_H
#define CAPTURE_SESSION_ADVICE_H

#include "capture/session/session_parts.h"

/* Returns an error if one of the ids given with -p is that of a thread; call before they are read as processes. */
struct error *advice_check_pids(const struct session_options *o);
/*
 * Whether a process in which no interpreter was found may still be one to record: its files are still being inspected (on a
 * busy host that takes longer than the start waits), or a process below it runs Python.
 */
bool advice_may_be_python(const struct session *s, const struct process *p);
/*
 * Returns an error that says why a process in which no interpreter was found cannot be recorded: it is no Python, it
 * has ended, or its files may not be read.
 */
struct error *advice_no_python(const struct session *s, struct process *p);
/* The same of one whose interpreter was found, and is `refused`. Never NULL. */
struct error *advice_refused(const struct session *s, struct process *p);
/* Returns an error that says that there is no such process, or that /proc hides it. */
struct error *advice_no_process(const struct session *s, uint32_t pid);
/* Writes a line for each process that is stopped, and each name or cgroup that no process has yet. */
void advice_at_start(struct session *s);
/* Writes why the trace has no sample. */
void advice_no_sample(struct session *s);
/* Writes a line for each Python process that goes on after the command that began it has ended. */
void advice_left_behind(struct session *s);
/* Whether the exit status is to say that the trace has no sample: where processes, names or cgroups were asked for. */
bool advice_fails_empty(const struct session *s);

#endif
