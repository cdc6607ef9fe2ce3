/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files that ask for more memory or time than there is, and files whose owner changes them while they are read. They
 * are sparse, so they cost the test nothing either.
 */
#include "tests/unit/test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/cpython/image.h"
#include "formats/elf/cfi_file.h"
#include "formats/elf/identity.h"
#include "formats/elf/unwind_table.h"
#include "formats/elf/window.h"

enum { SECTIONS_AT = 0x1000, NAMES_AT = 0x2000, NOTE_AT = 0x3000, CODE_AT = 0x10000, FUNCTION_BYTES = 16 };

static uint64_t resident_most(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static void put(int fd, uint64_t at, const void *data, size_t len_bytes)
{
    assert_int_equal(pwrite(fd, data, len_bytes, (off_t)at), len_bytes);
}

/* A shared library of so many bytes, all of it one segment. The section headers are the caller's. */
static int make_file(uint64_t len_bytes, uint16_t section_count, uint16_t names)
{
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
        .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof header, .e_phoff = 64, .e_phnum = 1,
        .e_phentsize = sizeof(Elf64_Phdr), .e_shoff = SECTIONS_AT, .e_shnum = section_count,
        .e_shentsize = sizeof(Elf64_Shdr), .e_shstrndx = names,
    };
    const Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = len_bytes, .p_memsz = len_bytes};
    int fd = memfd_create("made", MFD_CLOEXEC);

    assert_true(fd >= 0 && !ftruncate(fd, (off_t)len_bytes));
    put(fd, 0, &header, sizeof header);
    put(fd, 64, &load, sizeof load);
    return fd;
}

/* Eight million sections, by the number in the first one: libelf would allocate two gigabytes for them. */
TEST(section_count)
{
    const Elf64_Shdr first = {.sh_size = 8 << 20};
    struct elf_section s = {0};
    struct elf_file f;
    int fd = make_file((uint64_t)(8 << 20) * sizeof first + SECTIONS_AT, 0, 1);

    put(fd, SECTIONS_AT, &first, sizeof first);
    uint64_t before = resident_most();
    OK(elf_file_open(fd, "made", NULL, &f));
    assert_true(f.is_elf);
    assert_int_equal(f.segments.count, 1);
    assert_int_equal(f.section_count, 0);
    assert_false(elf_file_next_section(&f, &s));
    elf_file_close(&f);
    void *image = mmap(NULL, (8 << 20) * sizeof first, PROT_READ, MAP_PRIVATE, fd, 0);
    OK(elf_file_open_memory(image, (8 << 20) * sizeof first, "made", &f));
    assert_true(f.is_elf);
    assert_null(elf_file_handle(&f));
    elf_file_close(&f);
    munmap(image, (8 << 20) * sizeof first);
    assert_true(resident_most() - before < 32 << 20);
    close(fd);
}

/* Tables of dynamic symbols, names and symbols of gigabytes, in a file that says it is an interpreter. */
TEST(long_sections)
{
    enum { COUNT = 6 };
    static const char names[] = "\0.PyRuntime\0.shstrtab\0.dynsym\0.symtab\0.strtab";
    const uint64_t gib = UINT64_C(1) << 30;
    const Elf64_Shdr sections[COUNT] = {
        {0},
        {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_WRITE, .sh_addr = CODE_AT, .sh_offset = CODE_AT, .sh_size = gib},
        {.sh_name = 12, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof names},
        {.sh_name = 22, .sh_type = SHT_DYNSYM, .sh_offset = CODE_AT, .sh_size = 3 * gib, .sh_link = 5},
        {.sh_name = 30, .sh_type = SHT_SYMTAB, .sh_offset = CODE_AT, .sh_size = 3 * gib, .sh_link = 5},
        {.sh_name = 38, .sh_type = SHT_STRTAB, .sh_offset = CODE_AT, .sh_size = 3 * gib},
    };
    const Elf64_Sym symbol = {.st_name = 0x7ffffff0, .st_info = STT_FUNC, .st_shndx = 1};
    int fd = make_file(4 * gib, COUNT, 2);
    struct py_image python;

    put(fd, SECTIONS_AT, sections, sizeof sections);
    put(fd, NAMES_AT, names, sizeof names);
    for (int i = 0; i < 1000; i++)
        put(fd, CODE_AT + 24 * (unsigned)i, &symbol, sizeof symbol);
    uint64_t before = resident_most();
    OK(py_image_read(fd, "made", &python));
    assert_true(python.is_python && python.refused);
    py_image_deinit(&python);
    assert_true(resident_most() - before < 32 << 20);
    close(fd);
}

