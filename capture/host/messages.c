/* SPDX-License-Identifier: Apache-2.0 */
/* The one place in pycap's library that prints. */
#include "capture/host/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/job_text.h"
#include "formats/base/printable.h"

/* Prints nothing when memory runs out. `prefix`: what a message of one line begins with; "": it has several. */
static void write_printable(FILE *out, const char *prefix, const char *fmt, va_list ap)
{
    struct buf clean = {0};
    char *text;

    if (vasprintf(&text, fmt, ap) < 0)
        return;
    if (!*prefix)
        printable_put_lines(&clean, text);
    else
        printable_put(&clean, text);
    free(text);
    if (!clean.bad)
        job_text_print(out, "%s%s%s", prefix, buf_cstr(&clean), *prefix ? "\n" : "");
    buf_deinit(&clean);
}

void messages_write(FILE *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_printable(out, "", fmt, ap);
    va_end(ap);
}

void messages_line(FILE *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_printable(out, "pycap: ", fmt, ap);
    va_end(ap);
}

void messages_clear_line(FILE *out)
{
    fputs("\r\033[K", out);
}

struct messages_name messages_name(const char *comm)
{
    struct messages_name name = {""};
    struct buf clean = {0};

    printable_put(&clean, comm);
    if (!clean.bad)
        snprintf(name.text, sizeof name.text, "%s", buf_cstr(&clean));
    buf_deinit(&clean);
    return name;
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
