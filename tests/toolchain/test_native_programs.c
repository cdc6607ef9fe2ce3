/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both unwinders over programs that are compiled here: realigned stacks, code without
 * information, musl, and the place where a greenlet begins.
 */
#include "tests/unit/test.h"

#include "tests/toolchain/built_program.h"
#include "tests/unit/both_unwinders.h"

#define NO_EH_FRAME "-fno-asynchronous-unwind-tables -fno-unwind-tables"

/* Stops in a C function that was reached by the way that its argument names. */
static const char program[] =
    "#include <alloca.h>\n#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    "#define F __attribute__((noinline, noclone))\n"
    "volatile int sink;\n"
    "F int leaf(int n) { __asm__ volatile(\"int3\" ::: \"memory\"); return sink += n; }\n"
    "F int deep(int n) { volatile int a[5] = {n}; return (n ? deep(n - 1) : leaf(1)) + a[0]; }\n"
    "F int realigned(int n) { volatile char w[64] __attribute__((aligned(64))); w[n & 63] = n; return (n ? realigned(n - 1) : deep(1)) + w[3]; }\n"
    "F int both(int n) { volatile char w[64] __attribute__((aligned(64))); volatile char *p = alloca(16 + n); w[n & 63] = p[0] = n; "
    "return (n ? both(n - 1) : realigned(2)) + w[3] + p[1]; }\n"
    "#ifdef __AVX__\n"
    "typedef double v4 __attribute__((vector_size(32)));\n"
    "F int vectors(v4 *p, int n) { volatile v4 kept[3] = {*p * *p, *p + *p}; return (n ? vectors(p + n, n - 1) : both(3)) + kept[1][n & 3]; }\n"
    "#else\n#define vectors(p, n) both(3)\n#endif\n"
    "F int many(int n, int a, int b, int c, int d, int e, int f, int g) { return vectors(aligned_alloc(64, 4096), 3) + n + a + b + c + d + e + f + g; }\n"
    "int bare_long(int (*f)(int), int n), bare_short(int (*f)(int), int n);\n"
    "F int before_short(int n) { return sink += n + 2; }\n"
    "__asm__(\".globl bare_short\\nbare_short:\\n push %rbx\\n mov %rdi, %rax\\n mov %esi, %edi\\n call *%rax\\n pop %rbx\\n ret\\n\");\n"
    "F int before_long(int n) { return sink += n + 3; }\n"
    "__asm__(\".globl bare_long\\nbare_long:\\n sub $72, %rsp\\n mov %rdi, %rax\\n mov %esi, %edi\\n call *%rax\\n\"\n"
    "        \" add $72, %rsp\\n ret\\n .skip 70, 0xc3\\n\");\n"
    "F int behind_bare(int n) { return sink += n + 1; }\n"
    "static int compare(const void *a, const void *b) { (void)a, (void)b; return many(1, 2, 3, 4, 5, 6, 7, 8); }\n"
    "static void *thread(void *a) { (void)a; many(1, 2, 3, 4, 5, 6, 7, 8); return 0; }\n"
    "static void handler(int s) { (void)s; deep(2); }\n"
    "F void interrupted(void) { __asm__ volatile(\"ud2\"); sink++; }\n"
    "int main(int argc, char **argv) {\n"
    "  int two[2] = {1, 2}; pthread_t t; (void)argc;\n"
    "  switch (argv[1][0]) {\n"
    "  case 'm': many(1, 2, 3, 4, 5, 6, 7, 8); break;\n"
    "  case 'q': qsort(two, 2, 4, compare); break;\n"
    "  case 't': pthread_create(&t, 0, thread, 0); pthread_join(t, 0); break;\n"
    "  case 's': signal(SIGILL, handler); interrupted(); break;\n"
    "  case 'b': bare_short(deep, 2); break;\n"
    "  case 'l': bare_long(deep, 2); break;\n"
    "  }\n"
    "  _exit((behind_bare(0) + before_short(0) + before_long(0)) & 1); }\n";

/* How the unwinding of one way ends, and the symbol whose code the last frame is in. */
static void check_way(const struct fixture *f, const char *name, const char *way, int steps, uint32_t end, struct tally *tally)
{
    pid_t pid, tid = start_built(f, name, way, &pid);
    struct subject *s = subject_create(pid);

    for (int i = 0; i <= steps; i++) {
        take_snapshot(s, tid);
        uint32_t differing = tally->differing, before = tally->frames;
        compare(s, tally);
        if (!i && (tally->differing != differing || s->native_unwind.end != end))
            fail_msg("%s %s: ends with %u after %u frames", name, way, s->native_unwind.end, tally->frames - before);
        if (!step_once(tid))
            break;
    }
    subject_destroy(s);
    stop_running(NULL);
}

