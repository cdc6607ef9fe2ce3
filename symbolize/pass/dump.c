/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/dump.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/base/buf.h"
#include "formats/emit/text_write.h"

struct dump {
    FILE *out;
    struct buf text; /* not written yet */
};

/* One line of a sample. */
static void put_sample(const struct trace_sample *s, struct buf *out)
{
    buf_put_str(out, "  sample time_ns=");
    buf_put_decimal(out, s->time_ns, 0, ' ');
    buf_put_str(out, " thread=");
    buf_put_decimal(out, s->thread, 0, ' ');
    buf_put_str(out, " tuple=");
    buf_put_decimal(out, s->tuple, 0, ' ');
    buf_put_str(out, " cpu=");
    buf_put_decimal(out, s->cpu, 0, ' ');
    buf_printf(out, " flags=%#x", s->flags);
    if (s->flags & TRACE_SAMPLE_VALUE) {
        buf_put_str(out, " value=");
        buf_put_decimal(out, s->value, 0, ' ');
    }
    if (s->flags & TRACE_SAMPLE_LABELS) {
        buf_put_str(out, " label_set=");
        buf_put_decimal(out, s->label_set, 0, ' ');
    }
    buf_put_u8(out, '\n');
}

static struct error *take_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    struct dump *d = state;
    struct trace_sample_iter it;
    struct trace_sample s;

    (void)file;
    trace_record_print(rec, &d->text);
    text_write_piece(&d->text, d->out);
    if (rec->type == TRACE_samples) {
        trace_samples_begin(&it, &rec->samples, 0);
        while (trace_samples_next(&it, &s)) {
            put_sample(&s, &d->text);
            text_write_piece(&d->text, d->out);
        }
    }
    if (d->text.bad)
        return error_no_memory();
    return ferror(d->out) ? error_os(errno, "cannot write the records") : NULL;
}

static struct error *end(void *state)
{
    struct dump *d = state;

    return text_write(&d->text, d->out);
}

/* After an error the records before it are worth having. */
static void destroy(void *state)
{
    struct dump *d = state;

    error_destroy(end(d));
    free(d);
}

struct error *dump_create(FILE *out, struct dump **dump)
{
    struct dump *d = calloc(1, sizeof *d);

    if (!d)
        return error_no_memory();
    d->out = out;
    *dump = d;
    return NULL;
}

const struct consumer dump_consumer = {.record = take_record, .end = end, .destroy = destroy};
