/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive makes the bytes, and passes them on in large pieces. */
#include "capture/archive/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/archive/libarchive.h"
#include "formats/elf/strip.h"

enum { CHUNK = 1 << 18 };

static const struct libarchive *lib; /* NULL until the first pack is made */

struct pack {
    struct archive *archive;
    const char *path;
    struct archive_sink sink;
    struct archive_entry *entry;
    uint64_t len_bytes;
    struct error *write_error; /* why writing failed, until check() returns it */
    bool given_up;   /* what still comes goes nowhere */
    uint8_t chunk[CHUNK];
};

static la_ssize_t on_write(struct archive *a, void *ctx, const void *data, size_t len)
{
    struct pack *p = ctx;

    if (p->given_up)
        return (la_ssize_t)len;
    error_destroy(p->write_error);
    p->write_error = p->sink.write(p->sink.ctx, data, len);
    if (!p->write_error) {
        p->len_bytes += len;
        return (la_ssize_t)len;
    }
    lib->archive_set_error(a, EIO, "write failed");
    return -1;
}

/* What libarchive says, or what kept it from writing. */
static struct error *check(struct pack *p, int status)
{
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) /* a name that is no UTF-8 is a warning, and stays as it is */
        return NULL;
    if (p->write_error) {
        struct error *err = p->write_error;
        p->write_error = NULL;
        return err;
    }
    const char *text = lib->archive_error_string(p->archive);
    return error_path(ERROR_IO, p->path, "could not be written: %s", text ? text : "no reason is known");
}

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), end_len = strlen(end);

    return len > end_len && !strcmp(s + len - end_len, end);
}

static int add_filter(struct archive *a, const char *path)
{
    if (ends_with(path, ".tar"))
        return lib->archive_write_add_filter_none(a);
    if (ends_with(path, ".gz") || ends_with(path, ".tgz"))
        return lib->archive_write_add_filter_gzip(a);
    if (ends_with(path, ".bz2"))
        return lib->archive_write_add_filter_bzip2(a);
    if (ends_with(path, ".xz"))
        return lib->archive_write_add_filter_xz(a);
    return lib->archive_write_add_filter_zstd(a);
}

static struct error *begin(struct pack *p)
{
    p->archive = lib->archive_write_new();
    p->entry = lib->archive_entry_new();
    if (!p->archive || !p->entry)
        return error_no_memory();
    TRY(check(p, lib->archive_write_set_format_pax_restricted(p->archive)));
    TRY(check(p, add_filter(p->archive, p->path)));
    lib->archive_write_set_bytes_per_block(p->archive, CHUNK);
    lib->archive_write_set_bytes_in_last_block(p->archive, 1);
    return check(p, lib->archive_write_open(p->archive, p, NULL, on_write, NULL));
}

struct error *pack_create(const char *path, const struct archive_sink *sink, struct pack **out)
{
    TRY(libarchive_load(&lib));
    struct pack *p = calloc(1, sizeof *p);
    if (!p)
        return error_no_memory();
    p->path = path;
    p->sink = *sink;
    struct error *err = begin(p);
    if (err) {
        pack_destroy(p);
        return err;
    }
    *out = p;
    return NULL;
}

static struct error *put_header(struct pack *p, const char *member, unsigned type, uint64_t len_bytes, const char *target)
{
    struct archive_entry *e = lib->archive_entry_clear(p->entry);

    lib->archive_entry_set_pathname(e, member);
    lib->archive_entry_set_filetype(e, type);
    lib->archive_entry_set_perm(e, type == AE_IFLNK ? 0777 : 0644);
    lib->archive_entry_set_mtime(e, 0, 0);
    lib->archive_entry_set_size(e, (la_int64_t)len_bytes);
    if (target)
        lib->archive_entry_set_symlink(e, target);
    return check(p, lib->archive_write_header(p->archive, e));
}

static struct error *put_data(struct pack *p, const void *data, uint64_t len_bytes)
{
    for (const uint8_t *at = data; len_bytes;) {
        la_ssize_t n = lib->archive_write_data(p->archive, at, len_bytes < CHUNK ? len_bytes : CHUNK);
        if (n <= 0)
            return check(p, n < 0 ? (int)n : ARCHIVE_FATAL);
        at += n;
        len_bytes -= (uint64_t)n;
    }
    return NULL;
}

/* Reads at `at` until the buffer is full or the file ends; the count, or -1. */
static ssize_t read_at(int fd, void *to, size_t len_bytes, uint64_t at)
{
    size_t have = 0;

    while (have < len_bytes) {
        ssize_t n = pread(fd, (uint8_t *)to + have, len_bytes - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (!n)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

/* The file in pieces, less what is to be left out: `strip` or NULL. */
static struct error *put_file(struct pack *p, const char *member, int fd, uint64_t len_bytes,
                              const struct elf_strip *strip, bool *ended_early)
{
    TRY(put_header(p, member, AE_IFREG, len_bytes, NULL));
    for (uint64_t at = 0; at < len_bytes;) {
        size_t want = len_bytes - at < CHUNK ? (size_t)(len_bytes - at) : CHUNK;
        ssize_t n = *ended_early ? 0 : read_at(fd, p->chunk, want, at);
        size_t have = n < 0 ? 0 : (size_t)n;
        if (have < want) {
            /* What the header promised has to come. */
            *ended_early = true;
            memset(p->chunk + have, 0, want - have);
        }
        if (strip)
            elf_strip_apply(strip, at, p->chunk, have);
        TRY(put_data(p, p->chunk, want));
        at += want;
    }
    return NULL;
}

static struct error *put_stripped(struct pack *p, const char *member, int fd, uint64_t len_bytes, bool *ended_early)
{
    struct elf_strip strip = {0};
    struct elf_file f;

    struct error *err = elf_file_open(fd, member, NULL, &f);
    if (!err)
        err = elf_strip(&f, &strip);
    elf_file_close(&f);
    if (!err)
        err = put_file(p, member, fd, len_bytes, &strip, ended_early);
    elf_strip_deinit(&strip);
    return err;
}

struct error *pack_file(struct pack *p, const char *member, int fd, bool strip, bool *ended_early)
{
    struct stat st;

    *ended_early = false;
    if (fstat(fd, &st))
        return error_file(errno, member, "cannot be looked at");
    if (strip && st.st_size > 0)
        return put_stripped(p, member, fd, (uint64_t)st.st_size, ended_early);
    return put_file(p, member, fd, (uint64_t)st.st_size, NULL, ended_early);
}

struct error *pack_bytes(struct pack *p, const char *member, const void *data, uint64_t len_bytes)
{
    TRY(put_header(p, member, AE_IFREG, len_bytes, NULL));
    return put_data(p, data, len_bytes);
}

struct error *pack_link(struct pack *p, const char *member, const char *target)
{
    return put_header(p, member, AE_IFLNK, 0, target);
}

struct error *pack_finish(struct pack *p)
{
    TRY(check(p, lib->archive_write_close(p->archive)));
    return p->sink.finish(p->sink.ctx);
}

uint64_t pack_size(const struct pack *p)
{
    return p->len_bytes;
}

void pack_destroy(struct pack *p)
{
    if (!p)
        return;
    /* Freeing writes an end, and only then lets go of all: after archive_write_fail() it keeps its buffer. */
    p->given_up = true;
    lib->archive_write_free(p->archive);
    lib->archive_entry_free(p->entry);
    error_destroy(p->write_error);
    free(p);
}
