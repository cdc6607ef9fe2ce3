/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacked at once, into memory of the length that the section claims. */
#include "formats/elf/unpack.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

struct elf_packed elf_packed_read(const struct elf_file *f, const struct elf_section *s)
{
    struct elf_packed p = {.data = elf_section_bytes(f, s)};

    if (s->header.sh_flags & SHF_COMPRESSED) {
        const uint8_t *at = bytes_take(&p.data, sizeof(Elf64_Chdr));
        Elf64_Chdr header = {0};
        if (at)
            memcpy(&header, at, sizeof header);
        p.type = header.ch_type;
        p.len_bytes = header.ch_size;
    } else {
        const uint8_t *magic = bytes_take(&p.data, 4);
        p.type = magic && !memcmp(magic, "ZLIB", 4) ? ELFCOMPRESS_ZLIB : 0;
        p.len_bytes = __builtin_bswap64(bytes_u64(&p.data));
    }
    if (p.data.bad)
        p.type = 0;
    return p;
}

struct bytes elf_unpack(const struct elf_file *f, const struct elf_packed *p)
{
    size_t packed_len = bytes_left(&p->data);
    uint8_t *to = p->type && p->len_bytes ? elf_file_alloc(f, p->len_bytes) : NULL;
    uLongf len = p->len_bytes;
    bool ok = false;

    if (to && p->type == ELFCOMPRESS_ZLIB)
        ok = uncompress(to, &len, p->data.pos, packed_len) == Z_OK && len == p->len_bytes;
    else if (to && p->type == ELFCOMPRESS_ZSTD)
        ok = ZSTD_decompress(to, p->len_bytes, p->data.pos, packed_len) == p->len_bytes;
    return ok ? bytes_of(to, p->len_bytes) : (struct bytes){.bad = true};
}
