/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/check/check_consumer.h"

static struct error *take_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    const struct check_output *o = state;

    return unwind_check_sample(o->check, file->epoch, sample->raw, consumer_since_start_ns(file, sample->raw));
}

static struct error *end_epoch(void *state, const struct consumer_file *file)
{
    const struct check_output *o = state;

    (void)file;
    unwind_check_end_epoch(o->check);
    return NULL;
}

static struct error *end(void *state)
{
    const struct check_output *o = state;

    return unwind_check_print(unwind_check_report(o->check), o->out);
}

static void destroy(void *state)
{
    const struct check_output *o = state;

    unwind_check_destroy(o->check);
}

const struct consumer check_consumer = {
    .wants = CONSUMER_EPOCH, .sample = take_sample, .end_epoch = end_epoch, .end = end, .destroy = destroy};
