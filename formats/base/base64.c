/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/base64.h"

size_t base64_encode(const uint8_t *data, size_t len_bytes, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *to = out;

    for (size_t i = 0; i < len_bytes; i += 3) {
        size_t left = len_bytes - i;
        uint32_t three = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0);
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[three & 63] : '=';
    }
    return (size_t)(to - out);
}
