/* SPDX-License-Identifier: Apache-2.0 */
/* What emitters are told of source files: one name in several processes, epochs and inputs. */
#include "tests/unit/scene_fixture.h"

#define BOOT_NS UINT64_C(1700000000000000000)
#define BEFORE_NS (INT64_C(1690000000) * 1000000000)
#define AFTER_NS (INT64_C(1700000001) * 1000000000)

static void begin(struct scene *s)
{
    struct trace_record clock = {.type = TRACE_clock, .clock = {.realtime_ns = BOOT_NS + 9000, .boottime_ns = 9000}};

    setup(s, NULL);
    OK(resolver_record(s->resolver, &s->epoch, &clock));
    process(s, 1, 100, "/usr/bin/python3");
    process(s, 2, 101, "/usr/bin/python3");
}

static void say(struct scene *s, uint32_t process, const char *file, uint32_t state, uint64_t size, int64_t modified_ns)
{
    struct trace_record rec = {.type = TRACE_source,
                               .source = {.process = process, .state = state, .size_bytes = size, .modified_ns = modified_ns}};

    rec.source.file = string(s, file);
    OK(resolver_record(s->resolver, &s->epoch, &rec));
}

/* The stamp of a name; NULL: it has none. */
static const struct emit_source_stamp *stamp(const struct scene *s, const char *file)
{
    const struct emit_model *m = resolver_model(s->resolver);

    for (uint32_t i = 0; i < m->source_stamp_count; i++) {
        if (!strcmp(m->source_stamps[i].file, file))
            return &m->source_stamps[i];
    }
    return NULL;
}

static void assert_stamp(const struct scene *s, const char *file, uint64_t size, int64_t modified_ns)
{
    const struct emit_source_stamp *found = stamp(s, file);

    assert_non_null(found);
    assert_true(found->size_bytes == size && found->modified_ns == modified_ns && !found->several);
}

TEST(a_name_is_that_of_its_frames)
{
    struct scene s;

    begin(&s);
    uint32_t frame = python(&s, "main", "/srv/a.py", 1, 0);
    uint32_t outer = stack(&s, &frame, 1);
    uint32_t whole = tuple(&s, (struct trace_tuple){.python_stack = outer});
    event(&s);
    struct emit_sample out = sample(&s, 1, whole, 5);
    const struct emit_model *m = resolver_model(s.resolver);
    assert_int_equal(m->source_stamp_count, 0);
    say(&s, 1, "/srv/a.py", TRACE_SOURCE_FILE, 120, BEFORE_NS);
    assert_stamp(&s, "/srv/a.py", 120, BEFORE_NS);
    assert_ptr_equal(m->source_stamps[0].file, m->frames[m->stacks[out.stack].frame].file);
    say(&s, 1, "", TRACE_SOURCE_FILE, 1, 1);
    assert_int_equal(m->source_stamp_count, 1);
    teardown(&s);
}

TEST(records_that_agree)
{
    struct scene s;

    begin(&s);
    say(&s, 1, "/a.py", TRACE_SOURCE_FILE, 0, -1);
    say(&s, 2, "/a.py", TRACE_SOURCE_FILE, 0, -1);
    begin_epoch(&s, 1);
    process(&s, 1, 100, "/usr/bin/python3");
    say(&s, 1, "/a.py", TRACE_SOURCE_FILE, 0, -1);
    assert_int_equal(resolver_model(s.resolver)->source_stamp_count, 1);
    assert_stamp(&s, "/a.py", 0, -1);
    teardown(&s);
}

/* Two containers, or a file that changed: from then on nothing makes it one file again. */
TEST(several_files_of_one_name)
{
    struct scene s;

    begin(&s);
    say(&s, 1, "/size.py", TRACE_SOURCE_FILE, 10, BEFORE_NS);
    say(&s, 2, "/size.py", TRACE_SOURCE_FILE, 11, BEFORE_NS);
    say(&s, 1, "/time.py", TRACE_SOURCE_FILE, 10, BEFORE_NS);
    begin_epoch(&s, 1);
    process(&s, 1, 100, "/usr/bin/python3");
    say(&s, 1, "/time.py", TRACE_SOURCE_FILE, 10, AFTER_NS); /* modified while it ran */
    const char *const names[] = {"/size.py", "/time.py"};
    for (uint32_t i = 0; i < 2; i++) {
        say(&s, 1, names[i], TRACE_SOURCE_FILE, 10, BEFORE_NS);
        say(&s, 1, names[i], TRACE_SOURCE_UNKNOWN, 0, 0);
        const struct emit_source_stamp *found = stamp(&s, names[i]);
        assert_non_null(found);
        assert_true(found->several && !found->size_bytes && !found->modified_ns);
    }
    teardown(&s);
}

/* A name that is not known of one process is not known, in whichever order the records come; the others stay. */
TEST(not_known)
{
    struct scene s;

    begin(&s);
    say(&s, 1, "/first.py", TRACE_SOURCE_FILE, 1, BEFORE_NS);
    say(&s, 1, "/gone.py", TRACE_SOURCE_FILE, 2, BEFORE_NS);
    say(&s, 1, "/last.py", TRACE_SOURCE_FILE, 3, BEFORE_NS);
    say(&s, 2, "/gone.py", TRACE_SOURCE_UNKNOWN, 0, 0);
    say(&s, 1, "/gone.py", TRACE_SOURCE_FILE, 2, BEFORE_NS);
    say(&s, 1, "/none.py", TRACE_SOURCE_NONE, 0, 0);
    say(&s, 2, "/none.py", TRACE_SOURCE_FILE, 4, BEFORE_NS);
    say(&s, 2, "/newer.py", 77, 5, BEFORE_NS); /* a state of a later version */
    assert_int_equal(resolver_model(s.resolver)->source_stamp_count, 2);
    assert_stamp(&s, "/first.py", 1, BEFORE_NS);
    assert_stamp(&s, "/last.py", 3, BEFORE_NS);
    say(&s, 1, "/last.py", TRACE_SOURCE_FILE, 9, BEFORE_NS); /* it is still found where it was put */
    assert_true(stamp(&s, "/last.py")->several);
    teardown(&s);
}

/* What ran may be older than a file that was modified after the process began. */
TEST(modified_since_the_process_began)
{
    struct scene s;

    begin(&s);
    say(&s, 1, "/deployed.py", TRACE_SOURCE_FILE, 1, AFTER_NS);
    assert_null(stamp(&s, "/deployed.py"));
    say(&s, 1, "/deployed.py", TRACE_SOURCE_FILE, 1, AFTER_NS);
    assert_null(stamp(&s, "/deployed.py"));
    say(&s, 1, "/same-moment.py", TRACE_SOURCE_FILE, 1, (int64_t)BOOT_NS + 77);
    assert_stamp(&s, "/same-moment.py", 1, (int64_t)BOOT_NS + 77);
    /* Another process began after that; whichever comes first. */
    uint32_t name = string(&s, "python3");
    LOAD(&s, process, .id = 3, .tgid = 102, .start_boottime_ns = AFTER_NS - BOOT_NS + 1, .exe = name, .comm = name);
    say(&s, 3, "/younger.py", TRACE_SOURCE_FILE, 1, AFTER_NS);
    assert_stamp(&s, "/younger.py", 1, AFTER_NS);
    say(&s, 1, "/younger.py", TRACE_SOURCE_FILE, 1, AFTER_NS);
    assert_null(stamp(&s, "/younger.py"));
    teardown(&s);
}
