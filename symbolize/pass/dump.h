/* SPDX-License-Identifier: Apache-2.0 */
/* `--format dump`: every record of the trace as text, with the samples that it holds. Filters do not apply. */
#ifndef SYMBOLIZE_PASS_DUMP_H
#define SYMBOLIZE_PASS_DUMP_H

#include "symbolize/pass/consumer.h"

/* The state is the FILE to write to, which stays the caller's. */
extern const struct consumer dump_consumer;

#endif
