/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a page each, numbered from 1 as they are appended to the file. */
#include "formats/emit/spool.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/temporary.h"

/* A block in the file, 4 KiB. */
struct spool_block {
    uint64_t next; /* number of the list's next block; 0: the last */
    uint64_t unused;
    struct spool_run runs[SPOOL_BLOCK_RUNS];
};
_Static_assert(sizeof(struct spool_block) == 4096, "a block is a page");

void spool_init(struct spool *s)
{
    *s = (struct spool){.fd = -1};
}

void spool_deinit(struct spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    spool_init(s);
}

void spool_list_deinit(struct spool_list *l)
{
    free(l->runs);
    *l = (struct spool_list){0};
}

static uint64_t block_offset(uint64_t number)
{
    return (number - 1) * sizeof(struct spool_block);
}

static struct error *write_at(const struct spool *s, const void *data, size_t len, uint64_t offset)
{
    for (const char *p = data; len;) {
        ssize_t n = pwrite(s->fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_file(n ? errno : ENOSPC, temporary_folder(),
                              "cannot write a temporary file here (TMPDIR chooses another folder)");
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return NULL;
}

static struct error *flush_block(struct spool *s, struct spool_list *l)
{
    struct spool_block block = {0};
    uint64_t number = s->block_count + 1;

    if (s->fd < 0)
        TRY(temporary_open(&s->fd));
    memcpy(block.runs, l->runs, sizeof block.runs);
    TRY(write_at(s, &block, sizeof block, block_offset(number)));
    s->block_count = number;
    if (l->last)
        TRY(write_at(s, &number, sizeof number, block_offset(l->last) + offsetof(struct spool_block, next)));
    else
        l->first = number;
    l->last = number;
    l->run_count = 0;
    return NULL;
}

static struct error *add_run(struct spool *s, struct spool_list *l, const struct spool_run *run)
{
    if (l->run_count == SPOOL_BLOCK_RUNS)
        TRY(flush_block(s, l));
    if (l->run_count == l->run_cap) {
        /* Most threads have few samples: keep their lists small. */
        uint32_t cap = l->run_cap ? l->run_cap * 4 : 4;
        if (cap > SPOOL_BLOCK_RUNS)
            cap = SPOOL_BLOCK_RUNS;
        struct spool_run *runs = realloc(l->runs, cap * sizeof *runs);
        if (!runs)
            return error_no_memory();
        l->runs = runs;
        l->run_cap = cap;
    }
    l->runs[l->run_count++] = *run;
    return NULL;
}

struct error *spool_add(struct spool *s, struct spool_list *l, uint32_t stack, uint64_t weight)
{
    return add_run(s, l, &(struct spool_run){.weight = weight, .stack = stack});
}

struct error *spool_add_bytes(struct spool *s, struct spool_list *l, const uint8_t *data, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i += sizeof(struct spool_run)) {
        struct spool_run run;
        memcpy(&run, data + i, sizeof run);
        TRY(add_run(s, l, &run));
    }
    return NULL;
}

enum { READER_NEW, READER_FILE, READER_MEMORY };

void spool_reader_deinit(struct spool_reader *r)
{
    free(r->block);
    r->block = NULL;
}

static struct error *read_block(struct spool_reader *r)
{
    char *p = (char *)r->block;

    for (size_t done = 0; done < sizeof *r->block;) {
        ssize_t n = pread(r->spool->fd, p + done, sizeof *r->block - done, (off_t)(block_offset(r->next) + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_file(n ? errno : EIO, temporary_folder(), "cannot read the temporary file back");
        done += (size_t)n;
    }
    r->next = r->block->next;
    r->pos = 0;
    return NULL;
}

struct error *spool_next(struct spool_reader *r, const struct spool_run **run)
{
    *run = NULL;
    if (r->state == READER_NEW) {
        r->next = r->list->first;
        r->pos = SPOOL_BLOCK_RUNS;
        r->state = READER_FILE;
    }
    if (r->state == READER_FILE) {
        if (r->pos == SPOOL_BLOCK_RUNS && r->next) {
            if (!r->block && !(r->block = malloc(sizeof *r->block)))
                return error_no_memory();
            TRY(read_block(r));
        }
        if (r->pos < SPOOL_BLOCK_RUNS) {
            *run = &r->block->runs[r->pos++];
            return NULL;
        }
        r->pos = 0;
        r->state = READER_MEMORY;
    }
    if (r->pos < r->list->run_count)
        *run = &r->list->runs[r->pos++];
    return NULL;
}
