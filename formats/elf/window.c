/* SPDX-License-Identifier: Apache-2.0 */
/* An anonymous mapping of the part's length; MADV_DONTNEED gives back the memory of one chunk. */
#include "formats/elf/window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Two needs of the largest length, each of which may begin in the middle of a chunk. */
static_assert(2 * (ELF_WINDOW_NEED_MAX / ELF_WINDOW_CHUNK_BYTES + 1) <= ELF_WINDOW_CHUNKS, "room for two");

static uint64_t chunk_count(const struct elf_window *w)
{
    return (w->len_bytes + ELF_WINDOW_CHUNK_BYTES - 1) / ELF_WINDOW_CHUNK_BYTES;
}

struct elf_window *elf_window_create(int fd, const struct elf_stop *stop, uint64_t offset, uint64_t len_bytes)
{
    struct elf_window *w = calloc(1, sizeof *w);

    if (!w || !len_bytes)
        goto failed;
    *w = (struct elf_window){.len_bytes = len_bytes, .fd = fd, .stop = stop, .offset = offset};
    w->used = calloc(chunk_count(w), sizeof *w->used);
    if (!w->used)
        goto failed;
    void *base = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        goto failed;
    w->base = base;
    return w;
failed:
    if (w)
        free(w->used);
    free(w);
    return NULL;
}

void elf_window_destroy(struct elf_window *w)
{
    if (!w)
        return;
    munmap((void *)w->base, w->len_bytes);
    free(w->used);
    free(w);
}

static uint64_t chunk_len(const struct elf_window *w, uint64_t chunk)
{
    uint64_t left = w->len_bytes - chunk * ELF_WINDOW_CHUNK_BYTES;

    return left < ELF_WINDOW_CHUNK_BYTES ? left : ELF_WINDOW_CHUNK_BYTES;
}

static void drop_oldest(struct elf_window *w)
{
    uint64_t oldest = 0;

    for (uint64_t i = 0; i < chunk_count(w); i++) {
        if (w->used[i] && (!w->used[oldest] || w->used[i] < w->used[oldest]))
            oldest = i;
    }
    madvise((uint8_t *)w->base + oldest * ELF_WINDOW_CHUNK_BYTES, chunk_len(w, oldest), MADV_DONTNEED);
    w->used[oldest] = 0;
    w->loaded--;
}

static bool load(struct elf_window *w, uint64_t chunk)
{
    uint64_t at = chunk * ELF_WINDOW_CHUNK_BYTES;

    if (w->loaded == ELF_WINDOW_CHUNKS)
        drop_oldest(w);
    if (!elf_read(w->fd, w->stop, w->offset + at, (uint8_t *)w->base + at, chunk_len(w, chunk))) {
        w->failed = true;
        return false;
    }
    w->loaded++;
    return true;
}

const uint8_t *elf_window_need(struct elf_window *w, uint64_t at, uint64_t len_bytes)
{
    if (!len_bytes || len_bytes > ELF_WINDOW_NEED_MAX || at >= w->len_bytes || len_bytes > w->len_bytes - at)
        return NULL;
    uint64_t last = (at + len_bytes - 1) / ELF_WINDOW_CHUNK_BYTES;
    w->now++;
    for (uint64_t i = at / ELF_WINDOW_CHUNK_BYTES; i <= last; i++) {
        if (!w->used[i] && !load(w, i))
            return NULL;
        w->used[i] = w->now;
    }
    return w->base + at;
}
