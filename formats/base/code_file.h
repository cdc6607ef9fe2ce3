/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file name of a code object names. Often it is a file; but code that was made out of a text has whatever name
 * its maker chose: "<string>", "<stdin>", "<frozen runpy>", "<dynamic-code>". Such names are looked for on no disk.
 *
 * The kernel of a notebook names the code of a cell after the process and a hash of the cell's text,
 * /tmp/ipykernel_1829/4278467509.py, but writes no such file (ipykernel/compiler.py, from 6.0 on; the debugger alone does).
 * Here that becomes the name of a cell, which is the same in every kernel that runs the cell: "cell ff043bb5 of ipykernel".
 * The hash in it finds the text again in the notebook.
 */
#ifndef FORMATS_BASE_CODE_FILE_H
#define FORMATS_BASE_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"

/* Whether a name may be a path: not "", not one in angle brackets, not that of a cell. Absolute or not. */
bool code_file_is_path(const char *name);
/* Whether ipykernel gave the name to a cell; `*hash` is then that of its text. */
bool code_file_is_of_ipykernel(const char *name, uint32_t *hash);
/* Appends the name of a cell. */
void code_file_put_cell(uint32_t hash, struct buf *out);
/* Whether it is the name of a cell, as code_file_put_cell() makes it; `*hash` (may be NULL) is then that of its text. */
bool code_file_is_cell(const char *name, uint32_t *hash);
/* The hash that ipykernel makes of a cell's text: MurmurHash2 for 32 bits, by get_tmp_hash_seed() of its compiler.py. */
uint32_t code_file_cell_hash(const char *text, size_t len_bytes);

#endif
