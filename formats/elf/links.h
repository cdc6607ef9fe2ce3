/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file's links to other files: its debug file (.gnu_debuglink, by name and CRC) and the supplement in which dwz
 * put what several debug files share (.gnu_debugaltlink, by path and build ID).
 */
#ifndef FORMATS_ELF_LINKS_H
#define FORMATS_ELF_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/identity.h"

struct elf_links {
    char *debug;      /* a file name without directories, or NULL */
    uint32_t debug_crc;
    char *supplement; /* a path, absolute or relative to the debug file's folder, or NULL */
    uint8_t supplement_id[ELF_BUILD_ID_MAX];
    uint32_t supplement_id_len;
};

/* Of an open file; one that is not ELF has no links. The only error is ERROR_NO_MEMORY. The caller deinits *out. */
struct error *elf_links_read(int fd, struct elf_links *out);
void elf_links_deinit(struct elf_links *links);
/* Does the file have this CRC, as in .gnu_debuglink? It is read whole. */
bool elf_crc_matches(int fd, uint32_t crc);

#endif
