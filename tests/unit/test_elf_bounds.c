/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files made so that reading them takes the product of two of their sizes. With no bound each of these takes minutes
 * or more memory than there is; what is asserted is what a bounded reader finds.
 */
#include "tests/unit/test.h"

#include <elf.h>
#include <fcntl.h>

#include "formats/elf/dynamic.h"
#include "formats/elf/identity.h"
#include "symbolize/binary/symbols.h"
#include "tests/unit/folder_fixture.h"

enum {
    AREA = 4 << 20, NOTES = 4096, SECTIONS = 60000, SYMBOLS = AREA / sizeof(Elf64_Sym),
    DATA_AT = 64 + NOTES * sizeof(Elf64_Phdr), NAMES_AT = DATA_AT + AREA, TABLE_AT = NAMES_AT + AREA,
    LEN = TABLE_AT + SECTIONS * sizeof(Elf64_Shdr),
};

/* Program headers, an area of data, one of names, section headers; all zeros. */
static uint8_t *make_image(uint16_t segments, uint16_t sections)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
        .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof header, .e_phoff = 64, .e_phnum = segments,
        .e_phentsize = sizeof(Elf64_Phdr), .e_shoff = TABLE_AT, .e_shnum = sections, .e_shentsize = sizeof(Elf64_Shdr),
        .e_shstrndx = 1,
    };
    uint8_t *image = calloc(1, LEN);

    assert_non_null(image);
    memcpy(image, &header, sizeof header);
    return image;
}

/* Tables of symbols in all sections but the first, all the same one, with one area of names that is all "x". */
static uint8_t *make_tables(uint32_t type)
{
    uint8_t *image = make_image(1, SECTIONS);
    Elf64_Shdr *sections = (Elf64_Shdr *)(image + TABLE_AT);

    memset(image + NAMES_AT + 1, 'x', AREA - 2);
    *(Elf64_Phdr *)(image + 64) = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = LEN, .p_memsz = LEN};
    sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = AREA};
    for (int i = 2; i < SECTIONS; i++)
        sections[i] = (Elf64_Shdr){.sh_type = type, .sh_offset = DATA_AT, .sh_size = SYMBOLS * sizeof(Elf64_Sym),
                                   .sh_entsize = sizeof(Elf64_Sym), .sh_link = 1, .sh_info = 1, .sh_addralign = 8};
    for (uint32_t i = 1; i < SYMBOLS; i++)
        ((Elf64_Sym *)(image + DATA_AT))[i] = (Elf64_Sym){
            .st_name = AREA - 2 - i, .st_info = STB_GLOBAL << 4 | STT_FUNC, .st_shndx = 2, .st_value = 0x1000, .st_size = 16};
    return image;
}

static int open_image(const struct fixture *f, const uint8_t *image)
{
    char path[512];

    fixture_write(f, "made", image, LEN);
    snprintf(path, sizeof path, "%s/made", f->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static uint32_t id_kind(const struct fixture *f, const uint8_t *image)
{
    struct elf_identity id;
    int fd = open_image(f, image);

    OK(elf_identity_read(fd, "made", &id));
    uint32_t kind = id.id_kind;
    elf_identity_deinit(&id);
    close(fd);
    return kind;
}

/* Thousands of headers for the same megabytes of notes: 16 GiB to read. */
TEST_WITH(notes, fixture_init, fixture_deinit)
{
    static const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4};
    uint8_t *image = make_image(NOTES, 0);
    Elf64_Phdr *segments = (Elf64_Phdr *)(image + 64);

    for (int i = 0; i < NOTES; i++)
        segments[i] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = DATA_AT + 64 + 4 * i, .p_filesz = AREA - 64 - 4 * i, .p_align = 4};
    memcpy(image + DATA_AT, note, sizeof note);
    assert_int_equal(id_kind(*state, image), ELF_ID_CONTENT_HASH);
    /* One that is too long hides no other. */
    segments[NOTES - 1] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = DATA_AT, .p_filesz = sizeof note, .p_align = 4};
    assert_int_equal(id_kind(*state, image), ELF_ID_BUILD_ID);
    /* They count together. */
    for (int i = 0; i < NOTES - 1; i++)
        segments[i].p_filesz = 4096;
    assert_int_equal(id_kind(*state, image), ELF_ID_CONTENT_HASH);
    free(image);
}

/* Dynamic symbols whose chain of one hash never ends: only the one numbered `right` has the name. */
static bool finds_exported(const struct fixture *f, uint32_t right)
{
    enum { CHAIN = 100000, HASH_AT = DATA_AT + 4096, SYMBOLS_AT = DATA_AT + (1 << 20) };
    uint8_t *image = make_image(2, 0);
    const Elf64_Dyn dynamic[] = {
        {DT_GNU_HASH, {HASH_AT}}, {DT_SYMTAB, {SYMBOLS_AT}}, {DT_STRTAB, {NAMES_AT}}, {DT_STRSZ, {AREA}}, {DT_NULL, {0}},
    };
    const uint32_t head[] = {1, 1, 1, 0, UINT32_MAX, UINT32_MAX, 1}; /* a bucket, its first symbol, a Bloom filter of all */
    uint32_t hash = (5381 * 33 + 'x') * 33 + 'x';
    struct elf_dynamic d;
    struct elf_file file;
    Elf64_Sym sym;

    ((Elf64_Phdr *)(image + 64))[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = LEN, .p_memsz = LEN};
    ((Elf64_Phdr *)(image + 64))[1] =
        (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_offset = DATA_AT, .p_vaddr = DATA_AT, .p_filesz = sizeof dynamic};
    memcpy(image + DATA_AT, dynamic, sizeof dynamic);
    memcpy(image + HASH_AT, head, sizeof head);
    memcpy(image + NAMES_AT + 1, "xx", 3);
    for (uint32_t i = 1; i < CHAIN; i++) {
        ((uint32_t *)(image + HASH_AT + sizeof head))[i - 1] = hash & ~1u;
        ((Elf64_Sym *)(image + SYMBOLS_AT))[i] = (Elf64_Sym){.st_name = i == right ? 1 : 2, .st_shndx = 1, .st_value = i};
    }
    int fd = open_image(f, image);
    OK(elf_file_open(fd, "made", NULL, &file));
    elf_dynamic_read(&file, &d);
    bool found = elf_find_exported(&file, &d, "xx", &sym);
    assert_true(!found || sym.st_value == right);
    assert_false(elf_find_exported(&file, &d, "y", &sym));
    elf_file_close(&file);
    close(fd);
    free(image);
    return found;
}

/* A chain is followed for some thousand symbols, which no real one has. */
TEST_WITH(dynamic_symbols, fixture_init, fixture_deinit)
{
    assert_true(finds_exported(*state, 1));
    assert_true(finds_exported(*state, 4000));
    assert_false(finds_exported(*state, 5000));
}

/* So many functions of one place, in so many tables, whose names are ends of one name. */
TEST(equal_symbols)
{
    uint8_t *image = make_tables(SHT_SYMTAB);
    struct symbol_frame frame;
    struct symbols *s;

    OK(symbols_open_memory(image, LEN, &s));
    assert_int_equal(symbols_lookup(s, 0x1008, &frame, 1), 1);
    assert_string_equal(frame.function, "xx"); /* the shortest */
    symbols_close(s);
    memcpy(image + NAMES_AT + AREA - 2, "\0x", 2);
    OK(symbols_open_memory(image, LEN, &s));
    assert_int_equal(symbols_quality(s), SYMBOLS_NONE);
    symbols_close(s);
    free(image);
}
