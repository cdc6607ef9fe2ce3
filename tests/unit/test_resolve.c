/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From records to the model that emitters see: epochs, mappings over time, interning,
 * tuples, snapshots (this program unwinds itself), order of time.
 */
#include "tests/unit/test.h"
#include "tests/unit/scene_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "formats/base/buf.h"
#include "symbolize/trace/address_space.h"
#include "symbolize/stack/model.h"
#include "symbolize/pass/reorder.h"
#include "symbolize/summary/summary.h"

/* ---- mappings ---- */

static void change(struct address_space *m, uint64_t time_ns, uint64_t from, uint64_t to, uint32_t module)
{
    struct mapping_change c = {.time_ns = time_ns,
                               .unmapped = !module,
                               .mapping = {.address = from, .end = to, .file_offset = 0x10000, .module = module}};

    assert_true(address_space_add(m, &c));
}

static uint32_t module_at(struct address_space *m, uint64_t time_ns, uint64_t address)
{
    assert_true(address_space_move(m, time_ns));
    const struct mapping *found = address_space_find(m, address);
    return found ? found->module : 0;
}

TEST(mappings_over_time)
{
    struct address_space m = {0};

    assert_int_equal(module_at(&m, 5, 0x1000), 0);
    change(&m, 0, 0x1000, 0x5000, 1);
    change(&m, 10, 0x2000, 0x3000, 2); /* splits the first */
    change(&m, 20, 0x2800, 0x4000, 0); /* takes from both */
    change(&m, 30, 0x0, 0x9000, 3);    /* buries all */
    assert_int_equal(module_at(&m, 9, 0x2000), 1);
    assert_int_equal(module_at(&m, 10, 0x2000), 2);
    assert_int_equal(module_at(&m, 10, 0x3000), 1);
    assert_int_equal(address_space_find(&m, 0x3000)->file_offset, 0x12000);
    assert_int_equal(module_at(&m, 20, 0x27ff), 2);
    assert_int_equal(module_at(&m, 20, 0x2800), 0);
    assert_int_equal(module_at(&m, 20, 0x4000), 1);
    assert_int_equal(m.now.count, 3);
    uint64_t version = m.version;
    assert_int_equal(module_at(&m, 25, 0x5000), 0);
    assert_int_equal(m.version, version); /* nothing has changed, caches stay */
    assert_int_equal(module_at(&m, 30, 0x5000), 3);
    assert_int_equal(m.now.count, 1);
    /* Back, and a change that comes late. */
    assert_int_equal(module_at(&m, 10, 0x2000), 2);
    change(&m, 5, 0x8000, 0x9000, 4);
    assert_int_equal(module_at(&m, 10, 0x8000), 4);
    assert_int_equal(module_at(&m, 4, 0x8000), 0);
    /* Ranges that are none. */
    change(&m, 40, 0x100, 0x100, 5);
    change(&m, 40, 0x200, 0x100, 5);
    assert_int_equal(module_at(&m, 40, 0x100), 3);
    address_space_deinit(&m);
}

/* ---- stacks ---- */

/* What is not known of an instruction, or of its function's lines, is no line, and not the one of `def`. */
TEST(lines_that_are_not_known)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t frames[] = {python(&s, "called", "/a.py", 1, TRACE_FRAME_RUN_END),
                         python(&s, "unknown", "/a.py", 9, TRACE_FRAME_LINE_UNKNOWN), 0, 0, 0, 0, 0};
    LOAD(&s, python_frame, .id = frames[2] = ++s.frames, .code = s.codes, .offset = -2); /* about to begin: its first line */
    LOAD(&s, python_frame, .id = frames[3] = ++s.frames, .code = s.codes, .offset = -1); /* not known, before 0.2 */
    LOAD(&s, code, .id = ++s.codes, .python_version = 0x030b02f0, .first_line = 20, .name_form = 1);
    LOAD(&s, python_frame, .id = frames[4] = ++s.frames, .code = s.codes, .offset = 4);
    /* Of a version that nobody knows. */
    LOAD(&s, code, .id = ++s.codes, .python_version = 0x031601f0, .first_line = 30, .name_form = 1, .line_table_form = 1);
    LOAD(&s, python_frame, .id = frames[5] = ++s.frames, .code = s.codes, .offset = 4);
    LOAD(&s, python_frame, .id = frames[6] = ++s.frames, .code = s.codes, .offset = -1);
    uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, frames, 7), .python_end = LOSS_complete});
    uint32_t at = sample(&s, 1, id, 50).stack;
    const struct emit_model *m = resolver_model(s.resolver);
    static const uint32_t lines[] = {1, 0, 9, 0, 0, 0, 0}, functions[] = {1, 9, 9, 9, 20, 30, 30};
    for (int i = 6; i >= 0; i--, at = m->stacks[at].parent) {
        assert_int_equal(m->frames[m->stacks[at].frame].line, lines[i]);
        assert_int_equal(m->frames[m->stacks[at].frame].function_line, functions[i]);
    }
    teardown(&s);
}

TEST(python_stack)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t frames[] = {python(&s, "main", "/a.py", 1, 1), python(&s, "work", "/a.py", 9, 0)};
    uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, frames, 2), .python_end = LOSS_complete});

    struct emit_sample out = sample(&s, 1, id, 50);
    const struct emit_model *m = resolver_model(s.resolver);
    assert_string_equal(functions(&s, out.stack), "main;work");
    assert_int_equal(out.value, 7);
    assert_int_equal(m->threads[out.thread].tid, 100);
    assert_int_equal(m->processes[m->threads[out.thread].process].pid, 100);
    assert_string_equal(m->events[out.event].name, "cpu-clock");
    assert_true(event_is_time(m->events[out.event].kind));
    const struct emit_frame *leaf = &m->frames[m->stacks[out.stack].frame];
    assert_string_equal(leaf->file, "/a.py");
    assert_string_equal(leaf->module, "/usr/bin/python3");
    assert_int_equal(leaf->line, 9);
    assert_int_equal(leaf->function_line, 9);
    assert_int_equal(leaf->function_end, 9);
    /* A sample without any frame. */
    assert_int_equal(sample(&s, 1, 0, 60).stack, EMIT_NO_STACK);

    /* Equal things keep their numbers in the next epoch, whatever ids they have there. */
    begin_epoch(&s, 1);
    string(&s, "shifts all ids of strings");
    event(&s);
    process(&s, 1, 200, "/usr/bin/python3");
    process(&s, 2, 100, "/usr/bin/python3");
    uint32_t again[] = {python(&s, "other", "/b.py", 1, 1), python(&s, "main", "/a.py", 1, 1),
                        python(&s, "work", "/a.py", 9, 0)};
    id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, again + 1, 2), .python_end = LOSS_complete});
    struct emit_sample later = sample(&s, 2, id, 70);
    assert_int_equal(later.stack, out.stack);
    assert_int_equal(later.thread, out.thread);
    assert_int_equal(m->thread_count, 1);
    resolver_end_epoch(s.resolver);
    const struct resolver_stats *stats = resolver_stats(s.resolver);
    assert_int_equal(stats->sample_count, 3);
    assert_int_equal(stats->python.count[LOSS_complete], 2);
    assert_int_equal(stats->python.count[0], 1);
    teardown(&s);
}

