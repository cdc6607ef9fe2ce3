/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 as in section 6.1 of RFC 3174: 80 steps for each block of 64 bytes, the last of which ends in the length. */
#include "formats/base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t v, int bits)
{
    return v << bits | v >> (32 - bits);
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t step(int t, const uint32_t *s)
{
    if (t < 20)
        return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5a827999;
    if (t < 40)
        return (s[1] ^ s[2] ^ s[3]) + 0x6ed9eba1;
    if (t < 60)
        return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8f1bbcdc;
    return (s[1] ^ s[2] ^ s[3]) + 0xca62c1d6;
}

static void take_block(struct sha1 *sha, const uint8_t *block)
{
    uint32_t w[80], s[5];

    for (int t = 0; t < 16; t++)
        w[t] = big_endian(block + 4 * t);
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    memcpy(s, sha->state, sizeof s);
    for (int t = 0; t < 80; t++) {
        uint32_t next = rotate(s[0], 5) + step(t, s) + s[4] + w[t];
        memmove(s + 1, s, 4 * sizeof *s);
        s[2] = rotate(s[2], 30);
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        sha->state[i] += s[i];
}

void sha1_init(struct sha1 *sha)
{
    *sha = (struct sha1){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(struct sha1 *sha, const void *data, size_t len_bytes)
{
    const uint8_t *p = data;

    while (len_bytes) {
        size_t at = sha->len_bytes % SHA1_BLOCK_BYTES;
        size_t part = len_bytes < SHA1_BLOCK_BYTES - at ? len_bytes : SHA1_BLOCK_BYTES - at;
        memcpy(sha->block + at, p, part);
        sha->len_bytes += part;
        p += part;
        len_bytes -= part;
        if (at + part == SHA1_BLOCK_BYTES)
            take_block(sha, sha->block);
    }
}

void sha1_end(struct sha1 *sha, uint8_t hash[static SHA1_BYTES])
{
    static const uint8_t padding[SHA1_BLOCK_BYTES] = {0x80};
    uint64_t len_bits = 8 * sha->len_bytes;
    uint8_t len[8];

    for (int i = 0; i < 8; i++)
        len[i] = (uint8_t)(len_bits >> (56 - 8 * i));
    /* At least one byte, up to 8 before the end of a block. */
    sha1_add(sha, padding, SHA1_BLOCK_BYTES - (sha->len_bytes + 8) % SHA1_BLOCK_BYTES);
    sha1_add(sha, len, sizeof len);
    for (int i = 0; i < SHA1_BYTES; i++)
        hash[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}
