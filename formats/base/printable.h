/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text from elsewhere (traces, other people's files and processes) safe to print on a terminal: control
 * characters (utf8_is_control()), line ends and bytes that are not UTF-8 become \x1b and the like. Emitters use
 * formats/emit/names.h instead.
 */
#ifndef FORMATS_BASE_PRINTABLE_H
#define FORMATS_BASE_PRINTABLE_H

#include "formats/base/buf.h"
#include "formats/base/intern.h"

/* Appends the text. */
void printable_put(struct buf *out, const char *text);
/* The same for text of several lines: line ends stay. */
void printable_put_lines(struct buf *out, const char *text);
/* The same as a string that lives as long as `texts`; equal strings have the same address. NULL: out of memory. */
const char *printable_keep(struct intern *texts, const char *text);

#endif
