/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of simulations: how many draws, a seed, and the parts that are wanted. */
#ifndef TESTS_TOOLS_SIMULATE_PARTS_H
#define TESTS_TOOLS_SIMULATE_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/random.h"

struct simulate_part {
    const char *name;
    void (*simulate)(struct random *r, int draws);
};

static inline const struct simulate_part *simulate_find(const struct simulate_part *parts, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(parts[i].name, name))
            return &parts[i];
    }
    return NULL;
}

static inline int simulate_usage(const struct simulate_part *parts, size_t count, const char *program)
{
    fprintf(stderr, "usage: %s DRAWS SEED PART...; parts:", program);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s", parts[i].name);
    fputs("\n", stderr);
    return 2;
}

/* Runs the parts that argv names behind draws and seed, in that order; returns the exit code. */
static inline int simulate_parts(const struct simulate_part *parts, size_t count, int argc, char **argv)
{
    int draws = argc > 3 ? atoi(argv[1]) : 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (draws < 1)
        return simulate_usage(parts, count, argv[0]);
    for (int i = 3; i < argc; i++) {
        /* Each part has its own numbers: they don't depend on what else is asked for. */
        struct random r = random_of(strtoull(argv[2], NULL, 10));
        const struct simulate_part *part = simulate_find(parts, count, argv[i]);
        if (!part)
            return simulate_usage(parts, count, argv[0]);
        part->simulate(&r, draws);
    }
    return 0;
}

#endif
