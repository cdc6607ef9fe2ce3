/* SPDX-License-Identifier: Apache-2.0 */
/* The perf.data that pysym writes, read byte by byte: records, call chains, made-up addresses, hostile names. */
#include "tests/unit/perf_data_fixture.h"

TEST(small)
{
    struct written w;

    setup_profile(&w);
    w.s.processes.data[0].cgroup = "/system.slice/shop.service";
    uint32_t main_frame = synthetic_python(&w.s, "<module>", "/srv/x.py", 1, 1, 1);
    uint32_t outer = synthetic_stack(&w.s, EMIT_NO_STACK, main_frame);
    uint32_t run = synthetic_stack(&w.s, outer, synthetic_python(&w.s, "C.run", "/srv/x.py", 42, 9, 40));
    uint32_t torn = synthetic_stack(&w.s, EMIT_NO_STACK, synthetic_mark(&w.s, "[torn]"));
    add_sample(&w, run);
    add_sample(&w, run);
    add_sample(&w, torn);
    add_sample(&w, EMIT_NO_STACK);
    write_out(&w);

    struct perf_data_record r = want(&w, PERF_RECORD_MMAP);
    assert_int_equal(r.misc, PERF_RECORD_MISC_KERNEL);
    assert_string_equal((const char *)r.body + 32, "[kernel.kallsyms]_text");
    r = want(&w, PERF_RECORD_CGROUP);
    assert_int_equal(perf_data_u64(r.body), 1);
    assert_string_equal((const char *)r.body + 8, "/system.slice/shop.service");
    r = want(&w, PERF_RECORD_COMM);
    assert_int_equal(perf_data_u32(r.body + 4), 100);
    assert_string_equal((const char *)r.body + 8, "python3");
    r = want(&w, PERF_RECORD_COMM);
    assert_int_equal(perf_data_u32(r.body), 100);
    assert_int_equal(perf_data_u32(r.body + 4), 101);
    assert_string_equal((const char *)r.body + 8, "worker");
    r = want(&w, PERF_RECORD_MMAP2);
    assert_int_equal(perf_data_u64(r.body + 8), IMAGE_BASE);
    assert_int_equal(perf_data_u64(r.body + 16), IMAGE_BYTES);
    assert_string_equal((const char *)r.body + 64, "/out/perf.data.d/python-code");
    r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
    assert_int_equal(chain_len(&r), 3);
    assert_true(chain_at(&r, 0) == IN_USER && in_image(chain_at(&r, 1)) && in_image(chain_at(&r, 2)));
    assert_int_equal(perf_data_u64(r.body + 8), chain_at(&r, 1));
    assert_int_equal(perf_data_u32(r.body + 16), 100);
    assert_int_equal(perf_data_u32(r.body + 20), 101);
    assert_int_equal(perf_data_u64(r.body + 24), 1000000);
    assert_int_equal(perf_data_u32(r.body + 32), 1);
    assert_int_equal(perf_data_u64(r.body + 40), 10000000);
    assert_int_equal(perf_data_u64(r.body + 80), 1);
    struct perf_data_record again = want(&w, PERF_RECORD_SAMPLE);
    assert_memory_equal(r.body + 56, again.body + 56, 24);
    assert_int_equal(count(&w, PERF_RECORD_SAMPLE), 4);
    assert_int_equal(count(&w, PERF_RECORD_COMM), 2);
    assert_int_equal(count(&w, PERF_RECORD_MMAP2), 1);
    assert_string_equal(w.remark, "to read it: perf --buildid-dir /out/perf.data.d/debug report -i /out/perf.data");
    teardown_profile(&w);
}

