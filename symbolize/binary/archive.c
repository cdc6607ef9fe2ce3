/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/temporary.h"
#include "formats/base/vec.h"

/* Limits against hostile archives; real ones stay far below. */
#define MEMBER_MAX (UINT64_C(4) << 30)
#define TOTAL_MAX (UINT64_C(32) << 30)
/* What is written to TMPDIR, which may be memory: so much for free, and so many times the archive's own bytes. */
#define WRITTEN_FREE (UINT64_C(256) << 20)
#define WRITTEN_FACTOR 64
/* What may be unpacked, to be written or skipped, likewise: nothing but zeros, which binaries without their code have most of, packs better. */
#define UNPACKED_FREE (UINT64_C(256) << 20)
#define UNPACKED_FACTOR 200
enum { ENTRIES_MAX = 1 << 18, FILES_MAX = 1 << 14, PAGE = 4096 };

struct archive_files {
    const char *path;
    struct archive *archive;
    const struct named_ids *named; /* NULL: all files are wanted */
    bool packed;
    uint64_t packed_bytes;         /* of the archive; 0: not known beforehand, as of a pipe */
    VEC(struct archive_member) members;
    uint64_t entry_count, total_bytes; /* holes included */
    uint64_t written_bytes;            /* of the temporary files; holes take no room */
};

void archive_files_close(struct archive_files *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->members.count; i++) {
        struct archive_member *m = &a->members.data[i];
        free(m->name);
        close(m->fd);
        elf_identity_deinit(&m->identity);
    }
    VEC_DEINIT(&a->members);
    archive_read_free(a->archive);
    free(a);
}

uint32_t archive_files_count(const struct archive_files *a)
{
    return (uint32_t)a->members.count;
}

const struct archive_member *archive_files_get(const struct archive_files *a, uint32_t index)
{
    return &a->members.data[index];
}

static struct error *damaged(const struct archive_files *a)
{
    const char *text = archive_error_string(a->archive);
    int why = archive_errno(a->archive);

    /* System errors have an errno; for all others libarchive sets EILSEQ or -1. */
    if (why == ENOENT || why == EACCES || why == EISDIR || why == EIO || why == EPERM)
        return error_file(why, a->path, "cannot be read");
    return error_path(ERROR_FORMAT, a->path, "is damaged or not an archive: %s", text ? text : "unknown reason");
}

static struct error *beyond(const struct archive_files *a, const char *what)
{
    return error_path(ERROR_LIMIT, a->path, "%s", what);
}

static struct error *open_temporary(int *out)
{
    struct error *err = temporary_open(out);

    if (!err || errno != EMFILE)
        return err;
    error_destroy(err);
    return error_create(ERROR_LIMIT, "the archive has more binaries than files may be open: raise ulimit -n");
}

static bool is_zero(const uint8_t *p, size_t len_bytes)
{
    return !len_bytes || (!p[0] && !memcmp(p, p + 1, len_bytes - 1));
}

/* Pages of zeros stay holes: binaries without their code have many. */
static struct error *write_at(struct archive_files *a, int fd, const uint8_t *p, size_t len_bytes, uint64_t at)
{
    while (len_bytes) {
        size_t n = PAGE - at % PAGE;
        n = n < len_bytes ? n : len_bytes;
        if (!is_zero(p, n)) {
            /* Together with the following pages that are not empty. */
            while (n < len_bytes && !is_zero(p + n, len_bytes - n < PAGE ? len_bytes - n : PAGE))
                n = len_bytes - n < PAGE ? len_bytes : n + PAGE;
            a->written_bytes += n;
            for (size_t done = 0; done < n;) {
                ssize_t written = pwrite(fd, p + done, n - done, (off_t)(at + done));
                if (written < 0 && errno == EINTR)
                    continue;
                if (written <= 0)
                    return error_os(errno, "a temporary file cannot be written");
                done += (size_t)written;
            }
        }
        p += n;
        at += n;
        len_bytes -= n;
    }
    return NULL;
}

/* Was more unpacked than goes with the archive's size? It counts what has been read of the archive if that is not known. */
static struct error *check_unpacked(const struct archive_files *a)
{
    uint64_t raw = (uint64_t)archive_filter_bytes(a->archive, 0), read = (uint64_t)archive_filter_bytes(a->archive, -1);
    uint64_t packed = a->packed_bytes ? a->packed_bytes : read;

    if (raw > TOTAL_MAX)
        return beyond(a, "holds more than 32 GiB");
    return a->packed && raw > UNPACKED_FREE + UNPACKED_FACTOR * packed ? beyond(a, "unpacks to more than 256 MiB and 200 times its size") : NULL;
}

/* Of one that is not packed libarchive seeks to the next member; else all of this one is unpacked, which may be much. */
static struct error *skip(struct archive_files *a)
{
    const void *block;
    size_t len;
    int64_t at;

    while (a->packed) {
        int status = archive_read_data_block(a->archive, &block, &len, &at);
        if (status == ARCHIVE_EOF)
            break;
        if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
            return damaged(a);
        TRY(check_unpacked(a));
    }
    return NULL;
}

/* Copies the member to an unlinked file; -1 if it is not an ELF file. `size` is what the member's header claims. */
static struct error *spool(struct archive_files *a, uint64_t size, int *fd)
{
    const void *block;
    size_t len;
    int64_t at;
    uint64_t end = 0;

