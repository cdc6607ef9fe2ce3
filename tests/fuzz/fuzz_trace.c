/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace reader over arbitrary bytes. Checksums would keep a fuzzer out of the decoder, so the input is
 * read twice: as a file, and as the records of one block that is sealed around it. What only looks for the END record
 * reads it, too, and must not find one where the last byte is missing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/trace/block.h"
#include "formats/trace/ending.h"
#include "formats/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void look_for_end(int fd, size_t len_bytes)
{
    bool found = false, found_in_part = false;

    struct error *err = trace_has_end(fd, "fuzz", &found);
    if (err || (len_bytes && ftruncate(fd, (off_t)len_bytes - 1)))
        __builtin_trap();
    err = trace_has_end(fd, "fuzz", &found_in_part);
    if (err || (found && found_in_part))
        __builtin_trap();
}

static void read_whole(const void *data, size_t len_bytes)
{
    struct buf text = {0};
    struct trace_reader *r = NULL;
    struct trace_record rec;
    struct trace_sample_iter it;
    struct trace_sample sample;
    bool more = true;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (write(fd, data, len_bytes) != (ssize_t)len_bytes || lseek(fd, 0, SEEK_SET))
        __builtin_trap();
    struct error *err = trace_reader_open_fd(fd, "fuzz", &r);
    while (!err && more) {
        err = trace_reader_next(r, &rec, &more);
        if (err || !more)
            break;
        buf_clear(&text);
        trace_record_print(&rec, &text);
        if (rec.type == TRACE_samples)
            for (trace_samples_begin(&it, &rec.samples, 1); trace_samples_next(&it, &sample);)
                ;
    }
    buf_deinit(&text);
    trace_reader_close(r);
    error_destroy(err);
    look_for_end(fd, len_bytes);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct buf file = {0};
    const struct trace_file_header header = {1, 1, TRACE_FILE_HEADER_BYTES, 0};
    struct trace_block_header block = {.flags = TRACE_BLOCK_STARTS_EPOCH | TRACE_BLOCK_ENDS_EPOCH,
                                        .raw_len_bytes = (uint32_t)len_bytes + 4};

    read_whole(data, len_bytes);
    uint8_t *p = buf_reserve(&file, TRACE_FILE_HEADER_BYTES + TRACE_BLOCK_HEADER_BYTES + 4 + len_bytes);
    uint8_t *payload = p + TRACE_FILE_HEADER_BYTES + TRACE_BLOCK_HEADER_BYTES;
    memcpy(payload, "\x01\x02\x00\x00", 4); /* EPOCH 0 */
    if (len_bytes)
        memcpy(payload + 4, data, len_bytes);
    block.stored_len_bytes = block.raw_len_bytes;
    trace_file_header_pack(&header, p);
    trace_block_header_pack(&block, p + TRACE_FILE_HEADER_BYTES);
    read_whole(p, (size_t)(payload - p) + 4 + len_bytes);
    buf_deinit(&file);
    return 0;
}
