/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of bytes that are all in memory. */
#ifndef FORMATS_BASE_SHA256_H
#define FORMATS_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_BLOCK_BYTES = 64 };

void sha256(const void *data, size_t len_bytes, uint8_t hash[static SHA256_BYTES]);

#endif
