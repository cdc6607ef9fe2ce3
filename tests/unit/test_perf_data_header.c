/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind the records of a perf.data file: attributes of events, their names, and features. */
#include "tests/unit/perf_data_fixture.h"

/* The type and config of each event that pycap knows; others are as perf's own offcpu-time. */
TEST(events)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t config;
        unsigned excludes; /* 1 user mode, 2 the kernel, 4 a hypervisor */
    } rows[] = {{"cpu-clock", 1, 0}, {"task-clock", 1, 1}, {"page-faults", 1, 2}, {"context-switches", 1, 3},
                {"cycles", 0, 0},    {"branches", 0, 4},   {"ref-cycles", 0, 9},  {"off-cpu", 1, 10},
                {"of-tomorrow", 1, 10},
                {"cycles:u", 0, 0, 6},
                {"page-faults:kp", 1, 2, 5},
                {"instructions:p", 0, 1},
                {"r1a8", 4, 0x1a8},
                {"r5301c0ffffffffff:u", 4, 0x5301c0ffffffffff, 6},
                {"r5301c0fffffffffff", 1, 10}, /* no number of 64 bits */
                {"rx", 1, 10},
                {"r", 1, 10},
                {"syscalls:sys_enter_openat", 1, 10},
                {"cpu/event=0x3c,umask=1/u", 1, 10},
                {"memory-growth", 1, 10}};
    enum { EVENTS = sizeof rows / sizeof *rows };
    const struct emit_rate rates[] = {{.event = 0, .frequency_hz = 99, .period = 1}, {.event = 2, .period = 16}};
    const struct emit_loss losses[] = {{"ring_full", "", "", 7, true}, {"ring_full", "", "cycles", 5, true},
                                       {"python_torn", "", "cycles", 9, false}};
    const struct emit_capture capture = {.name = "t", .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "",
                                         .recorder = "", .rates = rates, .rate_count = 2, .losses = losses, .loss_count = 3};
    struct written w;

    setup_profile(&w);
    w.s.model.captures = &capture;
    w.s.model.capture_count = 1;
    for (size_t i = 1; i < EVENTS; i++)
        synthetic_event(&w.s, rows[i].name, "", false);
    w.s.events.data[2].kind = EVENT_BYTES;
    for (uint32_t i = 0; i < EVENTS; i++)
        synthetic_sample(&w.s, (struct emit_sample){.time_ns = 9, .event = i, .value = 4096, .faults = i == 2, .stack = EMIT_NO_STACK});
    write_out(&w);
    assert_int_equal(w.reader.event_count, EVENTS);
    const uint8_t *attributes = w.reader.data + perf_data_u64(w.reader.data + 24);
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint8_t *a = attributes + (size_t)i * 144;
        assert_int_equal(perf_data_u32(a), rows[i].type);
        assert_int_equal(perf_data_u64(a + 8), rows[i].config);
        assert_int_equal(perf_data_u64(a + 16), i == 0 ? 99 : i == 2 ? 16 : 0);
        assert_int_equal(perf_data_u64(a + 40) >> 10 & 1, i == 0); /* it is a frequency */
        assert_int_equal(perf_data_u64(a + 40) >> 4 & 7, rows[i].excludes);
        struct perf_data_record r = want(&w, PERF_RECORD_SAMPLE);
        assert_int_equal(perf_data_u64(r.body), i + 1);
        assert_int_equal(perf_data_u64(r.body + 40), i == 2 ? 1 : 4096);
    }
    const uint8_t *names = NULL;
    size_t names_len = 0;
    assert_true(perf_data_feature(&w.reader, 12, &names, &names_len));
    for (uint32_t i = 0; i < EVENTS; i++) { /* each 128 + 4 bytes, a text of 4 + 64, and an id */
        const char *name = (const char *)names + 8 + (size_t)i * 208 + 136;
        assert_string_equal(name, strcmp(rows[i].name, "off-cpu") ? rows[i].name : "offcpu-time");
    }
    struct perf_data_record lost = want(&w, PERF_RECORD_LOST_SAMPLES);
    assert_int_equal(perf_data_u64(lost.body), 7);
    assert_int_equal(perf_data_u64(lost.body + 8 + 24), 1);
    lost = want(&w, PERF_RECORD_LOST_SAMPLES);
    assert_int_equal(perf_data_u64(lost.body), 5);
    assert_int_equal(perf_data_u64(lost.body + 8 + 24), 5);
    assert_false(next(&w, PERF_RECORD_LOST_SAMPLES, &lost));
    teardown_profile(&w);
}

