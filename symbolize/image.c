/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct error *image_map(const char *path, struct image *out)
{
    struct error *err = NULL;
    struct stat st;

    *out = (struct image){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_file(errno, path, "cannot be opened");
    if (fstat(fd, &st)) {
        err = error_file(errno, path, "cannot be looked at");
    } else if (!S_ISREG(st.st_mode)) {
        err = error_file(0, path, "is no regular file");
    } else if (st.st_size > 0) {
        /* Writable, and private: libelf changes the section headers of compressed sections in place. */
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            err = error_file(errno, path, "cannot be mapped");
        else
            *out = (struct image){p, (uint64_t)st.st_size};
    }
    close(fd);
    return err;
}

struct error *image_copy(const void *data, uint64_t len_bytes, struct image *out)
{
    *out = (struct image){0};
    if (!len_bytes)
        return NULL;
    void *p = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return error_no_memory();
    *out = (struct image){memcpy(p, data, len_bytes), len_bytes};
    return NULL;
}

void image_unmap(struct image *image)
{
    if (image->data)
        munmap((void *)image->data, image->len_bytes);
    *image = (struct image){0};
}
