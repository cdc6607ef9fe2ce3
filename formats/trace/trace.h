/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file: what pycap writes and pysym reads.
 *
 * docs/trace-format.md is the specification. A file is a header and then blocks,
 * each checksummed and compressed; blocks are grouped into epochs. A block holds
 * records; records.def lists their types. Some records define ids. Each kind of id
 * counts up from 1 within an epoch, and no record refers to an id of another epoch.
 */
#ifndef FORMATS_TRACE_TRACE_H
#define FORMATS_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <stdio.h>

#include "formats/base/err.h"

#define TRACE_VERSION 1      /* the version that this code writes, and the newest that it reads completely */
#define TRACE_LEAST_READER 1 /* the oldest reader that understands what this code writes */

/* What readers keep of a text, and of an IMAGE; pycap writes no longer ones. */
#define TRACE_TEXT_LIMIT_BYTES (64u << 10)
#define TRACE_IMAGE_LIMIT_BYTES (1u << 20)

enum trace_type {
#define F(...)
#define RECORD(number, name, meaning, ...) TRACE_##name = number,
#include "formats/trace/records.def"
#undef RECORD
#undef F
    TRACE_TYPE_LIMIT,
};

/* Kinds of ids. */
enum trace_kind {
    TRACE_KIND_string, TRACE_KIND_event, TRACE_KIND_process, TRACE_KIND_thread, TRACE_KIND_module,
    TRACE_KIND_code, TRACE_KIND_frame, TRACE_KIND_kernel_symbol, TRACE_KIND_stack, TRACE_KIND_snapshot,
    TRACE_KIND_join, TRACE_KIND_tuple, TRACE_KIND_label_set,
    TRACE_KIND_COUNT,
};

enum loss_reason {
#define LOSS(number, name, class, meaning) LOSS_##name = number,
#include "formats/trace/losses.def"
#undef LOSS
    LOSS_LIMIT,
};
/* What a loss does to the sample it happened to. */
enum loss_class {
    LOSS_CLASS_unknown,   /* a reason that this version does not know */
    LOSS_CLASS_complete,  /* nothing was lost */
    LOSS_CLASS_sample,    /* a sample is not in the trace, though the sampler ran for it */
    LOSS_CLASS_tick,      /* the same, but the sampler did not run for it, or did not know the process */
    LOSS_CLASS_expected,  /* no stack was taken, because the process had just begun; this happens to every program */
    LOSS_CLASS_outdated,  /* no Python stack was taken: the sampler knew only what the process ran before */
    LOSS_CLASS_no_python, /* no Python stack was found */
    LOSS_CLASS_python,    /* the Python stack is cut */
    LOSS_CLASS_native,    /* the native stack is cut */
    LOSS_CLASS_pending,   /* the native stack is cut where the sampler did not know the code, or not yet */
    LOSS_CLASS_kernel,    /* the kernel stack is missing */
    LOSS_CLASS_join,      /* a run of Python frames has no native frame */
    LOSS_CLASS_part,      /* the sample is there, but names or other facts are missing */
    LOSS_CLASS_retired,   /* not counted; the number stays taken */
};
/*
 * The name ("ring_full") and meaning ("sample lost: …") of a loss reason; NULL for a number that this version does not
 * know. The class of such a number is LOSS_CLASS_unknown.
 */
const char *trace_loss_name(uint32_t reason);
const char *trace_loss_meaning(uint32_t reason);
enum loss_class trace_loss_class(uint32_t reason);
/* As losses.def has it: "python". */
const char *trace_loss_class_name(enum loss_class class);
/* True if a loss of this class means that the sample is missing; false if it is in the trace but lacks a part. */
static inline bool loss_class_is_sample(enum loss_class class)
{
    return class == LOSS_CLASS_sample || class == LOSS_CLASS_tick;
}

