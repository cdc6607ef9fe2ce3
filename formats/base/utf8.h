/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 of text from elsewhere: other people's processes, files, archives.
 */
#ifndef FORMATS_BASE_UTF8_H
#define FORMATS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the sequence at `s`, of `len` > 0 bytes: its code point to *code; returns its length, 0 if it is not valid. */
size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *code);
/* Encodes a code point; returns the length. Surrogates and numbers above U+10FFFF become U+FFFD. */
size_t utf8_encode(uint32_t code, uint8_t out[4]);
/* Do the `len` > 0 bytes at `s` begin a sequence whose last bytes are missing? */
bool utf8_is_cut(const uint8_t *s, size_t len);
/* Could it end a line or control a terminal? C0, DEL, C1, and U+2028 and U+2029, which end lines in JavaScript. */
bool utf8_is_control(uint32_t code);

#endif