TEST(two_interpreters_share_a_tuple)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/opt/a/python3");
    process(&s, 2, 200, "/opt/b/uwsgi");
    uint32_t library = string(&s, "/opt/b/libpython.so");
    const uint64_t eval[] = {0x100, 0x200};
    LOAD(&s, module, .id = 1, .path = library, .eval_ranges = {.values = eval, .count = 1});
    LOAD(&s, mapping, .process = 2, .address = 0x1000, .length = 0x1000, .protection = 5, .module = 1);
    uint32_t frame = python(&s, "f", "/a.py", 1, 1);
    uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, &frame, 1), .python_end = LOSS_complete});
    uint32_t a = sample(&s, 1, id, 1).stack, b = sample(&s, 2, id, 2).stack;
    const struct emit_model *m = resolver_model(s.resolver);

    assert_string_equal(m->frames[m->stacks[a].frame].module, "/opt/a/python3");
    assert_string_equal(m->frames[m->stacks[b].frame].module, "/opt/b/libpython.so");
    assert_int_equal(sample(&s, 1, id, 3).stack, a);
    assert_int_equal(sample(&s, 2, id, 4).stack, b);
    teardown(&s);
}

/* Both that run in a process are known, whichever of them pycap takes for the first. */
TEST(two_pythons)
{
    enum { ONE = 0x030a02f0, OTHER = 0x030b02f0 };
    struct scene s;

    setup(&s, NULL);
    event(&s);
    for (uint32_t i = 0; i < 2; i++) {
        LOAD(&s, process, .id = 1 + i, .tgid = 100, .start_boottime_ns = 77, .python_version = i ? OTHER : ONE);
        LOAD(&s, thread, .id = 1 + i, .process = 1 + i, .tid = 100);
        for (uint32_t version = ONE; version <= OTHER && !i; version += OTHER - ONE) {
            struct trace_record code = {.type = TRACE_code, .code = {.id = ++s.codes, .python_version = version, .first_line = 1}};
            load(&s, code);
            OK(resolver_record(s.resolver, &s.epoch, &code));
            LOAD(&s, python_frame, .id = ++s.frames, .code = s.codes);
            uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, &s.frames, 1), .python_end = LOSS_complete});
            sample(&s, 1, id, version);
        }
        sample(&s, 1 + i, 0, 0x040000f0);
        const struct emit_process *p = resolver_model(s.resolver)->processes;
        assert_int_equal(resolver_model(s.resolver)->process_count, 1);
        assert_int_equal(p->python_version, i ? OTHER : ONE);
        assert_int_equal(p->other_version, i ? ONE : OTHER);
    }
    teardown(&s);
}

TEST(names_change)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    struct emit_sample out = sample(&s, 1, 0, 1);
    const struct emit_model *m = resolver_model(s.resolver);
    assert_string_equal(m->threads[out.thread].name, "python3");

    struct trace_record named = {.type = TRACE_thread_name,
                                 .thread_name = {.thread = 1, .python_name = string(&s, "Pool-1")}};
    load(&s, named);
    OK(resolver_record(s.resolver, &s.epoch, &named));
    assert_string_equal(m->threads[out.thread].name, "Pool-1");
    struct trace_record renamed = {.type = TRACE_process_name,
                                   .process_name = {.process = 1, .comm = string(&s, "worker")}};
    load(&s, renamed);
    OK(resolver_record(s.resolver, &s.epoch, &renamed));
    assert_string_equal(m->processes[0].comm, "worker");
    teardown(&s);
}

TEST(hosts_are_apart)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t first = sample(&s, 1, 0, 1).thread;
    /* Another file without a boot ID may be of any host. */
    OK(resolver_begin_file(s.resolver, &made_up_input));
    begin_epoch(&s, 0);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    assert_int_not_equal(sample(&s, 1, 0, 1).thread, first);
    for (uint32_t file = 0; file < 2; file++) {
        OK(resolver_begin_file(s.resolver, &made_up_input));
        begin_epoch(&s, 0);
        LOAD(&s, host, .boot_id = bytes_of_text("0123456789abcdef"));
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        assert_int_equal(sample(&s, 1, 0, 1).thread, 2); /* parts of one capture */
    }
    teardown(&s);
}

/* A join by count: which native frames are of the eval loop is a matter of the module's ranges. */
static const struct resolver_options hides_calls = {.interpreter = MERGE_HIDE_CALLS};

TEST(join_by_count)
{
    static const uint64_t segments[] = {0x401000, 0x1000, 0x3000, 0x3000, 1}, ranges[] = {0x401100, 0x401200, 0x403000, 0x403010};
    /* outermost first: start, eval loop, C, the loop's split-off part (return address just behind it), C */
    static const uint64_t offsets[] = {0x1010, 0x1180, 0x2000, 0x3010, 0x2010};
    struct scene s;

    setup(&s, &hides_calls);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t path = string(&s, "/opt/no/such/libpython.so"), frames[2], native[5];
    LOAD(&s, module, .id = 1, .path = path, .segments = {segments, 1}, .eval_ranges = {ranges, 2});
    frames[0] = python(&s, "outer", "/a.py", 1, 1);
    frames[1] = python(&s, "inner", "/a.py", 5, 1);
    for (int i = 0; i < 5; i++)
        LOAD(&s, native_frame, .id = native[i] = ++s.frames, .module = 1, .offset = offsets[i], .flags = i < 4);
    LOAD(&s, join, .id = 1, .kind = TRACE_JOIN_COUNT);
    struct trace_tuple t = {.native_stack = stack(&s, native, 5), .join = 1, .python_end = LOSS_complete,
                            .native_end = LOSS_complete};
    t.python_stack = stack(&s, frames, 2);
    assert_string_equal(functions(&s, sample(&s, 1, tuple(&s, t), 1).stack), ";outer;;inner;");
    /* Without the newest frame; and with one too many of them. */
    t.python_stack = stack(&s, frames, 1);
    assert_string_equal(functions(&s, sample(&s, 1, tuple(&s, t), 1).stack), ";outer;;;");
    const uint32_t three[] = {frames[0], frames[1], frames[1]};
    t.python_stack = stack(&s, three, 3);
    assert_string_equal(functions(&s, sample(&s, 1, tuple(&s, t), 1).stack), "outer;inner;inner;;;;;");
    resolver_end_epoch(s.resolver);
    const struct resolver_stats *stats = resolver_stats(s.resolver);
    assert_int_equal(stats->join.count[LOSS_complete], 2);
    assert_int_equal(stats->join.count[LOSS_join_mismatch], 1);
    teardown(&s);
}