/* Whether it is too little to be told, but with -v: what happens to every program at its start. `samples`: of the whole recording. */
static inline bool loss_is_minor(uint32_t reason, uint64_t count, uint64_t samples)
{
    return trace_loss_class(reason) == LOSS_CLASS_expected && count < UINT64_MAX / 100 && 100 * count < samples;
}

/* For each enumeration of enums.def: enum trace_NAME with the values TRACE_PREFIX_NAME. */
#define V(prefix, name, number, meaning) TRACE_##prefix##_##name = number,
#define ENUM(name, ...) enum trace_##name { __VA_ARGS__ };
#include "formats/trace/enums.def"
#undef ENUM
#undef V
enum trace_enumeration {
#define ENUM(name, ...) TRACE_ENUM_##name,
#include "formats/trace/enums.def"
#undef ENUM
    TRACE_ENUM_COUNT,
};
/* What a value of an enumeration means; NULL for a value that this version does not know. */
const char *trace_value_meaning(enum trace_enumeration enumeration, uint32_t value);

/* Keys of META that programs read; docs/trace-format.md defines their values. Only people read the others. */
#define TRACE_META_EXIT_STATUS "command.exit_status"
#define TRACE_META_SIGNAL "command.signal"
#define TRACE_META_WALL_NS "command.wall_ns"
#define TRACE_META_CPU_NS "command.cpu_ns"
#define TRACE_META_NOTE_CUT "command.note_cut_bytes"
#define TRACE_META_NOTE_REFUSED "command.note_refused_lines"
#define TRACE_META_WORK "note.work"
/* What the keys of facts that the command gave itself begin with; its own key follows. */
#define TRACE_META_NOTE_PREFIX "note."

/* Labels of samples, from labels.def. */
enum trace_label {
#define LABEL(name, key, shown, meaning) TRACE_LABEL_##name,
#include "formats/trace/labels.def"
#undef LABEL
    TRACE_LABEL_COUNT,
};
/* The label's key in the trace. */
const char *trace_label_key(enum trace_label label);
/* True if a label of this key is shown by default, because it tells threads apart. False for unknown keys. */
bool trace_label_is_shown(const char *key);

/* Borrowed bytes. Those of a decoded record lie in the reader's block and are valid until the next record is read. */
struct trace_bytes {
    const uint8_t *data;
    uint64_t len_bytes;
};
/* `count` rows of a fixed number of values each, row after row. Borrowed in the same way. */
struct trace_list {
    const uint64_t *values;
    uint64_t count; /* rows */
};

#define TRACE_C_DEF uint32_t
#define TRACE_C_DEFS uint32_t
#define TRACE_C_REF uint32_t
#define TRACE_C_ID uint32_t
#define TRACE_C_STR uint32_t
#define TRACE_C_U32 uint32_t
#define TRACE_C_U64 uint64_t
#define TRACE_C_S64 int64_t
#define TRACE_C_BYTES struct trace_bytes
#define TRACE_C_LIST struct trace_list
#define F(type, name, argument, meaning) TRACE_C_##type name;
#define RECORD(number, name, meaning, ...) \
    struct trace_##name {                  \
        __VA_ARGS__                        \
    };
#include "formats/trace/records.def"
#undef RECORD
#undef F

/* One sample of a SAMPLES record. */
struct trace_sample {
    uint64_t time_ns;
    uint32_t thread, tuple, cpu;
    uint32_t flags;     /* enum trace_sample_flag; a sample read from a file may have unknown flags too */
    uint64_t value;     /* counts; the event's period unless TRACE_SAMPLE_VALUE is set */
    uint32_t label_set; /* 0 for none */
};
/*
 * TRACE_SAMPLE_FLAGS: the flags that this code knows. TRACE_SAMPLE_PAYLOADS: all flags, known or not, that are followed
 * by a varint; so a reader can skip the varints of flags that it does not know.
 */
