/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the network away from a process by a seccomp filter, where Landlock does not: it knows TCP alone, and that from Linux
 * 6.7 on.
 */
#ifndef FORMATS_BASE_NO_SOCKETS_H
#define FORMATS_BASE_NO_SOCKETS_H

#include <stdbool.h>

/*
 * From now on this thread, and what it forks, can make no socket and no io_uring, which can make some: EPERM. Sockets that are
 * open stay. Needs no_new_privs. False: the kernel has no seccomp, or the machine is not known here, and nothing has changed.
 */
bool no_sockets_enter(void);

#endif
