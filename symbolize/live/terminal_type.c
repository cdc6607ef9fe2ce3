/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/terminal_type.h"

#include <ncurses.h>
#include <stdlib.h>
#include <term.h>

struct error *terminal_type_check(int terminal_fd)
{
    int found;

    if (setupterm(NULL, terminal_fd, &found) != OK)
        return terminal_type_unknown();
    const char *move = tigetstr("cup");
    bool moves = move && move != (const char *)-1;
    del_curterm(cur_term);
    if (!moves)
        return error_create(ERROR_USAGE, "this terminal cannot be drawn on, TERM is '%s': try TERM=xterm or TERM=vt100",
                            getenv("TERM"));
    return NULL;
}

struct error *terminal_type_unknown(void)
{
    const char *type = getenv("TERM");

    return error_create(ERROR_USAGE, "the terminal's type is not known here, TERM is '%s': try TERM=xterm or TERM=vt100",
                        type ? type : "");
}
