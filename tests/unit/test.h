/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test begins with: cmocka with the headers that it wants before its own, and the check of a call that
 * returns an error.
 *
 * With CMOCKA_TEST in the environment, only the test functions whose names match that pattern ("*" and "?") run.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
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

__attribute__((constructor)) static void choose_tests(void)
{
    const char *pattern = getenv("CMOCKA_TEST");

    if (pattern)
        cmocka_set_test_filter(pattern);
}

#endif
