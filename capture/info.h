/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap info`: prints what this host offers, and which Python processes run on it.
 */
#ifndef CAPTURE_INFO_H
#define CAPTURE_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"

/*
 * Prints to `out`; `verbose`: also what only those who adapt pycap want to know. That sampling
 * or a process is impossible is part of the output, not an error.
 */
struct error *info_print(bool verbose, FILE *out);

#endif