/* Where a binary lies depends on its program headers; a caller's address is that of its call. */
TEST(native)
{
    static const struct emit_segment fixed[] = {{0x400000, 0, 0x1000, 0x1000, 4}, {0x401000, 0x1000, 0x2345, 0x2345, 5}},
                                     relocatable[] = {{0, 0, 0x800, 0x800, 4}, {0x2800, 0x1800, 0x900, 0x900, 5}},
                                     absurd[] = {{0x1000, 0x1000, UINT64_MAX, UINT64_MAX, 5}},
                                     overlong[] = {{0, 0, (UINT64_C(1) << 46) - 1, 0x2000, 5}};
    static const uint8_t id[] = "0123456789abcdefghij";
    static const struct emit_mapping mappings[] = {
        {.path = "/bin/fixed", .build_id = id, .build_id_len = 20, .segments = fixed, .segment_count = 2},
        {.path = "/lib/libx.so (deleted)", .segments = relocatable, .segment_count = 2},
        {.path = "/lib/absurd.so", .segments = absurd, .segment_count = 1},
        {.path = "[vdso]", .segments = relocatable, .segment_count = 2},
        {.path = "/lib/new\nline.so", .segments = relocatable, .segment_count = 2},
        {.path = "/lib/overlong.so", .segments = overlong, .segment_count = 1},
    };
    static const struct {
        struct emit_frame frame;
        uint64_t ip; /* 0: in the code image */
    } rows[] = {
        {{.function = "main", .address = 0x1010, .mapping = 0}, 0x401010},
        {{.function = "called", .address = 0x1010, .mapping = 0, .return_address = true}, 0x40100f},
        {{.function = "never_returns", .address = 0x3345, .mapping = 0, .return_address = true}, 0x403344},
        {{.function = "outside", .address = 0x3345, .mapping = 0}, 0},
        {{.function = "f", .address = 0x1900, .mapping = 1}, (UINT64_C(2) << 40) + 0x2900},
        {{.function = "", .address = 0x1900, .mapping = 1}, (UINT64_C(2) << 40) + 0x2900},
        {{.function = "f@plt", .address = 0x1900, .mapping = 1}, 0},
        {{.function = "inlined", .address = 0x1900, .mapping = 1, .inlined = true}, 0},
        {{.function = "absurd", .address = 0x1900, .mapping = 2}, 0},
        {{.function = "clock_gettime", .address = 0x1900, .mapping = 3}, 0},
        {{.function = "f", .address = 0x1900, .mapping = 4}, 0},
        {{.function = "f", .address = 0x1900, .mapping = 5}, 0},
        {{.function = "jit", .address = 0x7f0000001000, .mapping = EMIT_NO_MAPPING}, 0},
    };
    struct written w;
    struct perf_data_record r;

    setup_profile(&w);
    w.s.model.mappings = mappings;
    w.s.model.mapping_count = sizeof mappings / sizeof *mappings;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct emit_frame frame = rows[i].frame;
        frame.kind = EMIT_NATIVE;
        frame.module = frame.mapping == EMIT_NO_MAPPING ? "" : mappings[frame.mapping].path;
        add_sample(&w, synthetic_stack(&w.s, EMIT_NO_STACK, synthetic_frame(&w.s, frame)));
    }
    write_out(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        r = want(&w, PERF_RECORD_SAMPLE);
        assert_int_equal(chain_len(&r), 2);
        assert_true(chain_at(&r, 0) == IN_USER);
        if (rows[i].ip)
            assert_int_equal(chain_at(&r, 1), rows[i].ip);
        else
            assert_true(in_image(chain_at(&r, 1)));
    }
    rewind_records(&w);
    r = want(&w, PERF_RECORD_MMAP2);
    assert_int_equal(r.misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
    assert_int_equal(perf_data_u64(r.body + 8), 0x401000);
    assert_int_equal(perf_data_u64(r.body + 16), 0x3000);
    assert_int_equal(perf_data_u64(r.body + 24), 0x1000);
    assert_int_equal(r.body[32], 20);
    assert_memory_equal(r.body + 36, id, 20);
    assert_string_equal((const char *)r.body + 64, "/bin/fixed");
    want(&w, PERF_RECORD_MMAP2); /* the code image */
    r = want(&w, PERF_RECORD_MMAP2);
    assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
    assert_int_equal(perf_data_u64(r.body + 8), (UINT64_C(2) << 40) + 0x2000);
    assert_int_equal(perf_data_u64(r.body + 16), 0x2000);
    assert_int_equal(perf_data_u64(r.body + 24), 0x1000);
    assert_string_equal((const char *)r.body + 64, "/lib/libx.so");
    assert_false(next(&w, PERF_RECORD_MMAP2, &r));
    teardown_profile(&w);
}

