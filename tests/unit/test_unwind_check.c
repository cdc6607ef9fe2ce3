/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison of recorded stacks with what three witnesses make of the snapshot beside
 * them: this program's own stack, recorded right, and wrong in each way that has a name.
 */
#include "tests/unit/test.h"
#include "tests/unit/scene_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "symbolize/stack/snapshot.h"
#include "symbolize/check/unwind_check.h"

enum { FRAMES_MAX = 60, ID_FIRST = 1 };

struct check {
    struct scene scene;
    struct shot shot;
    struct unwind_check *check;
    struct trace_native_frame right[FRAMES_MAX]; /* outermost first */
    uint32_t count;
    uint64_t time_ns;
};

/* What is right is what libunwind says; that the others say the same is one of the tests. */
static void find_right(struct check *c)
{
    struct snapshots snapshots = {0};
    uint32_t end;

    OK(snapshots_unwind(&snapshots, resolver_modules(c->scene.resolver), &c->scene.epoch, ID_FIRST, 1, &end));
    assert_int_equal(end, LOSS_complete);
    c->count = (uint32_t)snapshots.frames.count;
    assert_in_range(c->count, 6, FRAMES_MAX);
    for (uint32_t i = 0; i < c->count; i++) {
        struct snapshot_frame f = snapshots_frame(&snapshots, &c->scene.epoch, ID_FIRST, i);
        assert_int_not_equal(f.module, 0);
        c->right[c->count - 1 - i] = (struct trace_native_frame){
            .module = f.module, .offset = f.offset, .flags = f.return_address ? TRACE_FRAME_RETURN : 0};
    }
    snapshots_deinit(&snapshots);
}

/* `cut` bytes of the copy are left, 0 for all. */
static void check_setup(struct check *c, uint64_t cut)
{
    struct loader loader = {.scene = &c->scene};

    *c = (struct check){.shot = {.stack = calloc(1, STACK_BYTES), .stack_end = stack_end()}};
    made_up_outer_eval(&c->shot);
    setup(&c->scene, NULL);
    uint32_t machine = string(&c->scene, "x86_64");
    LOAD(&c->scene, host, .machine = machine);
    event(&c->scene);
    process(&c->scene, 1, 100, "/usr/bin/python3");
    dl_iterate_phdr(tell_object, &loader);
    for (uint32_t id = ID_FIRST; id <= ID_FIRST + 1; id++)
        LOAD(&c->scene, snapshot, .id = id, .process = 1, .stack_address = c->shot.stack_address,
             .registers = {.values = c->shot.registers, .count = REGISTERS},
             .stack = {.data = c->shot.stack, .len_bytes = cut && id > ID_FIRST ? cut : c->shot.stack_len});
    find_right(c);
    OK(unwind_check_create(resolver_modules(c->scene.resolver), &c->check));
}

static void check_teardown(struct check *c)
{
    unwind_check_destroy(c->check);
    teardown(&c->scene);
    free(c->shot.stack);
}

/* A stack of the tuple's, of these frames, outermost first. */
static uint32_t native(struct check *c, const struct trace_native_frame *frames, uint32_t count)
{
    uint32_t ids[FRAMES_MAX];

    for (uint32_t i = 0; i < count; i++) {
        LOAD(&c->scene, native_frame, .id = ++c->scene.frames, .module = frames[i].module, .offset = frames[i].offset,
             .flags = frames[i].flags);
        ids[i] = c->scene.frames;
    }
    return stack(&c->scene, ids, count);
}

static void see(struct check *c, struct trace_tuple t, uint32_t times)
{
    struct trace_sample s = {.thread = 1, .tuple = tuple(&c->scene, t)};

    for (uint32_t i = 0; i < times; i++) {
        s.time_ns = ++c->time_ns;
        OK(unwind_check_sample(c->check, &c->scene.epoch, &s, s.time_ns));
    }
}

static const char *report(struct check *c)
{
    static char *text; /* of the last call */
    size_t len;

    free(text);
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    OK(unwind_check_print(unwind_check_report(c->check), out));
    fclose(out);
    return text;
}

