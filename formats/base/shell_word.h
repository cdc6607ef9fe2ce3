/* SPDX-License-Identifier: Apache-2.0 */
/* Words of commands that a person may copy into a shell. */
#ifndef FORMATS_BASE_SHELL_WORD_H
#define FORMATS_BASE_SHELL_WORD_H

#include "formats/base/buf.h"

/* Appends a text as one word of a shell's command: in quotes, unless it means nothing else there. */
void shell_word_put(const char *text, struct buf *out);

#endif