    for (;;) {
        int status = archive_read_data_block(a->archive, &block, &len, &at);
        if (status == ARCHIVE_EOF)
            break;
        if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
            return damaged(a);
        if (!len)
            continue;
        if (*fd < 0) {
            if (at || len < SELFMAG || memcmp(block, ELFMAG, SELFMAG))
                return skip(a);
            TRY(open_temporary(fd));
        }
        if (at < 0 || (uint64_t)at > MEMBER_MAX || len > MEMBER_MAX - (uint64_t)at)
            return beyond(a, "holds a file of more than 4 GiB");
        TRY(check_unpacked(a));
        TRY(write_at(a, *fd, block, len, (uint64_t)at));
        if (a->written_bytes > WRITTEN_FREE + WRITTEN_FACTOR * (uint64_t)archive_filter_bytes(a->archive, -1))
            return beyond(a, "unpacks to more than 256 MiB and 64 times its size");
        if ((uint64_t)at + len > end)
            end = (uint64_t)at + len;
    }
    if (size > end)
        end = size;
    a->total_bytes += end;
    if (a->total_bytes > TOTAL_MAX)
        return beyond(a, "holds more than 32 GiB");
    if (*fd >= 0 && ftruncate(*fd, (off_t)end)) /* the file may end in a hole */
        return error_os(errno, "a temporary file cannot be written");
    return NULL;
}

static struct error *take_member(struct archive_files *a, struct archive_entry *entry)
{
    struct archive_member m = {.fd = -1};
    const char *name = archive_entry_pathname(entry);
    int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;

    if (size < 0 || size > (int64_t)MEMBER_MAX)
        return beyond(a, "holds a file of more than 4 GiB");
    struct error *err = spool(a, (uint64_t)size, &m.fd);
    if (err || m.fd < 0) {
        if (m.fd >= 0)
            close(m.fd);
        return err;
    }
    if (a->members.count == FILES_MAX)
        err = beyond(a, "holds more than 16384 binaries");
    if (!err)
        err = elf_identity_read(m.fd, a->path, &m.identity);
    if (!err && m.identity.is_elf && asprintf(&m.name, "%s:%s", a->path, name ? name : "?") < 0) {
        m.name = NULL;
        err = error_no_memory();
    }
    if (!err && m.name && !VEC_PUSH(&a->members, m))
        err = error_no_memory();
    if (err || !m.name) {
        free(m.name);
        close(m.fd);
        elf_identity_deinit(&m.identity);
    }
    return err;
}

static struct error *read_all(struct archive_files *a)
{
    struct archive_entry *entry;

    for (;;) {
        int status = archive_read_next_header(a->archive, &entry);
        if (status == ARCHIVE_EOF)
            return NULL;
        if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
            return damaged(a);
        if (++a->entry_count > ENTRIES_MAX)
            return beyond(a, "holds more than 262144 entries");
        /* A hard link has no contents. */
        if (archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry)) {
            const char *name = archive_entry_pathname(entry);
            TRY(a->named && name && !named_ids_want(a->named, name) ? skip(a) : take_member(a, entry));
        }
        TRY(check_unpacked(a));
    }
}

static const struct {
    int filter;
    unsigned char magic[6];
    size_t len;
    int (*support)(struct archive *archive);
} packings[] = {
    {ARCHIVE_FILTER_ZSTD, {0x28, 0xb5, 0x2f, 0xfd}, 4, archive_read_support_filter_zstd},
    {ARCHIVE_FILTER_GZIP, {0x1f, 0x8b}, 2, archive_read_support_filter_gzip},
    {ARCHIVE_FILTER_BZIP2, {'B', 'Z', 'h'}, 3, archive_read_support_filter_bzip2},
    {ARCHIVE_FILTER_XZ, {0xfd, '7', 'z', 'X', 'Z', 0}, 6, archive_read_support_filter_xz},
};
enum { PACKINGS = sizeof packings / sizeof *packings };

/*
 * Chooses how a regular file is unpacked. libarchive would look again behind that, and unpack what is packed twice: gigabytes that
 * hold nothing, before anybody could say stop. False: it cannot be told, as of a pipe.
 */
static bool choose_packing(struct archive_files *a)
{
    unsigned char magic[6] = {0};
    struct stat st;
    int i = 0, fd = open(a->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return false;
    bool good = !fstat(fd, &st) && S_ISREG(st.st_mode) && pread(fd, magic, sizeof magic, 0) >= 0;
    close(fd);
    if (!good)
        return false;
    a->packed_bytes = (uint64_t)st.st_size;
    while (i < PACKINGS && memcmp(magic, packings[i].magic, packings[i].len) != 0)
        i++;
    a->packed = i < PACKINGS;
    return archive_read_append_filter(a->archive, a->packed ? packings[i].filter : ARCHIVE_FILTER_NONE) == ARCHIVE_OK;
}

static struct error *open_archive(struct archive_files *a)
{
    if (!choose_packing(a)) {
        a->packed = true;
        /* Enabled one by one, because some of libarchive's other filters run programs. */
        for (int i = 0; i < PACKINGS; i++)
            packings[i].support(a->archive);
    }
    archive_read_support_format_tar(a->archive);
    return archive_read_open_filename(a->archive, a->path, 1 << 18) == ARCHIVE_OK ? NULL : damaged(a);
}

struct error *archive_files_open(const char *path, const struct named_ids *named, struct archive_files **out)
{
    struct archive_files *a = calloc(1, sizeof *a);

    if (!a)
        return error_no_memory();
    a->path = path;
    a->named = named;
    a->archive = archive_read_new();
    if (!a->archive) {
        archive_files_close(a);
        return error_no_memory();
    }
    struct error *err = open_archive(a);
    if (!err)
        err = read_all(a);
    if (err) {
        archive_files_close(a);
        return err;
    }
    *out = a;
    return NULL;
}
