/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file around call frame information, so that a fuzzer need not find out how to make one. */
#ifndef TESTS_FUZZ_ELF_AROUND_H
#define TESTS_FUZZ_ELF_AROUND_H

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* The code is [0, ELF_AROUND_CODE) of both the file and its addresses; the information follows. */
#define ELF_AROUND_CODE 0x1000

static uint8_t *elf_around(const uint8_t *cfi, size_t cfi_len, bool debug_frame, size_t *len_bytes)
{
    static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
    size_t names_at = ELF_AROUND_CODE + cfi_len, sections_at = (names_at + sizeof names + 7) & ~(size_t)7;
    uint8_t *p = calloc(1, sections_at + 3 * sizeof(Elf64_Shdr));
    Elf64_Ehdr ehdr = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
        .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof ehdr, .e_ehsize = sizeof ehdr,
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1, .e_shentsize = sizeof(Elf64_Shdr), .e_shoff = sections_at,
        .e_shnum = 3, .e_shstrndx = 2, .e_entry = 0x80,
    };
    Elf64_Phdr phdr = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = ELF_AROUND_CODE, .p_memsz = ELF_AROUND_CODE};
    Elf64_Shdr sections[3] = {
        {0},
        {.sh_name = debug_frame ? 11 : 1, .sh_type = SHT_PROGBITS, .sh_addr = debug_frame ? 0 : ELF_AROUND_CODE,
         .sh_offset = ELF_AROUND_CODE, .sh_size = cfi_len},
        {.sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = sizeof names},
    };

    if (!p)
        abort();
    memcpy(p, &ehdr, sizeof ehdr);
    memcpy(p + sizeof ehdr, &phdr, sizeof phdr);
    if (cfi_len)
        memcpy(p + ELF_AROUND_CODE, cfi, cfi_len);
    memcpy(p + names_at, names, sizeof names);
    memcpy(p + sections_at, sections, sizeof sections);
    *len_bytes = sections_at + sizeof sections;
    return p;
}

#endif
