/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of code objects that were met, each kept once, whichever process it
 * came from. BPF sends raw bytes at first sight; what was cut there or could not be
 * read is completed from the live process, if the object still has the same
 * fingerprint afterwards.
 */
#ifndef CAPTURE_TRACE_CODES_H
#define CAPTURE_TRACE_CODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct codes;
struct error *codes_create(struct codes **out);
void codes_destroy(struct codes *c);
uint64_t codes_bytes(const struct codes *c);
/* Forgets all; indexes of before mean nothing any more. */
void codes_clear(struct codes *c);

#define CODES_NONE UINT32_MAX

/* From a message of the sampler. `*index` names the contents; CODES_NONE when nothing could be made of it. */
struct error *codes_add_message(struct codes *c, const struct wire_code *message, uint32_t len_bytes,
                                const struct py_layout *layout, uint64_t code_type, uint32_t *index);
/*
 * From the live process, for a frame whose message was lost or whose page was not there: only when what lies at
 * `address` now has that fingerprint (0: whatever it has).
 */
struct error *codes_add_live(struct codes *c, pid_t pid, uint64_t address, uint32_t fingerprint,
                             const struct py_layout *layout, uint64_t code_type, uint32_t *index);

/* From a record that was read already, by its contents; its id does not count. */
struct error *codes_keep(struct codes *c, const struct trace_code *record, uint32_t *index);

/* The CODE record of some contents; borrowed, valid until the next codes_add_*(). */
void codes_record(const struct codes *c, uint32_t index, struct trace_code *out);
/* Where it stands in the trace: a place for the caller's note. */
struct code_place {
    uint64_t epoch;
    uint32_t id;
};
struct code_place *codes_place(struct codes *c, uint32_t index);

struct codes_counts {
    uint64_t incomplete; /* could not be completed */
    uint64_t completed;  /* from user space */
    uint64_t cut;        /* longer than the limit */
};
struct codes_counts codes_counts(const struct codes *c);

#endif
