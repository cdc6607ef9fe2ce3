/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters among ELF files: made-up ones, with every way to reach a thread-local variable, and damaged in every way. */
#include "tests/unit/test.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/cpython/image.h"

#define FILE_BYTES 0x2000
#define BASE 0x10000
#define AT_DYNAMIC 0x200
#define AT_SYMBOLS 0x400
#define AT_STRINGS 0x800
#define AT_HASH 0xa00
#define AT_GNU_HASH 0xb00
#define AT_RELOCS 0xc00
#define AT_SECTIONS 0xd00
#define AT_SECTION_NAMES 0xf00
#define AT_CODE 0x1000
#define AT_VERSION 0x1100
#define AT_CODE_TYPE 0x1180
#define AT_RUNTIME 0x1200
#define AT_SLOT 0x1800
#define TLS_BYTES 0x29

/* A file that looks like an interpreter, as far as we look. */
struct fake {
    uint8_t file[FILE_BYTES];
    uint32_t symbol_count, string_bytes, reloc_count;
};

static void fake_symbol(struct fake *f, const char *name, uint64_t value, uint64_t size, unsigned char type)
{
    Elf64_Sym sym = {.st_name = f->string_bytes, .st_info = ELF64_ST_INFO(STB_GLOBAL, type), .st_shndx = 1,
                     .st_value = value, .st_size = size};

    memcpy(f->file + AT_SYMBOLS + f->symbol_count++ * sizeof sym, &sym, sizeof sym);
    strcpy((char *)f->file + AT_STRINGS + f->string_bytes, name);
    f->string_bytes += (uint32_t)strlen(name) + 1;
}

static void fake_reloc(struct fake *f, uint64_t at, uint32_t type, uint32_t symbol, int64_t addend)
{
    Elf64_Rela rela = {.r_offset = at, .r_info = ELF64_R_INFO((uint64_t)symbol, type), .r_addend = addend};

    memcpy(f->file + AT_RELOCS + f->reloc_count++ * sizeof rela, &rela, sizeof rela);
}

/* One chain with everything in it, for both kinds of hash table. */
static void fake_hashes(struct fake *f)
{
    uint32_t head[] = {1, f->symbol_count, 1}, gnu[] = {1, 1, 1, 5, UINT32_MAX, UINT32_MAX, 1};

    memcpy(f->file + AT_HASH, head, sizeof head);
    memcpy(f->file + AT_GNU_HASH, gnu, sizeof gnu);
    for (uint32_t i = 1; i < f->symbol_count; i++) {
        Elf64_Sym sym;
        uint32_t next = i + 1 < f->symbol_count ? i + 1 : 0, hash = 5381;
        memcpy(&sym, f->file + AT_SYMBOLS + i * sizeof sym, sizeof sym);
        for (const uint8_t *c = f->file + AT_STRINGS + sym.st_name; *c; c++)
            hash = hash * 33 + *c;
        hash = next ? hash & ~1u : hash | 1;
        memcpy(f->file + AT_HASH + sizeof head + i * 4, &next, 4);
        memcpy(f->file + AT_GNU_HASH + sizeof gnu + (i - 1) * 4, &hash, 4);
    }
}

static void fake_headers(struct fake *f, bool executable, bool gnu_hash)
{
    Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                     .e_type = executable ? ET_EXEC : ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
                     .e_phoff = 0x40, .e_ehsize = sizeof eh, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3,
                     .e_shoff = AT_SECTIONS, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2};
    Elf64_Phdr ph[] = {{PT_LOAD, PF_R | PF_W | PF_X, 0, BASE, BASE, FILE_BYTES, FILE_BYTES, 0x1000},
                       {PT_TLS, PF_R, AT_SLOT, BASE + AT_SLOT, BASE + AT_SLOT, 8, TLS_BYTES, 8},
                       {PT_DYNAMIC, PF_R, AT_DYNAMIC, BASE + AT_DYNAMIC, BASE + AT_DYNAMIC, 0x100, 0x100, 8}};
    Elf64_Dyn dyn[] = {{gnu_hash ? DT_GNU_HASH : DT_HASH, {BASE + (gnu_hash ? AT_GNU_HASH : AT_HASH)}},
                       {DT_SYMTAB, {BASE + AT_SYMBOLS}}, {DT_STRTAB, {BASE + AT_STRINGS}}, {DT_STRSZ, {0x200}},
                       {DT_RELA, {BASE + AT_RELOCS}}, {DT_RELASZ, {f->reloc_count * sizeof(Elf64_Rela)}}};
    Elf64_Shdr sh[] = {{0},
                       {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_WRITE | SHF_ALLOC,
                        .sh_addr = BASE + AT_RUNTIME, .sh_offset = AT_RUNTIME, .sh_size = 0x400},
                       {.sh_name = 12, .sh_type = SHT_STRTAB, .sh_offset = AT_SECTION_NAMES, .sh_size = 22}};

    memcpy(f->file, &eh, sizeof eh);
    memcpy(f->file + 0x40, ph, sizeof ph);
    memcpy(f->file + AT_DYNAMIC, dyn, sizeof dyn);
    memcpy(f->file + AT_SECTIONS, sh, sizeof sh);
    memcpy(f->file + AT_SECTION_NAMES, "\0.PyRuntime\0.shstrtab", 22);
}

