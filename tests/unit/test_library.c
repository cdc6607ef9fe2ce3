/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of the trace: whose memory is whose, and what an error leaves. What it says of traces is held against pysym by
 * tests/integration/test_trace_library.py.
 */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "symbolize/library/pycap_trace.h"

static const char recorded[] = "testdata/traces/3.12-shared.trace";

/* Adds up all that a sample points to, so that a sanitizer sees what of it is not there. */
static uint64_t touch(const struct pycap_sample *s)
{
    uint64_t sum = strlen(s->event->name) + strlen(s->event->unit) + strlen(s->thread->name);

    sum += strlen(s->thread->process->name) + strlen(s->thread->process->comm) + strlen(s->thread->process->exe);
    sum += strlen(s->thread->process->cgroup);
    for (uint32_t i = 0; i < s->python_count; i++)
        sum += strlen(s->python[i]->function) + strlen(s->python[i]->file) + s->python[i]->line;
    for (uint32_t i = 0; i < s->native_count; i++)
        sum += s->native[i]->module ? strlen(s->native[i]->module->path) + s->native[i]->module->build_id_len : 1;
    for (uint32_t i = 0; i < s->kernel_count; i++)
        sum += strlen(s->kernel[i]->function) + strlen(s->kernel[i]->module);
    for (uint32_t i = 0; i < s->label_count; i++)
        sum += strlen(s->labels[i].key) + strlen(s->labels[i].value);
    return sum;
}

/* Reads a trace to its end; the samples in it, or -1. */
static int64_t read_all(const char *path)
{
    char why[PYCAP_MESSAGE_MAX];
    struct pycap_trace *t = pycap_trace_open(path, why, sizeof why);
    const struct pycap_sample *s;
    int64_t count = 0;
    int more;

    if (!t)
        return -1;
    while ((more = pycap_trace_next(t, &s)) > 0)
        count += touch(s) > 0;
    assert_null(s);
    assert_int_equal(pycap_trace_next(t, &s), more); /* again the same */
    assert_int_equal(!*pycap_trace_error(t), !more);
    assert_int_equal(pycap_trace_summary(t)->sample_count, count);
    pycap_trace_close(t);
    return count;
}

TEST(all_of_a_trace)
{
    char why[PYCAP_MESSAGE_MAX];
    const struct pycap_sample *s;

    int64_t count = read_all(recorded);
    assert_true(count > 100);
    struct pycap_trace *t = pycap_trace_open(recorded, why, sizeof why), *beside = pycap_trace_open(recorded, why, sizeof why);
    while (pycap_trace_next(t, &s) > 0)
        touch(s);
    assert_true(pycap_trace_summary(t)->ended && !pycap_trace_summary(t)->damage);
    assert_int_equal(pycap_trace_next(beside, &s), 1);
    pycap_trace_close(beside); /* in the middle */
    pycap_trace_close(t);
    pycap_trace_close(NULL);
}

TEST(what_is_no_trace)
{
    char why[PYCAP_MESSAGE_MAX] = "", little[8];

    assert_null(pycap_trace_open("/no/such/trace", why, sizeof why));
    assert_string_equal(why, "/no/such/trace: cannot open: No such file or directory");
    assert_null(pycap_trace_open("/no/such/trace", little, sizeof little));
    assert_string_equal(little, "/no/suc");
    assert_null(pycap_trace_open("Makefile", NULL, 0));
    assert_non_null(pycap_loss_meaning(10));
    assert_null(pycap_loss_meaning(1000000));
}

/* Whatever a file says: samples, damage or an error, and nothing that is not there. */
TEST(damaged_anywhere)
{
    char path[64];
    struct buf whole = {0};
    int from = open(recorded, O_RDONLY), fd = memfd_create("damaged", 0);
    uint32_t seed = 1;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (uint8_t piece[4096]; from >= 0;) {
        ssize_t n = read(from, piece, sizeof piece);
        if (n <= 0)
            break;
        buf_put(&whole, piece, (size_t)n);
    }
    assert_true(whole.len_bytes > 10000);
    for (int round = 0; round < 60; round++) {
        seed = seed * 1664525 + 1013904223;
        size_t at = seed % whole.len_bytes;
        whole.data[at] ^= 1;
        assert_int_equal(pwrite(fd, whole.data, whole.len_bytes, 0), whole.len_bytes);
        assert_int_equal(ftruncate(fd, (off_t)(round % 2 ? at : whole.len_bytes)), 0);
        whole.data[at] ^= 1;
        read_all(path);
    }
    close(from);
    close(fd);
    buf_deinit(&whole);
}