TEST(empty)
{
    struct written w = {.options = {.name = "test", .exporter = "pysym test"}};
    const uint8_t *data = NULL;
    size_t len_bytes = 0;

    write_out(&w);
    assert_int_equal(w.reader.event_count, 1);
    assert_int_equal(count(&w, PERF_RECORD_MMAP), 1);
    assert_int_equal(count(&w, PERF_RECORD_SAMPLE), 0);
    assert_true(perf_data_feature(&w.reader, 6, &data, &len_bytes)); /* ARCH, which readers want */
    assert_string_equal((const char *)data + 4, "x86_64");
    assert_false(perf_data_feature(&w.reader, 3, &data, &len_bytes));  /* HOSTNAME is unknown */
    assert_false(perf_data_feature(&w.reader, 21, &data, &len_bytes)); /* SAMPLE_TIME, likewise */
    assert_int_equal(w.files.list.count, 1);
    assert_string_equal(w.remark, "to read it: perf report -i /out/perf.data\n"
                                  "pysym: no samples were recorded: perf report will end with an error");
    teardown_profile(&w);
}

TEST(features)
{
    const struct emit_capture capture = {.name = "t", .hostname = "vm", .kernel_release = "6.1", .machine = "x86_64",
                                         .cpu_model = "a CPU", .recorder = "pycap 0.2.0", .cpu_count = 12,
                                         .memory_bytes = 1 << 20, .realtime_ns = 1800000000000000000, .monotonic_ns = 5};
    static const struct {
        unsigned number;
        const char *text;
    } rows[] = {{3, "vm"}, {4, "6.1"}, {5, "pycap 0.2.0"}, {6, "x86_64"}, {8, "a CPU"}};
    struct written w;
    const uint8_t *data = NULL;
    size_t len_bytes = 0;

    setup_profile(&w);
    w.s.model.captures = &capture;
    w.s.model.capture_count = 1;
    add_sample(&w, EMIT_NO_STACK);
    add_sample(&w, EMIT_NO_STACK);
    write_out(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(perf_data_feature(&w.reader, rows[i].number, &data, &len_bytes));
        assert_string_equal((const char *)data + 4, rows[i].text);
        assert_int_equal(perf_data_u32(data), 64);
        assert_int_equal(len_bytes, 68);
    }
    assert_true(perf_data_feature(&w.reader, 7, &data, &len_bytes));
    assert_int_equal(perf_data_u32(data), 12);
    assert_true(perf_data_feature(&w.reader, 10, &data, &len_bytes));
    assert_int_equal(perf_data_u64(data), 1024);
    assert_true(perf_data_feature(&w.reader, 21, &data, &len_bytes));
    assert_int_equal(perf_data_u64(data), 1000000);
    assert_int_equal(perf_data_u64(data + 8), 1001000);
    assert_true(perf_data_feature(&w.reader, 29, &data, &len_bytes));
    assert_int_equal(perf_data_u64(data + 8), 1800000000000000000);
    assert_int_equal(perf_data_u64(data + 16), 5);
    assert_true(perf_data_feature(&w.reader, 2, &data, &len_bytes));
    assert_int_equal(data[6] | data[7] << 8, len_bytes);
    assert_string_equal((const char *)data + 36, "/out/perf.data.d/python-code");
    teardown_profile(&w);
}