#define AT_EVAL 0x1a00

/* `code` is the body of the function that gives the current thread state. */
static void fake_make(struct fake *f, uint32_t version, const void *code, size_t code_len, bool executable,
                      bool gnu_hash)
{
    memset(f, 0, sizeof *f);
    f->string_bytes = 1;
    f->symbol_count = 1;
    fake_symbol(f, "Py_Something", BASE, 8, STT_OBJECT);
    fake_symbol(f, "_PyRuntime", BASE + AT_RUNTIME, 0x400, STT_OBJECT);
    fake_symbol(f, "PyCode_Type", BASE + AT_CODE_TYPE, 8, STT_OBJECT);
    fake_symbol(f, "Py_Version", BASE + AT_VERSION, 8, STT_OBJECT);
    fake_symbol(f, "_PyEval_EvalFrameDefault", BASE + AT_EVAL, 0x80, STT_FUNC);
    fake_symbol(f, "_PyThreadState_GetCurrent", BASE + AT_CODE, code_len, STT_FUNC);
    memcpy(f->file + AT_VERSION, &version, 4);
    memcpy(f->file + AT_CODE, code, code_len);
    fake_hashes(f);
    fake_headers(f, executable, gnu_hash);
}

static int open_bytes(const void *data, size_t len_bytes)
{
    int fd = memfd_create("image", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len_bytes), len_bytes);
    return fd;
}

/* Headers are made again by the caller where relocations were added. */
static void fake_read(const struct fake *f, struct py_image *img)
{
    int fd = open_bytes(f->file, sizeof f->file);
    struct error *err = py_image_read(fd, "fake", img);

    if (err)
        fail_msg("%s", error_text(err));
    close(fd);
}

#define LOCAL_EXEC "\xf3\x0f\x1e\xfa\x64\x48\x8b\x04\x25\xe8\xff\xff\xff\xc3"

TEST(symbols)
{
    static struct fake f;
    struct py_image img;

    for (int gnu_hash = 0; gnu_hash < 2; gnu_hash++) {
        fake_make(&f, 0x030c03f0, LOCAL_EXEC, 14, true, gnu_hash);
        fake_read(&f, &img);
        assert_true(img.is_python);
        assert_null(img.refused);
        assert_int_equal(img.version_hex, 0x030c03f0);
        assert_int_equal(img.layout.version, 0x030c03f0);
        assert_int_equal(img.runtime_vaddr, BASE + AT_RUNTIME);
        assert_int_equal(img.code_type_vaddr, BASE + AT_CODE_TYPE);
        assert_int_equal(img.eval_range_count, 1);
        assert_int_equal(img.eval_ranges[0].end, BASE + AT_EVAL + 0x80);
        py_image_deinit(&img);
    }
}

#define SLOT32(at) ((uint32_t)(AT_SLOT - AT_CODE - (at))) /* displacement from the end of an instruction at `at` */

static void check_tls(const char *code, size_t len, int32_t displacement_at, bool executable, uint32_t kind,
                      int64_t offset)
{
    static struct fake f;
    struct py_image img;

    fake_make(&f, 0x030c03f0, code, len, executable, true);
    if (displacement_at) {
        uint32_t d = SLOT32((uint32_t)displacement_at + 4);
        memcpy(f.file + AT_CODE + displacement_at, &d, 4);
    }
    f.file[AT_SLOT + 8] = 16; /* what the file has as the offset in the block */
    fake_reloc(&f, BASE + AT_SLOT + 64, R_X86_64_DTPMOD64, 0, 0);
    fake_reloc(&f, BASE + AT_SLOT, R_X86_64_DTPMOD64, 0, 0);
    fake_headers(&f, executable, true);
    fake_read(&f, &img);
    assert_null(img.refused);
    assert_int_equal(img.tls_tstate.kind, kind);
    assert_int_equal(img.tls_tstate.offset, offset);
    assert_int_equal(img.tls_tstate.slot_vaddr, displacement_at && kind ? BASE + AT_SLOT : 0);
    py_image_deinit(&img);
}

