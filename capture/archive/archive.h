/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap archive`: packs the binaries that traces refer to, from this host, into one file (capture/archive/bundle.h).
 */
#ifndef CAPTURE_ARCHIVE_ARCHIVE_H
#define CAPTURE_ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/binary/modules.h"
#include "formats/base/err.h"

struct archive_options {
    const char *const *inputs; /* traces; "-": standard input */
    uint32_t input_count;
    const char *output;        /* "-": standard output */
    bool strip_code, quiet;
    FILE *messages;
};

/* Sets `*complete` to whether no binary was missing and the traces were not damaged. */
struct error *archive_run(const struct archive_options *options, bool *complete);

/*
 * Packs the modules of a recording that has just ended, from the files held open by modules_hold(), and finishes the
 * bundle. `use` returns how the trace uses a module. `snapshots`: stacks were copied, so any module that the trace
 * names is needed, not only those with frames.
 */
struct bundle;
typedef enum module_use (*module_use_fn)(void *ctx, const struct module *m);
struct error *archive_modules(struct bundle *b, const struct modules *modules, bool snapshots, module_use_fn use, void *ctx);

#endif
