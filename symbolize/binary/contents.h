/* SPDX-License-Identifier: Apache-2.0 */
/* What an ELF file is good for: some have the code, some only what debuggers need. */
#ifndef SYMBOLIZE_BINARY_CONTENTS_H
#define SYMBOLIZE_BINARY_CONTENTS_H

enum { HAS_CODE = 1, HAS_DWARF = 2, HAS_SYMTAB = 4 };

/*
 * What the file holds, HAS_… Call frame information counts as code: `pycap archive --strip-code` leaves it, and that is
 * all of the code that is needed here. A debug file has neither.
 */
int binary_contents(int fd);

#endif
