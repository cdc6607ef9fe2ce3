/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files beside a perf.data that hold its names, in the layout of perf's build-id cache:
 *
 *     perf.data.d/python-code                           the code image, where the records say it is: a link to its elf
 *     perf.data.d/native/usr/lib/libc.so.6              that of a binary, likewise, where native names travel
 *     perf.data.d/debug/.build-id/aa/bbbb...            link to ../../PATH/ID
 *     perf.data.d/debug/PATH/ID/elf                     a code image; PATH is the absolute path of the link above, or of the
 *                                                       first one, where several binaries have the same names
 *     perf.data.d/debug/[kernel.kallsyms]/ID/elf        the kernel's symbols, with a .build-id link
 *     perf.data.d/debug/[kernel.kallsyms]/ID/kallsyms   the same as text, for hotspot's --kallsyms
 *
 * perf, hotspot and samply find code images on the same machine without any option. Kernel names need
 * `perf --buildid-dir perf.data.d/debug`, and so do all names when the folder was moved; or a copy of debug/ in ~/.debug.
 */
#ifndef FORMATS_EMIT_PERF_DATA_NAME_FILES_H
#define FORMATS_EMIT_PERF_DATA_NAME_FILES_H

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/code_images.h"
#include "formats/emit/perf_data/kernel_names.h"

/* Appends the absolute path of an image: "/srv/perf.data.d/python-code". It is known before the image is written. */
void name_files_image_path(const struct emit_files *files, const struct code_images *images, uint32_t image,
                           struct buf *out);
/* Appends the folder to pass to --buildid-dir, relative to the output's own folder: "perf.data.d/debug". */
void name_files_cache(const struct emit_files *files, struct buf *out);
/*
 * Finishes and writes what has been used, after the last sample. code_image_build_id() and kernel_names_build_id() are those
 * that the records have to name.
 */
struct error *name_files_write(struct emit_files *files, struct code_images *images, struct kernel_names *kernel);

#endif
