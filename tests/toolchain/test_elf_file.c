/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one reader of ELF files: what it takes for one, and how offsets, virtual addresses and addresses of a process
 * belong together where segments share a page of the file. What is right there, the dynamic linker says.
 */
#include "tests/unit/test.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "formats/elf/cfi_file.h"
#include "formats/elf/file.h"
#include "tests/toolchain/elf_fixture.h"

/* ---- what the dynamic linker does ---- */

struct loaded {
    const char *name;
    uint64_t bias;
    bool found;
};

static int take_loaded(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct loaded *l = ctx;

    (void)size;
    if (strcmp(info->dlpi_name, l->name))
        return 0;
    l->bias = info->dlpi_addr;
    return l->found = true;
}

/* A library of two stretches of code, of so many bytes, that share a page of the file and lie a page apart in memory. */
static void check_loaded(const struct fixture *f, unsigned first_len, unsigned second_len)
{
    static const char script[] =
        "PHDRS { h PT_LOAD FILEHDR PHDRS FLAGS(4); a PT_LOAD FLAGS(5); b PT_LOAD FLAGS(5); w PT_LOAD FLAGS(6);"
        " d PT_DYNAMIC FLAGS(6); }\n"
        "SECTIONS { . = SIZEOF_HEADERS; .gnu.hash : { *(.gnu.hash) } :h .dynsym : { *(.dynsym) } :h"
        " .dynstr : { *(.dynstr) } :h . = ALIGN(0x1000); .first : { *(.first) } :a . = . + 0x1000;"
        " .second : { *(.second) } :b . = ALIGN(0x1000) + 0x1000; .dynamic : { *(.dynamic) } :w :d"
        " /DISCARD/ : { *(.note*) *(.eh_frame*) *(.comment) } }\n";
    char source[512], path[512], line[1024];
    struct elf_file file;
    unsigned code = 0;

    int len = snprintf(source, sizeof source,
                       ".section .first,\"ax\"\n.globl first\nfirst: .zero %u, 0x90\n"
                       ".section .second,\"ax\"\n.globl second\nsecond: .zero %u, 0x90\n", first_len, second_len);
    fixture_write(f, "a.s", source, (size_t)len);
    fixture_write(f, "a.ld", script, sizeof script - 1);
    assert_true(fixture_run(f, "cc -shared -nostdlib -Wl,-z,max-page-size=4096 -Wl,-z,noseparate-code -Wl,--hash-style=gnu -Wl,--build-id=none"
                               " -Wl,-T,a.ld -o %u.so a.s", first_len));
    snprintf(path, sizeof path, "%s/%u.so", f->dir, first_len);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    OK(elf_file_open(fd, path, NULL, &file));
    assert_int_equal(file.segments.count, 4);
    const struct elf_segment *a = &file.segments.data[1], *b = &file.segments.data[2];
    assert_int_equal(a->offset + a->file_size, b->offset);
    assert_int_not_equal(b->offset % 4096, 0);
    assert_int_equal(b->vaddr - b->offset, a->vaddr - a->offset + 0x1000);

    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct loaded truth = {.name = path};
    assert_non_null(library);
    dl_iterate_phdr(take_loaded, &truth);
    assert_true(truth.found);
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end, offset;
        char perms[5];
        uint64_t bias = 0;
        if (!strstr(line, path) || sscanf(line, "%lx-%lx %4s %lx", &start, &end, perms, &offset) != 4 || perms[2] != 'x')
            continue;
        code++;
        assert_true(elf_load_bias(&file.segments, start, offset, end - start, 4096, &bias));
        assert_int_equal(bias, truth.bias);
    }
    fclose(maps);
    assert_int_equal(code, 2);
    dlclose(library);
    elf_file_close(&file);
    close(fd);
}

TEST_WITH(shared_pages, fixture_init, fixture_deinit)
{
    /* The second begins on the first one's last page: the mapping of that page is the second's. */
    check_loaded(*state, 0x1800, 0x1400);
    /* Both begin on one page: the length of the mapping tells them apart. */
    check_loaded(*state, 0x100, 0x2000);
}

/* ---- files ---- */