/* The default view: the interpreter's frames are hidden, and their time is told apart. */
TEST(interpreter_is_hidden)
{
    static const uint64_t segments[] = {0x401000, 0x1000, 0x3000, 0x3000, 1}, ranges[] = {0x401100, 0x401200};
    struct scene s;
    uint32_t stacks[3];

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    const uint32_t own = string(&s, "/opt/no/such/libpython3.9.so.1.0"), other = string(&s, "/opt/no/such/libother.so");
    LOAD(&s, module, .id = 1, .path = own, .segments = {segments, 1}, .eval_ranges = {ranges, 1});
    LOAD(&s, module, .id = 2, .path = other, .segments = {segments, 1});
    const uint32_t outer = python(&s, "outer", "/a.py", 1, 1);
    const struct {
        uint32_t module;
        uint64_t offset;
    } frames[] = {{1, 0x1010}, {1, 0x1180}, {1, 0x2000}, {2, 0x2010}};
    uint32_t native[4];
    for (int i = 0; i < 4; i++)
        LOAD(&s, native_frame, .id = native[i] = ++s.frames, .module = frames[i].module, .offset = frames[i].offset,
             .flags = TRACE_FRAME_RETURN);
    LOAD(&s, join, .id = 1, .kind = TRACE_JOIN_COUNT);
    struct trace_tuple t = {.native_stack = stack(&s, native, 4), .python_stack = stack(&s, &outer, 1), .join = 1,
                            .python_end = LOSS_complete, .native_end = LOSS_complete};
    stacks[0] = sample(&s, 1, tuple(&s, t), 1).stack;
    t.native_stack = stack(&s, native, 3);
    const struct emit_sample inside = sample(&s, 1, tuple(&s, t), 2);
    stacks[1] = inside.stack;
    t.python_stack = 0;
    t.native_stack = stack(&s, native, 1);
    stacks[2] = sample(&s, 1, tuple(&s, t), 3).stack;
    assert_string_equal(functions(&s, stacks[0]), "outer;");
    const struct emit_model *m = resolver_model(s.resolver);
    const struct emit_frame *innermost = &m->frames[m->stacks[stacks[0]].frame];
    assert_true(innermost->address == 0x2010 && innermost->return_address);
    assert_string_equal(functions(&s, stacks[1]), "outer");
    assert_string_equal(functions(&s, stacks[2]), "[no Python frames]");
    const struct emit_total *total = &resolver_model(s.resolver)->totals[inside.event];
    assert_int_equal(total->shown_value, 3 * inside.value);
    /* The third has a row of its own. */
    assert_int_equal(total->interpreter_value, inside.value);
    resolver_end_epoch(s.resolver);
    /* Of the binaries that lack names only the one that is shown needs any. */
    assert_int_equal(resolver_stats(s.resolver)->unresolved_count, 1);
    assert_int_equal(modcache_count(resolver_modules(s.resolver)), 2);
    assert_int_equal(modcache_get(resolver_modules(s.resolver), 0)->sample_count, 3);
    assert_int_equal(modcache_get(resolver_modules(s.resolver), 0)->unresolved_count, 0);
    assert_int_equal(modcache_get(resolver_modules(s.resolver), 1)->unresolved_count, 1);
    teardown(&s);
}

/* What formats need beside names: binaries with their build IDs, labels as labels, facts of each capture. */
TEST(mappings_and_labels)
{
    static const uint64_t segments[] = {0x400000, 0,      0x1000, 0x1000, 4, 0x401000, 0x1000, 0x3000, 0x3000, 5,
                                        0x405000, 0x4000, 0x800,  0x900,  5, 0x407000, 0x5000, 0x100,  0x200,  6};
    const struct trace_bytes build_id = bytes_of_text("0123456789abcdefghij");
    const struct trace_bytes kernel_id = bytes_of_text("kernel build id!");
    struct scene s;

    setup(&s, NULL);
    LOAD(&s, host, .kernel_build_id = kernel_id);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t path = string(&s, "/opt/no/such/lib.so"), symbol = string(&s, "do_read"), in = string(&s, "ext4");
    LOAD(&s, module, .id = 1, .path = path, .id_kind = 1, .build_id = build_id, .segments = {segments, 4});
    LOAD(&s, module, .id = 2, .path = path, .id_kind = 2, .build_id = build_id);
    LOAD(&s, kernel_symbol, .id = 1, .address = 0xf000, .name = symbol);
    LOAD(&s, kernel_symbol, .id = 2, .address = 0xe000, .name = symbol, .module = in);
    uint32_t frame = python(&s, "f", "/a.py", 1, 1), native[3], kernel[2];
    for (uint32_t i = 0; i < 3; i++)
        LOAD(&s, native_frame, .id = native[i] = ++s.frames, .module = (i + 1) % 3, .offset = 0x1010 + i);
    for (uint32_t i = 0; i < 2; i++)
        LOAD(&s, kernel_frame, .id = kernel[i] = ++s.frames, .address = 0xf000 - 0x1000 * i, .symbol = i + 1);
    uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, &frame, 1),
                                                 .native_stack = stack(&s, native, 3),
                                                 .kernel_stack = stack(&s, kernel, 2)});
    const uint64_t pairs[] = {string(&s, "asyncio task"), string(&s, "fetch")};
    LOAD(&s, label_set, .id = 1, .pairs = {pairs, 1});
    struct trace_sample labelled = {.time_ns = 1, .thread = 1, .tuple = id, .value = 7, .label_set = 1};
    struct emit_sample out;
    bool kept;
    OK(resolver_sample(s.resolver, &s.epoch, 1, &labelled, &out, &kept));

    /* Innermost first: a module of the kernel, the kernel, an address, a binary by its contents, one by build ID. */
    const struct emit_model *m = resolver_model(s.resolver);
    const struct emit_frame *f[6];
    assert_int_equal(m->stacks[out.stack].depth, 6);
    for (uint32_t i = 0, at = out.stack; i < 6; i++, at = m->stacks[at].parent)
        f[i] = &m->frames[m->stacks[at].frame];
    assert_int_equal(f[2]->mapping, EMIT_NO_MAPPING);
    assert_int_equal(f[5]->mapping, EMIT_NO_MAPPING);
    assert_int_equal(m->mapping_count, 4);
    assert_string_equal(m->mappings[f[0]->mapping].path, "[ext4]");
    assert_null(m->mappings[f[0]->mapping].build_id);
    const struct emit_mapping *kernels = &m->mappings[f[1]->mapping], *lib = &m->mappings[f[4]->mapping];
    assert_string_equal(kernels->path, "[kernel.kallsyms]");
    assert_int_equal(kernels->build_id_len, kernel_id.len_bytes);
    assert_memory_equal(kernels->build_id, kernel_id.data, kernel_id.len_bytes);
    assert_string_equal(m->mappings[f[3]->mapping].path, "/opt/no/such/lib.so");
    assert_int_equal(m->mappings[f[3]->mapping].build_id_len, 0); /* a hash of the contents is no build ID */
    assert_string_equal(lib->path, "/opt/no/such/lib.so");
    assert_int_equal(lib->build_id_len, build_id.len_bytes);
    assert_memory_equal(lib->build_id, build_id.data, build_id.len_bytes);
    assert_int_equal(lib->segment_count, 4);
    assert_int_equal(lib->segments[3].memory_size, 0x200);
    assert_int_equal(lib->start, 0x401000);
    assert_int_equal(lib->end, 0x405900);
    assert_int_equal(lib->offset, 0x1000);

    /* The label is no frame unless that is asked for. */
    assert_int_equal(m->label_sets[out.label_set].count, 1);
    assert_string_equal(m->label_sets[out.label_set].labels[0].key, "asyncio task");
    assert_string_equal(m->label_sets[out.label_set].labels[0].value, "fetch");
    assert_int_equal(sample(&s, 1, id, 2).label_set, 0);
    teardown(&s);
}

static void hear(struct scene *s, struct trace_record rec)
{
    load(s, rec);
    OK(resolver_record(s->resolver, &s->epoch, &rec));
}
#define HEAR(s, name_, ...) hear(s, (struct trace_record){.type = TRACE_##name_, .name_ = {__VA_ARGS__}})

