/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap archive`: the binaries that traces refer to, from this host, in one file (capture/archive/bundle.h).
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

/* `*complete`: nothing was missing, and the traces were whole. */
struct error *archive_run(const struct archive_options *options, bool *complete);

/*
 * At the end of a recording: the modules it met, whose files were held open (modules_hold()). `use` says what the trace
 * says of a module. `snapshots`: stacks were copied, so that all modules count that the trace names, not only those with
 * frames. Finishes the bundle.
 */
struct bundle;
typedef enum module_use (*module_use_fn)(void *ctx, const struct module *m);
struct error *archive_modules(struct bundle *b, const struct modules *modules, bool snapshots, module_use_fn use, void *ctx);

#endif
