/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void put_samples(const struct trace_samples *samples, FILE *out)
{
    struct trace_sample_iter it;
    struct trace_sample s;

    trace_samples_begin(&it, samples, 0);
    while (trace_samples_next(&it, &s)) {
        fprintf(out, "  sample time_ns=%" PRIu64 " thread=%u tuple=%u cpu=%u flags=%#x", s.time_ns, s.thread, s.tuple,
                s.cpu, s.flags);
        if (s.flags & TRACE_SAMPLE_VALUE)
            fprintf(out, " value=%" PRIu64, s.value);
        if (s.flags & TRACE_SAMPLE_LABELS)
            fprintf(out, " label_set=%u", s.label_set);
        fputc('\n', out);
    }
}

static struct error *put_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    FILE *out = state;

    (void)file;
    trace_record_print(rec, out);
    if (rec->type == TRACE_samples)
        put_samples(&rec->samples, out);
    return ferror(out) ? error_os(errno, "cannot write the records") : NULL;
}

static void destroy(void *state)
{
    (void)state;
}

const struct consumer dump_consumer = {.record = put_record, .destroy = destroy};
