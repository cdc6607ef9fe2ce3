/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/xml.h"

#include "formats/base/utf8.h"

void xml_put(const void *text, size_t len_bytes, struct buf *out)
{
    const uint8_t *s = text;

    for (size_t i = 0, n; i < len_bytes; i += n) {
        uint32_t c = 0;
        n = utf8_decode(s + i, len_bytes - i, &c);
        if (!n || (c < ' ' && c != '\t' && c != '\n') || c == 0xfffe || c == 0xffff)
            buf_put_str(out, "\xef\xbf\xbd");
        else if (c == '&')
            buf_put_str(out, "&amp;");
        else if (c == '<')
            buf_put_str(out, "&lt;");
        else if (c == '>')
            buf_put_str(out, "&gt;");
        else if (c == '"')
            buf_put_str(out, "&quot;");
        else
            buf_put(out, s + i, n);
        n += !n;
    }
}