#define TLS(code, displacement_at, executable, kind, offset) \
    check_tls(code, sizeof(code) - 1, displacement_at, executable, kind, offset)

TEST(tls_models)
{
    /* Local exec, and what a linker makes of the others in an executable. */
    TLS(LOCAL_EXEC, 0, true, PY_TLS_LOCAL_EXEC, -24);
    TLS("\x64\x48\x8b\x0c\x25\xf0\xff\xff\xff\x48\x89\xc8\xc3", 0, true, PY_TLS_LOCAL_EXEC, -16);
    TLS("\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8d\x80\xe8\xff\xff\xff\x48\x8b\0\xc3", 0, true, PY_TLS_LOCAL_EXEC, -24);
    TLS("\x64\x48\x8b\x04\x25\0\0\0\0\x48\x8b\x80\xe8\xff\xff\xff\xc3", 0, true, PY_TLS_LOCAL_EXEC, -24);
    TLS("\x48\xc7\xc0\xe0\xff\xff\xff\x64\x48\x8b\0\xc3", 0, true, PY_TLS_LOCAL_EXEC, -32);
    TLS("\x48\xc7\xc0\xe0\xff\xff\xff\x66\x90\x64\x48\x8b\0\xc3", 0, true, PY_TLS_LOCAL_EXEC, -32);
    /* Not within the block, which ends at the thread pointer. */
    TLS("\x64\x48\x8b\x04\x25\x28\0\0\0\xc3", 0, true, PY_TLS_NONE, 0);
    TLS("\x64\x48\x8b\x04\x25\0\xff\xff\xff\xc3", 0, true, PY_TLS_NONE, 0);
    /* General dynamic, local dynamic, initial exec (two shapes), descriptor. */
    TLS("\x48\x83\xec\x08\x66\x48\x8d\x3d\0\0\0\0\x66\x66\x48\xe8\0\0\0\0\x48\x8b\0\x48\x83\xc4\x08\xc3", 8, false,
        PY_TLS_MODULE, 16);
    TLS("\x50\x48\x8d\x3d\0\0\0\0\xe8\0\0\0\0\x48\x8b\x80\x08\0\0\0\x5a\xc3", 4, false, PY_TLS_MODULE, 24);
    TLS("\x50\x48\x8d\x3d\0\0\0\0\xe8\0\0\0\0\x48\x8b\x40\x18\x5a\xc3", 4, false, PY_TLS_MODULE, 40);
    TLS("\x48\x8b\x05\0\0\0\0\x64\x48\x8b\0\xc3", 3, false, PY_TLS_SLOT, 0);
    TLS("\x64\x48\x8b\x04\x25\0\0\0\0\x48\x03\x05\0\0\0\0\x48\x8b\0\xc3", 12, false, PY_TLS_SLOT, 0);
    TLS("\x50\x48\x8d\x05\0\0\0\0\xff\x10\x64\x48\x8b\0\x5a\xc3", 4, false, PY_TLS_DESCRIPTOR, 0);
    /* Past the block's end; something else. */
    TLS("\x50\x48\x8d\x3d\0\0\0\0\xe8\0\0\0\0\x48\x8b\x40\x28\x5a\xc3", 4, false, PY_TLS_NONE, 0);
    TLS("\x48\x31\xc0\xc3", 0, true, PY_TLS_NONE, 0);
}

/* The offset in the block may come by a relocation, with or without a symbol. */
TEST(tls_relocated)
{
    static const char code[] = "\x66\x48\x8d\x3d\0\0\0\0\x66\x66\x48\xe8\0\0\0\0\x48\x8b\0\xc3";
    static struct fake f;
    struct py_image img;
    uint32_t d = SLOT32(8);

    for (int with_symbol = 0; with_symbol < 2; with_symbol++) {
        fake_make(&f, 0x030c03f0, code, sizeof code - 1, false, true);
        memcpy(f.file + AT_CODE + 4, &d, 4);
        fake_symbol(&f, "tls", 8, 8, STT_TLS);
        fake_reloc(&f, BASE + AT_SLOT, R_X86_64_DTPMOD64, 7, 0);
        fake_reloc(&f, BASE + AT_SLOT + 8, R_X86_64_DTPOFF64, with_symbol ? 7 : 0, with_symbol ? 0 : 32);
        fake_headers(&f, false, true);
        fake_read(&f, &img);
        assert_int_equal(img.tls_tstate.kind, PY_TLS_MODULE);
        assert_int_equal(img.tls_tstate.offset, with_symbol ? 8 : 32);
        assert_int_equal(img.tls_tstate.module_id_vaddr, BASE + AT_SLOT);
        py_image_deinit(&img);
    }
    /* A tls_index without a relocation is none. */
    fake_make(&f, 0x030c03f0, code, sizeof code - 1, false, true);
    memcpy(f.file + AT_CODE + 4, &d, 4);
    fake_read(&f, &img);
    assert_int_equal(img.tls_tstate.kind, PY_TLS_NONE);
    py_image_deinit(&img);
}