enum {
    TRACE_SAMPLE_FLAGS = TRACE_SAMPLE_VALUE | TRACE_SAMPLE_LABELS | TRACE_SAMPLE_KERNEL | TRACE_SAMPLE_GIL_KNOWN |
                         TRACE_SAMPLE_GIL | TRACE_SAMPLE_CONTINUES | TRACE_SAMPLE_OWED | TRACE_SAMPLE_LASTS,
    TRACE_SAMPLE_PAYLOADS = 0xff03,
};
/* The unit of an event that counts page faults. A count times HOST's page_size is a number of bytes. */
#define TRACE_UNIT_FAULTS "faults"
/* The unit of one that counts memory itself. */
#define TRACE_UNIT_BYTES "bytes"
/* The name of the event of memory that system calls gave processes. */
#define TRACE_MEMORY_GROWTH "memory-growth"

/* ---- writing ---- */

struct trace_writer;
struct trace_writer_options {
    /* When a new epoch is due, see trace_writer_epoch_due(). */
    uint64_t epoch_max_bytes; /* uncompressed; 0: 64 MiB */
    uint64_t epoch_min_ns, epoch_max_ns; /* 0: one minute, and ten */
    uint32_t block_max_bytes; /* uncompressed; 0: 1 MiB */
    int zstd_level;           /* 0: 1 */
    uint64_t max_bytes;       /* of the file without its last records, see trace_writer_full(); 0: no limit */
    /* Called instead of write(2); NULL: write(2). */
    ssize_t (*write)(void *ctx, int fd, const void *data, size_t len_bytes);
    /* Called instead of fsync(2); NULL: fsync(2). */
    int (*sync)(void *ctx, int fd);
    void *write_ctx; /* for both */
};

/*
 * Starts a trace at the file position of `fd` (which stays the caller's; may be a pipe) and writes the
 * file header. `path` is used in messages. Epoch 0 begins at `time_ns` (CLOCK_MONOTONIC).
 */
struct error *trace_writer_create(int fd, const char *path, const struct trace_writer_options *options,
                                  uint64_t time_ns, struct trace_writer **out);
/* Does not flush: call trace_writer_finish() first. Accepts NULL. */
void trace_writer_destroy(struct trace_writer *w);
/*
 * True once a record or sample did not fit into max_bytes. It was left out, and so is everything after it; ids returned
 * since then are not valid. Call trace_writer_closing() to lift the limit for the last records of the trace.
 */
bool trace_writer_full(const struct trace_writer *w);
void trace_writer_closing(struct trace_writer *w);
/* The same for the epoch, whose size the format limits. Then a new epoch is due, with which writing goes on. */
bool trace_writer_epoch_full(const struct trace_writer *w);
/*
 * Whoever takes what is written has no room: until it is said that there is, everything is left out as if the epoch were
 * full, and then a new epoch is due.
 */
void trace_writer_hold(struct trace_writer *w, bool hold);
/* Number of samples in the blocks that were written to the file. */
uint64_t trace_writer_written_count(const struct trace_writer *w);

/*
 * Appends a record (a pointer to its struct trace_NAME) and sets its DEF field to the new id.
 * Errors are sticky: after one, every later call returns at once, and trace_writer_error() returns it.
 */
void trace_writer_put(struct trace_writer *w, enum trace_type type, void *record);
/*
 * The same for a record whose id stands for its contents alone (frames, symbols, joins, tuples, label sets,
 * code): if an equal record was written in this epoch, it is not written again. Returns the id; 0 after an error.
 */
uint32_t trace_writer_intern(struct trace_writer *w, enum trace_type type, void *record);
/* The id of a string; 0 for the empty one. */
uint32_t trace_writer_string(struct trace_writer *w, const void *data, uint64_t len_bytes);
uint32_t trace_writer_cstr(struct trace_writer *w, const char *s); /* NULL: 0 */
/* The id of the stack of these frames, outermost first; 0 for the empty stack and after an error. */
uint32_t trace_writer_stack(struct trace_writer *w, const uint32_t *frames, uint32_t count);
/*
 * Adds a sample. Samples of one event should come in order of time; out of order they take more bytes in the file.
 * Readers sort samples of different events within a window of two seconds. So flush at least every second, and add
 * no sample that is more than a second older than the newest one.
 */
