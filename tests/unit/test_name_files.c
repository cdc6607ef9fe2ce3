/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols of a trace, and the files of names beside a perf.data. */
#include "tests/unit/test.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/hex.h"
#include "formats/emit/perf_data/name_files.h"
#include "tests/tools/emit_synthetic.h"

#define KERNEL "[kernel.kallsyms]"

struct scene {
    struct synthetic s;
    struct kernel_names *names;
    struct limits limits;
    char *text;
    uint8_t id[CODE_IMAGE_ID_BYTES];
};

static struct scene *scene_of(struct scene *sc)
{
    *sc = (struct scene){.limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX}};
    OK(kernel_names_create(&sc->s.model, &sc->limits, &sc->names));
    return sc;
}

/* The address that a frame at `address` gets. */
static uint64_t met(struct scene *sc, const char *function, const char *module, uint64_t address, uint64_t offset)
{
    uint32_t frame = synthetic_kernel(&sc->s, function, module, address, offset);
    uint64_t out, again;

    OK(kernel_names_address(sc->names, frame, &out));
    OK(kernel_names_address(sc->names, frame, &again));
    assert_int_equal(out, again);
    assert_true(out >= KERNEL_NAMES_START && out < KERNEL_NAMES_END);
    return out;
}

static const char *finish(struct scene *sc)
{
    size_t len;

    OK(kernel_names_finish(sc->names, sc->id));
    FILE *out = open_memstream(&sc->text, &len);
    OK(kernel_names_write(sc->names, out));
    assert_int_equal(fclose(out), 0);
    return sc->text;
}

static void end(struct scene *sc)
{
    kernel_names_destroy(sc->names);
    assert_int_equal(sc->limits.memory_used, 0);
    synthetic_deinit(&sc->s);
    free(sc->text);
}

/* What perf makes of an address: the last symbol at or below it. "" for none. */
static const char *name_at(const char *text, uint64_t address)
{
    static char name[512];
    uint64_t before = 0;

    *name = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        char *rest;
        uint64_t start = strtoull(line, &rest, 16);
        assert_true(start > before); /* ascending, none twice */
        assert_memory_equal(rest, " T ", 3);
        before = start;
        if (start <= address)
            snprintf(name, sizeof name, "%.*s", (int)strcspn(rest + 3, "\n"), rest + 3);
    }
    return name;
}

/* ---- the kernel's symbols ---- */

static void test_symbols(void **state)
{
    struct scene sc;

    (void)state;
    scene_of(&sc);
    assert_false(kernel_names_are_used(sc.names));
    /* Addresses stay as they are, whatever order they come in; modules and BPF programs are as the rest. */
    assert_true(met(&sc, "do_syscall_64", KERNEL, 0xffffffff8100005c, 0x5c) == 0xffffffff8100005c);
    assert_true(met(&sc, "nvme_irq", "[nvme]", 0xffffffffc0000010, 0) == 0xffffffffc0000010);
    assert_true(met(&sc, "vfs_read", KERNEL, 0xffffffff80f00010, 0x10) == 0xffffffff80f00010);
    assert_true(met(&sc, "do_syscall_64", KERNEL, 0xffffffff81000020, 0x20) == 0xffffffff81000020);
    assert_true(met(&sc, "bpf_prog_6deef7357e7b4530_sd_fw_egress", "[bpf]", 0xffffffffc0100004, 4) == 0xffffffffc0100004);
    assert_true(kernel_names_are_used(sc.names));
    assert_string_equal(finish(&sc), "ffff800000000000 T _text\n"
                                     "ffffffff80f00000 T vfs_read\n"
                                     "ffffffff81000000 T do_syscall_64\n"
                                     "ffffffffc0000010 T nvme_irq\n"
                                     "ffffffffc0100000 T bpf_prog_6deef7357e7b4530_sd_fw_egress\n"
                                     "ffffffffc0100005 T _end\n");
    end(&sc);
}