/* The variable that 3.15 has in place of the pthread key; the function was there before it, and did other things. */
TEST(tls_gilstate)
{
    static const uint32_t versions[] = {0x030e02f0, 0x030f02f0};
    static const char code[] = "\x64\x48\x8b\x04\x25\xd8\xff\xff\xff\xc3";
    static struct fake f;
    struct py_image img;

    for (size_t i = 0; i < 2; i++) {
        fake_make(&f, versions[i], LOCAL_EXEC, 14, true, true);
        fake_symbol(&f, "PyGILState_GetThisThreadState", BASE + AT_CODE + 0x80, sizeof code - 1, STT_FUNC);
        memcpy(f.file + AT_CODE + 0x80, code, sizeof code - 1);
        fake_hashes(&f);
        fake_read(&f, &img);
        assert_int_equal(img.tls_tstate.kind, PY_TLS_LOCAL_EXEC);
        assert_int_equal(img.tls_tstate.offset, -24);
        assert_int_equal(img.tls_gilstate.kind, i ? PY_TLS_LOCAL_EXEC : PY_TLS_NONE);
        assert_int_equal(img.tls_gilstate.offset, i ? -40 : 0);
        py_image_deinit(&img);
    }
}

/* ---- asyncio's own table, 3.14 and 3.15 ---- */

#define AT_ASYNCIO 0x1c00

static struct py_asyncio read_asyncio(const uint64_t table[13], uint64_t section_bytes, uint64_t address)
{
    static struct fake f;
    struct py_image img;
    Elf64_Ehdr *eh = (void *)f.file;
    Elf64_Shdr sh = {.sh_name = 21, .sh_type = SHT_PROGBITS, .sh_flags = SHF_WRITE | SHF_ALLOC, .sh_addr = address,
                     .sh_offset = AT_ASYNCIO, .sh_size = section_bytes};

    fake_make(&f, 0x030c03f0, LOCAL_EXEC, 14, true, true);
    eh->e_shnum = 4;
    memcpy(f.file + AT_SECTIONS + 3 * sizeof sh, &sh, sizeof sh);
    memcpy(f.file + AT_SECTION_NAMES + 21, ".AsyncioDebug", 14);
    f.file[AT_SECTIONS + 2 * sizeof sh + offsetof(Elf64_Shdr, sh_size)] = 35;
    memcpy(f.file + AT_ASYNCIO, table, 13 * 8);
    fake_read(&f, &img);
    py_image_deinit(&img);
    return img.asyncio;
}