void trace_writer_sample(struct trace_writer *w, uint32_t event, const struct trace_sample *sample);
/*
 * Says that this event is a clock which interrupts every `period_ns`. Until the epoch ends its samples are written with
 * times rounded down to a power of two of ns that is at most a 2,048th of that, and 4,096: an interrupt comes some
 * microseconds late in any case, and these digits would take a third of what a sample takes in the file. A time
 * that would so come before a record or a sample of another event that is in the file already is not rounded, so the order of
 * what happened stays.
 */
void trace_writer_clock(struct trace_writer *w, uint32_t event, uint64_t period_ns);
/* Writes the buffered records and samples as a block, if there are any. */
void trace_writer_flush(struct trace_writer *w);

/*
 * True when a new epoch should begin. `time_ns`: now. An epoch defines anew what its samples refer to, so one that ended
 * by the clock alone would hold little else where samples are few. It ends when it is epoch_min_ns old and its samples
 * take eight times as many bytes as everything else in it; in any case at epoch_max_ns or epoch_max_bytes, and when it is full.
 */
bool trace_writer_epoch_due(const struct trace_writer *w, uint64_t time_ns);
/* Uncompressed bytes of the epoch so far, those that are not written yet included. */
uint64_t trace_writer_epoch_bytes(const struct trace_writer *w);
/* Uncompressed bytes that the epoch still has room for until a new one is due. */
uint64_t trace_writer_epoch_room(const struct trace_writer *w);
/* False when max_bytes may not leave room for the first records of another epoch. Then a new epoch is never due. */
bool trace_writer_epoch_fits(const struct trace_writer *w);
/* Ends the epoch and begins the next one. All ids become invalid; the caller defines again what it refers to. */
void trace_writer_new_epoch(struct trace_writer *w, uint64_t time_ns);
/*
 * Appends to `out` a block that may follow what was written, and ends a copy of the trace that goes no further: it holds `loss`,
 * unless that is NULL, and `end`. The writer goes on as if nothing had been asked; after a failed write this block may take the
 * place of the one that was not written. False: out of memory.
 */
struct buf;
bool trace_writer_last_block(const struct trace_writer *w, const struct trace_loss *loss, const struct trace_end *end, struct buf *out);
/* The samples in a block that a trace_writer wrote. */
uint32_t trace_writer_block_samples(const void *block);
/* Number of the current epoch, from 0. */
uint64_t trace_writer_epoch(const struct trace_writer *w);

uint64_t trace_writer_bytes(const struct trace_writer *w);        /* written to the file so far */
/* How many bytes these take in the file, compressed by themselves. */
uint64_t trace_writer_stored_bytes(struct trace_writer *w, const void *data, size_t len_bytes);
uint64_t trace_writer_sample_count(const struct trace_writer *w); /* added so far, written or not */
bool trace_writer_failed(const struct trace_writer *w);
/* The sticky error. It is returned once and then belongs to the caller; NULL if there was no error, and afterwards. */
struct error *trace_writer_error(struct trace_writer *w);
/* Ends the epoch, flushes, and calls fsync() (unless the file cannot be synced). Nothing can be written afterwards. */
struct error *trace_writer_finish(struct trace_writer *w);

/* ---- reading ---- */

struct trace_reader;

struct trace_record {
    enum trace_type type;
    uint64_t epoch_number;
    uint64_t file_offset; /* of the block it stands in */
    bool epoch_ends;      /* with that block */
    /* Of SAMPLES: the samples as they were decoded to be checked, valid until the next record; NULL where they are too many. */
    const struct trace_sample *checked_samples;
    union {
#define F(...)
#define RECORD(number, name, meaning, ...) struct trace_##name name;
#include "formats/trace/records.def"
#undef RECORD
#undef F
    };
};

