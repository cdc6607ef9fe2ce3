/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/elf/links.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "formats/elf/bounds.h"

/* A name, padded to four bytes, and a CRC. */
static bool take_debug(struct elf_links *links, const Elf_Data *data)
{
    const char *name = data->d_buf;
    const char *nul = memchr(name, 0, data->d_size);
    size_t at = nul ? ((size_t)(nul - name) + 4) & ~(size_t)3 : 0;

    /* A name with directories would lead out of the places that a debug file may be in. */
    if (links->debug || !nul || at + 4 > data->d_size || !*name || strchr(name, '/'))
        return true;
    memcpy(&links->debug_crc, name + at, 4);
    links->debug = strdup(name);
    return links->debug != NULL;
}

/* A path and, behind its NUL, a build ID. */
static bool take_supplement(struct elf_links *links, const Elf_Data *data)
{
    const char *path = data->d_buf;
    const char *nul = memchr(path, 0, data->d_size);
    size_t id_len = nul ? data->d_size - (size_t)(nul + 1 - path) : 0;

    if (links->supplement || !nul || !*path || id_len < 2 || id_len > ELF_BUILD_ID_MAX)
        return true;
    memcpy(links->supplement_id, nul + 1, id_len);
    links->supplement_id_len = (uint32_t)id_len;
    links->supplement = strdup(path);
    return links->supplement != NULL;
}

struct error *elf_links_read(int fd, struct elf_links *out)
{
    size_t names;
    bool ok = true;

    *out = (struct elf_links){0};
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf && !elf_getshdrstrndx(elf, &names)) {
        for (Elf_Scn *scn = NULL; ok && (scn = elf_nextscn(elf, scn));) {
            GElf_Shdr header;
            const char *name;
            Elf_Data *data;
            if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_PROGBITS ||
                !(name = elf_name(elf, names, header.sh_name)) || strncmp(name, ".gnu_debug", 10))
                continue;
            bool debug = !strcmp(name, ".gnu_debuglink"), supplement = !strcmp(name, ".gnu_debugaltlink");
            if ((debug || supplement) && (data = elf_rawdata(scn, NULL)) && data->d_buf)
                ok = debug ? take_debug(out, data) : take_supplement(out, data);
        }
    }
    elf_end(elf);
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

/* The CRC is the common CRC-32. */
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
