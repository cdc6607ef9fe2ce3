/* SPDX-License-Identifier: Apache-2.0 */
/* Confines the process that sends: it needs to read, to write its state and figures, and the network. */
#ifndef SYMBOLIZE_PUSH_PUSH_CONFINE_H
#define SYMBOLIZE_PUSH_PUSH_CONFINE_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "symbolize/push/request.h"

/* Gives up all capabilities, and the right to get others; call it first of all. *was_privileged: it had some. */
struct error *push_drop_privileges(bool *was_privileged);
/* Limits writing to the folders of the state and of the figures, where the kernel has Landlock. Call it when all else is open. */
struct error *push_confine(const struct push_request *request);

#endif
