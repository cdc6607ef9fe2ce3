/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of perf.data share: a profile that is written to memory, and its records read back. */
#ifndef TESTS_UNIT_PERF_DATA_FIXTURE_H
#define TESTS_UNIT_PERF_DATA_FIXTURE_H

#include "tests/unit/test.h"

#include <linux/perf_event.h>

#include "tests/tools/emit_synthetic.h"
#include "tests/tools/memory_files.h"
#include "tests/tools/perf_data_reader.h"

enum { FINISHED_ROUND = 68, IMAGE_BYTES = 1 << 30 };
#define IMAGE_BASE (UINT64_C(1) << 40)
#define IN_KERNEL ((uint64_t)-128)
#define IN_USER ((uint64_t)-512)

/* A profile, and what became of it. */
struct written {
    struct synthetic s;
    struct emit_options options;
    struct memory_files files;
    struct perf_data_reader reader;
    char *remark;
};

static inline void setup_profile(struct written *w)
{
    *w = (struct written){.options = {.name = "test", .exporter = "pysym test"}};
    synthetic_thread(&w->s, synthetic_process(&w->s, 100, "python3"), 101, "worker");
    synthetic_event(&w->s, "cpu-clock", "ns", true);
}

static inline void forget_output(struct written *w)
{
    memory_files_deinit(&w->files);
    free(w->remark);
    w->remark = NULL;
}

static inline void teardown_profile(struct written *w)
{
    forget_output(w);
    synthetic_deinit(&w->s);
}

/* Writes the profile, and opens what was written. */
static inline void write_out(struct written *w)
{
    FILE *out = memory_files_open(&w->files, "perf.data");

    w->options.files = &w->files.files;
    struct error *err = synthetic_emit_remark(&w->s, emitter_find("perf-data"), &w->options, out, &w->remark);
    if (err)
        print_error("%s\n", error_text(err));
    assert_null(err);
    /* The output's own stream is closed with those beside it. */
    assert_true(memory_files_close(&w->files));
    const struct buf *data = &w->files.list.data[0]->data;
    assert_true(perf_data_open(&w->reader, data->data, data->len_bytes));
}

static inline bool next(struct written *w, uint32_t type, struct perf_data_record *out)
{
    bool broken;

    while (perf_data_next(&w->reader, out, &broken)) {
        if (out->type == type)
            return true;
    }
    assert_false(broken);
    return false;
}

/* The next record of the type, from where the last one was. */
static inline struct perf_data_record want(struct written *w, uint32_t type)
{
    struct perf_data_record record;

    assert_true(next(w, type, &record));
    return record;
}

static inline void rewind_records(struct written *w)
{
    w->reader.at = 104;
    w->reader.last_ns = 0;
}

static inline uint32_t count(struct written *w, uint32_t type)
{
    struct perf_data_record record;
    uint32_t n = 0;

    rewind_records(w);
    while (next(w, type, &record))
        n++;
    rewind_records(w);
    return n;
}

static inline uint64_t chain_len(const struct perf_data_record *sample)
{
    return perf_data_u64(sample->body + 48);
}

static inline uint64_t chain_at(const struct perf_data_record *sample, uint64_t i)
{
    assert_true(i < chain_len(sample));
    return perf_data_u64(sample->body + 56 + 8 * i);
}

static inline bool in_image(uint64_t ip)
{
    return ip >= IMAGE_BASE && ip < IMAGE_BASE + IMAGE_BYTES;
}

static inline void add_sample(struct written *w, uint32_t stack)
{
    synthetic_sample(&w->s, (struct emit_sample){.time_ns = 1000000 + w->s.samples.count * 1000, .value = 10000000,
                                                 .stack = stack, .cpu = 1});
}

#endif
