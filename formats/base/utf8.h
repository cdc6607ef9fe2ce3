/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from elsewhere (other people's processes, files, archives) on its way to a terminal or a line of a file.
 */
#ifndef FORMATS_BASE_UTF8_H
#define FORMATS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 sequence at `s`, where `len` > 0 bytes are; its code point to *code. 0: it is none. */
size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *code);
/* Ends a line somewhere, or could drive a terminal: C0, DEL, C1, and what ends lines in JavaScript. */
bool utf8_is_control(uint32_t code);

#endif
