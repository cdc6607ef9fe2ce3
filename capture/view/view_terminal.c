/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences are those of xterm, which terminals that have a second screen understand, and others ignore. */
#include "capture/view/view_terminal.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

struct error *view_terminal_save(struct view_terminal *t)
{
    if (!isatty(STDOUT_FILENO))
        return error_create(ERROR_USAGE, "this needs a terminal, and standard output is not one: to keep what is recorded, pycap record");
    if (tcgetattr(STDOUT_FILENO, &t->settings))
        return error_os(errno, "the terminal cannot be asked for its settings");
    t->saved = true;
    return NULL;
}

void view_terminal_restore(const struct view_terminal *t, bool screen)
{
    static const char back[] = "\033[0m\033[?1049l\033[?25h\r\n";
    sigset_t set, before;

    if (!t->saved)
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU); /* in the background it would stop us */
    sigprocmask(SIG_BLOCK, &set, &before);
    tcsetattr(STDOUT_FILENO, TCSADRAIN, &t->settings);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (screen && write(STDOUT_FILENO, back, sizeof back - 1) < 0)
        return; /* it has gone */
}
