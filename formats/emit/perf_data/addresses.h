/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses in call chains.
 *
 * A frame of a binary has an address in that binary, at a made-up base: one for each binary, the same in all processes,
 * so that no mapping of the recorded processes has to be replayed. A binary that is not relocatable lies where its program
 * headers say. Of a caller it is the last byte of the call, as in perf's own unwinding with DWARF: what the call returns to
 * may belong to the next function. Functions that were inlined have no address of their own; readers add them from DWARF,
 * if the frame that they were inlined into is there.
 *
 * All other frames have an address in a code image, which names them: Python frames, marks, labels, groups, and native
 * frames that the reader could not name, or would name otherwise than pysym: generated code, stubs of the PLT, the vDSO,
 * inlined functions whose caller is hidden, a second binary with the path of another, a binary whose names pysym found
 * elsewhere than at its path. Where native names travel, all native frames are among them. Frames of the kernel have theirs.
 */
#ifndef FORMATS_EMIT_PERF_DATA_ADDRESSES_H
#define FORMATS_EMIT_PERF_DATA_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/code_images.h"
#include "formats/emit/perf_data/kernel_names.h"

/* Where processes have code image 0; the next ones lie at multiples of CODE_IMAGE_MAX_BYTES above. */
#define ADDRESSES_IMAGE_BASE (UINT64_C(1) << 40)

enum address_kind {
    ADDRESS_UNKNOWN, /* not looked up yet */
    ADDRESS_NONE,    /* readers add the frame themselves */
    ADDRESS_IMAGE,
    ADDRESS_BINARY,
    ADDRESS_KERNEL,
};

struct address {
    enum address_kind kind;
    uint32_t number; /* ADDRESS_BINARY: of the model's mapping; ADDRESS_IMAGE: of the image */
    uint64_t ip;
};

enum { ADDRESSES_AREAS_MAX = 8 }; /* executable segments of one binary */

/* Executable memory of a binary at its made-up base. */
struct address_area {
    uint64_t start, len_bytes, file_offset; /* multiples of 4096 */
};
struct address_binary {
    bool known, usable; /* looked up; frames in it can have an address in it */
    uint32_t area_count;
    uint64_t base;
    uint32_t path_len; /* of the mapping's path, without " (deleted)" */
    struct address_area areas[ADDRESSES_AREAS_MAX];
};

struct addresses {
    const struct emit_model *model;
    struct limits *limits;
    struct code_images *images;
    struct kernel_names *kernel;
    VEC(struct address) frames;          /* by frame */
    VEC(struct address_binary) binaries; /* by mapping */
    struct intern paths;               /* of usable binaries, without " (deleted)" */
    uint64_t next_base;
};

/* All are borrowed. The owner of `p` calls addresses_deinit(). */
void addresses_init(struct addresses *p, const struct emit_model *model, struct limits *limits, struct code_images *images,
                    struct kernel_names *kernel);
void addresses_deinit(struct addresses *p);
/* The address of the innermost frame of a stack; EMIT_NO_STACK: of the frame that stands for a stack without any. */
struct error *addresses_find(struct addresses *p, uint32_t stack, struct address *out);
/* The address of the mark that stands for frames which are left out at the outer end of a stack. */
struct error *addresses_truncated(struct addresses *p, struct address *out);
/* A binary that an address referred to. */
const struct address_binary *addresses_binary(const struct addresses *p, uint32_t mapping);

#endif
