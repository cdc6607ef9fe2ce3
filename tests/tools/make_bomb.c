/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes traces that are small and cost their reader much: they unpack to gigabytes, or describe work that grows with the
 * square of their length. Records are written byte by byte, since the writer would refuse most of them.
 *
 * usage: make_bomb OUT NAME [BLOCKS]. Of what is repeated there are so many blocks, 12 unless told. Without a good NAME it prints
 * all names, one a line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "formats/base/buf.h"
#include "formats/trace/block.h"
#include "formats/trace/trace.h"

enum { FILE_MAX = 1 << 20, BLOCK_FILL = 15 << 20, PIECE = 64 << 10 };

struct bomb {
    FILE *out;
    uint64_t file_bytes, epoch;
    uint32_t sequence;
    int blocks; /* of what is repeated */
    struct buf block; /* records */
};

/* A record whose fields are numbers, all of them from 0 up to the end unless more are appended to `b->block` behind it. */
static void put(struct buf *to, uint32_t type, size_t count, const uint64_t *numbers, const void *bytes, size_t len_bytes)
{
    struct buf payload = {0};

    for (size_t i = 0; i < count; i++)
        buf_put_uleb(&payload, numbers[i]);
    if (bytes) {
        buf_put_uleb(&payload, len_bytes);
        buf_put(&payload, bytes, len_bytes);
    }
    buf_put_uleb(to, type);
    buf_put_uleb(to, payload.len_bytes);
    buf_put(to, payload.data, payload.len_bytes);
    buf_deinit(&payload);
}

#define N(...) sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__}
#define PUT(to, type, ...) put(to, TRACE_##type, N(__VA_ARGS__), NULL, 0)

static void put_string(struct buf *to, const char *text, size_t len_bytes)
{
    put(to, TRACE_string, 0, NULL, text, len_bytes);
}

/* Packs what was put as a block, which begins or ends the epoch. False: the file is as long as it may be. */
static bool flush(struct bomb *b, unsigned flags)
{
    size_t cap = ZSTD_compressBound(b->block.len_bytes);
    uint8_t *bytes = malloc(TRACE_BLOCK_HEADER_BYTES + cap);
    struct trace_block_header h = {.codec = TRACE_CODEC_ZSTD, .flags = (uint8_t)flags, .sequence = b->sequence++,
                                   .epoch = b->epoch, .raw_len_bytes = (uint32_t)b->block.len_bytes};

    h.stored_len_bytes = (uint32_t)ZSTD_compress(bytes + TRACE_BLOCK_HEADER_BYTES, cap, b->block.data, b->block.len_bytes, 3);
    trace_block_header_pack(&h, bytes);
    size_t len = TRACE_BLOCK_HEADER_BYTES + h.stored_len_bytes;
    bool fits = b->file_bytes + len <= FILE_MAX;
    if (fits && fwrite(bytes, len, 1, b->out) == 1)
        b->file_bytes += len;
    free(bytes);
    buf_clear(&b->block);
    if (flags & TRACE_BLOCK_ENDS_EPOCH) {
        b->epoch++;
        b->sequence = 0;
    }
    return fits;
}

/* What every epoch here begins with: strings 1 to 3, event, process and thread 1. */
static void begin_epoch(struct bomb *b)
{
    PUT(&b->block, epoch, b->epoch, 1);
    put_string(&b->block, "cpu-clock", 9);
    put_string(&b->block, "ns", 2);
    put_string(&b->block, "py", 2);
    PUT(&b->block, event, 1, 2, 99, 10101010, 0);
    PUT(&b->block, process, 77, 5, 0, 1, 3);
    PUT(&b->block, thread, 1, 77, 77, 3);
}

/* A code object whose name has that length, and a line table. */
static void put_code(struct buf *to, uint64_t number, const char *name, size_t name_len, size_t lines_len)
{
    char *lines = malloc(lines_len + 1);
    struct buf p = {0}, text = {0};
    const uint64_t head[] = {0x030b02f0, 0, 2, 0, 1 << 24, 1};

    buf_printf(&text, "%08llu", (unsigned long long)number);
    buf_put(&text, name, name_len);
    for (size_t i = 0; i < lines_len; i++)
        lines[i] = (char)(i % 2 ? 0 : 0xe8); /* one unit of code, no columns, the same line */
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        buf_put_uleb(&p, head[i]);
    for (int i = 0; i < 3; i++) { /* name, qualified name, file */
        if (i)
            buf_put_uleb(&p, 1);
        buf_put_uleb(&p, text.len_bytes);
        buf_put_uleb(&p, text.len_bytes);
        buf_put(&p, text.data, text.len_bytes);
    }
    buf_put_uleb(&p, 1);
    buf_put_uleb(&p, lines_len);
    buf_put_uleb(&p, lines_len);
    buf_put(&p, lines, lines_len);
    buf_put_uleb(to, TRACE_code);
    buf_put_uleb(to, p.len_bytes);
    buf_put(to, p.data, p.len_bytes);
    buf_deinit(&p);
    buf_deinit(&text);
    free(lines);
}

