/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a source file as text. Python decodes a file as its first two lines say (PEP 263), or as UTF-8; lines end
 * in "\n", "\r" or "\r\n".
 */
#ifndef SYMBOLIZE_SOURCE_SOURCE_TEXT_H
#define SYMBOLIZE_SOURCE_SOURCE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"

/*
 * Appends the text as UTF-8, with "\n" after each line that has an end, and without a byte order mark. Of a file in UTF-8
 * or Latin-1 all is decoded; of any other encoding what is ASCII. Every other byte, and a 0 byte, becomes \xe9 and the like.
 */
void source_text_decode(const uint8_t *bytes, size_t len_bytes, struct buf *out);

#endif
