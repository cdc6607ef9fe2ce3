/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the report of unwind_check.h as text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/check/unwind_check.h"

enum { LABEL_WIDTH = 40 };

static double percent(uint64_t part, uint64_t whole)
{
    double share = whole ? 100.0 * (double)part / (double)whole : 0;

    /* 99.999 % must not round to 100 %. */
    return part < whole && share > 99.999 ? 99.999 : share;
}

static void print_count(FILE *out, uint64_t part, uint64_t whole)
{
    fprintf(out, "%10" PRIu64 " %8.3f %%", part, percent(part, whole));
}

static void print_reasons(FILE *out, const uint64_t *counts, uint64_t whole)
{
    for (uint32_t i = 0; i <= CHECK_UNKNOWN_LOSS; i++) {
        const char *name = i < LOSS_LIMIT ? trace_loss_name(i) : "for a reason unknown to this version";
        if (!counts[i] || i == LOSS_complete)
            continue;
        fprintf(out, "  %-*s", LABEL_WIDTH - 2, name ? name : "?");
        print_count(out, counts[i], whole);
        fputc('\n', out);
    }
}

static void print_totals(const struct check_report *r, FILE *out)
{
    static const char *const verdicts[] = {"identical", "identical up to the snapshot's end",
                                           "identical up to what the sampler knew", "different"};

    fprintf(out, "%-*s%10" PRIu64 "\n", LABEL_WIDTH, "samples", r->sample_count);
    fprintf(out, "%-*s", LABEL_WIDTH, "with a stack and a snapshot");
    print_count(out, r->compared_count, r->sample_count);
    fprintf(out, "\n\n%-*s", LABEL_WIDTH, "the recorded stack compared with");
    for (int w = 0; w < CHECK_WITNESSES; w++)
        fprintf(out, "%21s", unwind_check_witness_name(w));
    fputc('\n', out);
    for (int v = 0; v < CHECK_VERDICTS; v++) {
        fprintf(out, "%-*s", LABEL_WIDTH, verdicts[v]);
        for (int w = 0; w < CHECK_WITNESSES; w++)
            print_count(out, r->verdicts[w][v], r->compared_count);
        fputc('\n', out);
    }
    fprintf(out, "%-*s", LABEL_WIDTH, "witness: reached the thread's start");
    for (int w = 0; w < CHECK_WITNESSES; w++)
        print_count(out, r->reached[w], r->compared_count);
    fprintf(out, "\n\n%-*s", LABEL_WIDTH, "recorded: reached the thread's start");
    print_count(out, r->kernel_reached, r->compared_count);
    fputc('\n', out);
    print_reasons(out, r->kernel_ends, r->compared_count);
    fprintf(out, "%-*s", LABEL_WIDTH, "joins complete");
    print_count(out, r->join_complete_count, r->join_count);
    fputc('\n', out);
    print_reasons(out, r->join_reasons, r->join_count);
}

static uint64_t weight(const struct check_row *row)
{
    uint64_t sum = 0;

    for (int w = 0; w < CHECK_WITNESSES; w++)
        sum += row->sample_counts[w];
    return sum;
}

/*
 * Differences before what is merely not comparable; then the most frequent; then by name, so that the order is always
 * the same.
 */
static int by_weight(const void *a, const void *b)
{
    const struct check_row *x = a, *y = b;

    if (x->verdict != y->verdict)
        return x->verdict > y->verdict ? -1 : 1;
    if (weight(x) != weight(y))
        return weight(x) > weight(y) ? -1 : 1;
    int order = strcmp(x->module, y->module);
    return order ? order : strcmp(x->cause, y->cause);
}

static void print_row(const struct check_row *row, FILE *out)
{
    for (int w = 0; w < CHECK_WITNESSES; w++)
        fprintf(out, "%11" PRIu64, row->sample_counts[w]);
    fprintf(out, "  %s: %s\n", row->module, row->cause);
    for (int i = 0; i < CHECK_EXAMPLES_MAX && row->examples[i]; i++)
        fprintf(out, "      %s\n", row->examples[i]);
}

struct error *unwind_check_print(const struct check_report *r, FILE *out)
{
    if (!r->compared_count)
        return error_create(ERROR_UNSUPPORTED, "no sample has both a stack unwound in the kernel and a snapshot; "
                                               "record with pycap record --unwind both");
    print_totals(r, out);
    if (!r->rows.count)
        return NULL;
    struct check_row *rows = malloc(r->rows.count * sizeof *rows);
    if (!rows)
        return error_no_memory();
    memcpy(rows, r->rows.data, r->rows.count * sizeof *rows);
    qsort(rows, r->rows.count, sizeof *rows, by_weight);
    fprintf(out, "\nwhere they differ or stop early: samples, module of the last common frame, cause\n");
    for (int w = 0; w < CHECK_WITNESSES; w++)
        fprintf(out, "%11s", unwind_check_witness_name(w));
    fputc('\n', out);
    for (size_t i = 0; i < r->rows.count; i++)
        print_row(&rows[i], out);
    free(rows);
    return NULL;
}
