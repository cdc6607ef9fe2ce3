/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what Python functions weighed in a trace of pycap, each by itself, the heaviest first: for every event its name,
 * the weight, the function and its file. An example of the library libpycaptrace:
 *
 *     cc -o example_reader example_reader.c $(pkg-config --cflags --libs pycaptrace)
 *     ./example_reader trace.bin
 */
#include <inttypes.h>
#include <pycap/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    char *name; /* "event<tab>function (file)" */
    uint64_t weight;
};

static int by_weight(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->weight != y->weight ? (x->weight < y->weight ? 1 : -1) : strcmp(x->name, y->name);
}

int main(int argc, char **argv)
{
    char why[PYCAP_MESSAGE_MAX], name[4096];
    struct pycap_trace *trace = pycap_trace_open(argc > 1 ? argv[1] : "-", why, sizeof why);
    const struct pycap_sample *sample;
    struct row *rows = NULL;
    size_t count = 0, i;
    int more;

    if (!trace)
        return fprintf(stderr, "%s\n", why), 1;
    while ((more = pycap_trace_next(trace, &sample)) > 0) {
        if (!sample->python_count)
            continue;
        const struct pycap_python_frame *inner = sample->python[sample->python_count - 1];
        snprintf(name, sizeof name, "%s\t%s (%s)", sample->event->name, inner->function, inner->file);
        for (i = 0; i < count && strcmp(rows[i].name, name); i++)
            ;
        if (i == count) { /* what the sample points to lasts until the next one: the name is copied */
            rows = realloc(rows, ++count * sizeof *rows);
            rows[i] = (struct row){.name = strdup(name)};
        }
        rows[i].weight += sample->weight;
    }
    if (more < 0)
        fprintf(stderr, "%s\n", pycap_trace_error(trace));
    const struct pycap_summary *summary = pycap_trace_summary(trace);
    if (summary->damage)
        fprintf(stderr, "%" PRIu64 " bytes are damaged: %s\n", summary->damaged_bytes, summary->damage);
    qsort(rows, count, sizeof *rows, by_weight);
    for (i = 0; i < count; free(rows[i++].name))
        printf("%" PRIu64 "\t%s\n", rows[i].weight, rows[i].name);
    free(rows);
    pycap_trace_close(trace);
    return more < 0;
}
