/* SPDX-License-Identifier: Apache-2.0 */
/* The file system in which the kernel lists its tracepoints. */
#ifndef CAPTURE_EVENT_TRACEFS_H
#define CAPTURE_EVENT_TRACEFS_H

#include "formats/base/err.h"

/*
 * Opens its top folder; the caller closes it. Where it is mounted nowhere, it is mounted for this file descriptor alone:
 * no process sees it, and it is gone when the descriptor is closed. The error says what to do.
 */
struct error *tracefs_open(int *fd);

#endif
