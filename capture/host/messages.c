/* SPDX-License-Identifier: Apache-2.0 */
/* The one place in pycap's library that prints. */
#include "capture/host/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void messages_write(FILE *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(out, fmt, ap);
    va_end(ap);
}

void messages_line(FILE *out, const char *fmt, ...)
{
    va_list ap;

    fputs("pycap: ", out);
    va_start(ap, fmt);
    vfprintf(out, fmt, ap);
    va_end(ap);
    fputc('\n', out);
}

/* By the rules of the nouns that are used: binary, process, sample. */
struct messages_count messages_count(uint64_t n, const char *noun)
{
    struct messages_count c;
    size_t len = strlen(noun);
    char last = len ? noun[len - 1] : 0;

    if (n == 1)
        snprintf(c.text, sizeof c.text, "1 %s", noun);
    else if (last == 'y')
        snprintf(c.text, sizeof c.text, "%" PRIu64 " %.*sies", n, (int)(len - 1), noun);
    else
        snprintf(c.text, sizeof c.text, "%" PRIu64 " %s%s", n, noun, last == 's' ? "es" : "s");
    return c;
}
