/* SPDX-License-Identifier: Apache-2.0 */
/* threads as text. */
#ifndef FORMATS_EMIT_THREADS_TEXT_H
#define FORMATS_EMIT_THREADS_TEXT_H

#include "formats/base/err.h"
#include "formats/emit/threads/threads_data.h"

struct error *threads_write_text(const struct threads *t);

#endif