/* Captures of two boots, in which the same addresses are other functions. */
static void test_other_kernel(void **state)
{
    static const struct {
        const char *name;
        uint64_t address, offset;
    } frames[] = {
        {"do_syscall_64", 0xffffffff8100005c, 0x5c},
        {"do_syscall_64", 0xffffffff81000010, 0x10}, /* less far in */
        {"vfs_read", 0xffffffff81000020, 0x10},      /* begins in it, below an address of it */
        {"vfs_read", 0xffffffff810000a0, 0x10},      /* begins behind it: the address of its beginning is its own */
        {"do_syscall_64", 0xffffffff810000b0, 0xb0}, /* so that this would be vfs_read */
        {"schedule", 0xffffffff810000a0, 0},         /* an address that is vfs_read */
        {"schedule", 0xffffffff81000090, 0},         /* where it begins */
        {"", 0xffffffff81000058, 0},                 /* nameless, in a function */
        {"", 0xffffffff82000000, 0},                 /* nameless, behind all */
        {"", 0xffffffff82000010, 0},
        {"late", 0xffffffff82000008, 0},             /* in what is nameless */
        {"user", 0x1000, 0},
        {"user", 0x2000, 0x3000},
        {"last", UINT64_MAX, 0},
        {"far", 0xffffffff90000000, UINT64_MAX},
    };
    const size_t count = sizeof frames / sizeof *frames;
    uint64_t addresses[sizeof frames / sizeof *frames];
    struct scene sc;

    (void)state;
    scene_of(&sc);
    for (size_t i = 0; i < count; i++)
        addresses[i] = met(&sc, frames[i].name, KERNEL, frames[i].address, frames[i].offset);
    const char *text = finish(&sc);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(name_at(text, addresses[i]), *frames[i].name ? frames[i].name : "[unknown]");
    /* Those that fit are as recorded. */
    static const size_t recorded[] = {0, 1, 3, 8, 9};
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
        assert_true(addresses[recorded[i]] == frames[recorded[i]].address);
    end(&sc);
}

static void test_hostile_symbols(void **state)
{
    static char longest[5000];
    struct scene sc;

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    scene_of(&sc);
    met(&sc, "two words\nffffffff81000000 T forged", KERNEL, 0xffffffff81000000, 0);
    met(&sc, "tab\t[module]", KERNEL, 0xffffffff81001000, 0);
    met(&sc, longest, KERNEL, 0xffffffff81002000, 0);
    const char *text = finish(&sc);
    assert_string_equal(name_at(text, 0xffffffff81000000), "two_words_ffffffff81000000_T_forged");
    assert_string_equal(name_at(text, 0xffffffff81001000), "tab_[module]");
    assert_int_equal(strlen(name_at(text, 0xffffffff81002000)), 400);
    end(&sc);
}

static uint32_t random_below(uint32_t *seed, uint32_t max)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 8) % max;
}

/* Whatever comes, each frame keeps its name. */
static void test_random_symbols(void **state)
{
    enum { COUNT = 2000 };
    static uint64_t addresses[COUNT];
    static char names[50][8];
    static uint32_t name_of[COUNT];
    struct scene sc;
    uint32_t seed = 1;

    (void)state;
    scene_of(&sc);
    for (uint32_t i = 1; i < 50; i++)
        snprintf(names[i], sizeof *names, "f%u", i);
    for (size_t i = 0; i < COUNT; i++) {
        uint32_t address = random_below(&seed, 3000);
        name_of[i] = random_below(&seed, 50);
        addresses[i] = met(&sc, names[name_of[i]], KERNEL, 0xffffffff81000000 + address, random_below(&seed, address + 1));
    }
    const char *text = finish(&sc);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(name_at(text, addresses[i]), name_of[i] ? names[name_of[i]] : "[unknown]");
    end(&sc);
}

/* ---- files ---- */

/* Keeps what is created. */
struct kept_files {
    struct emit_files files;
    struct buf log; /* "file PATH\n" or "link PATH -> TARGET\n" */
    char *contents[4];
    size_t lens[4];
    FILE *open[4];
    int count;
};

static struct error *keep_file(struct emit_files *files, const char *path, FILE **out)
{
    struct kept_files *k = (struct kept_files *)files;

    assert_true(k->count < 4);
    buf_printf(&k->log, "file %s\n", path);
    *out = k->open[k->count] = open_memstream(&k->contents[k->count], &k->lens[k->count]);
    assert_non_null(*out);
    k->count++;
    return NULL;
}

static struct error *keep_link(struct emit_files *files, const char *path, const char *target)
{
    struct kept_files *k = (struct kept_files *)files;

    buf_printf(&k->log, "link %s -> %s\n", path, target);
    return NULL;
}

