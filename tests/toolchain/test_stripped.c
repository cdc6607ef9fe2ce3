/* SPDX-License-Identifier: Apache-2.0 */
/* A CPython in a program that exports nothing and is stripped: version and types are told by its constants and data. */
#include "tests/toolchain/elf_fixture.h"

#include "formats/cpython/image.h"
#include "formats/cpython/stripped.h"

/* What such a program has of CPython 3.11, and what looks like it. */
static const char source[] =
    "#ifndef TAG\n#define TAG \"cpython-311\"\n#endif\n"
    "#ifndef CODE\n#define CODE \"code\"\n#endif\n"
    "__attribute__((section(\".PyRuntime\"))) long runtime[100] = {1};\n"
    "const char tag[] = TAG, abi[] = \".cpython-312-x86_64\", version[] = \"3.11.2\", of_another[] = \"3.45.1\", longer[] = \"13.11.4\";\n"
    "#ifdef SECOND\nconst char second[] = SECOND;\n#endif\n"
    "#ifdef FAR\nconst char far[20000] = \"3.11.2\";\n#endif\n"
    "struct type { long refs; void *type; long size; const char *name; long basic, item, rest[44]; };\n"
    "struct type before[60] = {{1}}, code = {1, 0, 0, CODE, 184, 2}, thing = {1, 0, 0, \"codes\", 184, 2};\n"
    "struct type str = {1, 0, 0, \"str\", 80, 0}, other = {1, 0, 0, \"str\", 80, 8}, number = {1, 0, 0, \"int\", 24, 4};\n"
    "#ifdef TWICE\nstruct type twice = {1, 0, 0, \"code\", 184, 2};\n#endif\n"
    "int main(void) { return (int)runtime[0]; }\n";

static void build(const struct fixture *f, const char *flags, struct py_image *out)
{
    char path[512];

    fixture_write(f, "host.c", source, sizeof source - 1);
    assert_true(fixture_run(f, "cc -O1 %s -o whole host.c && strip --strip-all -o host whole", flags));
    snprintf(path, sizeof path, "%s/host", f->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    OK(py_image_read(fd, path, out));
    close(fd);
    assert_true(out->is_python);
}

TEST_WITH(found, fixture_init, fixture_deinit)
{
    static const char *const flags[] = {"-no-pie", "-pie -fPIE", "-pie -fPIE -Wl,-z,pack-relative-relocs", "-pie -fPIE -DFAR",
                                        "-no-pie -DSECOND='\"3.12.1\"'", "-no-pie -DSECOND='\"cpython-310.\"'"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct py_image img;
        build(f, flags[i], &img);
        if (img.refused)
            fail_msg("%s: %s", flags[i], img.refused);
        assert_int_equal(img.version_hex, 0x030b02f0);
        assert_int_equal(img.runtime_vaddr, fixture_symbol(f, "whole", "runtime"));
        assert_int_equal(img.code_type_vaddr, fixture_symbol(f, "whole", "code"));
        assert_int_equal(img.str_type_vaddr, fixture_symbol(f, "whole", "str"));
        assert_int_equal(img.int_type_vaddr, fixture_symbol(f, "whole", "number"));
        py_image_deinit(&img);
    }
}

/* What is not certain is not guessed. */
TEST_WITH(refused, fixture_init, fixture_deinit)
{
    static const struct {
        const char *flags, *refused;
        uint32_t version;
    } cases[] = {
        {"-DTAG='\"cpython-312\"'", "its version cannot be told: ", 0},
        {"-DTAG='\"xcpython-311\"'", "its version cannot be told: ", 0},
        {"-DSECOND='\"3.11.3\"'", "its version cannot be told: ", 0},
        {"-DSECOND='\"cpython-310\"'", "its version cannot be told: ", 0},
        {"-DCODE='\"cod\"'", "where its state lies cannot be told: ", 0x030b02f0},
        {"-DTWICE", "where its state lies cannot be told: ", 0x030b02f0},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct py_image img;
        build(f, cases[i].flags, &img);
        assert_non_null(img.refused);
        if (strncmp(img.refused, cases[i].refused, strlen(cases[i].refused)) != 0 || !strstr(img.refused, "-Wl,-E"))
            fail_msg("%s: %s", cases[i].flags, img.refused);
        assert_int_equal(img.version_hex, cases[i].version);
        py_image_deinit(&img);
    }
}
