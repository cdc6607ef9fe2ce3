/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as base64 (RFC 4648, section 4: with '+', '/' and padding). */
#ifndef FORMATS_BASE_BASE64_H
#define FORMATS_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters that `len_bytes` become. */
#define BASE64_CHARS(len_bytes) (((len_bytes) + 2) / 3 * 4)

/*
 * Writes the characters to `out`, without a NUL; returns how many. Data that is encoded in pieces is cut at multiples of 3
 * bytes.
 */
size_t base64_encode(const uint8_t *data, size_t len_bytes, char *out);

#endif