TEST(asyncio)
{
    /* task: size, name, awaited_by, is_task, … ; [9] the thread state's size, [11] its running task */
    static const uint64_t good[13] = {200, 88, 96, 104 - 24, 1, 112, 184, 90000, 89984, 800, 6, 792, 784};
    static const struct {
        int at;
        uint64_t value;
    } bad[] = {{0, 95}, {0, UINT16_MAX}, {0, UINT64_MAX}, {1, 241}, {1, UINT64_MAX - 3}, {3, 96}, {3, UINT64_MAX},
               {9, 799}, {9, UINT64_MAX}, {11, 0}, {11, 793}, {11, UINT64_MAX - 3}, {9, 4}};
    static const typeof(*bad) no_tasks[] = {{2, 193}, {4, 200}, {5, 193}, {5, 0}, {6, 185}, {7, 89999}, {8, 89985},
                                            {8, UINT64_MAX - 3}, {7, UINT64_MAX}, {12, 785}, {12, 0}, {12, UINT64_MAX - 3}};
    struct py_asyncio a = read_asyncio(good, sizeof good, BASE + AT_ASYNCIO);

    assert_int_equal(a.running_task, 792);
    assert_int_equal(a.task_name, 88);
    assert_int_equal(a.task_is_task, 80);
    assert_int_equal(a.task_size, 200);
    assert_int_equal(a.task_coroutine, 112);
    assert_int_equal(a.task_awaited_by, 96);
    assert_int_equal(a.task_awaited_by_is_set, 1);
    assert_int_equal(a.task_node, 184);
    assert_int_equal(a.interpreter_tasks, 89984);
    assert_int_equal(a.thread_tasks, 784);
    /* The running task is known still where the way to all tasks makes no sense. */
    for (size_t i = 0; i < sizeof no_tasks / sizeof *no_tasks; i++) {
        uint64_t table[13];
        memcpy(table, good, sizeof table);
        table[no_tasks[i].at] = no_tasks[i].value;
        a = read_asyncio(table, sizeof table, BASE + AT_ASYNCIO);
        if (a.running_task != 792 || a.task_coroutine || a.task_node || a.thread_tasks || a.interpreter_tasks)
            fail_msg("case %zu of tasks is believed", i);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t table[13];
        memcpy(table, good, sizeof table);
        table[bad[i].at] = bad[i].value;
        a = read_asyncio(table, sizeof table, BASE + AT_ASYNCIO);
        if (a.running_task || a.task_name || a.task_is_task || a.task_size)
            fail_msg("case %zu is believed", i);
    }
    /* A table of another size; one that is not in the file. */
    assert_int_equal(read_asyncio(good, sizeof good + 8, BASE + AT_ASYNCIO).running_task, 0);
    assert_int_equal(read_asyncio(good, sizeof good - 8, BASE + AT_ASYNCIO).running_task, 0);
    assert_int_equal(read_asyncio(good, sizeof good, BASE + FILE_BYTES - 96).running_task, 0);
    assert_int_equal(read_asyncio(good, sizeof good, UINT64_MAX - 8).running_task, 0);
}

/* %s in the text: the versions known (test_layout has them). */
static void assert_refusal(const struct py_image *img, const char *text)
{
    char expected[256];

    snprintf(expected, sizeof expected, text, py_versions_known());
    assert_string_equal(img->refused, expected);
}

TEST(refused)
{
    static const struct {
        uint32_t version;
        const char *text;
    } cases[] = {
        {0x03630af0, "CPython 3.99.10 is not supported (known: %s)"},
        {0x030c00b4, "CPython 3.12.0b4 is a pre-release; only final releases are supported (known: %s)"},
        {0x030d00f0, "CPython 3.13.0: _PyRuntime does not begin with the debug offsets"},
        {0, "its version cannot be told: its symbols are stripped. Link the program with -Wl,-E (-rdynamic), or do not strip it"},
    };
    static struct fake f;
    struct py_image img;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_make(&f, cases[i].version, LOCAL_EXEC, 14, true, true);
        fake_read(&f, &img);
        assert_true(img.is_python);
        assert_non_null(img.refused);
        assert_refusal(&img, cases[i].text);
        py_image_deinit(&img);
    }
    /* No symbols: the section alone tells, and that is too little to go on. */
    fake_make(&f, 0x030c00f0, LOCAL_EXEC, 14, true, true);
    memset(f.file + AT_DYNAMIC, 0, 0x100);
    fake_read(&f, &img);
    assert_true(img.is_python);
    assert_non_null(img.refused);
    py_image_deinit(&img);
}

/* ---- up to 3.10 ---- */

#define AT_TEXT 0x1900
#define AT_HEAD_GET 0x1040
#define AT_KEY_USER 0x1060
#define AT_RELEASE_LOCK 0x1080
#define AT_RESTORE 0x10a0
#define AT_INDEX 0x1b00
#define AT_FDES 0x1b80
#define AT_COLD 0x1c00

static void put_i32(struct fake *f, uint32_t at, uint32_t value)
{
    memcpy(f->file + at, &value, 4);
}