/* Exact times add up over records and epochs, for threads without samples, too. */
TEST(exact_times)
{
    const struct resolver_options chosen = {.stacks.layers = 1 << EMIT_PYTHON};
    const uint64_t first[] = {TRACE_WAIT_GIL, 70, 7, 0, 5, 1}, second[] = {TRACE_WAIT_GIL, 30, 3, 4711, 2, 1};
    struct trace_thread_time time = {.thread = 1, .on_cpu_ns = 11, .waits = {first, 2}};
    struct scene s;

    setup(&s, NULL);
    process(&s, 1, 100, "/usr/bin/python3");
    const struct emit_model *m = resolver_model(s.resolver);
    OK(resolver_thread_time(s.resolver, &s.epoch, &time));
    OK(resolver_thread_time(s.resolver, &s.epoch, &time));
    resolver_end_epoch(s.resolver);
    begin_epoch(&s, 1);
    process(&s, 1, 100, "/usr/bin/python3");
    time.waits.values = second;
    OK(resolver_thread_time(s.resolver, &s.epoch, &time));
    const struct emit_exact_time *t = m->exact_times;
    assert_int_equal(m->exact_time_count, 3);
    assert_int_equal(m->thread_count, 1);
    assert_true(t[0].wait == EMIT_WAIT_NONE && t[0].ns == 33);
    assert_true(t[1].wait == EMIT_WAIT_GIL && t[1].ns == 170 && t[1].count == 17);
    assert_true(t[2].wait == EMIT_WAIT_OTHER && t[2].ns == 12 && t[2].count == 3); /* numbers of no kind, and of a newer one */
    assert_null(trace_value_meaning(TRACE_ENUM_wait_kind, EMIT_WAIT_OTHER));
    teardown(&s);

    /* Where samples are chosen by their stacks there are none. */
    setup(&s, &chosen);
    process(&s, 1, 100, "/usr/bin/python3");
    OK(resolver_thread_time(s.resolver, &s.epoch, &time));
    assert_int_equal(resolver_model(s.resolver)->exact_time_count, 0);
    teardown(&s);
}

TEST(capture_facts)
{
    struct scene s;

    setup(&s, NULL);
    HEAR(&s, epoch, .time_ns = 5000);
    s.strings = 0;
    uint32_t name = string(&s, "cpu-clock"), unit = string(&s, "ns"), machine = string(&s, "riscv64");
    uint32_t key = string(&s, "mode"), value = string(&s, "slow"), newer = string(&s, "fast");
    uint32_t odd = string(&s, "odd_loss");
    HEAR(&s, clock, .monotonic_ns = 4000, .realtime_ns = 1700000000000000000, .boottime_ns = 9000);
    HEAR(&s, host, .machine = machine, .hostname = name, .cpu_count = 3, .page_size = 16384,
         .cpu_model = name, .memory_bytes = 1 << 30);
    HEAR(&s, event, .id = 1, .name = name, .unit = unit, .frequency_hz = 99, .period = 10101010);
    HEAR(&s, meta, .key = key, .value = value);
    HEAR(&s, meta, .key = key, .value = newer);
    HEAR(&s, loss, .reason = LOSS_ring_full, .count = 3);
    HEAR(&s, loss, .reason = LOSS_ring_full, .count = 4);
    HEAR(&s, loss, .reason = LOSS_ring_full, .count = 5, .event = 1);
    HEAR(&s, loss, .reason = 60000, .name = odd, .count = 1);
    process(&s, 1, 100, "/usr/bin/python3");
    struct emit_sample out = sample(&s, 1, 0, 8000);
    const struct emit_model *m = resolver_model(s.resolver);
    const struct emit_capture *c = &m->captures[out.capture];
    assert_int_equal(out.capture, 0);
    assert_int_equal(m->capture_count, 1);
    assert_string_equal(c->name, "standard input");
    assert_string_equal(c->machine, "riscv64");
    assert_string_equal(c->kernel_release, "");
    assert_int_equal(c->cpu_count, 3);
    assert_int_equal(c->page_size, 16384);
    assert_string_equal(c->cpu_model, c->hostname);
    assert_int_equal(c->memory_bytes, 1 << 30);
    assert_int_equal(c->boottime_ns, 9000);
    assert_int_equal(c->start_ns, 5000);
    assert_int_equal(c->start_realtime_ns, 1700000000000001000);
    assert_int_equal(c->duration_ns, 3000);
    assert_int_equal(c->setting_count, 1);
    assert_string_equal(c->settings[0].value, "fast");
    assert_int_equal(c->rate_count, 1);
    assert_int_equal(c->rates[0].event, out.event);
    assert_int_equal(c->rates[0].frequency_hz, 99);
    assert_int_equal(c->loss_count, 3);
    assert_string_equal(c->losses[0].name, "ring_full");
    assert_int_equal(c->losses[0].count, 7);
    assert_string_equal(c->losses[0].event, "");
    assert_string_equal(c->losses[1].name, "ring_full");
    assert_string_equal(c->losses[1].event, "cpu-clock");
    assert_int_equal(c->losses[1].count, 5);
    assert_string_equal(c->losses[2].name, "odd_loss");
    assert_string_equal(c->losses[2].meaning, "");
    assert_true(c->losses[0].is_sample && c->losses[1].is_sample && !c->losses[2].is_sample);
    HEAR(&s, end, .time_ns = 8500);
    assert_int_equal(c->duration_ns, 3500);

    /* Another file, which says nothing of itself. */
    OK(resolver_begin_file(s.resolver, &made_up_input));
    begin_epoch(&s, 0);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    out = sample(&s, 1, 0, 60);
    assert_int_equal(out.capture, 1);
    assert_int_equal(m->captures[1].start_realtime_ns, 0);
    assert_int_equal(m->captures[1].loss_count, 0);
    assert_int_equal(m->captures[0].loss_count, 3);
    teardown(&s);
}

TEST(native_and_kernel)
{
    const struct resolver_options plain = {0}, python_only = {.python_only = true};

    for (int only = 0; only < 2; only++) {
        struct scene s;
        setup(&s, only ? &python_only : &plain);
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        uint32_t path = string(&s, "/opt/no/such/lib.so"), symbol = string(&s, "do_read"), in = string(&s, "ext4");
        LOAD(&s, module, .id = 1, .path = path);
        LOAD(&s, kernel_symbol, .id = 1, .address = 0xf000, .name = symbol, .module = in);
        uint32_t frame = python(&s, "f", "/a.py", 1, 1), native[2], kernel[2];
        LOAD(&s, native_frame, .id = native[0] = ++s.frames, .module = 1, .offset = 0x10, .flags = 1);
        LOAD(&s, native_frame, .id = native[1] = ++s.frames, .offset = 0x7f00, .flags = 0);
        LOAD(&s, kernel_frame, .id = kernel[0] = ++s.frames, .address = 0xf010, .symbol = 1);
        LOAD(&s, kernel_frame, .id = kernel[1] = ++s.frames, .address = 0xdead);
        const uint64_t runs[] = {1, 0};
        LOAD(&s, join, .id = 1, .runs = {.values = runs, .count = 1});
        uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, &frame, 1),
                                                     .native_stack = stack(&s, native, 2),
                                                     .kernel_stack = stack(&s, kernel, 2),
                                                     .join = 1,
                                                     .python_end = LOSS_complete,
                                                     .native_end = LOSS_native_fault});
        uint32_t number = sample(&s, 1, id, 1).stack;
        const struct emit_model *m = resolver_model(s.resolver);
        resolver_end_epoch(s.resolver);
        const struct resolver_stats *stats = resolver_stats(s.resolver);
        if (only) {
            assert_string_equal(functions(&s, number), "f");
            assert_int_equal(modcache_count(resolver_modules(s.resolver)), 0);
            assert_int_equal(stats->native.count[0], 1);
        } else {
            /* The run stands for the first native frame; the second has no name but an address. */
            assert_string_equal(functions(&s, number), "f;;do_read;");
            const struct emit_stack *st = &m->stacks[m->stacks[number].parent];
            assert_string_equal(m->frames[st->frame].module, "[ext4]");
            assert_int_equal(m->frames[st->frame].symbol_offset, 0x10);
            assert_int_equal(m->frames[m->stacks[st->parent].frame].address, 0x7f00);
            assert_false(m->frames[m->stacks[st->parent].frame].return_address);
            assert_int_equal(stats->native.count[LOSS_native_fault], 1);
            assert_int_equal(stats->join.count[LOSS_complete], 1);
        }
        teardown(&s);
    }
}