/* Every witness has this verdict on the last `samples` samples, and the report names the cause. */
static void assert_verdict(struct check *c, enum check_verdict verdict, uint64_t samples, const char *cause)
{
    const struct check_report *r = unwind_check_report(c->check);
    const char *text = report(c);

    for (int w = 0; w < CHECK_WITNESSES; w++) {
        if (r->verdicts[w][verdict] != samples)
            fail_msg("%s: not %u samples:\n%s", unwind_check_witness_name(w), (unsigned)samples, text);
    }
    if (!strstr(text, cause))
        fail_msg("no \"%s\" in:\n%s", cause, text);
}

TEST(identical)
{
    struct check c;

    check_setup(&c, 0);
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete},
        3);
    see(&c, (struct trace_tuple){.native_stack = 1}, 1); /* has no snapshot */
    const struct check_report *r = unwind_check_report(c.check);
    assert_int_equal(r->sample_count, 4);
    assert_int_equal(r->compared_count, 3);
    assert_int_equal(r->kernel_reached, 3);
    for (int w = 0; w < CHECK_WITNESSES; w++)
        assert_int_equal(r->reached[w], 3);
    assert_verdict(&c, CHECK_SAME, 3, "   75.000 %\n");
    assert_true(unwind_check_agrees(c.check));
    assert_int_equal(r->rows.count, 0);
    check_teardown(&c);
}

/* The end of libcmocka, which is on the stack. */
static int find_cmocka(struct dl_phdr_info *info, size_t size, void *high)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libcmocka"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD)
            *(uint64_t *)high = (info->dlpi_addr + p->p_vaddr + p->p_memsz + 0xfff) & ~(uint64_t)0xfff;
    }
    return 1;
}

/*
 * As libffi does with its trampolines: a page of code is mapped once more, by itself. All of that file, were it there,
 * would begin below libcmocka and reach beyond it.
 */
TEST(page_mapped_again)
{
    const struct trace_native_frame *libc;
    uint64_t high = 0;
    struct check c;

    check_setup(&c, 0);
    assert_int_equal(dl_iterate_phdr(find_cmocka, &high), 1);
    libc = &c.right[1];
    assert_int_not_equal(libc->module, c.right[0].module);
    LOAD(&c.scene, mapping, .process = 1, .address = high, .length = 0x1000, .file_offset = libc->offset & ~(uint64_t)0xfff,
         .protection = 5, .module = libc->module);
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete},
        1);
    assert_verdict(&c, CHECK_SAME, 1, "100.000 %");
    check_teardown(&c);
}

TEST(other_address)
{
    struct check c;

    check_setup(&c, 0);
    c.right[c.count - 3].offset++;
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete},
        2);
    assert_verdict(&c, CHECK_DIFFERS, 2, "test_unwind_check: differs\n");
    /* The frame before, and both addresses by name. */
    assert_non_null(strstr(report(&c), "frame 2: behind test_unwind_check+0x"));
    assert_non_null(strstr(report(&c), "(made_up_inner_eval+0x"));
    assert_non_null(strstr(report(&c), ", recorded test_unwind_check+0x"));
    assert_non_null(strstr(report(&c), ", libunwind test_unwind_check+0x"));
    assert_false(unwind_check_agrees(c.check));
    check_teardown(&c);
}

TEST(return_address_or_not)
{
    struct check c;

    check_setup(&c, 0);
    c.right[c.count - 3].flags = 0;
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete},
        1);
    assert_verdict(&c, CHECK_DIFFERS, 1, ": differs\n");
    check_teardown(&c);
}

TEST(other_module)
{
    struct check c;

    check_setup(&c, 0);
    c.right[c.count - 3].module = c.right[0].module == 1 ? 2 : 1;
    if (c.right[c.count - 3].module == c.right[c.count - 2].module)
        c.right[c.count - 3].module = 3;
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete},
        1);
    assert_verdict(&c, CHECK_DIFFERS, 1, ": differs\n");
    check_teardown(&c);
}