/* Of binaries with one path only the first is known to readers by it: one may be gone, as when it was updated. */
TEST(path_of_two_binaries)
{
    static const struct emit_segment segments[] = {{0, 0, 0x2000, 0x2000, 5}};
    static const char path[] = "/usr/bin/python3", gone[] = "/usr/bin/python3 (deleted)";
    const struct emit_mapping mappings[] = {
        {.path = path, .build_id = (const uint8_t *)"a", .build_id_len = 1, .segments = segments, .segment_count = 1},
        {.path = path, .build_id = (const uint8_t *)"b", .build_id_len = 1, .segments = segments, .segment_count = 1},
        {.path = gone, .build_id = (const uint8_t *)"c", .build_id_len = 1, .segments = segments, .segment_count = 1}};
    struct written w;

    setup_profile(&w);
    w.s.model.mappings = mappings;
    w.s.model.mapping_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        const struct emit_frame f = {.kind = EMIT_NATIVE, .function = "f", .module = mappings[i].path, .address = 0x100,
                                     .mapping = i};
        add_sample(&w, synthetic_stack(&w.s, EMIT_NO_STACK, synthetic_frame(&w.s, f)));
    }
    write_out(&w);
    struct perf_data_record r = want(&w, PERF_RECORD_SAMPLE);
    assert_false(in_image(chain_at(&r, 1)));
    for (int i = 0; i < 2; i++) {
        r = want(&w, PERF_RECORD_SAMPLE);
        assert_true(in_image(chain_at(&r, 1)));
    }
    teardown_profile(&w);
}

/* Readers add what was inlined to the frame that it was inlined into; if that one is hidden, they cannot. */
TEST(inlined)
{
    static const struct emit_segment segments[] = {{0, 0, 0x2000, 0x2000, 5}};
    static const struct emit_mapping mapping = {.path = "/lib/l.so", .segments = segments, .segment_count = 1};
    struct written w;

    setup_profile(&w);
    w.s.model.mappings = &mapping;
    w.s.model.mapping_count = 1;
    struct emit_frame f = {.kind = EMIT_NATIVE, .function = "host", .address = 0x100};
    uint32_t host = synthetic_frame(&w.s, f);
    f.inlined = true;
    f.function = "middle";
    uint32_t middle = synthetic_frame(&w.s, f);
    f.function = "inner";
    uint32_t inner = synthetic_frame(&w.s, f);
    f.address = 0x200;
    uint32_t elsewhere = synthetic_frame(&w.s, f);

    uint32_t stack = synthetic_stack(&w.s, EMIT_NO_STACK, host);
    uint32_t other = synthetic_stack(&w.s, stack, elsewhere);
    stack = synthetic_stack(&w.s, synthetic_stack(&w.s, stack, middle), inner);
    uint32_t alone = synthetic_stack(&w.s, synthetic_stack(&w.s, EMIT_NO_STACK, middle), inner);
    add_sample(&w, stack);
    add_sample(&w, alone);
    add_sample(&w, other);
    write_out(&w);
    struct perf_data_record r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(chain_len(&r), 2);
    assert_int_equal(chain_at(&r, 1), (UINT64_C(2) << 40) + 0x100);
    r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(chain_len(&r), 3);
    assert_true(in_image(chain_at(&r, 1)) && in_image(chain_at(&r, 2)) && chain_at(&r, 1) != chain_at(&r, 2));
    r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(chain_len(&r), 3);
    assert_true(in_image(chain_at(&r, 1)) && !in_image(chain_at(&r, 2)));
    teardown_profile(&w);
}

