/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test begins with: cmocka with the headers that it wants before its own, tests that register themselves,
 * and the check of a call that returns an error.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "formats/base/err.h"

/* The call succeeds, or the test fails with the call and the error's text. */
#define OK(expr)                                         \
    do {                                                 \
        struct error *err_ = (expr);                     \
        if (err_)                                        \
            fail_msg("%s: %s", #expr, error_text(err_)); \
    } while (0)

/*
 * TEST(same_text_same_id) { ... } is a test, the function test_same_text_same_id(). main.c runs all tests of a file, in the
 * order in which they stand there.
 */
#define TEST(name) TEST_FUNCTION(test_##name, NULL, NULL)

/* The same with functions to run before and after it, or NULL. What setup() puts into *state the test finds there. */
#define TEST_WITH(name, setup, teardown) TEST_FUNCTION(test_##name, setup, teardown)

/* Functions to run before the first test of the file and after the last, or NULL. Once in a file. */
#define TESTS_WITH(setup, teardown)                               \
    __attribute__((constructor)) static void register_setup(void) \
    {                                                             \
        unit_tests_with(setup, teardown);                         \
    }                                                             \
    struct unit_test /* what the semicolon ends */

/* Once in a file whose tests start threads: ThreadSanitizer runs those files, and main.c fails those that do not say so. */
#define STARTS_THREADS bool unit_starts_threads = true

/* First in a test of what very much takes: time and memory of sanitizers are their own, and small tests have the same code. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NOT_SANITIZED()                                                        \
    do {                                                                       \
        print_message("about time and memory, of which sanitizers take more\n"); \
        skip();                                                                \
    } while (0)
#else
#define NOT_SANITIZED() (void)0
#endif

#define TEST_FUNCTION(function, setup, teardown)                                                                   \
    static void function(void **state);                                                                            \
    __attribute__((constructor)) static void register_##function(void)                                             \
    {                                                                                                              \
        static struct unit_test registered = {.test = {#function, function, setup, teardown}, .line = __LINE__};   \
        unit_test_register(&registered);                                                                           \
    }                                                                                                              \
    static void function(__attribute__((unused)) void **state)

struct unit_test {
    struct CMUnitTest test;
    int line;
    struct unit_test *next;
};

extern bool unit_starts_threads;

void unit_test_register(struct unit_test *test);
void unit_tests_with(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
