/* SPDX-License-Identifier: Apache-2.0 */
/* `--format unwind-check`: the check among a pass's consumers. */
#ifndef SYMBOLIZE_CHECK_CHECK_CONSUMER_H
#define SYMBOLIZE_CHECK_CHECK_CONSUMER_H

#include <stdio.h>

#include "symbolize/check/unwind_check.h"
#include "symbolize/pass/consumer.h"

/* The consumer's state. The caller owns the struct; the consumer destroys `check`. */
struct check_output {
    struct unwind_check *check;
    FILE *out;
};
extern const struct consumer check_consumer;

#endif