/* Sections as tools/perf/util/symbol-elf.c wants them of a vmlinux: code, build ID, and symbols, _text before all. */
static void check_kernel_elf(const char *file, size_t len, const uint8_t *id)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + header->e_shoff), *code = &sections[1];
    const Elf64_Shdr *note = &sections[2], *symtab = &sections[3];
    const char *names = file + sections[header->e_shstrndx].sh_offset, *strings = file + sections[symtab->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + symtab->sh_offset);

    assert_true(header->e_shoff + header->e_shnum * sizeof *sections == len);
    assert_int_equal(header->e_type, ET_EXEC);
    assert_string_equal(names + code->sh_name, ".text");
    assert_int_equal(code->sh_type, SHT_NOBITS);
    assert_true(code->sh_addr == KERNEL_NAMES_START && code->sh_size == KERNEL_NAMES_END - KERNEL_NAMES_START);
    assert_string_equal(names + note->sh_name, ".note.gnu.build-id");
    assert_memory_equal(file + note->sh_offset + note->sh_size - CODE_IMAGE_ID_BYTES, id, CODE_IMAGE_ID_BYTES);
    assert_int_equal(symtab->sh_type, SHT_SYMTAB);
    assert_int_equal(symtab->sh_size, 3 * sizeof *symbols);
    assert_string_equal(strings + symbols[1].st_name, "_text");
    assert_true(symbols[1].st_value == KERNEL_NAMES_START);
    assert_string_equal(strings + symbols[2].st_name, "vfs_read");
    assert_true(symbols[2].st_value == 0xffffffff81000000 && symbols[2].st_size == 0x11 && symbols[2].st_shndx == 1);
}

static void test_layout(void **state)
{
    struct kept_files k = {.files = {"/srv/out/", "perf.data", keep_file, keep_link}};
    struct emit_options options = {0};
    struct code_image *image;
    struct buf expected = {0};
    struct name_files out;
    struct scene sc;
    uint64_t address;

    (void)state;
    scene_of(&sc);
    OK(code_image_create(&sc.s.model, &options, &image));
    OK(name_files_write(&k.files, image, sc.names, &out));
    assert_false(out.has_image || out.has_kernel);
    assert_int_equal(k.log.len_bytes, 0); /* nothing was used */
    OK(code_image_address(image, synthetic_python(&sc.s, "f", "/srv/a.py", 3, 0, 1), &address));
    met(&sc, "vfs_read", KERNEL, 0xffffffff81000010, 0x10);
    OK(name_files_write(&k.files, image, sc.names, &out));
    assert_true(out.has_image && out.has_kernel);
    for (int i = 0; i < k.count; i++)
        assert_int_equal(fclose(k.open[i]), 0);

    struct hex elf = hex_of(out.image_id, sizeof out.image_id), kernel = hex_of(out.kernel_id, sizeof out.kernel_id);
    buf_printf(&expected, "file perf.data.d/debug/srv/out/perf.data.d/python-code/%s/elf\n", elf.text);
    buf_printf(&expected, "link perf.data.d/debug/.build-id/%.2s/%s -> ../../srv/out/perf.data.d/python-code/%s\n", elf.text,
               elf.text + 2, elf.text);
    buf_printf(&expected, "link perf.data.d/python-code -> debug/srv/out/perf.data.d/python-code/%s/elf\n", elf.text);
    buf_printf(&expected, "file perf.data.d/debug/[kernel.kallsyms]/%s/kallsyms\n", kernel.text);
    buf_printf(&expected, "link perf.data.d/debug/.build-id/%.2s/%s -> ../../[kernel.kallsyms]/%s\n", kernel.text,
               kernel.text + 2, kernel.text);
    buf_printf(&expected, "file perf.data.d/debug/[kernel.kallsyms]/%s/elf\n", kernel.text);
    assert_string_equal(buf_cstr(&k.log), buf_cstr(&expected));
    assert_memory_equal(k.contents[0], "\x7f" "ELF", 4);
    assert_memory_equal(k.contents[1], "ffff800000000000 T _text\n", 25);
    check_kernel_elf(k.contents[2], k.lens[2], out.kernel_id);
    buf_clear(&expected);
    name_files_image_path(&k.files, &expected);
    buf_put_u8(&expected, ' ');
    name_files_cache(&k.files, &expected);
    assert_string_equal(buf_cstr(&expected), "/srv/out/perf.data.d/python-code perf.data.d/debug");

    code_image_destroy(image);
    end(&sc);
    buf_deinit(&expected);
    buf_deinit(&k.log);
    for (int i = 0; i < k.count; i++)
        free(k.contents[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_other_kernel),
        cmocka_unit_test(test_hostile_symbols),
        cmocka_unit_test(test_random_symbols),
        cmocka_unit_test(test_layout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
