/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive, loaded when it is first used: only archives need it, and with the libraries that it needs it would take three
 * of the megabytes that a recording holds.
 */
#ifndef CAPTURE_ARCHIVE_LIBARCHIVE_H
#define CAPTURE_ARCHIVE_LIBARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "formats/base/err.h"

/* The functions that are used. */
#define LIBARCHIVE_FUNCTIONS(X) \
    X(archive_entry_clear) \
    X(archive_entry_free) \
    X(archive_entry_new) \
    X(archive_entry_set_filetype) \
    X(archive_entry_set_mtime) \
    X(archive_entry_set_pathname) \
    X(archive_entry_set_perm) \
    X(archive_entry_set_size) \
    X(archive_entry_set_symlink) \
    X(archive_error_string) \
    X(archive_set_error) \
    X(archive_write_add_filter_bzip2) \
    X(archive_write_add_filter_gzip) \
    X(archive_write_add_filter_none) \
    X(archive_write_add_filter_xz) \
    X(archive_write_add_filter_zstd) \
    X(archive_write_close) \
    X(archive_write_data) \
    X(archive_write_free) \
    X(archive_write_header) \
    X(archive_write_new) \
    X(archive_write_open) \
    X(archive_write_set_bytes_in_last_block) \
    X(archive_write_set_bytes_per_block) \
    X(archive_write_set_format_pax_restricted)

struct libarchive {
#define LIBARCHIVE_MEMBER(name) __typeof__(&(name)) name;
    LIBARCHIVE_FUNCTIONS(LIBARCHIVE_MEMBER)
#undef LIBARCHIVE_MEMBER
};

/* Loads it, unless that is done, for good. Not for several threads at once. ERROR_UNSUPPORTED if it is not installed. */
struct error *libarchive_load(const struct libarchive **out);

#endif
