/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits a running capture to the system calls that it needs, by a seccomp filter over all threads.
 *
 * A call that is not in the list fails with EPERM; it does not kill pycap. The list has the calls that pycap and the
 * libraries it was built with make. A later libc may make others, and a capture that loses one feature is better than
 * one that ends. (With PYCAP_SANDBOX_KILL set, pycap is killed. The tests use that to notice calls that the list
 * lacks.)
 *
 * What an attacker who controls the process would want is refused: execute, fork, write into other processes or into
 * existing files, trace, load BPF programs, use the network, make memory executable. The exception is openat2(), which
 * opens files below the roots of other processes. It takes its flags in memory, which a filter cannot read, so only the
 * permissions of the files protect them.
 */
#ifndef CAPTURE_HOST_SANDBOX_H
#define CAPTURE_HOST_SANDBOX_H

#include <sys/types.h>

#include "formats/base/err.h"

/* Installs the filter. `command`: the only process that may be sent signals; 0: none may. Needs no_new_privs. */
struct error *sandbox_enter(pid_t command);

#endif
