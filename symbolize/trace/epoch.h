/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoch of a trace in memory: everything it has defined so far, by id.
 *
 * The file defines things before it refers to them and starts over with each epoch,
 * so the reader of a trace feeds every record in, looks things up for the samples it
 * meets, and forgets it all when the next epoch begins: memory is bounded by the
 * writer's bound of an epoch. Index 0 of each vector stands for "none" and is zero.
 * What a sample is resolved to lies in resolve.h.
 */
#ifndef SYMBOLIZE_TRACE_EPOCH_H
#define SYMBOLIZE_TRACE_EPOCH_H

#include "formats/base/arena.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/elf/machine.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/address_space.h"

struct epoch_string {
    const char *text; /* a NUL follows; may hold any bytes */
    uint32_t len_bytes;
};

struct epoch_period {
    uint64_t time_ns, period;
};
struct epoch_event {
    struct trace_event def;
    VEC(struct epoch_period) changes; /* in order of time */
};

struct epoch_process {
    struct trace_process def;
    uint32_t comm;        /* string, the newest */
    uint32_t interpreter; /* module: the first one mapped that holds an eval loop; 0 for none */
    struct address_space mappings;
};

struct epoch_thread {
    struct trace_thread def;
    uint32_t name, python_name; /* strings, the newest; 0 unknown */
};

struct epoch_module {
    struct trace_module def;
    uint64_t image_address;
    struct trace_bytes image; /* contents, where the trace has them */
};

/* Any kind of frame. */
struct epoch_frame {
    uint8_t type; /* TRACE_python_frame, TRACE_native_frame or TRACE_kernel_frame */
    uint8_t flags;
    uint32_t ref; /* code, module or kernel symbol */
    int64_t at;   /* Python: offset in the bytecode; native: file offset or address; kernel: address */
};

struct epoch_stack {
    uint32_t parent, frame, depth; /* depth 1 is the outermost frame */
};

struct epoch_join {
    uint32_t kind, run_count;
    const uint64_t *runs; /* pairs: value, reason; outermost run first */
};

/*
 * Parts of an epoch, bits by type of record. Snapshots keep their ids, since tuples refer to them; of the other parts
 * not even that remains.
 */
#define EPOCH_PART(type) (UINT64_C(1) << TRACE_##type)
#define EPOCH_SNAPSHOT_CONTENTS EPOCH_PART(snapshot)
#define EPOCH_STACKS                                                                                               \
    (EPOCH_PART(module) | EPOCH_PART(image) | EPOCH_PART(mapping) | EPOCH_PART(code) | EPOCH_PART(python_frame) |    \
     EPOCH_PART(native_frame) | EPOCH_PART(kernel_symbol) | EPOCH_PART(kernel_frame) | EPOCH_PART(stack) |          \
     EPOCH_PART(snapshot) | EPOCH_PART(join) | EPOCH_PART(tuple))

struct epoch {
    struct arena arena;
    uint64_t number, time_ns;
    bool begun;
    uint64_t left_out; /* set by the user before the first record: parts it has no use for, EPOCH_… */
    VEC(struct epoch_string) strings;
    VEC(struct epoch_event) events;
    VEC(struct epoch_process) processes;
    VEC(struct epoch_thread) threads;
    VEC(struct epoch_module) modules;
    VEC(struct trace_code) codes;
    VEC(struct epoch_frame) frames;
    VEC(struct trace_kernel_symbol) kernel_symbols;
    VEC(struct epoch_stack) stacks;
    VEC(struct trace_snapshot) snapshots;
    VEC(struct epoch_join) joins;
    VEC(struct trace_tuple) tuples;
    VEC(struct trace_label_set) label_sets;
    /* Facts about the host, which outlive the epoch within a file. */
    uint8_t boot_id[16];
    uint8_t kernel_build_id[64];
    uint32_t kernel_build_id_len; /* 0 when unknown */
    bool has_host;
    const struct machine *machine; /* NULL: one that is not known here */
    uint32_t page_size; /* bytes; 0: unknown */
};

/* What tells processes, or rather their program images, apart across epochs, files and hosts. Has no padding. */
struct process_identity {
    uint8_t boot_id[16];
    uint64_t start_boottime_ns, exec_generation;
    uint32_t tgid;
    uint32_t file; /* of a host without boot ID, else 0 */
};

/* Of the host; where the trace does not say, x86-64, which was the only one. NULL: one that is not known here. */
const struct machine *epoch_machine(const struct epoch *e);
/* {0} is an epoch before its first record. */
void epoch_deinit(struct epoch *e);
/* Takes a record in. An EPOCH record forgets everything before it; kinds that define nothing are ignored. */
struct error *epoch_load(struct epoch *e, const struct trace_record *rec);
/* The text of a string id, "" for 0. */
static inline const char *epoch_text(const struct epoch *e, uint32_t string)
{
    return e->strings.data[string].text;
}
/* `file` is a number of the file at hand, from 1: where a host does not say which it is, it may be any. */
struct process_identity epoch_process_identity(const struct epoch *e, uint32_t process, uint32_t file);
/*
 * How many bytes one count of an event stands for: a page, where it counts page faults. 0: it counts something else, or
 * the page size is not known.
 */
uint32_t epoch_event_bytes(const struct epoch *e, uint32_t event);
/* What a sample without a value stands for at that time. */
uint64_t epoch_period_at(const struct epoch *e, uint32_t event, uint64_t time_ns);
/*
 * The frames of a stack, outermost first, into `frames`; 0 is the empty stack. Of a stack deeper than `max`
 * the innermost frames; returns their count.
 */
uint32_t epoch_stack_frames(const struct epoch *e, uint32_t stack, uint32_t *frames, uint32_t max);

#endif