/* `fixed`: a program at a fixed address, whose code names addresses as such. */
static void fake_make_old(struct fake *f, const char *version, bool fixed, bool symbols)
{
    memset(f, 0, sizeof *f);
    f->string_bytes = 1;
    f->symbol_count = 1;
    fake_symbol(f, "Py_Something", BASE, 8, STT_OBJECT);
    fake_symbol(f, "_PyThreadState_Current", BASE + AT_RUNTIME, 8, STT_OBJECT);
    fake_symbol(f, "PyCode_Type", BASE + AT_CODE_TYPE, 8, STT_OBJECT);
    fake_symbol(f, "Py_GetVersion", BASE + AT_CODE, 0x20, STT_FUNC);
    fake_symbol(f, "PyInterpreterState_Head", BASE + AT_HEAD_GET, 0x10, STT_FUNC);
    fake_symbol(f, "PyGILState_GetThisThreadState", BASE + AT_KEY_USER, 0x20, STT_FUNC);
    fake_symbol(f, "PyEval_ReleaseLock", BASE + AT_RELEASE_LOCK, 0x10, STT_FUNC);
    fake_symbol(f, "PyEval_RestoreThread", BASE + AT_RESTORE, 0x20, STT_FUNC);
    fake_symbol(f, version[0] == '2' ? "PyEval_EvalFrameEx" : "_PyEval_EvalFrameDefault", BASE + AT_EVAL, 0x80, STT_FUNC);
    if (symbols) {
        fake_symbol(f, "interp_head", BASE + AT_SLOT + 8, 8, STT_OBJECT);
        fake_symbol(f, "autoTLSkey", BASE + AT_SLOT + 16, 4, STT_OBJECT);
    }
    strcpy((char *)f->file + AT_TEXT, version);
    strcpy((char *)f->file + AT_TEXT + 32, "%.80s (%.80s) %.80s");
    if (fixed) {
        memcpy(f->file + AT_CODE, "\x53\xba\0\0\0\0\xb9\0\0\0\0\xc3", 12); /* mov edx, format; mov ecx, version */
        put_i32(f, AT_CODE + 2, BASE + AT_TEXT + 32);
        put_i32(f, AT_CODE + 7, BASE + AT_TEXT);
        memcpy(f->file + AT_HEAD_GET, "\x48\x8b\x04\x25\0\0\0\0\xc3", 9);
        put_i32(f, AT_HEAD_GET + 4, BASE + AT_SLOT + 24);
        memcpy(f->file + AT_KEY_USER, "\x8b\x3c\x25\0\0\0\0\xc3", 8);
        put_i32(f, AT_KEY_USER + 3, BASE + AT_SLOT + 32);
        memcpy(f->file + AT_RELEASE_LOCK, "\x48\x8b\x3c\x25\0\0\0\0\xe9", 9);
        put_i32(f, AT_RELEASE_LOCK + 4, BASE + AT_SLOT + 40);
    } else {
        memcpy(f->file + AT_CODE, "\x53\x48\x8d\x15\0\0\0\0\x48\x8d\x0d\0\0\0\0\xc3", 16);
        put_i32(f, AT_CODE + 4, AT_TEXT + 32 - (AT_CODE + 8));
        put_i32(f, AT_CODE + 11, AT_TEXT - (AT_CODE + 15));
        memcpy(f->file + AT_HEAD_GET, "\x48\x8b\x05\0\0\0\0\xc3", 8);
        put_i32(f, AT_HEAD_GET + 3, AT_SLOT + 24 - (AT_HEAD_GET + 7));
        memcpy(f->file + AT_KEY_USER, "\x48\x83\x3d\0\0\0\0\0\x8b\x3d\0\0\0\0\xc3", 15);
        put_i32(f, AT_KEY_USER + 10, AT_SLOT + 32 - (AT_KEY_USER + 14));
        memcpy(f->file + AT_RELEASE_LOCK, "\x48\x8b\x3d\0\0\0\0\xe9", 8);
        put_i32(f, AT_RELEASE_LOCK + 3, AT_SLOT + 40 - (AT_RELEASE_LOCK + 7));
    }
    fake_hashes(f);
    fake_headers(f, fixed, true);
    memset(f->file + AT_SECTION_NAMES, 0, 22); /* no .PyRuntime */
}

