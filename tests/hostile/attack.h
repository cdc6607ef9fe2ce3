/* SPDX-License-Identifier: Apache-2.0 */
/* What attack programs have in common: they prepare, wait until the runner says so, attack, and end by themselves. */
#ifndef TESTS_HOSTILE_ATTACK_H
#define TESTS_HOSTILE_ATTACK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends the program with the error of the last system call. */
#define DIE(what)           \
    do {                    \
        perror(what);       \
        exit(EXIT_FAILURE); \
    } while (0)

/* Says that all is prepared, and waits until the runner says so. */
static inline void wait_for_go(void)
{
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        exit(EXIT_FAILURE);
}

#endif
