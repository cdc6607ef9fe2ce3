/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the trace builder writes of the memory that processes have: a reading from before the first sample, then what is
 * due, and in each file both ends. The process that is read is the test itself.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/host/host.h"
#include "capture/host/procfs_memory.h"
#include "capture/trace/trace_builder.h"
#include "capture/trace/trace_memory.h"
#include "formats/base/clock.h"
#include "tests/unit/trace_fixture.h"

enum { GROWN_BYTES = 8 << 20, READINGS_MAX = 16 };

struct world {
    struct host host;
    struct settings settings;
    struct processes *processes;
    struct codes *codes;
    struct trace_writer *writer;
    struct trace_builder *builder;
    int fd;
};

static void open_trace(struct world *w)
{
    w->fd = memory_file();
    OK(trace_writer_create(w->fd, "t", NULL, 1, &w->writer));
}

static void set_up(struct world *w, const char *event)
{
    struct event_list events = {.list = {{.source = event_source(event), .period = 1}}, .count = 1};
    struct process *p;

    *w = (struct world){0};
    OK(processes_create(&(struct processes_options){.whole_host = true, .include_non_python = true}, NULL, &w->processes));
    OK(processes_begin(w->processes, (uint32_t)getpid(), 1, &p));
    process_select(p, true, true);
    p->configured = true;
    OK(codes_create(&w->codes));
    open_trace(w);
    const struct trace_builder_options options = {.writer = w->writer, .host = &w->host, .processes = w->processes,
        .codes = w->codes, .settings = &w->settings, .events = events, .whole_host = true, .include_non_python = true};
    OK(trace_builder_create(&options, &w->builder));
    OK(trace_builder_begin_epoch(w->builder, 1));
}

/* What was written into the file that ends; then another one is open. */
struct readings {
    struct trace_process_memory list[READINGS_MAX];
    uint32_t count;
    bool sampled_first; /* samples came before the first reading */
};

static struct readings next_file(struct world *w)
{
    struct readings found = {0};
    struct trace_record rec;
    struct trace_reader *r;
    bool more, sampled = false;