/* Realigned stacks, by option and by vectors that need it; then all the way back, instruction by instruction. */
TEST_WITH(realigned, fixture_init, stop_and_deinit)
{
    static const char *const kinds[] = {"-O2", "-O2 -mstackrealign", "-O1 -mstackrealign -fno-omit-frame-pointer",
                                        "-O2 -mavx", "-O3 -mavx -mstackrealign", "-O0 -mavx",
                                        "-O2 -mstackrealign -g " NO_EH_FRAME};
    const struct fixture *f = *state;
    uint32_t wide = 0;

    fixture_write(f, "program.c", program, sizeof program - 1);
    bool avx = __builtin_cpu_supports("avx");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct tally tally = {0};
        if (strstr(kinds[i], "avx") && !avx) {
            print_message("%s: this processor has no AVX\n", kinds[i]);
            continue;
        }
        assert_true(fixture_run(f, "gcc -w %s -o p program.c -lpthread", kinds[i]));
        for (const char *way = "mqts"; *way; way++)
            check_way(f, "p", (const char[]){*way, 0}, 400, LOSS_complete, &tally);
        print_tally(kinds[i], &tally);
        assert_int_equal(tally.differing, 0);
        assert_int_equal(tally.unsupported, 0);
        assert_int_equal(tally.complete, tally.stacks);
        wide += tally.wide;
    }
    assert_true(wide > 0);
}

/* Hand-written code without information, long or as short as padding: the end, said so, and no guess. */
TEST_WITH(bare_assembly, fixture_init, stop_and_deinit)
{
    const struct fixture *f = *state;
    struct tally tally = {0};

    fixture_write(f, "program.c", program, sizeof program - 1);
    assert_true(fixture_run(f, "gcc -w -Os -fno-reorder-functions -fno-toplevel-reorder -o p program.c"));
    /* As short as padding: 11 bytes, with functions close on both sides. */
    assert_in_range(fixture_symbol(f, "p", "before_long") - fixture_symbol(f, "p", "bare_short"), 10, 15);
    check_way(f, "p", "b", 0, LOSS_no_unwind_info, &tally);
    check_way(f, "p", "l", 0, LOSS_no_unwind_info, &tally);
    print_tally("bare", &tally);
    assert_int_equal(tally.stacks, 2);
    assert_int_equal(tally.frames, 2 * 5); /* leaf, deep 3 times, the assembly */
    assert_int_equal(tally.differing, 0);
}

/* musl says nothing of itself: what it called is right, and it is the end. Its signal trampoline is known by its bytes. */
TEST_WITH(musl, fixture_init, stop_and_deinit)
{
    static const char *const kinds[] = {"-O2", "-O2 -static", "-O2 -mstackrealign -static", "-O1 -fno-omit-frame-pointer"};
    const struct fixture *f = *state;

    if (!fixture_run(f, "command -v musl-gcc >/dev/null")) {
        print_message("musl-gcc is not there (Debian: musl-tools)\n");
        skip();
    }
    fixture_write(f, "program.c", program, sizeof program - 1);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct tally tally = {0};
        assert_true(fixture_run(f, "musl-gcc -w %s -o p program.c", kinds[i]));
        for (const char *way = "mqts"; *way; way++)
            check_way(f, "p", (const char[]){*way, 0}, 60, LOSS_no_unwind_info, &tally);
        print_tally(kinds[i], &tally);
        assert_int_equal(tally.differing, 0);
        assert_int_equal(tally.complete, 0);
        /* leaf, deep, realigned and both at the least; the signal's: leaf, deep, handler, trampoline, interrupted, main. */
        assert_true(tally.frames > 6 * tally.stacks);
    }
}

/* greenlet's function, whose frames are the outermost of a greenlet: what called it has been overwritten since. */
static const char greenlet[] =
    "#define F __attribute__((noinline, noclone))\n"
    "volatile int sink;\n"
    "int bootstrap(int n) __asm__(NAME);\n"
    "F int leaf(int n) { __asm__ volatile(\"int3\" ::: \"memory\"); return sink += n; }\n"
    "F int run(int n) { return leaf(n) + 1; }\n"
    "F int bootstrap(int n) { sink += run(n); for (;;) __asm__ volatile(\"hlt\"); }\n"
    "F int behind(int n) { return sink += n; }\n"
    "F void starter(void) { void **frame = (void **)__builtin_frame_address(0); frame[1] = (void *)0x10; bootstrap(1); }\n"
    "int main(void) { starter(); return behind(1); }\n";

TEST_WITH(greenlet, fixture_init, stop_and_deinit)
{
    static const struct {
        const char *name, *flags;
        uint32_t frames, end;
    } cases[] = {
        {"_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object", "", 3, LOSS_complete},
        {"_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object", "-s", 3, LOSS_complete},
        {"_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenletI9_greenletXadL_ZNS1_15GreenletCheckerEPvEEEE"
         "RNS1_14OwnedReferenceI7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE", "", 3, LOSS_complete},
        /* Without the symbol the stack leads on to what is there by now. */
        {"_ZN8greenlet12UserGreenlet15inner_bootstrapEv", "", 5, LOSS_no_mapping},
    };
    const struct fixture *f = *state;

    fixture_write(f, "greenlet.c", greenlet, sizeof greenlet - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tally tally = {0};
        assert_true(fixture_run(f, "gcc -w -O1 -fno-omit-frame-pointer -rdynamic %s -DNAME='\"%s\"' -o p greenlet.c",
                                cases[i].flags, cases[i].name));
        check_way(f, "p", "", 0, cases[i].end, &tally);
        assert_int_equal(tally.differing, 0);
        assert_in_range(tally.frames, cases[i].frames, cases[i].frames + (cases[i].end != LOSS_complete));
    }
}
