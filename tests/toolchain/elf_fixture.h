/* SPDX-License-Identifier: Apache-2.0 */
/* Small binaries that tests have made in their folder, with the compiler and objcopy. */
#ifndef TESTS_TOOLCHAIN_ELF_FIXTURE_H
#define TESTS_TOOLCHAIN_ELF_FIXTURE_H

#include "tests/unit/test.h"

#include <fcntl.h>
#include <gelf.h>

#include "tests/unit/folder_fixture.h"

/* The value of a symbol of .symtab. */
__attribute__((unused)) static uint64_t fixture_symbol(const struct fixture *f, const char *file, const char *name)
{
    char path[512];
    uint64_t value = 0;

    snprintf(path, sizeof path, "%s/%s", f->dir, file);
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        GElf_Sym sym;
        if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_SYMTAB)
            continue;
        for (int i = 0; gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++) {
            const char *found = elf_strptr(elf, header.sh_link, sym.st_name);
            if (found && !strcmp(found, name))
                value = sym.st_value;
        }
    }
    elf_end(elf);
    close(fd);
    assert_int_not_equal(value, 0);
    return value;
}

/* Where a section lies in the file. */
__attribute__((unused)) static uint64_t fixture_section(const struct fixture *f, const char *file, const char *name,
                                                        uint64_t *len_bytes)
{
    char path[512];
    uint64_t offset = 0;
    size_t names;

    snprintf(path, sizeof path, "%s/%s", f->dir, file);
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) && !strcmp(elf_strptr(elf, names, header.sh_name), name)) {
            offset = header.sh_offset;
            *len_bytes = header.sh_size;
        }
    }
    elf_end(elf);
    close(fd);
    assert_int_not_equal(offset, 0);
    return offset;
}

#endif