    OK(trace_writer_finish(w->writer));
    trace_writer_destroy(w->writer);
    assert_int_equal(lseek(w->fd, 0, SEEK_SET), 0);
    OK(trace_reader_open_fd(w->fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        sampled |= rec.type == TRACE_samples;
        if (rec.type == TRACE_process_memory) {
            found.sampled_first |= sampled && !found.count;
            assert_true(found.count < READINGS_MAX);
            found.list[found.count++] = rec.process_memory;
        }
    }
    trace_reader_close(r);
    close(w->fd);
    open_trace(w);
    OK(trace_builder_next_file(w->builder, w->writer, 2));
    return found;
}

static void tear_down(struct world *w)
{
    trace_builder_destroy(w->builder);
    trace_writer_destroy(w->writer);
    processes_destroy(w->processes);
    codes_destroy(w->codes);
    close(w->fd);
}

static void sample(struct world *w)
{
    const struct wire_sample m = {.type = WIRE_SAMPLE, .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(), .time_ns = now_ns(),
                                  .start_boottime_ns = 1, .exec_generation = 1, .period = 1,
                                  .interpreter_id = WIRE_INTERPRETER_ID_NONE};

    OK(trace_builder_sample(w->builder, &m, sizeof m));
}

/* Memory of its own, all of it touched. */
static void *grow(void)
{
    void *memory = mmap(NULL, GROWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    madvise(memory, GROWN_BYTES, MADV_NOHUGEPAGE);
    memset(memory, 1, GROWN_BYTES);
    return memory;
}

/* Counts of the kernel's that may lag behind by what each CPU holds back. */
#define SLACK_BYTES (UINT64_C(4) << 20)
/* What the process may take beside that: ThreadSanitizer has several bytes for each that is written. */
#ifdef __SANITIZE_THREAD__
#define BESIDE_BYTES (SLACK_BYTES + UINT64_C(8) * GROWN_BYTES)
#else
#define BESIDE_BYTES SLACK_BYTES
#endif

TEST(readings)
{
    struct world w;

    set_up(&w, "page-faults");
    OK(trace_builder_read_memory(w.builder, now_ns()));
    void *memory = grow();
    sample(&w);
    OK(trace_builder_read_memory(w.builder, now_ns() + NS_PER_S)); /* due: there is a new sample */
    OK(trace_builder_read_memory(w.builder, now_ns() + 2 * NS_PER_S)); /* not due */
    sample(&w);
    OK(trace_builder_read_memory(w.builder, now_ns() + 3 * NS_PER_S));
    OK(trace_builder_read_memory(w.builder, now_ns() + 20 * NS_PER_S)); /* due: it was long ago */
    struct readings found = next_file(&w);
    assert_int_equal(found.count, 4);
    assert_false(found.sampled_first);
    const struct trace_process_memory *first = &found.list[0], *second = &found.list[1];
    assert_in_range(second->anonymous_bytes - first->anonymous_bytes, GROWN_BYTES - SLACK_BYTES,
                    GROWN_BYTES + BESIDE_BYTES);
    assert_in_range(second->data_bytes - first->data_bytes, GROWN_BYTES, GROWN_BYTES + BESIDE_BYTES);
    assert_in_range(second->minor_faults - first->minor_faults, GROWN_BYTES / 4096,
                    (GROWN_BYTES + BESIDE_BYTES) / 4096);
    assert_true(first->time_ns < second->time_ns && second->time_ns < found.list[2].time_ns);
    munmap(memory, GROWN_BYTES);
    tear_down(&w);
}

/* A file begins with what the one before ended with; a process without a sample in it is not in it. */
TEST(files)
{
    struct world w;

    set_up(&w, "page-faults");
    OK(trace_builder_read_memory(w.builder, now_ns()));
    OK(trace_builder_read_all_memory(w.builder, now_ns()));
    assert_int_equal(next_file(&w).count, 0);
    sample(&w);
    OK(trace_builder_read_all_memory(w.builder, now_ns()));
    struct readings one = next_file(&w);
    assert_int_equal(one.count, 2);
    OK(trace_builder_read_memory(w.builder, now_ns() + 20 * NS_PER_S));
    sample(&w);
    struct readings two = next_file(&w);
    assert_int_equal(two.count, 1);
    assert_int_equal(two.list[0].time_ns, one.list[1].time_ns);
    tear_down(&w);
}

/* Nothing is read where no event of memory is recorded. */
TEST(other_events)
{
    struct world w;

    set_up(&w, "context-switches");
    OK(trace_builder_read_memory(w.builder, now_ns()));
    sample(&w);
    OK(trace_builder_read_all_memory(w.builder, now_ns()));
    assert_int_equal(next_file(&w).count, 0);
    tear_down(&w);
}

TEST(limit)
{
    struct world w;
    uint64_t now = now_ns(), counts[QUOTA_COUNT];

    set_up(&w, "page-faults");
    uint32_t slot = processes_find(w.processes, (uint32_t)getpid())->slot;
    while (quota_take(w.processes->quotas, slot, QUOTA_memory_readings, 1, now))
        ;
    assert_true(quotas_refused(w.processes->quotas, slot, counts));
    OK(trace_builder_read_memory(w.builder, now));
    assert_true(quotas_refused(w.processes->quotas, slot, counts));
    assert_int_equal(counts[QUOTA_memory_readings], 1);
    tear_down(&w);
}

/* Beside many others a process with new samples is read less often: 1,000 of them once in a second. */
TEST(many_processes)
{
    struct world w;
    struct process *p;
    uint64_t begin = now_ns();

    set_up(&w, "page-faults");
    for (uint32_t i = 1; i < 1000; i++) {
        OK(processes_begin(w.processes, 0x70000000 + i, 1, &p));
        process_select(p, true, true);
    }
    OK(trace_builder_read_memory(w.builder, begin));
    sample(&w);
    OK(trace_builder_read_memory(w.builder, begin + NS_PER_S / 2));
    OK(trace_builder_read_memory(w.builder, begin + NS_PER_S + NS_PER_S / 2));
    assert_int_equal(next_file(&w).count, 2); /* the one from before the sample, and one */
    tear_down(&w);
}

/* A process that is gone is tried once in a while, not at each of its samples. */
TEST(gone)
{
    const struct wire_sample m = {.type = WIRE_SAMPLE, .tgid = 0x7ffffff0, .tid = 0x7ffffff0, .time_ns = 1, .start_boottime_ns = 1,
                                  .exec_generation = 1, .period = 1, .interpreter_id = WIRE_INTERPRETER_ID_NONE};
    uint64_t counts[QUOTA_COUNT];
    struct process *p;
    struct world w;

    set_up(&w, "page-faults");
    OK(processes_begin(w.processes, m.tgid, 1, &p));
    process_select(p, true, true);
    p->configured = true;
    for (int i = 0; i < 1000; i++)
        OK(trace_builder_sample(w.builder, &m, sizeof m));
    assert_false(quotas_refused(w.processes->quotas, p->slot, counts));
    assert_int_equal(next_file(&w).count, 0);
    tear_down(&w);
}

TEST(status)
{
    static const char text[] = "Name:\tRssAnon:\nRssAnon:\t   12 kB\nRssFile:\t 3 kB\nRssShmem:\t0 kB\nVmData:\t40 kB\nVmSwap:\t5 kB\n";
    struct procfs_memory m = {0};
    char cut[sizeof text];

    assert_true(procfs_parse_memory(text, &m));
    assert_int_equal(m.anonymous_bytes, 12 << 10);
    assert_int_equal(m.file_bytes, 3 << 10);
    assert_int_equal(m.shared_bytes, 0);
    assert_int_equal(m.data_bytes, 40 << 10);
    assert_int_equal(m.swap_bytes, 5 << 10);
    /* A kernel thread has none of the lines, and neither has a process that ends. What is cut says nothing. */
    assert_false(procfs_parse_memory("Name:\tkthreadd\nState:\tS\n", &m));
    for (const char *end = strstr(text, "40 kB\n") + 5; end > text; end--) {
        memcpy(cut, text, (size_t)(end - text));
        cut[end - text] = 0;
        assert_false(procfs_parse_memory(cut, &m));
    }
    assert_false(procfs_parse_memory("\nRssAnon:\t99999999999999999999 kB\nRssFile:\t3 kB\nRssShmem:\t0 kB\nVmData:\t40 kB\n", &m));
    assert_true(procfs_memory(getpid(), &m));
    assert_true(m.anonymous_bytes && m.data_bytes && m.minor_faults && m.image);
    assert_false(procfs_memory(0x7ffffff0, &m));
}
