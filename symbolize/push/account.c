/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/account.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/job_text.h"
#include "formats/base/metrics.h"
#include "symbolize/push/account_figures.h"

struct account {
    const struct push_request *request;
    struct account_figures figures;
    bool told; /* that the status cannot be written */
};

struct error *account_create(const struct push_request *request, struct account **out)
{
    struct account *a = calloc(1, sizeof *a);

    if (!a)
        return error_no_memory();
    a->request = request;
    *out = a;
    return NULL;
}

void account_destroy(struct account *a)
{
    free(a);
}

/* Some names are from traces, and may be as many as those like. */
static struct account_sum *find(struct account_counts *counts, const char *name)
{
    struct account_count *c = counts->data;

    while (c < counts->data + counts->count && strncmp(c->name, name, sizeof c->name - 1) != 0)
        c++;
    if (c == counts->data + counts->count) {
        if (counts->count == ACCOUNT_NAMES_MAX)
            return &counts->data[ACCOUNT_NAMES_MAX - 1].sum;
        counts->count++;
        snprintf(c->name, sizeof c->name, "%s", counts->count == ACCOUNT_NAMES_MAX ? "other" : name);
    }
    return &c->sum;
}

static void add(struct account_sum *sum, const struct push_profile *profile)
{
    sum->profiles++;
    sum->samples += profile_is_of_losses(profile) ? 0 : profile->samples;
}

void account_answered(struct account *a, bool sound)
{
    a->figures.sound = sound;
    a->figures.answered_ns = sound ? clock_ns(CLOCK_REALTIME) : a->figures.answered_ns;
}

void account_accepted(struct account *a, const struct push_profile *profile, bool repeated)
{
    add(&a->figures.accepted, profile);
    a->figures.accepted_bytes += profile->len_bytes;
    if (repeated)
        add(&a->figures.repeated, profile);
    if (profile->last_ns > a->figures.newest_sample_ns)
        a->figures.newest_sample_ns = profile->last_ns;
}

void account_refused(struct account *a, const struct push_profile *profile, const char *reason)
{
    add(find(&a->figures.refused, reason), profile);
}

void account_retried(struct account *a, const char *reason)
{
    find(&a->figures.retries, reason)->profiles++;
}

void account_trace(struct account *a, enum account_trace how, uint64_t len_bytes)
{
    a->figures.traces[how]++;
    a->figures.trace_bytes += len_bytes;
}

void account_trace_grew(struct account *a, uint64_t len_bytes)
{
    a->figures.trace_bytes += len_bytes;
}

void account_sent_before(struct account *a)
{
    a->figures.sent_before++;
}

bool account_is_empty(const struct account *a)
{
    for (size_t i = 0; i < ACCOUNT_TRACE_RESULTS; i++) {
        if (a->figures.traces[i])
            return false;
    }
    return !a->figures.sent_before && !a->figures.backlog_traces;
}

void account_lost(struct account *a, const char *name, uint64_t count, bool is_sample)
{
    find(is_sample ? &a->figures.lost : &a->figures.incomplete, name)->samples += count;
}

void account_backlog(struct account *a, uint64_t traces, uint64_t oldest_age_ns)
{
    a->figures.backlog_traces = traces;
    a->figures.backlog_since_ns = traces ? clock_ns(CLOCK_REALTIME) - oldest_age_ns : 0;
}

void account_publish(struct account *a)
{
    struct buf text = {0};

    if (!a->request->status)
        return;
    account_put_status(&a->figures, &text);
    struct error *err = metrics_publish(a->request->status, &text);
    if (err && !a->told)
        job_text_print(stderr, "pysym: %s\n", error_text(err));
    a->told = err != NULL;
    error_destroy(err);
    buf_deinit(&text);
}

void account_print(const struct account *a, FILE *out)
{
    account_print_figures(&a->figures, a->request, out);
}

bool account_is_whole(const struct account *a)
{
    const struct account_figures *f = &a->figures;

    return !f->refused.count && !f->traces[ACCOUNT_TRACE_DAMAGED] && !f->traces[ACCOUNT_TRACE_UNREADABLE] &&
           !f->traces[ACCOUNT_TRACE_GONE] && !f->backlog_traces;
}