/* Where native names travel, native frames and what was inlined into them are in an image of their binary. */
static void check_native_names(bool asked, bool is_elsewhere)
{
    static const struct emit_segment segments[] = {{0, 0, 0x2000, 0x2000, 5}};
    const struct emit_mapping mapping = {.path = "/lib/l.so", .segments = segments, .segment_count = 1,
                                         .is_elsewhere = is_elsewhere};
    struct emit_frame f = {.kind = EMIT_NATIVE, .function = "host", .module = "/lib/l.so", .file = "/src/l.c", .line = 3,
                           .address = 0x100};
    struct written w;
    const uint8_t *data = NULL;
    size_t len_bytes = 0;

    setup_profile(&w);
    w.options.native_names = asked;
    w.s.model.mappings = &mapping;
    w.s.model.mapping_count = 1;
    uint32_t stack = synthetic_stack(&w.s, EMIT_NO_STACK, synthetic_python(&w.s, "f", "/srv/x.py", 1, 1, 1));
    stack = synthetic_stack(&w.s, stack, synthetic_frame(&w.s, f));
    f.inlined = true;
    f.function = "inner";
    add_sample(&w, synthetic_stack(&w.s, stack, synthetic_frame(&w.s, f)));
    add_sample(&w, synthetic_stack(&w.s, EMIT_NO_STACK, synthetic_mark(&w.s, "[torn]")));
    write_out(&w);

    struct perf_data_record r = want(&w, PERF_RECORD_MMAP2);
    assert_int_equal(perf_data_u64(r.body + 8), IMAGE_BASE + IMAGE_BYTES);
    assert_string_equal((const char *)r.body + 64, "/out/perf.data.d/native/lib/l.so");
    r = want(&w, PERF_RECORD_MMAP2);
    assert_int_equal(perf_data_u64(r.body + 8), IMAGE_BASE);
    assert_string_equal((const char *)r.body + 64, "/out/perf.data.d/python-code");
    r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(chain_len(&r), 4);
    assert_true(in_image(chain_at(&r, 1) - IMAGE_BYTES) && in_image(chain_at(&r, 2) - IMAGE_BYTES));
    assert_true(chain_at(&r, 1) != chain_at(&r, 2) && in_image(chain_at(&r, 3)));
    assert_int_equal(count(&w, PERF_RECORD_MMAP2), 2);
    assert_true(perf_data_feature(&w.reader, 2, &data, &len_bytes));
    assert_string_equal((const char *)data + 36, "/out/perf.data.d/python-code");
    data += data[6] | data[7] << 8;
    assert_string_equal((const char *)data + 36, "/out/perf.data.d/native/lib/l.so");
    teardown_profile(&w);
}

TEST(native_names)
{
    check_native_names(true, false);
    /* Readers would not find the names of this binary. */
    check_native_names(false, true);
}

/* Marks tell the kernel's addresses from those of programs, wherever they stand. */
TEST(kernel)
{
    struct written w;

    setup_profile(&w);
    uint32_t python = synthetic_python(&w.s, "f", "x.py", 1, 1, 1);
    uint32_t entry = synthetic_kernel(&w.s, "do_syscall_64", "[kernel.kallsyms]", 0xffffffff81000010, 0x10);
    uint32_t deeper = synthetic_kernel(&w.s, "ksys_read", "[kernel.kallsyms]", 0xffffffff81200020, 0x20);
    uint32_t stack = synthetic_stack(&w.s, EMIT_NO_STACK, python);
    add_sample(&w, synthetic_stack(&w.s, synthetic_stack(&w.s, stack, entry), deeper));
    /* Turned round, as by --callers-of. */
    stack = synthetic_stack(&w.s, synthetic_stack(&w.s, EMIT_NO_STACK, deeper), entry);
    add_sample(&w, synthetic_stack(&w.s, stack, python));
    write_out(&w);
    struct perf_data_record r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(r.misc, PERF_RECORD_MISC_KERNEL);
    assert_int_equal(chain_len(&r), 5);
    assert_true(chain_at(&r, 0) == IN_KERNEL && chain_at(&r, 1) == 0xffffffff81200020);
    assert_true(chain_at(&r, 2) == 0xffffffff81000010 && chain_at(&r, 3) == IN_USER && in_image(chain_at(&r, 4)));
    assert_true(perf_data_u64(r.body + 8) == chain_at(&r, 1));
    r = want(&w, PERF_RECORD_SAMPLE);
    assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
    assert_true(chain_at(&r, 0) == IN_USER && chain_at(&r, 2) == IN_KERNEL && chain_len(&r) == 5);
    teardown_profile(&w);
}

TEST(deep)
{
    static const uint32_t depths[] = {127, 128, 900, 20000};
    struct written w;

    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        char expected[64];
        setup_profile(&w);
        uint32_t stack = EMIT_NO_STACK, frame = synthetic_python(&w.s, "f", "x.py", 2, 1, 1);
        for (uint32_t k = 0; k < depths[i]; k++)
            stack = synthetic_stack(&w.s, stack, frame);
        add_sample(&w, stack);
        write_out(&w);
        struct perf_data_record r = want(&w, PERF_RECORD_SAMPLE);
        if (depths[i] < 8000)
            assert_int_equal(chain_len(&r), depths[i] + 1);
        else
            assert_in_range(chain_len(&r), 8000, 8182);
        uint64_t outermost = chain_at(&r, chain_len(&r) - 1), next_inwards = chain_at(&r, chain_len(&r) - 2);
        assert_true(in_image(outermost) && (outermost == next_inwards) == (depths[i] < 8000));
        snprintf(expected, sizeof expected, "add --max-stack %u", (unsigned)chain_len(&r) - 1);
        assert_true(!strstr(w.remark, "max-stack") == (depths[i] == 127));
        assert_true(depths[i] == 127 || strstr(w.remark, expected));
        teardown_profile(&w);
    }
}

