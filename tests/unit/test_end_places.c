/* SPDX-License-Identifier: Apache-2.0 */
/* Where native stacks end: the place with the most samples of a reason, however many places there are. */
#include "tests/unit/scene_fixture.h"

#include "symbolize/stack/end_places.h"

static void expect_text(const struct end_places *p, uint32_t reason, uint64_t total, const char *want)
{
    struct buf line = {0};

    end_places_put(p, reason, total, &line);
    assert_string_equal(buf_cstr(&line), want);
    buf_deinit(&line);
}

TEST(text)
{
    static const char libc[] = "/usr/lib/libc.so.6", clone3[] = "clone3", vfork[] = "vfork", none[] = "";
    struct end_places p = {0};

    expect_text(&p, LOSS_no_unwind_info, 5, "");
    end_places_add(&p, LOSS_no_unwind_info, libc, clone3, 700);
    expect_text(&p, LOSS_no_unwind_info, 700, ", all in clone3 of libc.so.6");
    expect_text(&p, LOSS_native_loop, 700, "");
    end_places_add(&p, LOSS_no_unwind_info, libc, vfork, 75);
    expect_text(&p, LOSS_no_unwind_info, 775, ", most in clone3 of libc.so.6 (700)");
    expect_text(&p, LOSS_no_unwind_info, 2000, ", 700 of them in clone3 of libc.so.6");
    end_places_add(&p, LOSS_native_loop, libc, none, 3);
    end_places_add(&p, LOSS_native_loop, none, none, 9); /* nothing is known of it */
    expect_text(&p, LOSS_native_loop, 3, ", all in libc.so.6");
    end_places_add(&p, LOSS_native_fault, "/tmp/perf-77.map", none, 2);
    end_places_add(&p, LOSS_native_fault, "/tmp/perf-78.map", none, 2);
    expect_text(&p, LOSS_native_fault, 4, ", all in [jit]");
    /* Of a stack that is cut for its depth, the outermost frame is nobody's fault; reasons of newer recorders are not known. */
    end_places_add(&p, LOSS_native_too_deep, libc, clone3, 5);
    end_places_add(&p, UINT32_MAX, libc, clone3, 5);
    expect_text(&p, LOSS_native_too_deep, 5, "");
    expect_text(&p, UINT32_MAX, 5, "");
}

/* Names come from any file: no control character, and no page of text. */
TEST(hostile_names)
{
    struct end_places p = {0};
    struct buf line = {0};
    char name[5000];

    memset(name, 'x', sizeof name - 1);
    memcpy(name, "\33[2J", 4);
    name[sizeof name - 1] = 0;
    end_places_add(&p, LOSS_native_loop, "/lib/\nx.so", name, 1);
    end_places_put(&p, LOSS_native_loop, 1, &line);
    assert_true(line.len_bytes < 200);
    assert_null(strpbrk(buf_cstr(&line), "\33\n"));
    assert_non_null(strstr(buf_cstr(&line), "\\x1b[2Jxxx"));
    buf_deinit(&line);
}

/* A place with a large share is found among very many, whenever it comes, and no more is said of it than it had. */
TEST(many_places)
{
    enum { PLACES = 10000, SHARE = 10 };
    static char names[PLACES][2];
    static const char often[] = "often", module[] = "m";

    for (int late = 0; late < 2; late++) {
        struct end_places p = {0};
        uint64_t total = 0, had = 0, samples;
        for (uint32_t i = 0; i < PLACES; i++) {
            names[i][0] = 'a';
            end_places_add(&p, LOSS_no_unwind_info, module, names[i], 1);
            total++;
            if (late ? i > PLACES / 2 && i % (SHARE / 2) == 0 : i % SHARE == 0) {
                end_places_add(&p, LOSS_no_unwind_info, module, often, 1);
                had++;
                total++;
            }
        }
        const struct end_place *most = end_places_most(&p, LOSS_no_unwind_info, &samples);
        assert_ptr_equal(most->function, often);
        assert_true(samples <= had && samples + total / END_PLACES_KEPT >= had);
    }
}

/* The place is the outermost frame's, counted by samples over all epochs; that of a whole stack is none. */
TEST(of_samples)
{
    struct scene s;
    uint64_t samples;

    setup(&s, NULL);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        begin_epoch(&s, epoch);
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        uint32_t outer = string(&s, "/opt/outer.so"), inner = string(&s, "/opt/inner.so"), native[2];
        LOAD(&s, module, .id = 1, .path = outer);
        LOAD(&s, module, .id = 2, .path = inner);
        LOAD(&s, native_frame, .id = native[0] = ++s.frames, .module = 1, .offset = 0x10, .flags = 1);
        LOAD(&s, native_frame, .id = native[1] = ++s.frames, .module = 2, .offset = 0x20);
        uint32_t both = stack(&s, native, 2), alone = stack(&s, &native[1], 1);
        uint32_t cut = tuple(&s, (struct trace_tuple){.native_stack = both, .native_end = LOSS_no_module});
        uint32_t whole = tuple(&s, (struct trace_tuple){.native_stack = alone, .native_end = LOSS_complete});
        uint32_t empty = tuple(&s, (struct trace_tuple){.native_end = LOSS_no_module});
        for (uint64_t i = 0; i < 3; i++)
            sample(&s, 1, cut, i);
        sample(&s, 1, whole, 4);
        sample(&s, 1, empty, 5);
    }
    resolver_end_epoch(s.resolver);
    const struct end_place *most = end_places_most(resolver_native_ends(s.resolver), LOSS_no_module, &samples);
    assert_string_equal(most->module, "/opt/outer.so");
    assert_int_equal(samples, 6);
    assert_int_equal(resolver_stats(s.resolver)->native.count[LOSS_no_module], 8);
    teardown(&s);
}