TEST_WITH(what_is_none, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    char path[512];
    struct elf_section s = {0};
    struct elf_file file;

    assert_true(fixture_run(f, "printf 'int f(int x){return x+1;}' >a.c && cc -shared -fPIC -o a.so a.c && : >empty"
                               " && head -c 40 a.so >short && sed 's/^.ELF\\x02/\\x7fELF\\x01/' a.so >narrow && mkdir d"));
    static const char *const none[] = {"empty", "short", "narrow", "a.c", "d"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(path, sizeof path, "%s/%s", f->dir, none[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        OK(elf_file_open(fd, path, NULL, &file));
        assert_false(file.is_elf);
        assert_int_equal(file.segments.count, 0);
        assert_false(elf_file_next_section(&file, &s));
        elf_file_close(&file);
        close(fd);
    }
    OK(elf_file_open_memory(NULL, 0, "nothing", &file));
    assert_false(file.is_elf);
    elf_file_close(&file);
    struct error *err = elf_file_open(-1, "gone", NULL, &file);
    assert_non_null(err);
    assert_string_equal(error_text(err), "gone: cannot be looked at: Bad file descriptor");
    error_destroy(err);
    elf_file_close(&file);
}

static uint8_t *read_whole(const char *path, uint64_t *len_bytes)
{
    FILE *in = fopen(path, "re");

    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    *len_bytes = (uint64_t)ftell(in);
    rewind(in);
    uint8_t *image = malloc(*len_bytes);
    assert_non_null(image);
    assert_int_equal(fread(image, 1, *len_bytes, in), *len_bytes);
    fclose(in);
    return image;
}

/* A file and its image say the same, also without section headers; one that was cut holds what it holds. */
TEST_WITH(file_and_image, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    struct elf_file file, image;
    struct elf_section section;
    struct cfi_table by_fd, by_image;
    char path[512], text[16];
    uint64_t len, offset = 0, start, fde;

    assert_true(fixture_run(f, "printf 'const char said[] = \"a line\"; int f(int x){return x+1;}' >a.c &&"
                               " cc -O1 -shared -fPIC -Wl,--build-id=none -o a.so a.c"));
    uint64_t said = fixture_symbol(f, "a.so", "said"), code = fixture_symbol(f, "a.so", "f");
    snprintf(path, sizeof path, "%s/a.so", f->dir);
    uint8_t *bytes = read_whole(path, &len);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    OK(elf_file_open(fd, path, NULL, &file));
    OK(elf_file_open_memory(bytes, len, path, &image));
    assert_int_equal(file.segments.count, image.segments.count);
    assert_memory_equal(file.segments.data, image.segments.data, file.segments.count * sizeof *file.segments.data);
    assert_false(file.is_executable);
    assert_true(elf_file_read_vaddr(&file, said, text, 7) && !strcmp(text, "a line"));
    assert_true(elf_file_read_vaddr(&image, said, text, 7) && !strcmp(text, "a line"));
    assert_false(elf_file_read_at(&image, len - 3, text, 4));
    assert_false(elf_file_read_at(&file, len - 3, text, 4));
    assert_null(elf_file_take(&file, len - 3, 4));
    assert_null(elf_file_take(&image, UINT64_MAX, 2));
    assert_true(elf_file_find_section(&file, ".dynsym", &section) && section.header.sh_type == SHT_DYNSYM);
    assert_false(elf_file_find_section(&file, ".bss", &section)); /* has no bytes */
    assert_true(cfi_find_table(&file, &by_fd) && cfi_find_table(&image, &by_image));
    assert_int_equal(by_fd.count, by_image.count);
    assert_memory_equal(by_fd.rows, by_image.rows, by_fd.count * 8);
    uint64_t row = cfi_table_search(&by_fd, code);
    assert_true(row > 0);
    cfi_table_row(&by_fd, row - 1, &start, &fde);
    assert_int_equal(start, code);
    elf_file_close(&image);

    uint64_t have = elf_file_bytes_at(&file, said, &offset);
    assert_true(have >= 7);
    OK(elf_file_open_memory(bytes, offset + 3, path, &image));
    assert_int_equal(elf_file_bytes_at(&image, said, &offset), 3);
    assert_false(elf_file_read_vaddr(&image, said, text, 7));
    elf_file_close(&image);
    elf_file_close(&file);
    close(fd);
    free(bytes);
}