/* ---- identity ---- */

static uint32_t id_kind_of(int fd, const struct elf_stop *stop)
{
    struct elf_identity id;
    struct elf_file f;

    OK(elf_file_open(fd, "made", stop, &f));
    OK(elf_identity_of(&f, &id));
    uint32_t kind = id.id_kind;
    elf_identity_deinit(&id);
    elf_file_close(&f);
    return kind;
}

/* Notes of GNU properties are padded to 8 bytes, as their segment says, and others to 4: a build ID is found behind either. */
TEST(padding_of_notes)
{
    static const uint32_t property[] = {4, 4, 5, 0x554e47 /* "GNU" */, 1}, build_id[] = {4, 8, NT_GNU_BUILD_ID, 0x554e47, 0x11111111, 0x22222222};
    const uint16_t count = 2;

    for (unsigned align = 4; align <= 8; align += 4) {
        uint64_t second = (sizeof property + align - 1) / align * align;
        const Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = second + sizeof build_id, .p_align = align};
        int fd = make_file(1 << 20, 0, 0);
        struct elf_identity id;

        put(fd, offsetof(Elf64_Ehdr, e_phnum), &count, sizeof count);
        put(fd, 64 + sizeof note, &note, sizeof note);
        put(fd, NOTE_AT, property, sizeof property);
        put(fd, NOTE_AT + second, build_id, sizeof build_id);
        OK(elf_identity_read(fd, "made", &id));
        assert_true(elf_identity_is(&id, ELF_ID_BUILD_ID, (const uint8_t *)(build_id + 4), 8));
        elf_identity_deinit(&id);
        close(fd);
    }
}

/* Contents are hashed of ELF files up to a limit. Sixteen terabytes, the longest file of ext4, would take hours. */
TEST(what_is_hashed)
{
    static const char script[] = "#!/bin/sh\n";
    int fd = make_file(1 << 20, 0, 0);

    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_CONTENT_HASH);
    assert_int_equal(ftruncate(fd, (off_t)(UINT64_C(1) << 43)), 0);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_NONE);
    close(fd);
    fd = memfd_create("script", MFD_CLOEXEC);
    put(fd, 0, script, sizeof script);
    assert_int_equal(id_kind_of(fd, NULL), ELF_ID_NONE);
    close(fd);
}

/* ---- windows ---- */

TEST(window)
{
    enum { WORDS = 6 << 20, OFFSET = 12, LEN = WORDS * 4 - OFFSET };
    uint32_t *words = malloc(WORDS * sizeof *words);
    int fd = memfd_create("words", MFD_CLOEXEC);
    uint64_t random = 1;

    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
    put(fd, 0, words, WORDS * sizeof *words);
    struct elf_window *w = elf_window_create(fd, NULL, OFFSET, LEN);
    assert_non_null(w);
    const uint8_t *kept = NULL, *all = (const uint8_t *)words + OFFSET;
    uint64_t kept_at = 0, kept_len = 0;
    for (int i = 0; i < 2000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = (random >> 32) % LEN, len = 1 + (random >> 12) % (i % 3 ? 100 : ELF_WINDOW_NEED_MAX);
        len = len < LEN - at ? len : LEN - at;
        const uint8_t *bytes = elf_window_need(w, at, len);
        assert_ptr_equal(bytes, w->base + at);
        assert_memory_equal(bytes, all + at, len);
        if (kept)
            assert_memory_equal(kept, all + kept_at, kept_len);
        kept = bytes;
        kept_at = at;
        kept_len = len;
        assert_true(w->loaded <= ELF_WINDOW_CHUNKS);
    }
    assert_null(elf_window_need(w, LEN - 3, 4));
    assert_null(elf_window_need(w, UINT64_MAX, 2));
    assert_null(elf_window_need(w, 0, ELF_WINDOW_NEED_MAX + 1));
    assert_false(w->failed);
    elf_window_destroy(w);

    w = elf_window_create(fd, NULL, OFFSET, LEN);
    assert_non_null(elf_window_need(w, 0, 100));
    assert_int_equal(ftruncate(fd, LEN / 2), 0);
    assert_null(elf_window_need(w, LEN - 100, 100));
    assert_true(w->failed);
    elf_window_destroy(w);
    close(fd);
    free(words);
}

/* ---- call frame information that is longer than a window ---- */