/* What the kernel and the C library do to get memory is not shown for events of memory, unless all is to be. */
TEST(allocator_is_hidden)
{
    static const struct resolver_options options[] = {{.interpreter = MERGE_HIDE_INTERPRETER}, {.interpreter = MERGE_HIDE_CALLS}};
    static const struct {
        const char *event, *unit;
        uint32_t kind;
        uint32_t depth[2]; /* by options: of a stack of Python, a library, the C library twice, and the kernel */
        uint32_t served[2]; /* of one of the C library and the kernel alone */
    } events[] = {
        {"memory-growth", "bytes", TRACE_EVENT_COUNTED, {2, 5}, {3, 3}},
        {"page-faults", "faults", TRACE_EVENT_COUNTED, {2, 5}, {3, 3}},
        {"syscalls:sys_enter_write", "bytes", TRACE_EVENT_COUNTED, {5, 5}, {3, 3}},
        {"cpu-clock", "ns", TRACE_EVENT_ON_CPU, {5, 5}, {3, 3}},
    };

    for (size_t i = 0; i < 2 * sizeof events / sizeof *events; i++) {
        struct scene s;
        setup(&s, &options[i % 2]);
        LOAD(&s, host, .page_size = 4096);
        uint32_t name = string(&s, events[i / 2].event), unit = string(&s, events[i / 2].unit);
        LOAD(&s, event, .id = 1, .name = name, .unit = unit, .period = 16, .kind = events[i / 2].kind);
        process(&s, 1, 100, "/usr/bin/python3");
        LOAD(&s, module, .id = 1, .path = string(&s, "/opt/no/such/_ext.so"));
        LOAD(&s, module, .id = 2, .path = string(&s, "/opt/no/such/libc.so.6"));
        uint32_t frame = python(&s, "f", "/a.py", 1, 1), native[3], kernel;
        for (uint32_t n = 0; n < 3; n++)
            LOAD(&s, native_frame, .id = native[n] = ++s.frames, .module = n ? 2 : 1, .offset = 0x10 + n);
        LOAD(&s, kernel_frame, .id = kernel = ++s.frames, .address = 0xf010);
        struct trace_tuple t = {.python_stack = stack(&s, &frame, 1), .native_stack = stack(&s, native, 3),
                                .kernel_stack = stack(&s, &kernel, 1), .python_end = LOSS_complete, .native_end = LOSS_complete};
        uint32_t whole = sample(&s, 1, tuple(&s, t), 1).stack;
        t.python_stack = 0;
        t.python_end = 0;
        t.native_stack = stack(&s, native + 1, 2);
        uint32_t alone = sample(&s, 1, tuple(&s, t), 1).stack;
        const struct emit_model *m = resolver_model(s.resolver);
        assert_int_equal(m->stacks[whole].depth, events[i / 2].depth[i % 2]);
        assert_int_equal(m->stacks[alone].depth, events[i / 2].served[i % 2]);
        teardown(&s);
    }
}

TEST(a_stack_deeper_than_any)
{
    struct scene s;
    enum { DEPTH = 100000 };

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t frame = python(&s, "f", "/a.py", 1, 0);
    uint64_t *values = malloc(DEPTH * sizeof *values);
    for (uint32_t i = 0; i < DEPTH; i++)
        values[i] = frame;
    LOAD(&s, stack, .first_id = 1, .frames = {.values = values, .count = DEPTH});
    uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = DEPTH, .python_end = LOSS_complete});
    struct emit_sample out = sample(&s, 1, id, 1);
    const struct emit_model *m = resolver_model(s.resolver);
    assert_int_equal(m->stacks[out.stack].depth, 4096 + 1);
    uint32_t root = out.stack;
    while (m->stacks[root].parent != EMIT_NO_STACK)
        root = m->stacks[root].parent;
    assert_string_equal(m->frames[m->stacks[root].frame].function, "[truncated]");
    free(values);
    teardown(&s);
}

static uint32_t pick(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((*seed >> 33) % n);
}

/* Whatever a file may say that the reader lets pass: ids are right, the rest is made up. */
TEST(nonsense)
{
    uint64_t seed = 1;
#define PICK(n) pick(&seed, n)
    for (int round = 0; round < 200; round++) {
        struct scene s;
        uint64_t list[64], registers[REGISTERS];
        const struct resolver_options options = {.interpreter = (enum merge_interpreter)(round % 3), .python_only = round % 5 == 0};
        setup(&s, &options);
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        uint32_t path = string(&s, "/no/such");
        for (uint32_t i = 1; i <= 3; i++)
            LOAD(&s, module, .id = i, .path = path, .kind = PICK(4), .eval_ranges = {.values = list, .count = 0});
        LOAD(&s, image, .module = 2, .data = bytes_of_text("no ELF file"));
        LOAD(&s, kernel_symbol, .id = 1, .address = PICK(99), .name = path);
        for (uint32_t i = 0; i < 4; i++)
            LOAD(&s, mapping, .process = 1, .time_ns = PICK(9), .change = PICK(3), .address = PICK(50),
                 .length = PICK(50), .file_offset = UINT64_MAX - PICK(50), .module = PICK(4), .protection = PICK(8));
        LOAD(&s, code, .id = 1, .python_version = PICK(2) ? 0x030b02f0 : PICK(UINT32_MAX), .name_form = PICK(9),
             .name_len = PICK(99), .name = bytes_of_text("name"), .line_table_form = 1, .line_table_len = PICK(99),
             .line_table = bytes_of_text("\xf8\x80\x81 nonsense"), .first_line = -(int64_t)PICK(9));
        for (int i = 0; i < 12; i++) {
            uint32_t id = ++s.frames;
            int64_t at = (int64_t)PICK(400) - 100;
            if (i % 3 == 0)
                LOAD(&s, python_frame, .id = id, .code = PICK(2), .offset = at, .flags = PICK(4));
            else if (i % 3 == 1)
                LOAD(&s, native_frame, .id = id, .module = PICK(4), .offset = (uint64_t)at, .flags = PICK(2));
            else
                LOAD(&s, kernel_frame, .id = id, .symbol = PICK(2), .address = (uint64_t)at);
        }
        for (uint32_t i = 0; i < 6; i++) {
            uint32_t count = PICK(12);
            for (uint32_t k = 0; k < count; k++)
                list[k] = PICK(40);
            LOAD(&s, stack, .first_id = s.stacks + 1, .parent = PICK(s.stacks + 1),
                 .frames = {.values = list, .count = count});
            s.stacks += count;
        }
        for (uint32_t i = 0; i < REGISTERS; i++)
            registers[i] = PICK(4) ? PICK(99) : UINT64_MAX - PICK(99);
        LOAD(&s, snapshot, .id = 1, .process = 1, .stack_address = PICK(99),
             .registers = {.values = registers, .count = PICK(4) ? REGISTERS : PICK(REGISTERS)},
             .stack = bytes_of_text("nothing that was ever a stack"));
        for (uint32_t i = 0; i < 16; i++)
            list[i] = PICK(3) ? PICK(12) : UINT64_MAX;
        LOAD(&s, join, .id = 1, .kind = PICK(4), .runs = {.values = list, .count = PICK(8)});
        for (uint64_t i = 0; i < 12; i++) {
            uint32_t id = tuple(&s, (struct trace_tuple){.kernel_stack = PICK(s.stacks + 1),
                                                         .native_stack = PICK(2) ? PICK(s.stacks + 1) : 0,
                                                         .snapshot = PICK(2),
                                                         .python_stack = PICK(s.stacks + 1),
                                                         .join = PICK(2),
                                                         .python_end = PICK(60),
                                                         .native_end = PICK(60)});
            sample(&s, PICK(2), id, PICK(12));
        }
        resolver_end_epoch(s.resolver);
        assert_int_equal(resolver_stats(s.resolver)->sample_count, 12);
        teardown(&s);
    }
#undef PICK
}

