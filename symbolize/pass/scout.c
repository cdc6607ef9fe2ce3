/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/scout.h"

#include <sys/stat.h>

static struct error *begin_file(void *state, const struct consumer_file *file)
{
    struct scout *s = state;

    return VEC_EXTEND_ZERO(&s->files, (size_t)file->number + 1) ? NULL : error_no_memory();
}

static void lasts_until(struct scout *s, const struct consumer_file *file, uint64_t time_ns)
{
    struct file_scouted *scouted = &s->files.data[file->number];

    if (time_ns > file->start_ns && time_ns - file->start_ns > scouted->duration_ns)
        scouted->duration_ns = time_ns - file->start_ns;
}

static struct error *take_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    if (rec->type == TRACE_end)
        lasts_until(state, file, rec->end.time_ns);
    return NULL;
}

static struct error *take_time(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    lasts_until(state, file, sample->raw->time_ns);
    return NULL;
}

static struct error *take_match(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    struct scout *s = state;
    struct file_scouted *scouted = &s->files.data[file->number];
    uint64_t at = consumer_since_start_ns(file, sample->raw);

    scouted->first_ns = !scouted->matched || at < scouted->first_ns ? at : scouted->first_ns;
    scouted->last_ns = at > scouted->last_ns ? at : scouted->last_ns;
    scouted->matched = true;
    return NULL;
}

static struct error *take_module(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    struct scout *s = state;

    (void)file;
    if (rec->type != TRACE_module)
        return NULL;
    return named_ids_add(&s->named, rec->module.build_id.data, (uint32_t)rec->module.build_id.len_bytes) ? NULL : error_no_memory();
}

static void leave(void *state)
{
    (void)state;
}

const struct consumer scout_durations = {.wants = CONSUMER_SAMPLES,
                                         .begin_file = begin_file,
                                         .record = take_record,
                                         .sample = take_time,
                                         .destroy = leave};
const struct consumer scout_matches = {
    .wants = CONSUMER_STACKS, .begin_file = begin_file, .sample = take_match, .destroy = leave};
const struct consumer scout_names = {.wants = CONSUMER_EPOCH, .destroy = leave};
const struct consumer scout_binaries = {.record = take_module, .destroy = leave};

/* Nothing of what is not a regular file. */
static uint64_t size_of(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

bool scout_of_binaries_pays(const char *const *archives, const struct input *inputs, size_t input_count)
{
    uint64_t archive_bytes = 0, trace_bytes = 0;

    for (; *archives; archives++)
        archive_bytes += size_of(*archives);
    for (size_t i = 0; i < input_count; i++) {
        const char *path = input_again(&inputs[i]);
        if (!path)
            return false;
        trace_bytes += size_of(path);
    }
    return archive_bytes > trace_bytes;
}
