/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the processes of a recording to the system calls that they need, by a seccomp filter over all threads.
 *
 * A call that is not in the list fails with EPERM; it does not kill pycap. The lists have the calls that pycap and the
 * libraries it was built with make. A later libc may make others, and a capture that loses one feature is better than
 * one that ends. (With PYCAP_SANDBOX_KILL set, pycap is killed. The tests use that to notice calls that the lists
 * lack.)
 *
 * What an attacker who controls the reader, which reads other processes, would want is refused: execute, fork, trace,
 * write into other processes, open anything for writing, create, rename or remove files, change their mode or owner,
 * load BPF programs, use the network, make memory executable, signal others.
 */
#ifndef CAPTURE_HOST_SANDBOX_H
#define CAPTURE_HOST_SANDBOX_H

#include <sys/types.h>

#include "formats/base/err.h"

/*
 * Installs the filter of the reader. `command`: the only process that may be sent signals; 0: none may. Needs
 * no_new_privs.
 */
struct error *sandbox_enter_reader(pid_t command);
/* Installs the filter of the processes that read for the reader (capture/host/errand.h). Needs no_new_privs. */
struct error *sandbox_enter_errands(void);
/* Installs the filter of the writer (capture/output/output_server.h): files and little else. Needs no_new_privs. */
struct error *sandbox_enter_writer(void);
/* Installs the filter of the process that makes BPF maps (capture/sampler/table_maker.h). Needs no_new_privs. */
struct error *sandbox_enter_table_maker(void);
/* Installs the filter of a helper that only passes on what it is told: nothing can be opened. Needs no_new_privs. */
struct error *sandbox_enter_messenger(void);

#endif
