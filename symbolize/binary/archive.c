/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/temporary.h"
#include "formats/base/vec.h"

/* Limits against hostile archives; real ones stay far below. */
#define MEMBER_MAX (UINT64_C(4) << 30)
#define TOTAL_MAX (UINT64_C(32) << 30)
/* What is written to TMPDIR, which may be memory: so much for free, and so many times the archive's own bytes. */
#define WRITTEN_FREE (UINT64_C(256) << 20)
#define WRITTEN_FACTOR 64
enum { ENTRIES_MAX = 1 << 18, FILES_MAX = 1 << 14, PAGE = 4096 };

struct archive_files {
    const char *path;
    struct archive *archive;
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
                return NULL;
            TRY(open_temporary(fd));
        }
        if (at < 0 || (uint64_t)at > MEMBER_MAX || len > MEMBER_MAX - (uint64_t)at)
            return beyond(a, "holds a file of more than 4 GiB");
        if ((uint64_t)archive_filter_bytes(a->archive, 0) > TOTAL_MAX)
            return beyond(a, "holds more than 32 GiB");
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
        if (archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry))
            TRY(take_member(a, entry));
        if ((uint64_t)archive_filter_bytes(a->archive, 0) > TOTAL_MAX)
            return beyond(a, "holds more than 32 GiB");
    }
}

struct error *archive_files_open(const char *path, struct archive_files **out)
{
    struct archive_files *a = calloc(1, sizeof *a);
    struct error *err = NULL;

    if (!a)
        return error_no_memory();
    a->path = path;
    a->archive = archive_read_new();
    if (!a->archive) {
        archive_files_close(a);
        return error_no_memory();
    }
    /* Enabled one by one, because some of libarchive's other filters run programs. */
    archive_read_support_filter_zstd(a->archive);
    archive_read_support_filter_gzip(a->archive);
    archive_read_support_filter_bzip2(a->archive);
    archive_read_support_filter_xz(a->archive);
    archive_read_support_format_tar(a->archive);
    if (archive_read_open_filename(a->archive, path, 1 << 18) != ARCHIVE_OK)
        err = damaged(a);
    if (!err)
        err = read_all(a);
    if (err) {
        archive_files_close(a);
        return err;
    }
    *out = a;
    return NULL;
}