TEST(period_changes)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    LOAD(&s, period, .event = 1, .time_ns = 50, .period = 500);
    LOAD(&s, period, .event = 1, .time_ns = 70, .period = 700);
    LOAD(&s, period, .event = 1, .time_ns = 60, .period = 600); /* late */
    assert_int_equal(epoch_period_at(&s.epoch, 1, 49), 100);
    assert_int_equal(epoch_period_at(&s.epoch, 1, 50), 500);
    assert_int_equal(epoch_period_at(&s.epoch, 1, 69), 600);
    assert_int_equal(epoch_period_at(&s.epoch, 1, UINT64_MAX), 700);
    teardown(&s);
}

/* ---- snapshots ---- */

TEST(snapshot)
{
    struct shot shot = {.stack = calloc(1, STACK_BYTES), .stack_end = stack_end()};
    struct scene s;
    struct loader loader = {.scene = &s};

    made_up_outer_eval(&shot);
    setup(&s, &hides_calls);
    uint32_t machine = string(&s, "x86_64");
    LOAD(&s, host, .machine = machine);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    dl_iterate_phdr(tell_object, &loader);
    uint32_t frames[] = {python(&s, "outer", "/a.py", 1, 1), python(&s, "mid", "/a.py", 5, 0),
                         python(&s, "key", "/a.py", 9, 1)};
    LOAD(&s, snapshot, .id = 1, .process = 1, .stack_address = shot.stack_address,
         .registers = {.values = shot.registers, .count = REGISTERS},
         .stack = {.data = shot.stack, .len_bytes = shot.stack_len});
    const uint64_t runs[] = {shot.records[0], 0, shot.records[1], 0};
    const uint64_t astray[] = {shot.records[0], 0, 8, 0};
    LOAD(&s, join, .id = 1, .kind = TRACE_JOIN_RECORD, .runs = {.values = runs, .count = 2});
    LOAD(&s, join, .id = 2, .kind = TRACE_JOIN_RECORD, .runs = {.values = astray, .count = 2});
    uint32_t python_stack = stack(&s, frames, 3);
    uint32_t id = tuple(
        &s, (struct trace_tuple){.snapshot = 1, .python_stack = python_stack, .join = 1, .python_end = LOSS_complete});
    uint32_t outside = tuple(
        &s, (struct trace_tuple){.snapshot = 1, .python_stack = python_stack, .join = 2, .python_end = LOSS_complete});

    const char *text = functions(&s, sample(&s, 1, id, 5).stack);
    if (!strstr(text, ";outer;mid;made_up_callback;key;made_up_leaf") || !strstr(text, "main;") || strstr(text, "eval"))
        fail_msg("%s", text);
    text = functions(&s, sample(&s, 1, outside, 6).stack);
    if (!strstr(text, ";outer;mid;key;made_up_callback;made_up_inner_eval;made_up_leaf"))
        fail_msg("%s", text);
    resolver_end_epoch(s.resolver);
    const struct resolver_stats *stats = resolver_stats(s.resolver);
    assert_int_equal(stats->snapshot_count, 2);
    assert_int_equal(stats->native.count[LOSS_complete], 2);
    assert_int_equal(stats->join.count[LOSS_complete], 1);
    assert_int_equal(stats->join.count[LOSS_join_outside], 1);
    free(shot.stack);
    teardown(&s);
}

/* The stack that was unwound in the kernel is what counts; the snapshot beside it is for comparison only. */
TEST(snapshot_beside_a_stack)
{
    struct shot shot = {.stack = calloc(1, STACK_BYTES), .stack_end = stack_end()};
    struct scene s;
    struct loader loader = {.scene = &s};

    made_up_outer_eval(&shot);
    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    dl_iterate_phdr(tell_object, &loader);
    LOAD(&s, snapshot, .id = 1, .process = 1, .stack_address = shot.stack_address,
         .registers = {.values = shot.registers, .count = REGISTERS},
         .stack = {.data = shot.stack, .len_bytes = shot.stack_len});
    uint32_t path = string(&s, "/none/eval.so"), other = string(&s, "/none/sort.so");
    LOAD(&s, module, .id = loader.modules + 1, .path = path);
    LOAD(&s, module, .id = loader.modules + 2, .path = other);
    uint32_t native[3];
    for (uint32_t i = 0; i < 3; i++) {
        LOAD(&s, native_frame, .id = ++s.frames, .module = loader.modules + 1 + i % 2, .offset = 0x100 + i, .flags = 1);
        native[i] = s.frames;
    }
    uint32_t frames[] = {python(&s, "outer", "/a.py", 1, 1), python(&s, "key", "/a.py", 9, 1)};
    const uint64_t runs[] = {1, 0, 3, 0};
    LOAD(&s, join, .id = 1, .kind = TRACE_JOIN_INDEX, .runs = {.values = runs, .count = 2});
    struct trace_tuple t = {.native_stack = stack(&s, native, 3), .snapshot = 1, .join = 1,
                            .python_end = LOSS_complete, .native_end = LOSS_register_unsupported};
    t.python_stack = stack(&s, frames, 2);
    uint32_t both = tuple(&s, t);
    t.snapshot = 0;
    uint32_t alone = tuple(&s, t);
    struct emit_sample out = sample(&s, 1, both, 5);
    assert_string_equal(functions(&s, out.stack), "outer;;key");
    assert_int_equal(out.stack, sample(&s, 1, alone, 6).stack);
    resolver_end_epoch(s.resolver);
    const struct resolver_stats *stats = resolver_stats(s.resolver);
    assert_int_equal(stats->snapshot_count, 0);
    assert_int_equal(stats->native.count[LOSS_register_unsupported], 2);
    assert_int_equal(stats->join.count[LOSS_complete], 2);
    free(shot.stack);
    teardown(&s);
}

TEST(snapshot_that_is_useless)
{
    struct scene s;
    const uint64_t registers[REGISTERS] = {[7] = 0x7000, [16] = 0x1234};

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t frame = python(&s, "f", "/a.py", 1, 1);
    LOAD(&s, snapshot, .id = 1, .process = 1); /* no registers */
    LOAD(&s, snapshot, .id = 2, .process = 1, .registers = {.values = registers, .count = REGISTERS});
    const uint64_t runs[] = {0x7008, 0};
    LOAD(&s, join, .id = 1, .kind = TRACE_JOIN_RECORD, .runs = {.values = runs, .count = 1});
    uint32_t python_stack = stack(&s, &frame, 1);
    for (uint32_t i = 1; i <= 2; i++) {
        uint32_t id = tuple(
            &s,
            (struct trace_tuple){.snapshot = i, .python_stack = python_stack, .join = 1, .python_end = LOSS_complete});
        /* The Python stack is whole in any case. */
        assert_memory_equal(functions(&s, sample(&s, 1, id, i).stack), "f", 1);
    }
    resolver_end_epoch(s.resolver);
    const struct resolver_stats *stats = resolver_stats(s.resolver);
    assert_int_equal(stats->native.count[LOSS_no_user_registers], 1);
    assert_int_equal(stats->native.count[LOSS_complete], 0);
    assert_int_equal(stats->join.count[LOSS_complete], 0);
    teardown(&s);
}

/* ---- order of time ---- */

struct sink {
    uint64_t times[64];
    uint32_t count;
};

static struct error *sink_sample(void *state, const struct emit_sample *sample)
{
    struct sink *sink = state;

    sink->times[sink->count++] = sample->time_ns;
    return NULL;
}