/* Python stack 1 of `depth` frames, and a tuple for each of its `tuples` innermost ends. */
static void put_stacks(struct buf *to, size_t depth, size_t tuples)
{
    uint64_t *numbers = malloc((depth + 2) * sizeof *numbers);

    numbers[0] = 0;
    numbers[1] = depth;
    for (size_t i = 0; i < depth; i++)
        numbers[i + 2] = 1;
    PUT(to, python_frame, 1, 0, 1);
    put(to, TRACE_stack, depth + 2, numbers, NULL, 0);
    for (size_t i = 0; i < tuples; i++)
        PUT(to, tuple, 0, 0, 0, depth - i, 0, 1, 0);
    free(numbers);
}

/* `count` samples of the first `threads` threads and the first `tuples` tuples. */
static void put_samples(struct buf *to, size_t count, uint64_t threads, uint64_t tuples)
{
    struct buf data = {0};

    for (size_t i = 0; i < count; i++) {
        const uint64_t sample[] = {2000, i % threads + 1, i / threads % tuples + 1, 0, 0};
        for (int k = 0; k < 5; k++)
            buf_put_uleb(&data, sample[k]);
    }
    put(to, TRACE_samples, N(1, 1000, count), data.data, data.len_bytes);
    buf_deinit(&data);
}

/* An epoch that begins with what was put, and goes on with one record again and again. */
static void repeat(struct bomb *b, const struct buf *record)
{
    bool fits = flush(b, TRACE_BLOCK_STARTS_EPOCH);

    for (int i = 0; fits && i < b->blocks; i++) {
        while (b->block.len_bytes + record->len_bytes <= BLOCK_FILL)
            buf_put(&b->block, record->data, record->len_bytes);
        fits = flush(b, 0);
    }
    put_string(&b->block, "end", 3);
    flush(b, TRACE_BLOCK_ENDS_EPOCH);
}

/* ---- the bombs ---- */

static void names(struct bomb *b) /* each epoch has three names of 5 MiB, together as long as a block may be */
{
    size_t len = 5 << 20;
    char *name = memset(malloc(len), 'A', len);

    do {
        begin_epoch(b);
        put_code(&b->block, b->epoch, name, len, 0);
        put_stacks(&b->block, 1, 1);
        put_samples(&b->block, 1, 1, 1);
    } while (b->epoch < 60 && flush(b, TRACE_BLOCK_STARTS_EPOCH | TRACE_BLOCK_ENDS_EPOCH));
    free(name);
}

static void prefixes(struct bomb *b) /* every prefix of one deep stack is a sample */
{
    begin_epoch(b);
    put_code(&b->block, 0, "f", 1, 0);
    put_stacks(&b->block, 60000, 60000);
    put_samples(&b->block, 60000, 1, 60000);
    flush(b, TRACE_BLOCK_STARTS_EPOCH | TRACE_BLOCK_ENDS_EPOCH);
}

static void owners(struct bomb *b) /* many processes, each with all of a deep stack */
{
    begin_epoch(b);
    put_code(&b->block, 0, "f", 1, 0);
    put_stacks(&b->block, 4000, 4);
    for (uint64_t i = 2; i < 60000; i++) {
        PUT(&b->block, process, 77 + i, 5, 0, 1, 3);
        PUT(&b->block, thread, i, 77 + i, 77 + i, 3);
    }
    flush(b, TRACE_BLOCK_STARTS_EPOCH);
    put_samples(&b->block, 200000, 50000, 4);
    flush(b, TRACE_BLOCK_ENDS_EPOCH);
}

static void samples(struct bomb *b) /* nothing but samples */
{
    struct buf record = {0};

    begin_epoch(b);
    put_code(&b->block, 0, "f", 1, 0);
    put_stacks(&b->block, 1000, 1);
    put_samples(&record, 1 << 20, 1, 1);
    repeat(b, &record);
    buf_deinit(&record);
}

