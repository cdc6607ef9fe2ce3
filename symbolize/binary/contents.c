/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/contents.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "formats/elf/file.h"

int binary_contents(int fd)
{
    struct elf_section s = {0};
    struct elf_file f;
    bool sections = false;
    int holds = 0;

    error_destroy(elf_file_open(fd, "", NULL, &f));
    while (elf_file_next_section(&f, &s)) {
        if (!s.name)
            continue;
        sections = true;
        if (s.header.sh_type != SHT_NOBITS && (s.header.sh_flags & SHF_ALLOC) &&
            ((s.header.sh_flags & SHF_EXECINSTR) || !strcmp(s.name, ".eh_frame")))
            holds |= HAS_CODE;
        else if (s.header.sh_type == SHT_PROGBITS && (!strcmp(s.name, ".debug_info") || !strcmp(s.name, ".zdebug_info")))
            holds |= HAS_DWARF;
        else if (s.header.sh_type == SHT_SYMTAB)
            holds |= HAS_SYMTAB;
    }
    elf_file_close(&f);
    return sections ? holds : HAS_CODE; /* no section headers: stripped of everything but what runs */
}
