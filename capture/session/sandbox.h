/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a running capture is held to, by a seccomp filter over all threads.
 *
 * What is not in the list is refused with EPERM, not punished by death: the list knows what pycap and the libraries it
 * was built with call; a later libc may make a call of its own, and a capture that loses one feature then is better than
 * one that ends. (With PYCAP_SANDBOX_KILL set it does end: the tests run so, or a call that is missing in the list could
 * go unnoticed.) What matters to somebody who got hold of the process is refused either way: to execute, to fork, to
 * write into other processes or into files that are there already, to trace, to load BPF programs, to reach the
 * network, to make memory executable. openat2(), which opens files below the roots of other processes, is the exception:
 * its flags are in memory, where a filter does not reach, so that there the files' own permissions decide.
 */
#ifndef CAPTURE_SESSION_SANDBOX_H
#define CAPTURE_SESSION_SANDBOX_H

#include <sys/types.h>

#include "formats/base/err.h"

/* `command`: the process that may be sent signals; 0: there is no command. Needs no_new_privs. */
struct error *sandbox_enter(pid_t command);

#endif
