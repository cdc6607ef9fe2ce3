/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what utf8.h calls a printable character, escapes every other byte. */
#include "formats/base/printable.h"

#include <string.h>

#include "formats/base/utf8.h"

static void put(struct buf *out, const char *text, bool lines)
{
    const uint8_t *s = (const uint8_t *)text;

    for (size_t len = strlen(text), n; len; s += n, len -= n) {
        uint32_t code;
        n = utf8_decode(s, len, &code);
        if (n && (!utf8_is_control(code) || (lines && code == '\n'))) {
            buf_put(out, s, n);
            continue;
        }
        n = n ? n : 1;
        for (size_t i = 0; i < n; i++)
            buf_printf(out, "\\x%02x", s[i]);
    }
}

void printable_put(struct buf *out, const char *text)
{
    put(out, text, false);
}

void printable_put_lines(struct buf *out, const char *text)
{
    put(out, text, true);
}

const char *printable_keep(struct intern *texts, const char *text)
{
    struct buf clean = {0};

    printable_put(&clean, text);
    buf_put_u8(&clean, 0);
    uint32_t id = clean.bad ? INTERN_NONE : intern_id(texts, clean.data, (uint32_t)clean.len_bytes, NULL);
    buf_deinit(&clean);
    return id == INTERN_NONE ? NULL : (const char *)intern_get(texts, id)->data;
}