TEST(reorder)
{
    const uint64_t second = 1000000000;
    const uint64_t in[] = {1, 3, 5, 2, 4, 10 * second, 9 * second, 11 * second, 3 * second, 20 * second};
    const uint64_t out[] = {1, 2, 3, 4, 5, 9 * second, 10 * second, 10 * second, 11 * second, 20 * second};
    struct sink sink = {0};
    const struct emitter emitter = {.sample = sink_sample};
    struct reorder o = {.emitter = &emitter, .state = &sink};

    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        OK(reorder_sample(&o, &(struct emit_sample){.time_ns = in[i]}));
        if (i == 7)
            OK(reorder_flush(&o));
    }
    OK(reorder_flush(&o));
    assert_int_equal(sink.count, sizeof out / sizeof *out);
    assert_int_equal(o.late_count, 1);
    for (uint32_t i = 1; i < sink.count; i++)
        assert_true(sink.times[i - 1] <= sink.times[i]);
    assert_int_equal(sink.times[4], out[4]);
    assert_int_equal(sink.times[8], 11 * second); /* the late one: no earlier than what had gone out */
    reorder_deinit(&o);
}

static struct error *count_sample(void *state, const struct emit_sample *sample)
{
    (void)sample;
    ++*(uint32_t *)state;
    return NULL;
}

TEST(reorder_is_bounded)
{
    uint32_t count = 0;
    const struct emitter emitter = {.sample = count_sample};
    struct reorder o = {.emitter = &emitter, .state = &count};

    /* All within the window, but more than are held back. */
    for (uint32_t i = 0; i < REORDER_MAX_SAMPLES; i++)
        OK(reorder_sample(&o, &(struct emit_sample){.time_ns = i}));
    assert_int_equal(count, REORDER_MAX_SAMPLES / 2 + 1);
    OK(reorder_flush(&o));
    assert_int_equal(count, REORDER_MAX_SAMPLES);
    assert_int_equal(o.late_count, 0);
    reorder_deinit(&o);
}

/* Traces of two rates in one summary: neither rate is said of the other's samples. */
TEST(summary_of_two_rates)
{
    static const uint64_t rates[] = {99, 199, 99};
    const struct trace_sample seen = {.thread = 1, .value = 1000};
    struct summary *summary;
    struct scene s;
    char *text;
    size_t len;

    setup(&s, NULL);
    OK(summary_create(NULL, &summary));
    for (uint32_t i = 0; i < 3; i++) {
        begin_epoch(&s, i);
        uint32_t name = string(&s, "cpu-clock"), unit = string(&s, "ns");
        LOAD(&s, event, .id = 1, .name = name, .unit = unit, .frequency_hz = rates[i]);
        process(&s, 1, 100, "/usr/bin/python3");
        OK(summary_begin_file(summary, "a.bin"));
        OK(summary_sample(summary, &s.epoch, 1, &seen, NULL));
        OK(summary_end_epoch(summary, &s.epoch));
    }
    FILE *out = open_memstream(&text, &len);
    OK(summary_print(summary, s.resolver, true, out));
    fclose(out);
    assert_non_null(strstr(text, "           2 samples at 99 Hz, "));
    assert_non_null(strstr(text, "           1 samples at 199 Hz, "));
    free(text);
    summary_destroy(summary);
    teardown(&s);
}

/* A process that was not sampled, such as a master of workers, has the name and the container that its record tells. */
TEST(summary_names_idle_parents)
{
    const struct trace_sample seen = {.thread = 1, .value = 1000};
    struct summary *summary;
    struct scene s;
    char *text;
    size_t len;

    setup(&s, NULL);
    OK(summary_create(NULL, &summary));
    OK(summary_begin_file(summary, "a.bin"));
    event(&s);
    uint32_t comm = string(&s, "python3"), program = string(&s, "gunicorn");
    uint32_t cgroup = string(&s, "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    LOAD(&s, process, .id = 1, .tgid = 10, .comm = comm, .program_kind = TRACE_PROGRAM_SCRIPT, .program = program,
         .cgroup = cgroup);
    LOAD(&s, process, .id = 2, .tgid = 11, .parent_tgid = 10, .comm = comm);
    LOAD(&s, thread, .id = 1, .process = 2, .tid = 11, .name = comm);
    struct trace_record rec = {.type = TRACE_loss, .loss = {.reason = LOSS_line_quota, .process = 1, .count = 1}};
    OK(summary_record(summary, &s.epoch, &rec));
    OK(summary_sample(summary, &s.epoch, 1, &seen, NULL));
    OK(summary_end_epoch(summary, &s.epoch));
    FILE *out = open_memstream(&text, &len);
    OK(summary_print(summary, s.resolver, true, out));
    fclose(out);
    if (!strstr(text, "\n        10  gunicorn                -                 -           -        -  "
                      "container 0123456789ab\n"
                      "        11    python3               -                 1       100 %") ||
        !strstr(text, "\n        10  gunicorn                   1  line_quota\n"))
        fail_msg("%s", text);
    free(text);
    summary_destroy(summary);
    teardown(&s);
}

/* What was lost of one process stands among all losses and, for all epochs together, beside its name. */
TEST(summary_names_who_met_a_limit)
{
    struct summary *summary;
    struct scene s;
    char *text;
    size_t len;

    setup(&s, NULL);
    OK(summary_create(NULL, &summary));
    OK(summary_begin_file(summary, "a.bin"));
    for (uint32_t i = 0; i < 3; i++) {
        begin_epoch(&s, i);
        process(&s, 1, 4242, "/usr/bin/python3");
        process(&s, 2, 7, "/usr/bin/python3");
        struct trace_record rec = {.type = TRACE_loss, .loss = {.reason = LOSS_line_quota, .process = 1, .count = 1000}};
        OK(summary_record(summary, &s.epoch, &rec));
        rec.loss = (struct trace_loss){.reason = LOSS_code_quota, .process = 2, .count = 1};
        OK(summary_record(summary, &s.epoch, &rec));
        rec.loss = (struct trace_loss){.reason = LOSS_code_quota, .count = 5};
        OK(summary_record(summary, &s.epoch, &rec));
        OK(summary_end_epoch(summary, &s.epoch));
    }
    FILE *out = open_memstream(&text, &len);
    OK(summary_print(summary, s.resolver, true, out));
    fclose(out);
    if (!strstr(text, "  code_quota                      18  a code object was left out") ||
        !strstr(text, "Processes that met a limit\n"
                      "       pid  name                  losses  kind\n"
                      "      4242  python3                3,000  line_quota\n"
                      "         7  python3                    3  code_quota\n\n"))
        fail_msg("%s", text);
    free(text);
    summary_destroy(summary);
    teardown(&s);
}

static void expect_in_summary(const struct scene *s, bool verbose, const char *part)
{
    struct summary *summary;
    char *text;
    size_t len;

    OK(summary_create(NULL, &summary));
    FILE *out = open_memstream(&text, &len);
    OK(summary_print(summary, s->resolver, verbose, out));
    fclose(out);
    if (!strstr(text, part))
        fail_msg("%s", text);
    free(text);
    summary_destroy(summary);
}

/* What a table of generated code's symbols lacks, the summary says. */
TEST(perf_map_in_summary)
{
    static const char table[] = "1000 100 made\nno line\n2000 0 empty\n";
    struct trace_bytes id = bytes_of_text("identity of process");
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t path = string(&s, "//anon"), frame;
    LOAD(&s, module, .id = 1, .path = path, .kind = TRACE_MODULE_ANONYMOUS, .id_kind = TRACE_ID_CONTENT_HASH, .build_id = id);
    LOAD(&s, native_frame, .id = frame = ++s.frames, .module = 1, .offset = 0x1010);
    const struct trace_perf_map rec = {.module = 1, .text = bytes_of_text(table)};
    OK(modcache_add_perf_map(resolver_modules(s.resolver), &s.epoch, &rec));
    uint32_t id_of_tuple = tuple(&s, (struct trace_tuple){.native_stack = stack(&s, &frame, 1)});
    sample(&s, 1, id_of_tuple, 1);
    resolver_end_epoch(s.resolver);
    expect_in_summary(&s, true, "1 names from the process's own table; 2 of its lines cannot be read\n");
    teardown(&s);
}

