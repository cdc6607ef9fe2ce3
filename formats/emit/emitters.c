/* SPDX-License-Identifier: Apache-2.0 */
/* The table of output formats, in the order in which --help lists them. */
#include "formats/emit/emit.h"

#include <string.h>

/* emitter_NAME is in NAME.c, here or in a folder NAME. */
#define EMITTERS(X) \
    X(html)         \
    X(speedscope)   \
    X(folded)       \
    X(perf_script)  \
    X(perf_data)    \
    X(pprof)        \
    X(firefox)      \
    X(ndjson)       \
    X(top)          \
    X(annotate)     \
    X(tree)         \
    X(brief)        \
    X(svg)          \
    X(gil)          \
    X(threads)

#define DECLARE(name) extern const struct emitter emitter_##name;
#define REFER(name) &emitter_##name,

EMITTERS(DECLARE)

const struct emitter *const emitters[] = {EMITTERS(REFER) NULL};

const struct emitter *emitter_find(const char *name)
{
    for (const struct emitter *const *e = emitters; *e; e++) {
        if (!strcmp((*e)->name, name))
            return *e;
    }
    return NULL;
}
