/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/sampler/shared_array.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARED_PART ((size_t)256 << 10)

struct error *shared_array_reserve(struct shared_array *a, int fd, size_t element_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    a->len_bytes = (a->count * element_bytes + page - 1) & ~(page - 1);
    a->mapped = calloc(a->len_bytes / SHARED_PART + 1, sizeof *a->mapped);
    if (!a->mapped)
        return error_no_memory();
    void *data = mmap(NULL, a->len_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return error_os(errno, "the address range for the arrays of unwind tables cannot be reserved");
    a->data = data;
    a->fd = fd;
    return NULL;
}

struct error *shared_array_map(struct shared_array *a, size_t start, size_t len_bytes)
{
    for (size_t part = start / SHARED_PART; len_bytes && part <= (start + len_bytes - 1) / SHARED_PART; part++) {
        if (a->mapped[part])
            continue;
        size_t at = part * SHARED_PART, len = a->len_bytes - at < SHARED_PART ? a->len_bytes - at : SHARED_PART;
        if (mmap(a->data + at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->fd, (off_t)at) == MAP_FAILED)
            return error_os(errno, "the arrays for unwind tables cannot be mapped");
        a->mapped[part] = true;
    }
    return NULL;
}

void shared_array_deinit(struct shared_array *a)
{
    if (a->data)
        munmap(a->data, a->len_bytes);
    free(a->mapped);
}
