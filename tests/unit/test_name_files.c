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

    OK(kernel_names_finish(sc->names));
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

TEST(symbols)
{
    struct scene sc;

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
TEST(other_kernel)
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

/* hotspot takes all addresses at which symbols start for one: those that have no true start lie behind it. */
TEST(starts)
{
    struct scene sc;

    scene_of(&sc);
    uint64_t nameless = met(&sc, "", KERNEL, 0xffffffff82000000, 0);
    uint64_t made_up = met(&sc, "user", KERNEL, 0x1000, 0), made_up_nameless = met(&sc, "", KERNEL, 0x2000, 0);
    met(&sc, "schedule", KERNEL, 0xffffffff81000000, 0);
    assert_true(made_up == 0xffff800000001001 && made_up_nameless == 0xffff800000001011);
    assert_true(nameless == 0xffffffff82000000);
    assert_string_equal(finish(&sc), "ffff800000000000 T _text\n"
                                     "ffff800000001000 T user\n"
                                     "ffff800000001010 T [unknown]\n"
                                     "ffffffff81000000 T schedule\n"
                                     "ffffffff81ffffff T [unknown]\n"
                                     "ffffffff82000001 T _end\n");
    end(&sc);
}

TEST(hostile_symbols)
{
    static char longest[5000];
    struct scene sc;

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
TEST(random_symbols)
{
    enum { COUNT = 2000 };
    static uint64_t addresses[COUNT];
    static char names[50][8];
    static uint32_t name_of[COUNT];
    struct scene sc;
    uint32_t seed = 1;

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
    char *contents[8];
    size_t lens[8];
    FILE *open[8];
    int count;
};

static struct error *keep_file(struct emit_files *files, const char *path, FILE **out)
{
    struct kept_files *k = (struct kept_files *)files;

    assert_true(k->count < 8);
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

static void kept_deinit(struct kept_files *k)
{
    for (int i = 0; i < k->count; i++)
        free(k->contents[i]);
    buf_deinit(&k->log);
}

/* Writes the files; the log must be as expected then. */
static void expect_files(struct kept_files *k, struct code_images *images, struct kernel_names *kernel, struct buf *expected)
{
    OK(name_files_write(&k->files, images, kernel));
    for (int i = 0; i < k->count; i++)
        assert_int_equal(fclose(k->open[i]), 0);
    assert_string_equal(buf_cstr(&k->log), buf_cstr(expected));
    buf_deinit(expected);
}

static void put_image(struct buf *expected, const char *path, const char *up, struct hex id)
{
    buf_printf(expected, "file perf.data.d/debug/srv/out/perf.data.d/%s/%s/elf\n", path, id.text);
    buf_printf(expected, "link perf.data.d/debug/.build-id/%.2s/%s -> ../../srv/out/perf.data.d/%s/%s\n", id.text,
               id.text + 2, path, id.text);
    buf_printf(expected, "link perf.data.d/%s -> %sdebug/srv/out/perf.data.d/%s/%s/elf\n", path, up, path, id.text);
}

static struct hex id_of(struct code_images *images, uint32_t image)
{
    return hex_of(code_image_build_id(code_images_get(images, image)), CODE_IMAGE_ID_BYTES);
}

TEST(layout)
{
    struct kept_files nothing = {.files = {"/srv/out/", "perf.data", keep_file, keep_link}}, k = nothing;
    struct emit_options options = {0};
    struct buf expected = {0};
    struct code_images *images;
    struct scene sc;
    uint32_t image;
    uint64_t address;

    scene_of(&sc);
    OK(code_images_create(&sc.s.model, &options, &images));
    expect_files(&nothing, images, sc.names, &expected);
    kept_deinit(&nothing);
    OK(code_images_address(images, synthetic_python(&sc.s, "f", "/srv/a.py", 3, 0, 1), &image, &address));
    assert_int_equal(image, CODE_IMAGES_PYTHON);
    met(&sc, "vfs_read", KERNEL, 0xffffffff81000010, 0x10);
    OK(code_images_finish(images));
    OK(kernel_names_finish(sc.names));
    struct hex kernel = hex_of(kernel_names_build_id(sc.names), KERNEL_NAMES_ID_BYTES);
    put_image(&expected, "python-code", "", id_of(images, 0));
    buf_printf(&expected, "file perf.data.d/debug/[kernel.kallsyms]/%s/kallsyms\n", kernel.text);
    buf_printf(&expected, "link perf.data.d/debug/.build-id/%.2s/%s -> ../../[kernel.kallsyms]/%s\n", kernel.text,
               kernel.text + 2, kernel.text);
    buf_printf(&expected, "file perf.data.d/debug/[kernel.kallsyms]/%s/elf\n", kernel.text);
    code_images_destroy(images);
    kernel_names_destroy(sc.names);

    OK(code_images_create(&sc.s.model, &options, &images));
    OK(kernel_names_create(&sc.s.model, &sc.limits, &sc.names));
    OK(code_images_address(images, 0, &image, &address));
    OK(kernel_names_address(sc.names, 1, &address));
    expect_files(&k, images, sc.names, &expected);
    assert_memory_equal(k.contents[0], "\x7f" "ELF", 4);
    assert_memory_equal(k.contents[1], "ffff800000000000 T _text\n", 25);
    check_kernel_elf(k.contents[2], k.lens[2], kernel_names_build_id(sc.names));
    name_files_image_path(&k.files, images, CODE_IMAGES_PYTHON, &expected);
    buf_put_u8(&expected, ' ');
    name_files_cache(&k.files, &expected);
    assert_string_equal(buf_cstr(&expected), "/srv/out/perf.data.d/python-code perf.data.d/debug");
    buf_deinit(&expected);
    code_images_destroy(images);
    end(&sc);
    kept_deinit(&k);
}

static uint32_t native(struct scene *sc, const char *function, const char *module, uint32_t mapping)
{
    return synthetic_frame(&sc->s, (struct emit_frame){.kind = EMIT_NATIVE, .function = function, .module = module,
                                                       .address = 0x1000, .mapping = mapping});
}

/* The image that a native frame is in. */
static uint32_t image_of(struct code_images *images, uint32_t frame)
{
    uint32_t image, again;
    uint64_t address;

    OK(code_images_address(images, frame, &image, &address));
    OK(code_images_address(images, frame, &again, &address));
    assert_int_equal(image, again);
    return image;
}

TEST(native_names)
{
    static const struct emit_segment segment = {0, 0, 0x1000, 0x1000, 5};
    /* What an image is called is for the binary's path; one that no file can have has no image. */
    static const char *const bad[] = {"", "libc.so", "/", "//lib/libc.so", "/lib/../libc.so", "/./x", "/lib/", "/lib/a\nb",
                                      "/lib/\xff", "[vdso]", "/memfd:x (deleted)/..",
                                      /* Where another one is a file or a folder: */
                                      "/usr/lib/libc.so.6/x", "/usr/lib/libc.so.6/x/y", "/usr/lib", "/app"};
    struct emit_mapping mappings[] = {{.path = "", .segments = &segment, .segment_count = 1}, {.path = ""}};
    struct kept_files k = {.files = {"/srv/out/", "perf.data", keep_file, keep_link}};
    struct emit_options options = {.native_names = true};
    struct buf expected = {0};
    struct code_images *images;
    static char longest[600];
    struct scene sc;

    scene_of(&sc);
    sc.s.model.mappings = mappings;
    sc.s.model.mapping_count = 2;
    OK(code_images_create(&sc.s.model, &options, &images));
    assert_int_equal(image_of(images, native(&sc, "malloc", "/usr/lib/libc.so.6", 0)), 1);
    assert_int_equal(image_of(images, native(&sc, "f", "/app/libc.so.6", 0)), 2);
    assert_int_equal(image_of(images, native(&sc, "free", "/usr/lib/libc.so.6", 0)), 1);
    assert_int_equal(image_of(images, native(&sc, "gone", "/usr/lib/libc.so.6 (deleted)", 0)), 1);
    assert_int_equal(image_of(images, synthetic_python(&sc.s, "f", "/srv/a.py", 3, 0, 1)), 0);
    assert_int_equal(image_of(images, EMIT_NO_STACK), 0);
    assert_int_equal(image_of(images, native(&sc, "malloc", "/usr/lib/libc.so.6", EMIT_NO_MAPPING)), 0);
    assert_int_equal(image_of(images, native(&sc, "malloc", "/usr/lib/libc.so.6", 1)), 0); /* no file, so no segments */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(image_of(images, native(&sc, "f", bad[i], 0)), 0);
    memset(longest, '/', 1);
    memset(longest + 1, 'x', sizeof longest - 2);
    assert_int_equal(image_of(images, native(&sc, "f", longest, 0)), 0);
    longest[200] = longest[400] = '/';
    assert_int_equal(image_of(images, native(&sc, "f", longest, 0)), 0);
    longest[500] = 0;
    assert_int_equal(image_of(images, native(&sc, "f", longest, 0)), 3);
    assert_int_equal(code_images_count(images), 4);
    OK(name_files_write(&k.files, images, sc.names));
    for (int i = 0; i < k.count; i++)
        assert_int_equal(fclose(k.open[i]), 0);
    put_image(&expected, "python-code", "", id_of(images, 0));
    put_image(&expected, "native/usr/lib/libc.so.6", "../../../", id_of(images, 1));
    put_image(&expected, "native/app/libc.so.6", "../../", id_of(images, 2));
    buf_put_u8(&k.log, 0);
    assert_memory_equal(k.log.data, expected.data, expected.len_bytes);
    buf_deinit(&expected);
    code_images_destroy(images);
    end(&sc);
    kept_deinit(&k);
}

/* However many binaries a trace names, there are not as many files. */
TEST(many_binaries)
{
    static const struct emit_segment segment = {0, 0, 0x1000, 0x1000, 5};
    struct emit_mapping mapping = {.path = "", .segments = &segment, .segment_count = 1};
    struct emit_options options = {.native_names = true};
    struct code_images *images;
    static char names[3000][20];
    struct scene sc;

    scene_of(&sc);
    sc.s.model.mappings = &mapping;
    sc.s.model.mapping_count = 1;
    OK(code_images_create(&sc.s.model, &options, &images));
    for (uint32_t i = 0; i < 3000; i++) {
        snprintf(names[i], sizeof *names, "/lib/%u.so", i);
        assert_int_equal(image_of(images, native(&sc, "f", names[i], 0)), i + 1 < 1024 ? i + 1 : 0);
    }
    assert_int_equal(image_of(images, 5), 6);
    assert_int_equal(code_images_count(images), 1024);
    code_images_destroy(images);
    end(&sc);
}