/* An image that has another program, and threads whose names change. */
TEST(names_over_time)
{
    struct written w;
    struct perf_data_record r;

    setup_profile(&w);
    uint32_t after = synthetic_process(&w.s, 100, "sleep");
    synthetic_thread(&w.s, after, 100, "sleep");
    synthetic_thread(&w.s, 0, 100, "MainThread");
    synthetic_sample(&w.s, (struct emit_sample){.time_ns = 5, .stack = EMIT_NO_STACK, .thread = 2});
    synthetic_sample(&w.s, (struct emit_sample){.time_ns = 6, .stack = EMIT_NO_STACK, .thread = 1});
    write_out(&w);
    r = want(&w, PERF_RECORD_COMM);
    assert_string_equal((const char *)r.body + 8, "python3");
    assert_int_equal(r.misc, 0);
    r = want(&w, PERF_RECORD_COMM);
    assert_string_equal((const char *)r.body + 8, "sleep");
    assert_int_equal(r.misc, PERF_RECORD_MISC_COMM_EXEC);
    assert_false(next(&w, PERF_RECORD_COMM, &r));
    assert_int_equal(count(&w, PERF_RECORD_MMAP2), 2);
    teardown_profile(&w);
}

/* Names of the target are cut and made safe; nothing breaks a record. */
TEST(hostile_names)
{
    static char long_name[10001];
    static const char *const names[] = {"", "\n\x1b[31m", "a;b %s%n", "\xff\xfe", long_name, "#", "  "};
    struct written w;
    struct perf_data_record r;

    memset(long_name, 'x', sizeof long_name - 1);
    memcpy(long_name + 254, "\xc3\xa4", 2); /* a character where the name is cut */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setup_profile(&w);
        w.s.processes.data[0].comm = w.s.processes.data[0].cgroup = names[i];
        w.s.threads.data[0].name = names[i];
        w.s.events.data[0].name = names[i];
        const struct emit_capture capture = {.name = names[i], .hostname = names[i], .kernel_release = names[i],
                                             .machine = names[i], .cpu_model = names[i], .recorder = names[i]};
        w.s.model.captures = &capture;
        w.s.model.capture_count = 1;
        add_sample(&w, synthetic_stack(&w.s, EMIT_NO_STACK, synthetic_python(&w.s, names[i], names[i], 1, 1, 1)));
        write_out(&w);
        while (next(&w, PERF_RECORD_COMM, &r)) {
            const char *comm = (const char *)r.body + 8;
            assert_true(strlen(comm) <= 255 && !strpbrk(comm, "\n\x1b;"));
            assert_true(names[i] != long_name || strlen(comm) == 254);
        }
        assert_int_equal(count(&w, PERF_RECORD_SAMPLE), 1);
        forget_output(&w);
        synthetic_deinit(&w.s);
    }
}

TEST(rounds)
{
    struct written w;

    setup_profile(&w);
    for (int i = 0; i < 2500; i++)
        add_sample(&w, EMIT_NO_STACK);
    write_out(&w);
    assert_int_equal(count(&w, PERF_RECORD_SAMPLE), 2500);
    assert_int_equal(count(&w, FINISHED_ROUND), 3);
    teardown_profile(&w);
}

/* A full disk is an error. */
TEST(no_space)
{
    static const size_t sizes[] = {50, 5000, 100000};
    struct written w = {.options = {.name = "test", .exporter = "pysym test"}};

    synthetic_demo(&w.s, 3000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        w.files.most_bytes = sizes[i];
        FILE *out = memory_files_open(&w.files, "perf.data");
        setvbuf(out, NULL, _IONBF, 0);
        w.options.files = &w.files.files;
        struct error *err = synthetic_emit(&w.s, emitter_find("perf-data"), &w.options, out);
        assert_non_null(err);
        error_destroy(err);
        memory_files_deinit(&w.files);
    }
    w.files = (struct memory_files){0};
    teardown_profile(&w);
}
