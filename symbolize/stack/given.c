/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/given.h"

#include <string.h>

/* As a shell would take it. */
static void put_word(const char *word, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";

    if (*word && word[strspn(word, plain)] == 0) {
        buf_put_str(out, word);
        return;
    }
    buf_put_str(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            buf_put_str(out, "'\\''");
        else
            buf_put(out, word, 1);
    }
    buf_put_str(out, "'");
}

void given_put(const struct given *given, const char *name, struct buf *out)
{
    const char *before = "";

    for (size_t i = 0; i < given->count; i++) {
        const struct given_option *option = &given->data[i];
        if (name && strcmp(option->name, name) != 0)
            continue;
        buf_printf(out, "%s--%s", before, option->name);
        before = " ";
        if (!option->argument)
            continue;
        buf_put_str(out, " ");
        put_word(option->argument, out);
    }
}
