/* SPDX-License-Identifier: Apache-2.0 */
/* What the closing summary adds with -v. */
#ifndef CAPTURE_SESSION_REPORT_DETAILS_H
#define CAPTURE_SESSION_REPORT_DETAILS_H

#include "capture/session/session_parts.h"

/* Writes the share of whole Python stacks, what became of the ticks of each event, and what recording cost. */
void report_details(const struct session *s, FILE *f);

#endif