/* A part of the file that the reader had to skip. */
struct trace_damage {
    uint64_t file_offset, len_bytes; /* of the skipped part */
    char reason[160];
};
struct trace_reader_stats {
    uint16_t version, least_reader;
    uint64_t file_bytes, raw_bytes, block_count, record_count, epoch_count, unknown_record_count;
    uint64_t damaged_bytes, damage_count, epochs_damaged;
    uint64_t newer_sample_count;   /* samples with flags of a later version; the flags were ignored */
    uint64_t skipped_sample_count; /* samples in undamaged blocks that were skipped; damaged ones cannot be counted */
    bool ended; /* an END record was read */
};

/* Opens a trace ("-": standard input) and checks its header. Reads sequentially, so a pipe works too. */
struct error *trace_reader_open(const char *path, struct trace_reader **out);
/* The same, but messages call the file `name`, and "-" is an ordinary path. */
struct error *trace_reader_open_as(const char *path, const char *name, struct trace_reader **out);
/*
 * The same, but once the descriptor `wake_fd` is readable, nothing more is read: the file ends there. For a pipe that may be
 * silent for long. The descriptor stays the caller's; -1: none.
 */
struct error *trace_reader_open_until(const char *path, int wake_fd, struct trace_reader **out);
/* The same from an open file, which stays the caller's; `path` is used in messages. */
struct error *trace_reader_open_fd(int fd, const char *path, struct trace_reader **out);
void trace_reader_close(struct trace_reader *r);
/*
 * Reads the next record; `*more` is false at the end. The record has been checked: its ids are defined in this
 * epoch, its lists and bytes lie inside the record. Damage is not an error: the rest of the damaged epoch is
 * skipped, and trace_reader_damage() says what was skipped. It is an error if the file cannot be read at all.
 */
struct error *trace_reader_next(struct trace_reader *r, struct trace_record *rec, bool *more);
const struct trace_reader_stats *trace_reader_stats(const struct trace_reader *r);
/* The damaged parts found so far; the array is the reader's. Only the first 64 are kept; the statistics count all. */
const struct trace_damage *trace_reader_damage(const struct trace_reader *r, uint32_t *count);

/* Iterates over a SAMPLES record; a sample without a value gets the value `period`. Returns false at the end. */
struct trace_sample_iter {
    const struct trace_sample *checked; /* the next, or NULL: decode it */
    const uint8_t *pos, *end;
    uint64_t time_ns, period;
    uint32_t left;
};
void trace_samples_begin(struct trace_sample_iter *it, const struct trace_samples *samples, uint64_t period);
/* The same over a record of a reader, whose samples need not be decoded again. */
void trace_samples_begin_checked(struct trace_sample_iter *it, const struct trace_record *rec, uint64_t period);
bool trace_samples_next(struct trace_sample_iter *it, struct trace_sample *sample);

/* ---- the table of records, for the codec, dump and tests ---- */

enum trace_field_type {
    TRACE_F_DEF, TRACE_F_DEFS, TRACE_F_REF, TRACE_F_STR, TRACE_F_U32, TRACE_F_U64, TRACE_F_S64, TRACE_F_BYTES, TRACE_F_LIST,
    TRACE_F_ID,
};
struct trace_field {
    const char *name, *meaning;
    enum trace_field_type type;
    int argument; /* kind of DEF, DEFS, REF, ID, STR; row width of LIST; of BYTES 1: a number, never text */
    uint32_t struct_offset;
};
struct trace_record_type {
    uint32_t number;
    const char *name, *meaning;
    const struct trace_field *fields;
    uint32_t field_count, struct_size;
};
/* NULL for an unknown number. */
const struct trace_record_type *trace_record_type(uint32_t number);
/* Appends the record as one line of text; long bytes and lists are cut. */
void trace_record_print(const struct trace_record *rec, struct buf *out);

#endif
