/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what an ELF file contains: code, or only what debuggers need. */
#ifndef SYMBOLIZE_BINARY_CONTENTS_H
#define SYMBOLIZE_BINARY_CONTENTS_H

enum { HAS_CODE = 1, HAS_DWARF = 2, HAS_SYMTAB = 4 };

/*
 * Returns what the file contains, bits HAS_… Call frame information counts as code: `pycap archive --strip-code` keeps
 * it, and pysym needs nothing else of the code. A debug file has neither.
 */
int binary_contents(int fd);

#endif
