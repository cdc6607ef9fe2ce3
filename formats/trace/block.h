/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the trace file is framed: the file header and the header of a block.
 * Private to formats/trace and its tests; docs/trace-format.md is the specification.
 *
 * Both headers begin alike: a magic of 8 bytes, then an xxh3-64 checksum over all
 * that follows it (a block's payload included), so that one hash over contiguous
 * memory protects every byte but the magic. The magics hold a byte above 127 and
 * a line end: a text file is never taken for a trace, and a trace that went through a
 * text conversion is noticed.
 */
#ifndef FORMATS_TRACE_BLOCK_H
#define FORMATS_TRACE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "base/bytes.h and base/buf.h copy integers unswapped");

#define TRACE_FILE_MAGIC "\x89PYCAP\r\n"
#define TRACE_BLOCK_MAGIC "\x89PYBLK\r\n"

enum {
    TRACE_MAGIC_BYTES = 8,
    TRACE_CHECKED_FROM = 16, /* offset of the first byte under a header's checksum */
    TRACE_FILE_HEADER_BYTES = 24,
    TRACE_FILE_HEADER_LIMIT = 4096, /* a later version may have a longer one */
    TRACE_BLOCK_HEADER_BYTES = 48,
};

/* Bounds that a reader enforces and a writer keeps. */
enum {
    TRACE_BLOCK_LIMIT_BYTES = 16 << 20,  /* of a block, stored or raw */
    TRACE_EPOCH_LIMIT_BYTES = 512 << 20, /* of an epoch, raw */
    TRACE_LIST_LIMIT = 1 << 20,          /* numbers in one list */
};

enum trace_codec {
    TRACE_CODEC_RAW = 0,
    TRACE_CODEC_ZSTD = 1,
};
enum {
    TRACE_BLOCK_STARTS_EPOCH = 1,
    TRACE_BLOCK_ENDS_EPOCH = 2,
    TRACE_BLOCK_FLAGS = 3, /* all known flags; others are rejected */
};

struct trace_file_header {
    uint16_t version, least_reader, header_len_bytes, reserved;
};

struct trace_block_header {
    uint8_t codec, flags;
    uint16_t reserved_1;
    uint32_t sequence; /* within the epoch, from 0 */
    uint64_t epoch;
    uint32_t stored_len_bytes, raw_len_bytes;
    uint32_t sample_count; /* in the block's SAMPLES records: says how many are lost if it is skipped */
    uint32_t reserved_2;
};

/*
 * Pack a header into the first bytes of `out` (TRACE_..._HEADER_BYTES long). The block's payload of
 * stored_len_bytes must lie right behind its header already: the checksum covers it.
 */
void trace_file_header_pack(const struct trace_file_header *h, uint8_t *out);
void trace_block_header_pack(const struct trace_block_header *h, uint8_t *out);
/* Read the fields after the checksum. */
struct trace_file_header trace_file_header_unpack(const uint8_t *data);
struct trace_block_header trace_block_header_unpack(const uint8_t *data);
/* Checks the checksum in a header; `len_bytes` counts from the magic to the end of what it covers. */
bool trace_checksum_good(const uint8_t *data, size_t len_bytes);

#endif
