/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an ELF file says that the rest of it lies: its debug file (.gnu_debuglink, by name and CRC) and the supplement
 * that dwz made of what several debug files share (.gnu_debugaltlink, by path and build ID).
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
    char *supplement; /* a path, absolute or from the debug file's folder, or NULL */
    uint8_t supplement_id[ELF_BUILD_ID_MAX];
    uint32_t supplement_id_len;
};

/* Of an open file. One that is no ELF file has no links. The caller deinits `out`. */
struct error *elf_links_read(int fd, struct elf_links *out);
void elf_links_deinit(struct elf_links *links);
/* Whether a file has the CRC of a .gnu_debuglink. */
bool elf_crc_matches(int fd, uint32_t crc);

#endif
