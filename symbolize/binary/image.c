/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct error *map_fd(int fd, const char *path, struct image *out)
{
    struct stat st;

    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    if (!S_ISREG(st.st_mode))
        return error_path(ERROR_FORMAT, path, "is not a regular file");
    if (!st.st_size)
        return NULL;
    /* Writable, and private: libelf changes the section headers of compressed sections in place. */
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return error_file(errno, path, "cannot be mapped");
    *out = (struct image){p, (uint64_t)st.st_size};
    return NULL;
}

struct error *image_map_open(int open_fd, const char *path, struct image *out)
{
    *out = (struct image){0};
    if (open_fd)
        return map_fd(open_fd, path, out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_file(errno, path, "cannot be opened");
    struct error *err = map_fd(fd, path, out);
    close(fd);
    return err;
}

struct error *image_map(const char *path, struct image *out)
{
    return image_map_open(0, path, out);
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
