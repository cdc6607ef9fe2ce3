/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of the code objects seen so far (name, file, line table). Equal contents
 * are kept once, whichever process they came from. BPF sends the raw bytes when it first
 * meets a code object. What it had to cut or could not read is completed from the live
 * process, and used only if the object still has the same fingerprint afterwards.
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
/* Returns the bytes of memory that are in use. */
uint64_t codes_bytes(const struct codes *c);
/* Forgets everything. Indexes returned before become invalid. */
void codes_clear(struct codes *c);

#define CODES_NONE UINT32_MAX

/*
 * Adds a code object from a message of the sampler. Stores the index of its contents in `*index`, or CODES_NONE when
 * the message cannot be understood.
 */
struct error *codes_add_message(struct codes *c, const struct wire_code *message, uint32_t len_bytes,
                                const struct py_layout *layout, uint64_t code_type, uint32_t *index);
/*
 * Adds a code object read from the live process, for a frame whose message was lost or whose page was not resident.
 * Stores CODES_NONE in `*index` unless the object at `address` has the given fingerprint (0: any will do).
 */
struct error *codes_add_live(struct codes *c, pid_t pid, uint64_t address, uint32_t fingerprint,
                             const struct py_layout *layout, uint64_t code_type, uint32_t *index);

/* Adds the contents of a CODE record. The record's id is ignored. */
struct error *codes_keep(struct codes *c, const struct trace_code *record, uint32_t *index);

/* Fills `out` with the CODE record of the contents at `index`; borrowed, valid until the next codes_add_*(). */
void codes_record(const struct codes *c, uint32_t index, struct trace_code *out);
/* Where the contents were written in the trace. The caller reads and sets it; it starts as all zeros. */
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
