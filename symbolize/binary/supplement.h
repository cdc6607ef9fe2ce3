/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the supplement of a debug file: what dwz(1) split off, because several debug files share it. */
#ifndef SYMBOLIZE_BINARY_SUPPLEMENT_H
#define SYMBOLIZE_BINARY_SUPPLEMENT_H

#include "symbolize/binary/search.h"

/* If the debug file that was found names a supplement, finds it, or notes that it is missing. */
struct error *supplement_find(struct search *s);

#endif
