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
size_t utf8_write(uint32_t code, uint8_t out[4]);
/* Do the `len` > 0 bytes at `s` begin a sequence whose last bytes are missing? */
bool utf8_is_cut(const uint8_t *s, size_t len);
/*
 * Could it end a line, control a terminal, or change how the text around it looks? C0, DEL, C1; U+2028 and U+2029, which
 * end lines in JavaScript; characters that turn the direction of text or are invisible: those of Unicode's category Cf
 * that only mark or format text. No identifier of Python may hold one; the joiners of emoji in file names are among them.
 */
bool utf8_is_control(uint32_t code);
/* Is it valid, and without such characters? */
bool utf8_is_printable(const char *text, size_t len_bytes);

#endif
