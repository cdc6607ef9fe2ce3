/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies an ELF file: by its GNU build ID, else by a hash of its contents, or of parts of them where it is large.
 * With it come the loadable segments. Nothing in the file is trusted.
 */
#ifndef FORMATS_ELF_IDENTITY_H
#define FORMATS_ELF_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/file.h"

/* As in the MODULE record of the trace. */
enum elf_id_kind {
    ELF_ID_NONE = 0,
    ELF_ID_BUILD_ID = 1,
    ELF_ID_CONTENT_HASH = 2, /* xxh3-128 of the whole ELF file, canonical (big endian) byte order */
    ELF_ID_PARTS_HASH = 4,   /* the same of parts of a file that is longer than ELF_HASHED_BYTES_MAX */
};
#define ELF_BUILD_ID_MAX 64
#define ELF_HTLHASH_BYTES 16

struct elf_identity {
    bool is_elf;        /* a 64-bit little-endian ELF file */
    uint32_t id_kind;   /* enum elf_id_kind */
    uint8_t build_id[ELF_BUILD_ID_MAX];
    uint32_t build_id_len;
    uint64_t file_size; /* bytes */
    uint8_t htlhash[ELF_HTLHASH_BYTES];
    uint32_t htlhash_len; /* 0: not read */
    struct elf_segments segments;
};

/*
 * A larger file without a build ID is identified by parts of it, at most ELF_PARTS_BYTES_MAX bytes. Reading this much takes
 * a tenth of a second from memory; without a limit a sparse file of 16 TiB, which costs its owner nothing, takes hours.
 *
 * docs/trace-format.md (Hash of parts) says which parts: a file has the same hash in every version and every reader. Two
 * builds differ in them, since what moves a function or a section moves the symbols and sections behind it. A file that
 * somebody made to have the hash of another one does not: like a build ID, it is no protection against forgery.
 */
#define ELF_HASHED_BYTES_MAX (UINT64_C(256) << 20)
#define ELF_PARTS_BYTES_MAX (UINT64_C(24) << 20)

/*
 * Of an open file. One that is not ELF is not an error: is_elf is false then, and it has no identity. An ELF file
 * without a build ID, or with one behind more than 1 MiB of notes, is identified by a hash of its contents. An image in
 * memory (the vdso) is never hashed. No identity either when f->stop says so. The caller deinits *out, also after an error.
 */
struct error *elf_identity_of(const struct elf_file *f, struct elf_identity *out);
/* The same without the hash: a file that has no build ID has ELF_ID_NONE. Reads no more than headers and notes. */
struct error *elf_identity_of_headers(const struct elf_file *f, struct elf_identity *out);
/* Opens the file or image, identifies it and closes it; `fd` stays open. Never stops early. */
struct error *elf_identity_read(int fd, const char *path, struct elf_identity *out);
struct error *elf_identity_read_memory(const void *image, uint64_t len_bytes, const char *path,
                                       struct elf_identity *out);
/*
 * Adds what OpenTelemetry's profiles identify a file by, build ID or not (process.executable.build_id.htlhash): the first
 * 16 bytes of the SHA-256 of the file's first 4096 bytes, its last 4096 and its length as 8 bytes, big endian.
 */
void elf_identity_add_htlhash(const struct elf_file *f, struct elf_identity *out);
/* "build ID" and so on, for messages. */
const char *elf_id_kind_text(uint32_t id_kind);
void elf_identity_deinit(struct elf_identity *id);
/* Copies an identity into an empty one. The caller deinits *to, also after an error: out of memory. */
struct error *elf_identity_copy(const struct elf_identity *from, struct elf_identity *to);
/* How many bytes of a file of that length are hashed for an identity of that kind. 0: the kind is no hash. */
uint64_t elf_identity_hashed_bytes(uint32_t kind, uint64_t file_size);
/* Whether it is that one: the same kind (enum elf_id_kind) and the same bytes. None is no identity. */
bool elf_identity_is(const struct elf_identity *id, uint32_t kind, const uint8_t *bytes, uint32_t len_bytes);

#endif
