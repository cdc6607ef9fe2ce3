/* SPDX-License-Identifier: Apache-2.0 */
/* `--format dump`: every record of the trace as text, with the samples that it holds. Filters do not apply. */
#ifndef SYMBOLIZE_PASS_DUMP_H
#define SYMBOLIZE_PASS_DUMP_H

#include <stdio.h>

#include "symbolize/pass/consumer.h"

/* `out` is borrowed as long as the consumer lives; the state is what is made here. */
struct dump;
struct error *dump_create(FILE *out, struct dump **dump);
extern const struct consumer dump_consumer;

#endif