/* `count` functions, each with an FDE of 32 bytes: CFA rsp+8, and from the second byte on rsp+16 or rsp+24. */
static int make_functions(uint32_t count)
{
    static const char names[] = "\0.eh_frame\0.shstrtab";
    static const uint8_t cie[24] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
    const uint64_t frame_at = CODE_AT + (uint64_t)count * FUNCTION_BYTES, len = sizeof cie + 32 * (uint64_t)count;
    const Elf64_Shdr sections[] = {
        {0},
        {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addr = frame_at, .sh_offset = frame_at, .sh_size = len},
        {.sh_name = 11, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof names},
    };
    int fd = make_file(frame_at + len, 3, 2);
    uint8_t *frame = calloc(1, len);

    put(fd, SECTIONS_AT, sections, sizeof sections);
    put(fd, NAMES_AT, names, sizeof names);
    memcpy(frame, cie, sizeof cie);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = sizeof cie + 32 * (uint64_t)i;
        const uint32_t words[4] = {28, (uint32_t)at + 4, (uint32_t)(CODE_AT + i * FUNCTION_BYTES - (frame_at + at + 8)),
                                   FUNCTION_BYTES};
        const uint8_t program[] = {0, 0x41, 0x0e, i % 2 ? 16 : 24};
        memcpy(frame + at, words, sizeof words);
        memcpy(frame + at + sizeof words, program, sizeof program);
    }
    put(fd, frame_at, frame, len);
    free(frame);
    return fd;
}

TEST(long_eh_frame)
{
    enum { COUNT = 600000 };
    const struct unwind_limits enough = {.rows_max = 2 * COUNT + 1}, less = {.rows_max = 2 * COUNT - 1},
                               fewer = {.rows_max = COUNT - 1};
    int fd = make_functions(COUNT);
    struct unwind_table *t, *u;

    OK(unwind_table_build(fd, "made", &enough, &t));
    assert_int_equal(t->row_count, 2 * COUNT + 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t vaddr = CODE_AT + (uint64_t)i * FUNCTION_BYTES;
        assert_int_equal(unwind_table_lookup(t, vaddr).cfa8, 1);
        assert_int_equal(unwind_table_lookup(t, vaddr + 1).cfa8, i % 2 ? 2 : 3);
    }
    assert_int_equal(unwind_table_lookup(t, CODE_AT + (uint64_t)COUNT * FUNCTION_BYTES).type, UNWIND_NONE);
    unwind_table_destroy(t);
    for (int i = 0; i < 2; i++) {
        struct error *err = unwind_table_build(fd, "made", i ? &less : &fewer, &u);
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_LIMIT);
        error_destroy(err);
    }
    close(fd);
}

/* ---- being told to stop ---- */

TEST(stop)
{
    atomic_bool flag = true;
    const struct elf_stop stops[] = {{.flag = &flag}, {.deadline_ns = now_ns() - 1}};
    int fd = make_functions(100);
    struct unwind_table *t;
    uint8_t byte;

    for (size_t i = 0; i < 2; i++) {
        const struct unwind_limits limits = {.stop = &stops[i]};
        assert_true(elf_stop_reached(&stops[i]));
        assert_false(elf_read(fd, &stops[i], 0, &byte, 1));
        assert_int_equal(id_kind_of(fd, &stops[i]), ELF_ID_NONE);
        struct error *err = unwind_table_build(fd, "made", &limits, &t);
        assert_non_null(err);
        error_destroy(err);
    }
    flag = false;
    const struct elf_stop later = {.flag = &flag, .deadline_ns = now_ns() + 3600 * NS_PER_S};
    assert_false(elf_stop_reached(&later));
    assert_true(elf_read(fd, &later, 0, &byte, 1));
    assert_int_equal(id_kind_of(fd, &later), ELF_ID_CONTENT_HASH);
    close(fd);
}

/* A stop that comes while the sections are read leaves no table, rather than one with holes. */
TEST(stop_half_way)
{
    int fd = make_functions(400000);
    struct elf_file f;
    struct cfi_section section;
    struct cfi_fde fde;
    uint64_t offset = 0, met = 0;
    atomic_bool flag = false;
    const struct elf_stop stop = {.flag = &flag};

    OK(elf_file_open(fd, "made", &stop, &f));
    OK(cfi_find_section(&f, false, &section));
    assert_non_null(section.window);
    while (cfi_next(&section, &offset, &fde))
        flag = ++met >= 1000;
    assert_true(met >= 1000 && met < 400000);
    assert_true(section.window->failed);
    elf_file_close(&f);
    close(fd);
}
