/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whether two code objects were made of the same source, without the source: for comparisons of recordings.
 *
 * The fingerprint is made of the length of the bytecode, the flags and the table of lines. The table counts lines from the
 * code's first one, so the fingerprint stays where a function only moves or gets another name. Nearly every other edit
 * changes the number of instructions, the lines between them or, from 3.11 on, their columns.
 */
#ifndef SYMBOLIZE_STACK_FINGERPRINT_H
#define SYMBOLIZE_STACK_FINGERPRINT_H

#include <stdint.h>

#include "formats/trace/trace.h"

/* Never 0 for a code whose table of lines was read in full; else 0. */
uint64_t fingerprint_of_code(const struct trace_code *code);

#endif
