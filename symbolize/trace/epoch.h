/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoch of a trace in memory: everything it has defined so far, by id.
 *
 * The file defines things before it refers to them and starts over with each epoch,
 * so the reader of a trace loads every record, looks things up for each sample, and
 * forgets everything when the next epoch begins: memory is bounded by the writer's
 * limit for an epoch. Entry 0 of each vector stands for "none" and is zero.
 * resolve.h resolves samples with it.
 */
#ifndef SYMBOLIZE_TRACE_EPOCH_H
#define SYMBOLIZE_TRACE_EPOCH_H

#include "formats/base/arena.h"
#include "formats/base/err.h"
#include "formats/base/event_value.h"
#include "formats/base/limits.h"
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

/* What is known of a process beside its records, over all epochs: process_names.h. Texts outlive the epoch; NULL: not known. */
enum { PROCESS_KERNEL_NAMES_MAX = 4 };
struct process_known {
    uint32_t kind; /* enum trace_program_kind, and what goes with it, as its stacks tell them */
    const char *program;
    const char *works_for; /* of a worker without a name of its own: the name of that program */
    const char *kernel_names[PROCESS_KERNEL_NAMES_MAX]; /* of a process that changed it: the first ones */
    uint32_t kernel_name_count;
};

struct epoch_process {
    struct trace_process def;
    uint32_t comm;        /* string, the newest */
    bool ended;
    const struct process_known *known; /* NULL: nothing more */
    uint32_t same_pid;    /* the process of the same pid that was defined before; 0: none */
    uint32_t name_tries;  /* samples that may still tell its name */
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
#define EPOCH_AT_UNKNOWN INT64_MIN
struct epoch_frame {
    uint8_t type; /* TRACE_python_frame, TRACE_native_frame or TRACE_kernel_frame */
    uint8_t flags;
    uint32_t ref; /* code, module or kernel symbol */
    int64_t at;   /* Python: offset in the bytecode, or EPOCH_AT_UNKNOWN; native: file offset or address; kernel: address */
};

struct epoch_stack {
    uint32_t parent, frame, depth; /* depth 1 is the outermost frame */
};

struct epoch_join {
    uint32_t kind, run_count;
    const uint64_t *runs; /* pairs: value, reason; outermost run first */
};

/*
 * Parts of an epoch that can be left out, a bit for each type of record. Of snapshots only the contents are left out;
 * the ids stay, because tuples refer to them. Other records are left out with their ids.
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
    uint64_t left_out; /* set before the first record: parts that are not loaded, EPOCH_… */
    struct limits *limits; /* set before the first record; borrowed; NULL: none */
    uint64_t taken_bytes;  /* of its memory, for the vectors */
    VEC(struct epoch_string) strings;
    VEC(struct epoch_event) events;
    VEC(struct epoch_process) processes;
    VEC(uint32_t) renamed; /* processes whose name has changed, in order of time; one may be in it again */
    VEC(struct epoch_thread) threads;
    VEC(struct epoch_module) modules;
    VEC(struct trace_code) codes;
    VEC(struct epoch_frame) frames;
    VEC(struct trace_kernel_symbol) kernel_symbols;
    VEC(struct epoch_stack) stacks;
    VEC(struct trace_snapshot) snapshots;
    VEC(uint32_t) snapshot_users; /* by snapshot: tuples that refer to it and have not been unwound */
    VEC(struct epoch_join) joins;
    VEC(struct trace_tuple) tuples;
    VEC(struct trace_label_set) label_sets;
    /* Facts about the host, which outlive the epoch within a file. */
    uint8_t boot_id[16];
    uint8_t kernel_build_id[64];
    uint32_t kernel_build_id_len; /* 0 when unknown */
    bool has_host;
    const struct machine *machine; /* NULL: not supported */
    uint32_t page_size; /* bytes; 0: unknown */
};

/* Identifies a program image of a process across epochs, files and hosts. Has no padding. */
struct process_identity {
    uint8_t boot_id[16];
    uint64_t start_boottime_ns, exec_generation;
    uint32_t tgid;
    uint32_t file; /* number of the file if the host has no boot ID, else 0 */
};

/* The host's machine; x86-64 if the trace does not say. NULL: not supported. */
const struct machine *epoch_machine(const struct epoch *e);
/*
 * The outermost frames of a stack, `max` at most, outermost first, into `ids`. False: that is more work than the limit. `limits`
 * NULL: there is none.
 */
bool epoch_outermost(const struct epoch *e, uint32_t stack, uint32_t max, uint32_t *ids, uint32_t *count, struct limits *limits);
/* {0} is an epoch before its first record. */
void epoch_deinit(struct epoch *e);
/*
 * Loads a record. An EPOCH record forgets everything before it; records that define nothing are ignored. Texts are cut at
 * TRACE_TEXT_LIMIT_BYTES, as the format says.
 */
struct error *epoch_load(struct epoch *e, const struct trace_record *rec);
/*
 * Call when a tuple's snapshot was unwound: after the last of the tuples that are known to refer to the snapshot, its copy
 * of the stack is freed and is empty from then on.
 */
void epoch_release_stack(struct epoch *e, uint32_t snapshot);
/* The text of a string id, "" for 0. */
static inline const char *epoch_text(const struct epoch *e, uint32_t string)
{
    return e->strings.data[string].text;
}
/* `file` is the number of the current file, from 1. It replaces the boot ID if the trace has none. */
struct process_identity epoch_process_identity(const struct epoch *e, uint32_t process, uint32_t file);
/*
 * How many bytes one count of an event stands for: 1 for bytes, the page size for page faults. 0: it counts something else,
 * or the page size is unknown.
 */
uint32_t epoch_event_bytes(const struct epoch *e, uint32_t event);
/* What a sample's value is an amount of. Page faults are memory where the page size is known. */
enum event_value epoch_event_kind(const struct epoch *e, uint32_t event);
/* The period of an event at that time: the value of a sample that has none of its own. */
uint64_t epoch_period_at(const struct epoch *e, uint32_t event, uint64_t time_ns);
/*
 * Writes the frames of a stack to `frames`, outermost first, and returns their count. Stack 0 is empty. If the stack is
 * deeper than `max`, only the innermost frames.
 */
uint32_t epoch_stack_frames(const struct epoch *e, uint32_t stack, uint32_t *frames, uint32_t max);

#endif
