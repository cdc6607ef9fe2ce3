/* SPDX-License-Identifier: Apache-2.0 */
/* Small binaries for tests, made with the compiler and objcopy in a temporary folder. */
#ifndef TESTS_UNIT_ELF_FIXTURE_H
#define TESTS_UNIT_ELF_FIXTURE_H

#include "tests/unit/test.h"

#include <ftw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fcntl.h>

struct fixture {
    char dir[64];
};

static int fixture_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int fixture_init(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    strcpy(f->dir, "/tmp/pysym-test-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    *state = f;
    return 0;
}

static int fixture_deinit(void **state)
{
    struct fixture *f = *state;

    nftw(f->dir, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

/* Runs a shell command in the folder; false when it fails. */
__attribute__((format(printf, 2, 3))) static bool fixture_run(const struct fixture *f, const char *fmt, ...)
{
    char command[4096];
    int used = snprintf(command, sizeof command, "cd '%s' && ", f->dir);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(command + used, sizeof command - (size_t)used, fmt, ap);
    va_end(ap);
    /* The tools must not run under the sanitizer that the test may run under. */
    unsetenv("LD_PRELOAD");
    return system(command) == 0;
}

__attribute__((unused)) static void fixture_write(const struct fixture *f, const char *name, const void *data,
                                                  size_t len_bytes)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, len_bytes, out), len_bytes);
    assert_int_equal(fclose(out), 0);
}

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
