/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from elsewhere (traces, other people's files and processes) as a part of a line on a terminal: what could drive
 * one or end the line, and bytes that are not UTF-8, read as \x1b. What emitters do instead is in formats/emit/names.h.
 */
#ifndef FORMATS_BASE_PRINTABLE_H
#define FORMATS_BASE_PRINTABLE_H

#include "formats/base/buf.h"
#include "formats/base/intern.h"

void printable_put(struct buf *out, const char *text);
/* The text so, as long as `texts` lives; equal texts are at the same place. NULL: out of memory. */
const char *printable_keep(struct intern *texts, const char *text);

#endif
