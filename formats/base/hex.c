/* SPDX-License-Identifier: Apache-2.0 */
/* One digit for each half of a byte. */
#include "formats/base/hex.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

struct hex hex_of(const void *bytes, size_t len_bytes)
{
    const uint8_t *p = bytes;
    struct hex h = {""};

    for (size_t i = 0; i < len_bytes && i < HEX_MAX_BYTES; i++) {
        h.text[2 * i] = digits[p[i] >> 4];
        h.text[2 * i + 1] = digits[p[i] & 15];
    }
    return h;
}

size_t hex_read(const char *text, uint8_t *out, size_t max)
{
    size_t read = 0; /* digits */

    for (; *text && read < 2 * max; text++) {
        const char *digit = strchr(digits, *text >= 'A' && *text <= 'F' ? *text - 'A' + 'a' : *text);
        if (!digit)
            continue;
        uint8_t value = (uint8_t)(digit - digits);
        out[read / 2] = (uint8_t)(read % 2 ? out[read / 2] << 4 | value : value);
        read++;
    }
    return read / 2;
}