/* A second part of the eval loop, with call frame information and without a symbol; `back`: it jumps back. */
static void fake_cold(struct fake *f, int jumps, bool back)
{
    Elf64_Phdr ph = {PT_GNU_EH_FRAME, PF_R, AT_INDEX, BASE + AT_INDEX, BASE + AT_INDEX, 0x80, 0x80, 4};
    const uint32_t starts[] = {AT_CODE, AT_EVAL, AT_COLD, AT_COLD + 0x100}, sizes[] = {0x40, 0x80, 0x80, 0x40};
    const uint8_t head[] = {1, 0x1b, 0x03, 0x3b};

    memcpy(f->file + 0x40 + 3 * sizeof ph, &ph, sizeof ph);
    f->file[offsetof(Elf64_Ehdr, e_phnum)] = 4;
    memcpy(f->file + AT_INDEX, head, sizeof head);
    put_i32(f, AT_INDEX + 8, 4);
    for (uint32_t i = 0; i < 4; i++) {
        put_i32(f, AT_INDEX + 12 + 8 * i, starts[i] - AT_INDEX);
        put_i32(f, AT_INDEX + 16 + 8 * i, AT_FDES + 32 * i - AT_INDEX);
        put_i32(f, AT_FDES + 32 * i + 8, starts[i] - (AT_FDES + 32 * i + 8));
        put_i32(f, AT_FDES + 32 * i + 12, sizes[i]);
    }
    for (int i = 0; i < jumps; i++) {
        uint32_t hot = AT_EVAL + 8 + (uint32_t)i * 12, cold = AT_COLD + 8 + (uint32_t)i * 12;
        f->file[hot] = 0x0f;
        f->file[hot + 1] = 0x84;
        put_i32(f, hot + 2, cold - (hot + 6));
        f->file[hot + 6] = 0xe9; /* a tail call, to a beginning */
        put_i32(f, hot + 7, AT_COLD + 0x100 - (hot + 11));
        if (back) {
            f->file[cold] = 0xe9;
            put_i32(f, cold + 1, hot + 1 - (cold + 5));
        }
    }
}

TEST(old)
{
    static const struct {
        const char *text;
        uint32_t version;
    } versions[] = {{"2.7.18", 0x020712f0}, {"2.7.16+", 0x020710f0}, {"3.6.15", 0x03060ff0}, {"3.5.2", 0x030502f0}};
    static struct fake f;
    struct py_image img;

    for (size_t i = 0; i < 4 * sizeof versions / sizeof *versions; i++) {
        uint32_t version = versions[i / 4].version;
        bool symbols = i & 2;
        fake_make_old(&f, versions[i / 4].text, i & 1, symbols);
        fake_read(&f, &img);
        assert_true(img.is_python);
        assert_null(img.refused);
        assert_int_equal(img.version_hex, version);
        assert_int_equal(img.layout.frame_kind, PY_FRAMES_OBJECT);
        assert_int_equal(img.runtime_vaddr, BASE + AT_RUNTIME);
        assert_int_equal(img.interpreters_vaddr, BASE + AT_SLOT + (symbols ? 8 : 24));
        assert_int_equal(img.thread_key_vaddr, version < 0x03000000 ? 0 : BASE + AT_SLOT + (symbols ? 16 : 32));
        assert_int_equal(img.eval_range_count, 1);
        assert_int_equal(img.eval_ranges[0].start, BASE + AT_EVAL);
        assert_int_equal(img.tls_tstate.kind, PY_TLS_NONE);
        /* By the function that releases the lock; by stacks, of which one leads through the other function. */
        assert_int_equal(img.gil.kind, version < 0x03000000 ? PY_GIL_POINTER : PY_GIL_LEARN);
        assert_int_equal(img.gil.address, version < 0x03000000 ? BASE + AT_SLOT + 40 : 0);
        assert_int_equal(img.restore_thread.start, version < 0x03000000 ? 0 : BASE + AT_RESTORE);
        assert_int_equal(img.restore_thread.end, version < 0x03000000 ? 0 : BASE + AT_RESTORE + 0x20);
        py_image_deinit(&img);
    }
    static const char *const wrong[] = {"3.6", "3.6.15x", "3.6.15rc1", "3.2.6", "1.5.2", "3.6.15 (default)", "%d.%d.%d", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fake_make_old(&f, wrong[i], false, false);
        fake_read(&f, &img);
        assert_true(img.is_python);
        assert_non_null(img.refused);
        py_image_deinit(&img);
    }
    fake_make_old(&f, "3.6.15rc1", false, false);
    fake_read(&f, &img);
    assert_refusal(&img, "CPython 3.6.15rc1 is a pre-release; only final releases are supported (known: %s)");
    py_image_deinit(&img);
    /* A debug build: Py_TRACE_REFS made every object larger. */
    fake_make_old(&f, "2.7.18", false, false);
    fake_symbol(&f, "_Py_RefTotal", BASE + AT_SLOT, 8, STT_OBJECT);
    fake_hashes(&f);
    fake_headers(&f, false, true);
    fake_read(&f, &img);
    assert_non_null(img.refused);
    py_image_deinit(&img);
}

