/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file into which a command writes facts about itself (PYCAP_NOTE).
 *
 * pycap makes it, and holds it open for reading from before the command exists. What is read is that file, never what lies
 * at its path by then: a command that puts a link, a FIFO or another file there changes nothing. So no other file is ever
 * read, and nothing that could block is.
 *
 * The process that reads others may not remove files. A helper does it (pycap-note in lists of processes), which waits
 * until that process has gone, however it ended, and takes no other orders.
 */
#ifndef CAPTURE_OUTPUT_NOTE_FILE_H
#define CAPTURE_OUTPUT_NOTE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

struct note_file;

/*
 * Makes an empty file of mode 0600 of pycap's own user, who is the command's as well, under a name that cannot be guessed;
 * in the folder that TMPDIR names if that may be trusted, else in /tmp. Forks the helper: call it before there are threads
 * and large allocations. `confine`: the helper gives up what it does not need.
 */
struct error *note_file_create(bool confine, struct note_file **out);
/* Its path, absolute. Lives as long as the file. */
const char *note_file_path(const struct note_file *n);
/*
 * Reads the file's beginning, up to `size` bytes, and says how many there are (0 after an error) and how many more the file
 * has.
 */
size_t note_file_read(const struct note_file *n, void *to, size_t size, uint64_t *more_bytes);
/* Closes the file, and has what lies at its path removed. Accepts NULL. */
void note_file_destroy(struct note_file *n);

#endif
