/* SPDX-License-Identifier: Apache-2.0 */
/* The two sections, and the CRC-32 of zlib. */
#include "formats/elf/links.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* A name, padded to four bytes, and a CRC. */
static bool take_debug(struct elf_links *links, struct bytes data)
{
    const char *name = bytes_cstr(&data);
    size_t at = (bytes_offset(&data) + 3) & ~(size_t)3;

    bytes_seek(&data, at);
    uint32_t crc = bytes_u32(&data);
    /* A name with directories would lead out of the folders that are searched. */
    if (data.bad || !*name || strchr(name, '/'))
        return true;
    links->debug_crc = crc;
    links->debug = strdup(name);
    return links->debug != NULL;
}

/* A path and, behind its NUL, a build ID. */
static bool take_supplement(struct elf_links *links, struct bytes data)
{
    const char *path = bytes_cstr(&data);
    size_t id_len = bytes_left(&data);

    if (!path || !*path || id_len < 2 || id_len > ELF_BUILD_ID_MAX)
        return true;
    memcpy(links->supplement_id, data.pos, id_len);
    links->supplement_id_len = (uint32_t)id_len;
    links->supplement = strdup(path);
    return links->supplement != NULL;
}

struct error *elf_links_read(int fd, struct elf_links *out)
{
    struct elf_file f;
    struct elf_section s;

    *out = (struct elf_links){0};
    struct error *err = elf_file_open(fd, "", NULL, &f);
    bool ok = !err || err->code != ERROR_NO_MEMORY;
    error_destroy(err);
    if (ok && elf_file_find_section(&f, ".gnu_debuglink", &s))
        ok = take_debug(out, elf_section_bytes(&f, &s));
    if (ok && elf_file_find_section(&f, ".gnu_debugaltlink", &s))
        ok = take_supplement(out, elf_section_bytes(&f, &s));
    elf_file_close(&f);
    if (ok)
        return NULL;
    elf_links_deinit(out);
    return error_no_memory();
}

void elf_links_deinit(struct elf_links *links)
{
    free(links->debug);
    free(links->supplement);
    *links = (struct elf_links){0};
}

bool elf_crc_matches(int fd, uint32_t expected)
{
    static const size_t chunk = 1 << 16;
    uint8_t *buffer = malloc(chunk);
    uLong crc = crc32(0, NULL, 0);
    off_t at = 0;
    ssize_t n = -1;

    while (buffer && (n = pread(fd, buffer, chunk, at)) > 0) {
        crc = crc32(crc, buffer, (uInt)n);
        at += n;
    }
    free(buffer);
    return n == 0 && crc == expected;
}
