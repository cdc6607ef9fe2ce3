/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/utf8.h"

size_t utf8_decode(const uint8_t *s, size_t len, uint32_t *code)
{
    size_t need = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if (!need || need > len)
        return 0;
    *code = need == 1 ? s[0] : s[0] & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    if (*code < least[need] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return 0;
    return need;
}

bool utf8_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}
