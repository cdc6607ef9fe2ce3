/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/given.h"

#include <string.h>

#include "formats/base/shell_word.h"

static void put(const struct given *given, const char *name, const char *but, struct buf *out)
{
    const char *before = "";

    for (size_t i = 0; i < given->count; i++) {
        const struct given_option *option = &given->data[i];
        if ((name && strcmp(option->name, name) != 0) || (but && !strcmp(option->name, but)))
            continue;
        buf_printf(out, "%s--%s", before, option->name);
        before = " ";
        if (!option->argument)
            continue;
        buf_put_str(out, " ");
        shell_word_put(option->argument, out);
    }
}

void given_put(const struct given *given, const char *name, struct buf *out)
{
    put(given, name, NULL, out);
}

void given_put_but(const struct given *given, const char *but, struct buf *out)
{
    put(given, NULL, but, out);
}
