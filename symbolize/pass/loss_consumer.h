/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer that tells the parts of an output (parts.h) what was lost, and when. Its state are the parts, which it borrows. */
#ifndef SYMBOLIZE_PASS_LOSS_CONSUMER_H
#define SYMBOLIZE_PASS_LOSS_CONSUMER_H

#include "symbolize/pass/consumer.h"

extern const struct consumer loss_consumer;

#endif
