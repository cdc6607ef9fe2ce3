/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { CHUNK = 1 << 30 };

/* Reads the bytes of [at, end), which stay zero behind the end of a file that shrank. */
static bool read_part(int fd, uint8_t *to, off_t at, off_t end)
{
    while (at < end) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t n = pread(fd, to + at, want, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        at += n;
    }
    return true;
}

/* What is not a hole. The position of `fd` is moved; nobody else reads by it. */
static bool read_data(int fd, uint8_t *to, off_t size)
{
    for (off_t at = 0, end; at < size; at = end) {
        at = lseek(fd, at, SEEK_DATA);
        if (at < 0 && errno == ENXIO)
            return true; /* a hole up to the end */
        end = at < 0 ? -1 : lseek(fd, at, SEEK_HOLE);
        if (end < 0) /* a file system without holes */
            return read_part(fd, to, 0, size);
        if (!read_part(fd, to, at, end < size ? end : size))
            return false;
    }
    return true;
}

static uint8_t *allocate(uint64_t len_bytes)
{
    void *p = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/*
 * On a file system that is not of this host somebody else may cut the file, and where it is one in user space its owner
 * is what somebody says.
 */
static bool only_root_may_cut(int fd, const struct stat *st)
{
    static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
    struct statfs fs;

    if (st->st_uid || (st->st_mode & (S_IWGRP | S_IWOTH)) || fstatfs(fd, &fs))
        return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        if ((uint32_t)fs.f_type == local[i])
            return true;
    }
    return false;
}

static struct error *map_fd(int fd, const char *path, uint64_t len_bytes, struct image *out)
{
    void *p = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

    if (p == MAP_FAILED)
        return error_file(errno, path, "cannot be mapped");
    *out = (struct image){p, len_bytes};
    return NULL;
}

static struct error *read_fd(int fd, const char *path, struct image *out)
{
    struct stat st;

    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    if (!S_ISREG(st.st_mode))
        return error_path(ERROR_FORMAT, path, "is not a regular file");
    if ((uint64_t)st.st_size > IMAGE_BYTES_MAX)
        return error_path(ERROR_LIMIT, path, "is larger than 8 GiB");
    if (!st.st_size)
        return NULL;
    if (only_root_may_cut(fd, &st))
        return map_fd(fd, path, (uint64_t)st.st_size, out);
    uint8_t *p = allocate((uint64_t)st.st_size);
    if (!p)
        return error_no_memory();
    *out = (struct image){p, (uint64_t)st.st_size};
    if (read_data(fd, p, st.st_size))
        return NULL;
    struct error *err = error_file(errno, path, "cannot be read");
    image_deinit(out);
    return err;
}

struct error *image_read_open(int open_fd, const char *path, struct image *out)
{
    *out = (struct image){0};
    if (open_fd)
        return read_fd(open_fd, path, out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_file(errno, path, "cannot be opened");
    struct error *err = read_fd(fd, path, out);
    close(fd);
    return err;
}

struct error *image_read(const char *path, struct image *out)
{
    return image_read_open(0, path, out);
}

struct error *image_copy(const void *data, uint64_t len_bytes, struct image *out)
{
    *out = (struct image){0};
    if (!len_bytes)
        return NULL;
    uint8_t *p = allocate(len_bytes);
    if (!p)
        return error_no_memory();
    *out = (struct image){memcpy(p, data, len_bytes), len_bytes};
    return NULL;
}

void image_deinit(struct image *image)
{
    if (image->data)
        munmap((void *)image->data, image->len_bytes);
    *image = (struct image){0};
}
