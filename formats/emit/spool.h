/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many growing lists in one temporary file, so that neither memory nor the number of open files grows with the trace.
 *
 * Each list fills a small block in memory; a full block is appended to the file, and the list's block before it gets a
 * link to it. Reading a list follows its links. The file has no name, so it ends with the process.
 */
#ifndef FORMATS_EMIT_SPOOL_H
#define FORMATS_EMIT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"

#define SPOOL_BLOCK_RUNS 255

/* Neighbouring samples of one thread that have the same stack. */
struct spool_run {
    uint64_t weight;
    uint32_t stack;
    uint32_t extra; /* 0; a part of what spool_add_bytes() is given */
};

struct spool {
    int fd; /* created with the first full block; -1 before */
    uint64_t block_count;
};

struct spool_list {
    uint64_t first, last;   /* numbers of its blocks in the file, counted from 1; 0: none */
    struct spool_run *runs; /* those that are not in the file yet */
    uint32_t run_count, run_cap;
};

void spool_init(struct spool *s);
void spool_deinit(struct spool *s);
void spool_list_deinit(struct spool_list *l);
/* Appends a run to the list. Only a full disk or memory fails. */
struct error *spool_add(struct spool *s, struct spool_list *l, uint32_t stack, uint64_t weight);
/* Appends bytes instead, a multiple of sizeof(struct spool_run) of them: as runs that the reader gives back as they were. */
struct error *spool_add_bytes(struct spool *s, struct spool_list *l, const uint8_t *data, size_t len_bytes);

/* Reads a list from its start. {.spool, .list} is a reader; spool_reader_deinit() frees its block. */
struct spool_reader {
    const struct spool *spool;
    const struct spool_list *list;
    struct spool_block *block;
    uint64_t next; /* number of the block; 0: none */
    uint32_t pos;
    int state;
};
void spool_reader_deinit(struct spool_reader *r);
/* *run is valid until the next call; NULL: the list is at its end. */
struct error *spool_next(struct spool_reader *r, const struct spool_run **run);

#endif
