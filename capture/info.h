/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap info`: prints what this host offers, and which Python processes run on it.
 */
#ifndef CAPTURE_INFO_H
#define CAPTURE_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "capture/host/host.h"
#include "formats/base/err.h"

/*
 * Prints to `out`; `verbose`: also what only those who adapt pycap want to know. That sampling
 * or a process is impossible is part of the output, not an error.
 */
struct error *info_print(bool verbose, FILE *out);

/* Prints what kinds of events this host has, a line each. */
void info_print_events(const struct host *h, FILE *out);
/*
 * Prints the events of this host by name, a line each: those that fit `pattern`, with * and ? as the shell has them; NULL:
 * all. ERROR_NOT_FOUND: none does.
 */
struct error *info_list_events(const char *pattern, FILE *out);

#endif
