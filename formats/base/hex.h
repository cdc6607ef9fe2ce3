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

/* In lower case. Only the first HEX_MAX_BYTES bytes are taken. */
struct hex hex_of(const void *bytes, size_t len_bytes);
/* Reads two digits for each byte, skipping any other character. Returns how many bytes were read, at most `max`. */
size_t hex_read(const char *text, uint8_t *out, size_t max);

#endif
