/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes, such as a build ID, as hexadecimal digits and back. */
#ifndef FORMATS_BASE_HEX_H
#define FORMATS_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

enum { HEX_MAX_BYTES = 64 };

struct hex {
    char text[2 * HEX_MAX_BYTES + 1];
};

/* Lower case; of more than HEX_MAX_BYTES bytes, the first of them. */
struct hex hex_of(const void *bytes, size_t len_bytes);
/* The bytes that the digits of `text` give, two digits each; what is no digit is passed over. Returns how many, at most `max`. */
size_t hex_read(const char *text, uint8_t *out, size_t max);

#endif
