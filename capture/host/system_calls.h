/* SPDX-License-Identifier: Apache-2.0 */
/* Names of system calls of the machine that pycap is built for. */
#ifndef CAPTURE_HOST_SYSTEM_CALLS_H
#define CAPTURE_HOST_SYSTEM_CALLS_H

/* "read"; NULL for a number that this version does not know. */
const char *system_call_name(int number);

#endif
