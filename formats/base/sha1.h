/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (RFC 3174), for build IDs, which linkers make by it. It is no protection against forgery. */
#ifndef FORMATS_BASE_SHA1_H
#define FORMATS_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BYTES = 20, SHA1_BLOCK_BYTES = 64 };

struct sha1 {
    uint32_t state[5];
    uint64_t len_bytes;
    uint8_t block[SHA1_BLOCK_BYTES]; /* its first len_bytes % SHA1_BLOCK_BYTES bytes wait for the rest */
};

void sha1_init(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *data, size_t len_bytes);
/* `s` must be initialized again before it is used for another hash. */
void sha1_end(struct sha1 *s, uint8_t hash[static SHA1_BYTES]);

#endif
