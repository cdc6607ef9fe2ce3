/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are remembered for what quotas refused them, when there are more of them than are remembered. */
#include "tests/unit/test.h"

#include "capture/host/host.h"
#include "capture/process/process_table.h"
#include "capture/process/processes.h"
#include "capture/trace/trace_builder.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_parts.h"
#include "tests/unit/trace_fixture.h"

enum { REMEMBERED = 256, FIRST_TGID = 1000 };

static void refuse(struct trace_builder *b, struct processes *all, uint32_t tgid, uint64_t count)
{
    struct process p = {.tgid = tgid, .start_boottime_ns = 1};

    quota_refuse(all->quotas, p.slot, QUOTA_events, count);
    trace_refusals_end(b, &p, 2);
}

/* Whoever was refused most is remembered: many that were refused little do not push it out. */
TEST(the_most_are_remembered)
{
    static const struct settings settings;
    static const struct host host;
    struct processes *processes;
    struct trace_builder *b;
    struct trace_writer *w;
    int fd = memory_file();
    uint32_t count;

    OK(processes_create(&(struct processes_options){0}, NULL, &processes));
    OK(quotas_begin(processes->quotas, 0, 1000, false));
    OK(trace_writer_create(fd, "t", NULL, 1, &w));
    const struct trace_builder_options options = {.writer = w, .host = &host, .processes = processes, .settings = &settings};
    OK(trace_builder_create(&options, &b));
    OK(trace_builder_begin_epoch(b, 1));
    for (uint32_t i = 0; i < REMEMBERED; i++)
        refuse(b, processes, FIRST_TGID + i, 10 + i);
    for (uint32_t i = 0; i < REMEMBERED; i++)
        refuse(b, processes, 2 * FIRST_TGID + i, 5);
    const struct refusal *all = trace_builder_most_refused(b, &count);
    assert_int_equal(count, REMEMBERED);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(all[i].tgid, FIRST_TGID + REMEMBERED - 1 - i);
        assert_int_equal(all[i].count, 10 + REMEMBERED - 1 - i);
    }
    /* One that was refused more takes the place of the least; one that is known is counted on. */
    refuse(b, processes, 3 * FIRST_TGID, 11);
    refuse(b, processes, FIRST_TGID + 1, 1000);
    all = trace_builder_most_refused(b, &count);
    assert_int_equal(count, REMEMBERED);
    assert_int_equal(all[0].tgid, FIRST_TGID + 1);
    assert_int_equal(all[0].count, 1011);
    assert_int_equal(all[count - 1].tgid, 3 * FIRST_TGID);
    trace_builder_destroy(b);
    trace_writer_destroy(w);
    processes_destroy(processes);
    close(fd);
}
