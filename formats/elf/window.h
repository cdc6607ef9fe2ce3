/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a file that is read as it is needed, and of which only 16 MiB are in memory at a time. Its bytes keep their
 * addresses: the window reserves address space for the whole part, fills chunks of it with pread() and gives back the
 * memory of those that were not needed for longest. So a section of any length can be walked as if it were in memory, at
 * a bounded cost.
 */
#ifndef FORMATS_ELF_WINDOW_H
#define FORMATS_ELF_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/read.h"

enum {
    ELF_WINDOW_CHUNK_BYTES = 64 << 10,
    ELF_WINDOW_CHUNKS = 256,         /* in memory at a time: 16 MiB */
    ELF_WINDOW_NEED_MAX = 1 << 20,   /* bytes that can be needed at once */
};

struct elf_window {
    const uint8_t *base; /* of the whole part; only what elf_window_need() returned may be read */
    uint64_t len_bytes;
    bool failed;         /* a read failed: the file shrank, or it was time to stop */
    /* private */
    int fd;
    const struct elf_stop *stop;
    uint64_t offset;
    uint64_t *used;      /* of each chunk: when it was last needed; 0: not in memory */
    uint64_t now;
    uint32_t loaded;
};

/* `fd` and `stop` (NULL: never) are borrowed until the window is destroyed. NULL: out of memory or address space. */
struct elf_window *elf_window_create(int fd, const struct elf_stop *stop, uint64_t offset, uint64_t len_bytes);
void elf_window_destroy(struct elf_window *w);
/*
 * The bytes at `at`, counted from the window's start; NULL if they lead out of it, are more than ELF_WINDOW_NEED_MAX, or
 * cannot be read (w->failed). They stay until later needs have touched ELF_WINDOW_CHUNKS other chunks, so the bytes of
 * the last two needs are always there.
 */
const uint8_t *elf_window_need(struct elf_window *w, uint64_t at, uint64_t len_bytes);

#endif