static void repeat_empty(struct bomb *b, uint32_t type)
{
    struct buf record = {0};

    begin_epoch(b);
    buf_put_uleb(&record, type);
    buf_put_uleb(&record, 0);
    repeat(b, &record);
    buf_deinit(&record);
}

static void processes(struct bomb *b) /* records of two bytes that take a hundred times as much memory */
{
    repeat_empty(b, TRACE_process);
}

static void tuples(struct bomb *b)
{
    repeat_empty(b, TRACE_tuple);
}

static void unknown(struct bomb *b) /* records that this version passes over */
{
    repeat_empty(b, 1000);
}

static void line_tables(struct bomb *b) /* one table of 1 MiB, decoded for each of many frames */
{
    begin_epoch(b);
    put_code(&b->block, 0, "f", 1, 1 << 20);
    for (uint64_t i = 0; i < 100000; i++)
        PUT(&b->block, python_frame, 1, 2 * ((1 << 20) - i), 1);
    for (uint64_t i = 0; i < 100000; i++) {
        PUT(&b->block, stack, 0, 1, i + 1);
        PUT(&b->block, tuple, 0, 0, 0, i + 1, 0, 1, 0);
    }
    flush(b, TRACE_BLOCK_STARTS_EPOCH);
    put_samples(&b->block, 100000, 1, 100000);
    flush(b, TRACE_BLOCK_ENDS_EPOCH);
}

static void own_losses(struct bomb *b) /* losses and settings with names of their own, which are looked for in a list */
{
    begin_epoch(b);
    for (uint64_t i = 0; i < 60000; i++) {
        char name[32];
        put_string(&b->block, name, (size_t)snprintf(name, sizeof name, "loss %llu", (unsigned long long)i));
        PUT(&b->block, loss, 1, 0, 5000, i + 4, 1, 0);
        PUT(&b->block, meta, i + 4, 3);
    }
    put_code(&b->block, 0, "f", 1, 0);
    put_stacks(&b->block, 1, 1);
    put_samples(&b->block, 1, 1, 1);
    flush(b, TRACE_BLOCK_STARTS_EPOCH | TRACE_BLOCK_ENDS_EPOCH);
}

static void periods(struct bomb *b) /* changes of the period in the wrong order, which are sorted one by one */
{
    begin_epoch(b);
    for (uint64_t i = 0; i < 400000; i++)
        PUT(&b->block, period, 1, 1000000 - i, 5, 0);
    flush(b, TRACE_BLOCK_STARTS_EPOCH | TRACE_BLOCK_ENDS_EPOCH);
}

static void renames(struct bomb *b) /* a process gets another long name again and again */
{
    struct buf record = {0};
    char *name = memset(malloc(PIECE), 'n', PIECE);

    begin_epoch(b);
    put_string(&b->block, name, PIECE);
    put_code(&b->block, 0, "f", 1, 0);
    put_stacks(&b->block, 1, 1);
    put_samples(&b->block, 1, 1, 1);
    PUT(&record, process_name, 1, 5, 4);
    repeat(b, &record);
    buf_deinit(&record);
    free(name);
}

static const struct {
    const char *name;
    void (*make)(struct bomb *b);
} bombs[] = {{"names", names},         {"prefixes", prefixes},     {"owners", owners},         {"samples", samples},
             {"processes", processes}, {"tuples", tuples},         {"unknown", unknown},       {"line-tables", line_tables},
             {"own-losses", own_losses}, {"periods", periods},     {"renames", renames}};

int main(int argc, char **argv)
{
    const struct trace_file_header header = {
        .version = TRACE_VERSION, .least_reader = TRACE_LEAST_READER, .header_len_bytes = TRACE_FILE_HEADER_BYTES};
    struct bomb b = {.blocks = argc > 3 ? atoi(argv[3]) : 12};
    uint8_t head[TRACE_FILE_HEADER_BYTES];

    for (size_t i = 0; argc > 2 && i < sizeof bombs / sizeof *bombs; i++) {
        if (strcmp(argv[2], bombs[i].name) || !(b.out = fopen(argv[1], "we")))
            continue;
        trace_file_header_pack(&header, head);
        fwrite(head, sizeof head, 1, b.out);
        b.file_bytes = sizeof head;
        bombs[i].make(&b);
        buf_deinit(&b.block);
        return fclose(b.out) ? 1 : 0;
    }
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++)
        puts(bombs[i].name);
    return argc == 1 ? 0 : 2;
}
