/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_USUAL = 80 };

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* The locale's variables in the order in which they count; locales are not loaded for this. */
static bool shows_utf8(void)
{
    const char *locale = is_set("LC_ALL") ? getenv("LC_ALL") : is_set("LC_CTYPE") ? getenv("LC_CTYPE") : getenv("LANG");

    return locale && (strcasestr(locale, "UTF-8") || strcasestr(locale, "UTF8"));
}

struct emit_terminal terminal_of_output(void)
{
    struct winsize size = {0};

    if (!isatty(STDOUT_FILENO))
        return (struct emit_terminal){0};
    bool has_size = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
    return (struct emit_terminal){
        .columns = has_size ? size.ws_col : COLUMNS_USUAL,
        .colours = !is_set("NO_COLOR") && is_set("TERM") && strcmp(getenv("TERM"), "dumb") != 0,
        .blocks = shows_utf8(),
    };
}
