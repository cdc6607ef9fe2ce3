/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is called, by what PROCESS says of it: the same in pycap's messages and in all that pysym shows.
 *
 * Its name is that of what it runs: "gunicorn", "-m http.server", "app.py". A worker that another program began through a
 * helper of multiprocessing, loky or execnet, or with -c, has no name of its own: it is called after the program that it
 * works for, with how it was begun behind it: "hypercorn (spawn)". That program is the first one above it, parent by
 * parent, that has a name of its own; where none is known, the helper's name is all there is.
 *
 * A process may also give itself a title (setproctitle, prctl). Its first 15 bytes are the kernel's name of it, and stand
 * beside the name.
 */
#ifndef FORMATS_TRACE_PROGRAM_NAME_H
#define FORMATS_TRACE_PROGRAM_NAME_H

#include <stdbool.h>

#include "formats/base/buf.h"
#include "formats/trace/trace.h"

/* How far the programs above a worker are looked at. */
#define PROGRAM_PARENTS_MAX 32
/* Bytes that the kernel keeps of a name. */
#define PROGRAM_COMM_MAX 15

/*
 * How a worker was begun, for those that have no name of their own: "spawn", "forkserver", "loky", "-c"; a constant text.
 * NULL: it has a name of its own. `program` may be NULL.
 */
const char *program_begun_by(enum trace_program_kind kind, const char *program);
/* The name of the helper whose module is in that file: ".../multiprocessing/spawn.py"; a constant text, NULL: of none. */
const char *program_helper_of_file(const char *path);
/* Whether what runs is a Python program by its name, or by that of its program file; `exe` (a path) may be NULL. */
bool program_is_python(enum trace_program_kind kind, const char *exe);
/* Whether it is known what runs, so that it has a name; `program` may be NULL. */
bool program_has_name(enum trace_program_kind kind, const char *program);
/* Appends the name of what runs, as it is shown. False, and nothing is appended: it is not known. `program` may be NULL. */
bool program_put(enum trace_program_kind kind, const char *program, struct buf *out);
/* Appends the name of a worker of the program `name`: "hypercorn (spawn)". */
void program_put_worker(const char *name, const char *begun_by, struct buf *out);
/*
 * Whether `comm`, the kernel's name of a process or thread, is what exec of that file, or of a script of that name, calls
 * it: the beginning of its last component. `path` may be NULL.
 */
bool program_is_exec_name(const char *comm, const char *path);
/*
 * Whether `comm`, the kernel's name of a process, is a title that it gave itself: not what exec calls it. `exe` (a path)
 * and `program` may be NULL.
 */
bool program_is_title(const char *comm, const char *exe, const char *program);
/*
 * Whether a name is a hash, up to its end or a slash, as that of the folder to which a pex unpacks what it runs: it says nothing
 * to anybody.
 */
bool program_is_hash(const char *name);
/* Whether the kernel calls a process so that has given itself the name, or title, `text`. */
bool program_is_comm(const char *text, const char *comm);
/* "python", "python3", "python3.13t", "python3.11-dbg", "python2.7_d": the usual names of an interpreter's program file. */
bool program_is_interpreter(const char *base);

#endif
