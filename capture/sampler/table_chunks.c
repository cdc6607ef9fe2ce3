/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a change to a map of maps the kernel waits until no program uses what was there before, some ten milliseconds. So several
 * chunks are put into it at once, which kernels can since 5.14, and a few more than are needed.
 */
#include "capture/sampler/table_chunks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/wire.h"

/* Chunks that are made at once, at least. */
#define STEP 4
/* Or so large a part of what there is. */
#define STEP_PART 8

struct error *table_chunks_init(struct table_chunks *c, int map, struct table_maker *maker)
{
    uint32_t count;

    c->max = table_maker_max(maker);
    c->map = map;
    c->maker = maker;
    c->fds = calloc(c->max, sizeof *c->fds);
    if (!c->fds)
        return error_no_memory();
    void *words = mmap(NULL, (size_t)c->max * WIRE_CHUNK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (words == MAP_FAILED)
        return error_os(errno, "the address range for unwind tables cannot be reserved");
    c->words = words;
    return table_chunks_grow(c, WIRE_CHUNK_WORDS, &count);
}

void table_chunks_deinit(struct table_chunks *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->fds[i] >= 0)
            close(c->fds[i]);
    }
    if (c->words)
        munmap(c->words, (size_t)c->max * WIRE_CHUNK_BYTES);
    free(c->fds);
}

/* Puts new chunks into the map. False: not all of them are in it. */
static bool put(const struct table_chunks *c, uint32_t count)
{
    uint32_t *keys = calloc(count, sizeof *keys), done = count;

    if (!keys)
        return false;
    for (uint32_t i = 0; i < count; i++)
        keys[i] = c->count + i;
    bool ok = !bpf_map_update_batch(c->map, keys, c->fds + c->count, &done, NULL);
    if (!ok) {
        ok = true;
        for (uint32_t i = 0; ok && i < count; i++)
            ok = !bpf_map_update_elem(c->map, &keys[i], &c->fds[c->count + i], BPF_ANY);
    }
    free(keys);
    return ok;
}

struct error *table_chunks_grow(void *ctx, uint32_t more, uint32_t *count)
{
    struct table_chunks *c = ctx;
    uint32_t left = c->max - c->count, step = c->count / STEP_PART > STEP ? c->count / STEP_PART : STEP;
    uint32_t want = more / WIRE_CHUNK_WORDS + (more % WIRE_CHUNK_WORDS > 0), made = 0;

    want = want > step ? want : step;
    want = want < left ? want : left;
    while (made < want && (c->fds[c->count + made] = table_maker_make(c->maker)) >= 0)
        made++;
    if (made && !put(c, made)) {
        while (made)
            close(c->fds[c->count + --made]);
    }
    c->count += made;
    *count = c->count * WIRE_CHUNK_WORDS;
    return NULL;
}

struct error *table_chunks_map(void *ctx, uint32_t start, uint32_t count)
{
    struct table_chunks *c = ctx;

    for (uint32_t i = start / WIRE_CHUNK_WORDS; count && i <= (start + count - 1) / WIRE_CHUNK_WORDS; i++) {
        if (c->fds[i] < 0)
            continue;
        void *at = c->words + (size_t)i * WIRE_CHUNK_WORDS;
        if (mmap(at, WIRE_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, c->fds[i], 0) == MAP_FAILED)
            return error_os(errno, "memory for unwind tables cannot be mapped");
        close(c->fds[i]);
        c->fds[i] = -1;
    }
    return NULL;
}
