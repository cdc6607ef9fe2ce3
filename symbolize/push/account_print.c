/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a push. Each reason to refuse a profile has a line on what to do about it. */
#include <string.h>

#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/base/size_text.h"
#include "symbolize/push/account_figures.h"
#include "symbolize/push/store_kind.h"

static const struct {
    const char *reason, *advice;
} advices[] = {
    {"too_old", "the store takes nothing so old (Pyroscope: -validation.reject-older-than, 1h unless told)"},
    {"too_new", "the clock of the recorded host, or that of the store, is wrong"},
    {"too_large", "the store's limit of bytes is below its default: a shorter --window makes smaller profiles"},
    {"too_many_rows", "the store's limit of stacks is below its default: a shorter --window makes smaller profiles"},
    {"bad_labels", "the store does not take a label: see --label"},
    {"series_limit", "the store takes no more series: give fewer labels, or raise its limit (Pyroscope: -ingester.max-global-series-per-tenant)"},
    {"bad_profile", "the store cannot read it: please report this"},
    {"too_many_profiles", "one trace has more than can be remembered: record with --rotate"},
    {"server_error", "it failed five times while the store took others: the store's log says why"},
};

/* Of all names. */
static struct account_sum sum_of(const struct account_counts *counts)
{
    struct account_sum sum = {0};

    for (size_t i = 0; i < counts->count; i++) {
        sum.profiles += counts->data[i].sum.profiles;
        sum.samples += counts->data[i].sum.samples;
    }
    return sum;
}

/* "12 profiles (345 samples)". */
static void print_sum(const struct account_sum *sum, FILE *out)
{
    struct number profiles, samples;

    fprintf(out, "%s (%s)", counted(sum->profiles, "profile", "profiles", &profiles),
            counted(sum->samples, "sample", "samples", &samples));
}

/* "ring_full 12, nested 3". */
static void print_names(const struct account_counts *counts, bool samples, FILE *out)
{
    for (size_t i = 0; i < counts->count; i++) {
        const struct account_count *c = &counts->data[i];
        struct buf name = {0};
        struct number n;
        printable_put(&name, c->name);
        fprintf(out, "%s%s %s", i ? ", " : "", buf_cstr(&name), grouped(samples ? c->sum.samples : c->sum.profiles, &n));
        buf_deinit(&name);
    }
}

static void print_accepted(const struct account_figures *f, const struct push_request *request, FILE *out)
{
    struct number profiles, samples, traces;
    struct size_text size;
    struct buf url = {0};

    printable_put(&url, request->url);
    fprintf(out, "pushed %s (%s, %s) of %s to %s at %s\n", counted(f->accepted.profiles, "profile", "profiles", &profiles),
            counted(f->accepted.samples, "sample", "samples", &samples), size_text(f->accepted_bytes, &size),
            counted(f->traces[ACCOUNT_TRACE_DONE] + f->traces[ACCOUNT_TRACE_DAMAGED], "trace", "traces", &traces),
            request->store->title, buf_cstr(&url));
    buf_deinit(&url);
    if (f->repeated.profiles) {
        fprintf(out, "sent again: ");
        print_sum(&f->repeated, out);
        fprintf(out, ", which the store may have twice: an earlier answer was not seen, or their trace has grown\n");
    }
}

static void print_refused(const struct account_figures *f, FILE *out)
{
    const struct account_sum all = sum_of(&f->refused);

    if (!all.profiles)
        return;
    fprintf(out, "refused: ");
    print_sum(&all, out);
    fprintf(out, "\n");
    for (size_t i = 0; i < f->refused.count; i++) {
        const struct account_count *c = &f->refused.data[i];
        struct number n;
        fprintf(out, "    %s %s", c->name, grouped(c->sum.profiles, &n));
        for (size_t k = 0; k < sizeof advices / sizeof *advices; k++)
            if (!strcmp(advices[k].reason, c->name))
                fprintf(out, ": %s", advices[k].advice);
        fprintf(out, "\n");
    }
}

static void print_traces(const struct account_figures *f, const struct push_request *request, FILE *out)
{
    static const struct {
        enum account_trace how;
        const char *what;
    } lines[] = {
        {ACCOUNT_TRACE_DAMAGED, "damaged; what can be read was sent"},
        {ACCOUNT_TRACE_UNREADABLE, "cannot be read"},
        {ACCOUNT_TRACE_GONE, "removed too early: let pycap --keep more files"},
    };
    struct number n;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (f->traces[lines[i].how])
            fprintf(out, "%s %s\n", counted(f->traces[lines[i].how], "trace:", "traces:", &n), lines[i].what);
    if (f->sent_before)
        fprintf(out, "%s sent before, as the state file says\n", counted(f->sent_before, "trace:", "traces:", &n));
    if (f->backlog_traces)
        fprintf(out, "%s not sent, or not to the end: %s\n", counted(f->backlog_traces, "trace:", "traces:", &n),
                request->state ? "the same command goes on with them" : "give --state FILE, so that the next push can go on with them");
}

void account_print_figures(const struct account_figures *f, const struct push_request *request, FILE *out)
{
    const struct account_sum lost = sum_of(&f->lost), retries = sum_of(&f->retries);
    struct number n;

    print_accepted(f, request, out);
    print_refused(f, out);
    print_traces(f, request, out);
    if (retries.profiles) {
        fprintf(out, "tried again: %s (", counted(retries.profiles, "request", "requests", &n));
        print_names(&f->retries, false, out);
        fprintf(out, ")\n");
    }
    if (lost.samples) {
        fprintf(out, "lost by the recorder: %s (", counted(lost.samples, "sample", "samples", &n));
        print_names(&f->lost, true, out);
        fprintf(out, "); in the store they are pycap_lost\n");
    }
    if (f->incomplete.count) {
        fprintf(out, "samples that lack a part, such as outer frames: ");
        print_names(&f->incomplete, true, out);
        fprintf(out, "\n");
    }
}