/* The recorded stack ends two frames early. */
TEST(stops)
{
    static const struct {
        uint32_t end;
        enum check_verdict verdict;
        const char *cause;
    } stops[] = {
        {LOSS_register_unsupported, CHECK_DIFFERS, ": recorded stops: register_unsupported"},
        {LOSS_no_unwind_info, CHECK_DIFFERS, ": recorded stops: no_unwind_info"},
        {LOSS_complete, CHECK_DIFFERS, ": recorded is at the thread's start, witness goes on"},
        {LOSS_table_missing, CHECK_PENDING, ": table_missing at the sample"},
        {LOSS_no_mapping, CHECK_PENDING, ": no_mapping at the sample"},
    };

    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct check c;
        check_setup(&c, 0);
        see(&c,
            (struct trace_tuple){
                .native_stack = native(&c, c.right + 2, c.count - 2), .snapshot = 1, .native_end = stops[i].end},
            2);
        assert_verdict(&c, stops[i].verdict, 2, stops[i].cause);
        assert_int_equal(unwind_check_agrees(c.check), stops[i].verdict != CHECK_DIFFERS);
        check_teardown(&c);
    }
}

/* Nobody finds the way further. */
TEST(stop_together)
{
    uint64_t registers[REGISTERS];
    struct check c;

    check_setup(&c, 0);
    memcpy(registers, c.shot.registers, sizeof registers);
    registers[6] = 0;
    registers[16] = 0x10010;
    LOAD(&c.scene, mapping, .process = 1, .address = 0x10000, .length = 0x1000, .protection = 5);
    LOAD(&c.scene, snapshot, .id = 3, .process = 1, .stack_address = c.shot.stack_address,
         .registers = {.values = registers, .count = REGISTERS},
         .stack = {.data = c.shot.stack, .len_bytes = c.shot.stack_len});
    struct trace_native_frame frame = {.offset = 0x10010};
    see(&c, (struct trace_tuple){.native_stack = native(&c, &frame, 1), .snapshot = 3, .native_end = LOSS_no_unwind_info},
        1);
    assert_verdict(&c, CHECK_SAME, 1, "[no module]: identical, but stops: no_unwind_info\n");
    assert_true(unwind_check_agrees(c.check));
    check_teardown(&c);
}

TEST(goes_on)
{
    struct trace_native_frame more[FRAMES_MAX + 1];
    struct check c;

    check_setup(&c, 0);
    memcpy(more + 1, c.right, c.count * sizeof *more);
    more[0] = c.right[1];
    see(&c, (struct trace_tuple){.native_stack = native(&c, more, c.count + 1), .snapshot = 1, .native_end = LOSS_complete},
        1);
    assert_verdict(&c, CHECK_DIFFERS, 1, ": witness is at the thread's start, recorded goes on");
    check_teardown(&c);
}

/* Some frames are in the copy, not all. */
TEST(cut)
{
    struct check c, whole;

    check_setup(&whole, 0);
    uint64_t bytes = whole.shot.records[0] - whole.shot.stack_address;
    check_teardown(&whole);
    check_setup(&c, bytes);
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 2, .native_end = LOSS_complete},
        1);
    assert_verdict(&c, CHECK_CUT, 1, ": the snapshot holds no more");
    assert_true(unwind_check_agrees(c.check));
    /* What is there is compared all the same. */
    c.right[c.count - 2].offset++;
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 2, .native_end = LOSS_complete},
        1);
    assert_verdict(&c, CHECK_DIFFERS, 1, ": differs\n");
    check_teardown(&c);
}

