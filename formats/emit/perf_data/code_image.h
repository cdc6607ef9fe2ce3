/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code image: a small ELF file whose machine code stands for lines of Python, so that tools which know nothing but
 * addresses name Python frames, with file and line.
 *
 * Every distinct function, file and line has a slot in .text, an instruction of 2 bytes that does nothing. .symtab gives
 * the slots of a function its name, .debug_line gives each slot its file and line. A frame stands in a call chain as
 *
 *     BASE + code_image_address()
 *
 * where BASE is where a process is said to have mapped the file from its start. Address and file offset are the same.
 *
 * Addresses are final when they are given out, so samples can be written before the image, of which only the distinct
 * functions and lines are in memory. To have one symbol, and so one row in `perf report`, a Python function gets slots for
 * all its lines at its first frame (emit_frame.function_end). Lines outside of that, and functions whose end is unknown,
 * get further pieces: symbols of the same name.
 *
 * Symbols are spelled as in the perf maps of CPython, but without a line: "py::C.run:views.py", the file as short as tells
 * files apart. Native frames keep their name, or have that of their module in brackets. Frames that stand for something
 * else, such as "[torn]", are symbols without a line.
 */
#ifndef FORMATS_EMIT_PERF_DATA_CODE_IMAGE_H
#define FORMATS_EMIT_PERF_DATA_CODE_IMAGE_H

#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"

/* The base name of the image, the same for every trace: `perf diff` matches functions by the file that they are in. */
#define CODE_IMAGE_NAME "python-code"

enum {
    CODE_IMAGE_MAX_BYTES = 1 << 30, /* every address is below; a mapping of this length holds any image */
    CODE_IMAGE_ID_BYTES = 20,       /* a build ID */
};

/* Instead of a frame of the model: that of a sample without frames, and the mark where frames were left out. */
#define CODE_IMAGE_NO_FRAMES UINT32_MAX
#define CODE_IMAGE_TRUNCATED (UINT32_MAX - 1)

struct code_image;

/*
 * `model` and `options` are borrowed until code_image_destroy(). Memory is taken from options->limits; of the options,
 * full_paths applies.
 */
struct error *code_image_create(const struct emit_model *model, const struct emit_options *options,
                                struct code_image **out);
/*
 * The address of frame number `frame` of the model, of any kind, or of one of the two above. It is that of the slot's
 * second byte: tools that look for the call before a return address, one byte below, find the same line. A line above
 * INT32_MAX counts as unknown. Frames of one kind with the same function, file and line have the same address. Fails with
 * ERROR_NO_MEMORY, or with ERROR_LIMIT when the image would be longer than CODE_IMAGE_MAX_BYTES.
 */
struct error *code_image_address(struct code_image *image, uint32_t frame, uint64_t *address);
/* Has code_image_address() been called? */
bool code_image_is_used(const struct code_image *image);
/*
 * Makes the file in memory, after the last address was given out. `names` are those of the whole model. Only the functions
 * below may be called afterwards.
 */
struct error *code_image_finish(struct code_image *image, const struct names *names);
/* The build ID of the finished file, a hash of its content. */
const uint8_t *code_image_build_id(const struct code_image *image);
/* Writes the finished file. The caller checks and closes `out`, which need not be seekable. */
struct error *code_image_write(const struct code_image *image, FILE *out);
void code_image_destroy(struct code_image *image); /* accepts NULL; before code_image_finish(), too */

#endif
