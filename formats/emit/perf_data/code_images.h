/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code images of an output: number 0 has Python functions, marks, and native code that lies in no file. Where native
 * names travel, each binary has an image of its own with the same base name, so that perf report shows the binary, and
 * perf diff matches its functions with those of captures whose names came from the binary itself. Those of all binaries
 * travel with --native-names, else those of binaries whose names readers would not find: with --buildid-dir, for one, perf
 * does not look into ~/.debug.
 */
#ifndef FORMATS_EMIT_PERF_DATA_CODE_IMAGES_H
#define FORMATS_EMIT_PERF_DATA_CODE_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/code_image.h"

#define CODE_IMAGES_PYTHON 0
enum { CODE_IMAGES_MAX = 1024 }; /* files that an output may have: image 0 has the names of any more binaries */

struct code_images;

/* As code_image_create(). */
struct error *code_images_create(const struct emit_model *model, const struct emit_options *options,
                                 struct code_images **out);
void code_images_destroy(struct code_images *images); /* accepts NULL */
/* As code_image_address(): *image is the number of the image that the address is in. */
struct error *code_images_address(struct code_images *images, uint32_t frame, uint32_t *image, uint64_t *address);
/* Are all native names of the frame's binary in an image, and not taken from the binary by readers? */
bool code_images_have_binary(const struct code_images *images, const struct emit_frame *frame);
/* Has any of them an address that was given out? */
bool code_images_are_used(const struct code_images *images);
/* Images have numbers below this. */
uint32_t code_images_count(const struct code_images *images);
struct code_image *code_images_get(const struct code_images *images, uint32_t image);
/* Finishes those that are used, after the last address was given out (code_image_finish()). */
struct error *code_images_finish(struct code_images *images);
/* Appends the path of an image in the folder of names: "python-code", "native/usr/lib/libc.so.6". */
void code_images_path(const struct code_images *images, uint32_t image, struct buf *out);

#endif
