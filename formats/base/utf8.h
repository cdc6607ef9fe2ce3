/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from elsewhere: other people's processes, files, archives.
 */
#ifndef FORMATS_BASE_UTF8_H
#define FORMATS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 sequence at `s`, where `len` > 0 bytes are; its code point to *code. 0: it is none. */
size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *code);
/* The bytes of a code point to `out`, and how many; what is no character (a surrogate, too large) becomes U+FFFD. */
size_t utf8_encode(uint32_t code, uint8_t out[4]);
/* Whether a sequence begins at `s` whose last bytes are behind the end of the `len` > 0 bytes. */
bool utf8_is_cut(const uint8_t *s, size_t len);
/* Ends a line somewhere, or could drive a terminal: C0, DEL, C1, and what ends lines in JavaScript. */
bool utf8_is_control(uint32_t code);

#endif