/* A snapshot in memory that no file is behind: libunwind and libdwfl stop, and nobody else's guess is believed. */
TEST(guessed)
{
    uint64_t registers[REGISTERS];
    struct check c;

    check_setup(&c, 0);
    memcpy(registers, c.shot.registers, sizeof registers);
    registers[16] = 0x10010;
    LOAD(&c.scene, mapping, .process = 1, .address = 0x10000, .length = 0x1000, .protection = 5);
    LOAD(&c.scene, snapshot, .id = 3, .process = 1, .stack_address = c.shot.stack_address,
         .registers = {.values = registers, .count = REGISTERS},
         .stack = {.data = c.shot.stack, .len_bytes = c.shot.stack_len});
    struct trace_native_frame frames[] = {
        {.module = 1, .offset = 0x1000, .flags = TRACE_FRAME_RETURN | TRACE_FRAME_GUESSED}, {.offset = 0x10010}};
    see(&c, (struct trace_tuple){.native_stack = native(&c, frames, 2), .snapshot = 3, .native_end = LOSS_complete}, 1);
    const struct check_report *r = unwind_check_report(c.check);
    assert_int_equal(r->verdicts[CHECK_LIBUNWIND][CHECK_DIFFERS], 1);
    assert_int_equal(r->verdicts[CHECK_LIBDWFL][CHECK_DIFFERS], 1);
    assert_non_null(strstr(report(&c), "[no module]: witness stops: no_unwind_info, recorded by frame pointer\n"));
    check_teardown(&c);
}

TEST(joins)
{
    struct check c;

    check_setup(&c, 0);
    const uint64_t whole[] = {1, 0, 3, 0}, torn[] = {1, 0, 0, LOSS_join_outside};
    LOAD(&c.scene, join, .id = 1, .runs = {.values = whole, .count = 2});
    LOAD(&c.scene, join, .id = 2, .runs = {.values = torn, .count = 2});
    struct trace_tuple t = {.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete};
    see(&c, t, 1);
    t.join = 1;
    see(&c, t, 2);
    t.join = 2;
    see(&c, t, 1);
    const struct check_report *r = unwind_check_report(c.check);
    assert_int_equal(r->join_count, 3);
    assert_int_equal(r->join_complete_count, 2);
    assert_int_equal(r->join_reasons[LOSS_join_outside], 1);
    assert_non_null(strstr(report(&c), "  join_outside "));
    check_teardown(&c);
}

/* Next epoch, other ids: what was known by id is forgotten, what was counted is not. */
TEST(epochs)
{
    struct check c;

    check_setup(&c, 0);
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .snapshot = 1, .native_end = LOSS_complete},
        1);
    unwind_check_end_epoch(c.check);
    begin_epoch(&c.scene, 1);
    event(&c.scene);
    process(&c.scene, 1, 100, "/usr/bin/python3");
    see(&c, (struct trace_tuple){0}, 1);
    assert_int_equal(unwind_check_report(c.check)->compared_count, 1);
    assert_int_equal(unwind_check_report(c.check)->sample_count, 2);
    check_teardown(&c);
}

TEST(nothing_to_compare)
{
    struct check c;

    check_setup(&c, 0);
    see(&c, (struct trace_tuple){.snapshot = 1}, 1);
    see(&c, (struct trace_tuple){.native_stack = native(&c, c.right, c.count), .native_end = LOSS_complete}, 1);
    FILE *out = tmpfile();
    struct error *err = unwind_check_print(unwind_check_report(c.check), out);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(error_text(err), "pycap record --unwind both"));
    assert_int_equal(ftell(out), 0);
    fclose(out);
    error_destroy(err);
    check_teardown(&c);
}

/* The unwinders hold on to modules while others are still met. */
TEST(modules_stay)
{
    struct scene s;
    uint32_t index;

    setup(&s, NULL);
    struct modcache *modules = resolver_modules(s.resolver);
    struct modcache_entry *first = NULL;
    for (uint32_t i = 1; i <= 1000; i++) {
        char path[32];
        snprintf(path, sizeof path, "/lib/%u.so", i);
        uint32_t path_id = string(&s, path);
        LOAD(&s, module, .id = i, .path = path_id);
        OK(modcache_index(modules, &s.epoch, i, &index));
        first = first ? first : modcache_get(modules, index);
    }
    assert_ptr_equal(modcache_get(modules, 0), first);
    assert_string_equal(first->path, "/lib/1.so");
    teardown(&s);
}
