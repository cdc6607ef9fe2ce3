/* SPDX-License-Identifier: Apache-2.0 */
/* threads as JSON. */
#ifndef FORMATS_EMIT_THREADS_JSON_H
#define FORMATS_EMIT_THREADS_JSON_H

#include "formats/base/err.h"
#include "formats/emit/threads/threads_data.h"

struct error *threads_write_json(const struct threads *t);

#endif
