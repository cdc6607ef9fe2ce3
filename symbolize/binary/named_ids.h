/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identities of binaries that traces name. `pycap archive` and perf put a file into a folder that is called after its own, so
 * that what no trace names need not be unpacked.
 */
#ifndef SYMBOLIZE_BINARY_NAMED_IDS_H
#define SYMBOLIZE_BINARY_NAMED_IDS_H

#include <stdbool.h>

#include "formats/base/intern.h"

struct named_ids {
    struct intern texts; /* in hex; {.arena.limits = ...} counts its memory */
};

void named_ids_deinit(struct named_ids *n);
/* False: out of memory. */
bool named_ids_add(struct named_ids *n, const uint8_t *id, uint32_t len_bytes);
/*
 * May a member of an archive be of use? Not if it is called .../ID/elf, debug or vdso (or .../ab/cdef/elf, as in
 * .build-id), and the identity is none of these. A name
 * decides nothing else: what a file is it says itself.
 */
bool named_ids_want(const struct named_ids *n, const char *member);

#endif
