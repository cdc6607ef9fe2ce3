/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/shell_word.h"

#include <string.h>

void shell_word_put(const char *text, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";

    if (*text && text[strspn(text, plain)] == 0) {
        buf_put_str(out, text);
        return;
    }
    buf_put_str(out, "'");
    for (; *text; text++) {
        if (*text == '\'')
            buf_put_str(out, "'\\''");
        else
            buf_put(out, text, 1);
    }
    buf_put_str(out, "'");
}