/* greenlet's extension module is known by the function that loads it; other files are not taken for it. */
TEST(greenlet)
{
    static const char *const names[] = {"PyInit__greenlet", "PyInit_greenlet", "initgreenlet", "PyInit__greenlets"};
    static struct fake f;
    struct py_image img;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        memset(&f, 0, sizeof f);
        f.string_bytes = f.symbol_count = 1;
        fake_symbol(&f, "Py_Something", BASE, 8, STT_OBJECT);
        fake_symbol(&f, names[i], BASE + AT_CODE, 8, STT_FUNC);
        fake_hashes(&f);
        fake_headers(&f, false, i & 1);
        memset(f.file + AT_SECTION_NAMES, 0, 22);
        fake_read(&f, &img);
        assert_false(img.is_python);
        assert_int_equal(img.switches_stacks, i < 3);
        py_image_deinit(&img);
    }
}

/* The eval loop's split-off part: jumped to and back, often and into the middle, or it is none. */
TEST(cold_part)
{
    static struct fake f;
    struct py_image img;

    for (int jumps = 0; jumps <= 9; jumps++) {
        for (int which = 0; which < 4; which++) {
            bool back = which & 1;
            if (which & 2)
                fake_make(&f, 0x030c03f0, LOCAL_EXEC, 14, true, true);
            else
                fake_make_old(&f, "3.6.15", false, false);
            fake_cold(&f, jumps, back);
            fake_read(&f, &img);
            assert_null(img.refused);
            bool found = back && jumps >= 8;
            assert_int_equal(img.eval_range_count, found ? 2 : 1);
            if (found) {
                assert_int_equal(img.eval_ranges[1].start, BASE + AT_COLD);
                assert_int_equal(img.eval_ranges[1].end, BASE + AT_COLD + 0x80);
            }
            py_image_deinit(&img);
        }
    }
    /* Every byte of the index and the descriptions, damaged. */
    for (uint32_t at = AT_INDEX; at < AT_COLD; at++) {
        for (int v = 0; v < 3; v++) {
            fake_make_old(&f, "3.6.15", false, false);
            fake_cold(&f, 9, true);
            f.file[at] ^= (uint8_t)(v == 0 ? 0xff : v == 1 ? 0x80 : 1);
            fake_read(&f, &img);
            assert_null(img.refused);
            py_image_deinit(&img);
        }
    }
}

TEST(not_python)
{
    struct py_image img;
    static struct fake f;
    char text[] = "#!/bin/sh\n";
    int fd = open_bytes(text, sizeof text);

    assert_null(py_image_read(fd, "script", &img));
    assert_false(img.is_python);
    close(fd);
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_null(py_image_read(fd, "this test", &img));
    assert_false(img.is_python);
    close(fd);
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_null(py_image_read(fd, "/dev/zero", &img));
    assert_false(img.is_python);
    close(fd);
    fake_make(&f, 0x030c03f0, LOCAL_EXEC, 14, true, true);
    memset(f.file + AT_STRINGS, 'x', 0x1f0);
    f.file[AT_SECTION_NAMES + 3] = 'x';
    fake_read(&f, &img);
    assert_false(img.is_python);
}

static void read_any(const void *data, size_t len_bytes)
{
    struct py_image img;
    int fd = open_bytes(data, len_bytes);
    struct error *err = py_image_read(fd, "damaged", &img);

    if (!err)
        py_image_deinit(&img);
    error_destroy(err);
    close(fd);
}

TEST(damaged)
{
    static struct fake f;
    static uint8_t bad[FILE_BYTES];
    static const uint64_t values[] = {0,   1, 0x7fffffff, 0xffffffff, 0x8000000000000000, UINT64_MAX, UINT64_MAX - 7,
                                      BASE};

    fake_make(&f, 0x030c03f0, "\x66\x48\x8d\x3d\xf8\x07\0\0\x66\x66\x48\xe8", 12, false, true);
    fake_reloc(&f, BASE + AT_SLOT, R_X86_64_DTPMOD64, 0, 0);
    fake_headers(&f, false, true);
    for (size_t len = 0; len < FILE_BYTES; len += 16)
        read_any(f.file, len);
    for (int gnu_hash = 0; gnu_hash < 2; gnu_hash++) {
        fake_headers(&f, false, gnu_hash);
        for (size_t at = 0; at < AT_RUNTIME; at += 8) {
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                memcpy(bad, f.file, sizeof bad);
                memcpy(bad + at, &values[v], 8);
                read_any(bad, sizeof bad);
                memcpy(bad + at, f.file + at, 8);
                memcpy(bad + at + 4, &values[v], 4);
                read_any(bad, sizeof bad);
            }
        }
    }
    srand(1);
    for (int round = 0; round < 2000; round++) {
        memcpy(bad, f.file, sizeof bad);
        for (int i = 0; i < 4; i++)
            bad[rand() % AT_RUNTIME] = (uint8_t)rand();
        read_any(bad, sizeof bad);
    }
}