/* Frames whose code object could not be read are shown, and have no name. */
TEST(unread_frames)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    process(&s, 1, 100, "/usr/bin/python3");
    uint32_t frames[4] = {python(&s, "f", "f.py", 1, 0)};
    for (uint32_t i = 1; i < 4; i++) {
        LOAD(&s, python_frame, .id = ++s.frames);
        frames[i] = s.frames;
    }
    sample(&s, 1, tuple(&s, (struct trace_tuple){.python_stack = stack(&s, frames, 4)}), 1);
    resolver_end_epoch(s.resolver);
    expect_in_summary(&s, false, "\nNames        Python 25.0 % of the frames in the stacks of all samples have a name\n");
    teardown(&s);
}

/* Names that are missing in fewer than 1 % of samples are listed, and bring no advice. */
TEST(advice_where_it_matters)
{
    struct trace_bytes id = bytes_of_text("identity of process");

    for (uint64_t count = 100; count <= 101; count++) {
        struct summary *summary;
        struct scene s;
        char *text;
        size_t len;
        setup(&s, NULL);
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        uint32_t path = string(&s, "//anon"), frame;
        LOAD(&s, module, .id = 1, .path = path, .kind = TRACE_MODULE_ANONYMOUS, .id_kind = TRACE_ID_CONTENT_HASH, .build_id = id);
        LOAD(&s, native_frame, .id = frame = ++s.frames, .module = 1, .offset = 0x1010);
        sample(&s, 1, tuple(&s, (struct trace_tuple){.native_stack = stack(&s, &frame, 1)}), 1);
        for (uint64_t i = 1; i < count; i++)
            sample(&s, 1, 0, 1 + i);
        resolver_end_epoch(s.resolver);
        OK(summary_create(NULL, &summary));
        FILE *out = open_memstream(&text, &len);
        OK(summary_print(summary, s.resolver, false, out));
        fclose(out);
        if (!strstr(text, "\nNames        native 0 % of the frames in the stacks of all samples have a name; 1.0 % of samples have a native frame without one\n") ||
            !strstr(text, "[jit]: code made at run time, without a table of symbols, in 1 sample\n") ||
            !strstr(text, "\nTo do        code made at run time has names only if ") != (count == 101))
            fail_msg("%s", text);
        free(text);
        summary_destroy(summary);
        teardown(&s);
    }
}

/* Page faults are bytes in the model, by the host's page size; without a host they stay what they were counted as. */
TEST(faults_are_bytes)
{
    struct scene s;

    for (uint32_t page = 0; page <= 16384; page += 16384) {
        setup(&s, NULL);
        uint32_t machine = string(&s, "x86_64"), name = string(&s, "page-faults"), unit = string(&s, "faults");
        if (page)
            LOAD(&s, host, .machine = machine, .page_size = page);
        LOAD(&s, event, .id = 1, .name = name, .unit = unit, .period = 16, .kind = TRACE_EVENT_COUNTED);
        process(&s, 1, 100, "/usr/bin/python3");
        struct emit_sample out = sample(&s, 1, 0, 50);
        const struct emit_event *event = &resolver_model(s.resolver)->events[out.event];
        assert_string_equal(event->unit, page ? "bytes" : "faults");
        assert_int_equal(event_is_bytes(event->kind), page != 0);
        assert_true(event_is_counted(event->kind));
        assert_false(event_is_time(event->kind));
        assert_int_equal(out.value, page ? 7 * 16384 : 7);
        assert_int_equal(out.faults, page ? 7 : 0);
        teardown(&s);
    }
}

/* An event that was counted in bytes is not multiplied once more. */
TEST(bytes_stay_bytes)
{
    struct scene s;

    setup(&s, NULL);
    uint32_t machine = string(&s, "x86_64"), name = string(&s, "allocations"), unit = string(&s, "bytes");
    LOAD(&s, host, .machine = machine, .page_size = 4096);
    LOAD(&s, event, .id = 1, .name = name, .unit = unit, .period = 16, .kind = TRACE_EVENT_COUNTED);
    process(&s, 1, 100, "/usr/bin/python3");
    struct emit_sample out = sample(&s, 1, 0, 50);
    assert_true(event_is_bytes(resolver_model(s.resolver)->events[out.event].kind));
    assert_int_equal(out.value, 7);
    assert_int_equal(out.faults, 0);
    teardown(&s);
}

/* Values that a process made up, or a trace: the sum of all is a number still, whichever are added. */
TEST(sums_have_an_end)
{
    static const uint64_t values[] = {UINT64_C(1) << 62, 5, UINT64_C(1) << 62, UINT64_MAX, 7},
                          want[] = {UINT64_C(1) << 62, 5, (UINT64_C(1) << 62) - 6, 0, 0};
    struct scene s;

    setup(&s, NULL);
    uint32_t name = string(&s, "syscalls:sys_enter_write"), unit = string(&s, "bytes");
    LOAD(&s, event, .id = 1, .name = name, .unit = unit, .period = 1, .kind = TRACE_EVENT_COUNTED);
    process(&s, 1, 100, "/usr/bin/python3");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct trace_sample in = {.time_ns = 50, .thread = 1, .value = values[i]};
        struct emit_sample out;
        bool kept;
        OK(resolver_sample(s.resolver, &s.epoch, 1, &in, &out, &kept));
        assert_true(out.value == want[i]);
    }
    assert_true(resolver_model(s.resolver)->totals[0].all_value == INT64_MAX);
    teardown(&s);
}

/* Nanoseconds are CPU time, waiting of threads, of others, of tasks, or what is counted; only time of a thread is a span of its. */
TEST(kinds_of_time)
{
    static const struct {
        uint32_t recorded;
        enum event_value kind;
        bool waits, spans;
    } kinds[] = {{TRACE_EVENT_ON_CPU, EVENT_CPU_TIME, .spans = true},
                 {TRACE_EVENT_OFF_CPU, EVENT_OFF_CPU, .waits = true, .spans = true},
                 {TRACE_EVENT_BLAME, EVENT_BLAME, .waits = true},
                 {TRACE_EVENT_TASK, EVENT_TASK_WAIT, .waits = true},
                 {TRACE_EVENT_COUNTED, EVENT_COUNTED_TIME}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct scene s;
        setup(&s, NULL);
        uint32_t name = string(&s, "sched:sched_stat_wait"), unit = string(&s, "ns");
        LOAD(&s, event, .id = 1, .name = name, .unit = unit, .period = 16, .kind = kinds[i].recorded);
        process(&s, 1, 100, "/usr/bin/python3");
        struct emit_sample out = sample(&s, 1, 0, 50);
        const struct emit_event *event = &resolver_model(s.resolver)->events[out.event];
        assert_true(event_is_time(event->kind) && !event_is_bytes(event->kind) && !out.faults);
        assert_int_equal(event->kind, kinds[i].kind);
        assert_int_equal(event_is_waiting(event->kind), kinds[i].waits);
        assert_int_equal(event_is_counted(event->kind), kinds[i].recorded == TRACE_EVENT_COUNTED);
        assert_int_equal(event_has_spans(event->kind), kinds[i].spans);
        teardown(&s);
    }
}
