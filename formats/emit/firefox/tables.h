/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tables of stacks.h, once they are filled. A failed write is found by whoever closes the file. */
#ifndef FORMATS_EMIT_FIREFOX_TABLES_H
#define FORMATS_EMIT_FIREFOX_TABLES_H

#include <stdio.h>

#include "formats/emit/firefox/stacks.h"

/* Writes the list of binaries, the value of "libs". */
struct error *firefox_libraries_write(struct firefox_stacks *s, FILE *out);
/* Writes the other tables and, last, the strings: the value of "shared". */
struct error *firefox_tables_write(struct firefox_stacks *s, FILE *out);

#endif
