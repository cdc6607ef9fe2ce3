/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files beside a perf.data that hold its names, in the layout of perf's build-id cache:
 *
 *     perf.data.d/python-code                              where the records say that the code image is; link to its elf below
 *     perf.data.d/debug/.build-id/aa/bbbb...               link to ../../PATH/ID
 *     perf.data.d/debug/PATH/ID/elf                        the code image; PATH is its absolute path
 *     perf.data.d/debug/[kernel.kallsyms]/ID/elf           the kernel's symbols, with a .build-id link
 *     perf.data.d/debug/[kernel.kallsyms]/ID/kallsyms      the same as text, for hotspot's --kallsyms
 *
 * perf, hotspot and samply find Python names on the same machine without any option. Kernel names need
 * `perf --buildid-dir perf.data.d/debug`, and so do all names when the folder was moved; or a copy of debug/ in ~/.debug.
 */
#ifndef FORMATS_EMIT_PERF_DATA_NAME_FILES_H
#define FORMATS_EMIT_PERF_DATA_NAME_FILES_H

#include <stdbool.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/code_image.h"
#include "formats/emit/perf_data/kernel_names.h"

/* Which were written, and their build IDs. */
struct name_files {
    bool has_image, has_kernel;
    uint8_t image_id[CODE_IMAGE_ID_BYTES], kernel_id[CODE_IMAGE_ID_BYTES];
};

/* Appends the absolute path of the code image: "/srv/perf.data.d/python-code". It is known before the image is written. */
void name_files_image_path(const struct emit_files *files, struct buf *out);
/* Appends the folder to pass to --buildid-dir, relative to the output's own folder: "perf.data.d/debug". */
void name_files_cache(const struct emit_files *files, struct buf *out);
/* Writes those of both that have been used, after the last sample. */
struct error *name_files_write(struct emit_files *files, struct code_image *image, struct kernel_names *kernel,
                               struct name_files *out);

#endif
