/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of the code objects seen so far (name, file, line table). Equal contents
 * are kept once, whichever process they came from. BPF sends the raw bytes when it first
 * meets a code object. What it had to cut or could not read is completed from the live
 * process, and used only if the object still has the same fingerprint afterwards.
 *
 * What is read out of a process, and contents that are new, count for the process's quotas. A function beyond them loses
 * its line table first, then its name.
 */
#ifndef CAPTURE_TRACE_CODES_H
#define CAPTURE_TRACE_CODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "capture/host/quotas.h"
#include "formats/base/clock.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct codes;
struct error *codes_create(struct codes **out);
void codes_destroy(struct codes *c);
/* Returns the bytes of memory that are in use. */
uint64_t codes_bytes(const struct codes *c);
/* Forgets everything. Indexes returned before become invalid. */
void codes_clear(struct codes *c);
/* Returns how many contents there are. Indexes are below that. */
uint32_t codes_count(const struct codes *c);
/* Returns the bytes of memory that the contents at `index` take. */
uint64_t codes_bytes_of(const struct codes *c, uint32_t index);
/*
 * Forgets the contents that are not `wanted` (by index). The others get new indexes, which are stored in `moved`, by
 * their old ones.
 */
struct error *codes_retain(struct codes *c, const bool *wanted, uint32_t *moved);

#define CODES_NONE UINT32_MAX

/* The process that a code object belongs to. */
struct codes_owner {
    pid_t pid;
    const struct py_layout *layout;
    uint64_t code_type; /* address of PyCode_Type */
    struct quotas *quotas;
    uint32_t slot;      /* of its quotas */
    uint64_t time_ns;   /* CLOCK_MONOTONIC, for the quotas */
};

/*
 * Adds a code object from a message of the sampler. Stores the index of its contents in `*index`, or CODES_NONE when
 * the message cannot be understood or the quotas refuse it.
 */
struct error *codes_add_message(struct codes *c, const struct codes_owner *owner, const struct wire_code *message,
                                uint32_t len_bytes, uint32_t *index);
/*
 * Adds a code object read from the live process, for a frame whose message was lost or whose page was not resident.
 * Stores CODES_NONE in `*index` unless the object at `address` has the given fingerprint (0: any will do) and the quotas
 * allow it.
 */
struct error *codes_add_live(struct codes *c, const struct codes_owner *owner, uint64_t address, uint32_t fingerprint,
                             uint32_t *index);

/* Adds the contents of a CODE record. The record's id is ignored. */
struct error *codes_keep(struct codes *c, const struct trace_code *record, uint32_t *index);

/* Fills `out` with the CODE record of the contents at `index`; borrowed, valid until the next codes_add_*(). */
void codes_record(const struct codes *c, uint32_t index, struct trace_code *out);
/* Where the contents were written in the trace. The caller reads and sets it; it starts as all zeros but for `again_ns`. */
struct code_place {
    uint64_t epoch;
    uint32_t id;
    uint64_t again_ns; /* when what could not be read of the object may be asked for again (CLOCK_MONOTONIC); 0: it is whole */
};
struct code_place *codes_place(struct codes *c, uint32_t index);

/* So long after an object could not be read in full it is asked for again. */
#define CODES_AGAIN_NS NS_PER_S

struct codes_counts {
    uint64_t incomplete; /* could not be completed */
    uint64_t completed;  /* from user space */
    uint64_t cut;        /* longer than the limit */
};
struct codes_counts codes_counts(const struct codes *c);

#endif
