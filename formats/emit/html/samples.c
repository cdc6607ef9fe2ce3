/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/samples.h"

static const char *const ids[] = {
    [HTML_SAMPLE_STACK] = "sample-stack", [HTML_SAMPLE_THREAD] = "sample-thread",   [HTML_SAMPLE_EVENT] = "sample-event",
    [HTML_SAMPLE_TIME] = "sample-time",   [HTML_SAMPLE_VALUE] = "sample-value",     [HTML_SAMPLE_LABELS] = "sample-labels",
    [HTML_SAMPLE_FLAGS] = "sample-flags", [HTML_SAMPLE_CAPTURE] = "sample-capture",
};

void html_samples_init(struct html_samples *s, struct limits *limits, struct spool *spool)
{
    *s = (struct html_samples){0};
    for (int i = 0; i < HTML_SAMPLE_COLUMNS; i++)
        s->columns[i].packed = (struct html_packed){.limits = limits, .spool = spool};
}

void html_samples_deinit(struct html_samples *s)
{
    for (int i = 0; i < HTML_SAMPLE_COLUMNS; i++)
        html_packed_deinit(&s->columns[i].packed);
}

static struct error *add(struct html_samples *s, enum html_sample_column column, uint64_t number)
{
    struct html_packed *packed = &s->columns[column].packed;

    if (!number && !s->columns[column].used) {
        s->columns[column].zeros++;
        return NULL;
    }
    s->columns[column].used = true;
    for (; s->columns[column].zeros; s->columns[column].zeros--)
        TRY(html_packed_put_number(packed, 0));
    return html_packed_put_number(packed, number);
}

struct error *html_samples_add(struct html_samples *s, const uint64_t row[HTML_SAMPLE_COLUMNS])
{
    for (int i = 0; i < HTML_SAMPLE_COLUMNS; i++)
        TRY(add(s, i, row[i]));
    s->count++;
    return NULL;
}

struct error *html_samples_write(struct html_samples *s, FILE *out)
{
    for (int i = 0; i < HTML_SAMPLE_COLUMNS; i++) {
        if (s->columns[i].used)
            TRY(html_packed_write(&s->columns[i].packed, ids[i], s->count, out));
    }
    return NULL;
}
