/* SPDX-License-Identifier: Apache-2.0 */
/* OK(expr): the call succeeds, or the test fails with the error's text. Behind cmocka.h. */
#ifndef UNIT_OK_H
#define UNIT_OK_H

#include "formats/base/err.h"

#define OK(expr)                                       \
    do {                                               \
        struct error *err_ = (expr);                   \
        if (err_)                                      \
            fail_msg("%s: %s", #expr, error_text(err_)); \
    } while (0)

#endif
