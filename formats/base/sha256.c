/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as in section 6.2 of FIPS 180-4: 64 steps for each block of 64 bytes, the last of which ends in the length. */
#include "formats/base/sha256.h"

#include <string.h>

/* Of the cube roots of the first 64 primes, the first 32 bits behind the point. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t v, int bits)
{
    return v >> bits | v << (32 - bits);
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void take_block(uint32_t state[static 8], const uint8_t *block)
{
    /* As the standard calls them. */
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7], w[64];

    for (int t = 0; t < 16; t++)
        w[t] = big_endian(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = w[t - 16] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) + w[t - 7] +
               (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
    }
    for (int t = 0; t < 64; t++) {
        uint32_t one = h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) + ((e & f) ^ (~e & g)) + constants[t] + w[t];
        uint32_t two = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + one;
        d = c, c = b, b = a, a = one + two;
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += sum[i];
}

void sha256(const void *data, size_t len_bytes, uint8_t hash[static SHA256_BYTES])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t rest = len_bytes % SHA256_BLOCK_BYTES, end = rest + 9 <= SHA256_BLOCK_BYTES ? SHA256_BLOCK_BYTES : 2 * SHA256_BLOCK_BYTES;
    uint64_t len_bits = 8 * (uint64_t)len_bytes;
    uint8_t last[2 * SHA256_BLOCK_BYTES] = {0};
    const uint8_t *p = data;

    for (size_t at = 0; at < len_bytes - rest; at += SHA256_BLOCK_BYTES)
        take_block(state, p + at);
    if (rest)
        memcpy(last, p + (len_bytes - rest), rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[end - 8 + (size_t)i] = (uint8_t)(len_bits >> (56 - 8 * i));
    for (size_t at = 0; at < end; at += SHA256_BLOCK_BYTES)
        take_block(state, last + at);
    for (int i = 0; i < SHA256_BYTES; i++)
        hash[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
