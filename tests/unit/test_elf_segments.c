/* SPDX-License-Identifier: Apache-2.0 */
/* How offsets, virtual addresses and addresses of a process belong together, by the segments of an ELF file. */
#include "tests/unit/test.h"

#include <elf.h>

#include "formats/elf/file.h"

enum { R = PF_R, RX = PF_R | PF_X, RW = PF_R | PF_W };

#define SEGMENTS(...)                                            \
    {                                                            \
        .data = (struct elf_segment[]){__VA_ARGS__},             \
        .count = sizeof((struct elf_segment[]){__VA_ARGS__}) / sizeof(struct elf_segment) \
    }

TEST(offsets)
{
    const struct elf_segments s = SEGMENTS({0x1000, 0, 0x500, 0x500, R}, {0x2500, 0x500, 0x300, 0x1000, RX},
                                           {0x9000, 0x600, 0x10, 0x10, RX}, {0x8000, 0x800, 0, 0x1000, RW});
    uint64_t offset = 0, vaddr = 0;

    assert_int_equal(elf_vaddr_to_offset(&s, 0x1000, &offset), 0x500);
    assert_int_equal(offset, 0);
    assert_int_equal(elf_vaddr_to_offset(&s, 0x27ff, &offset), 1);
    assert_int_equal(offset, 0x7ff);
    /* Memory that the file has no bytes for. */
    assert_int_equal(elf_vaddr_to_offset(&s, 0x2800, &offset), 0);
    assert_int_equal(elf_vaddr_to_offset(&s, 0x8000, &offset), 0);
    assert_int_equal(elf_vaddr_to_offset(&s, 0xfff, &offset), 0);
    assert_true(elf_offset_to_vaddr(&s, 0x4ff, &vaddr));
    assert_int_equal(vaddr, 0x14ff);
    assert_true(elf_offset_to_vaddr(&s, 0x500, &vaddr));
    assert_int_equal(vaddr, 0x2500);
    /* Of two with the same bytes, and equal rights, the first. */
    assert_true(elf_offset_to_vaddr(&s, 0x600, &vaddr));
    assert_int_equal(vaddr, 0x2600);
    assert_false(elf_offset_to_vaddr(&s, 0x800, &vaddr));
    assert_int_equal(elf_base_vaddr(&s, 4096), 0x1000);
    assert_int_equal(elf_base_vaddr(&(struct elf_segments){0}, 4096), 0);
}

/* Of two with the same bytes the executable one, wherever it stands. */
TEST(overlap)
{
    const struct elf_segments first = SEGMENTS({0x1000, 0, 0x500, 0x500, RX}, {0x5000, 0, 0x500, 0x500, R}),
                              second = SEGMENTS({0x5000, 0, 0x500, 0x500, R}, {0x1000, 0, 0x500, 0x500, RX});
    uint64_t vaddr = 0;

    assert_true(elf_offset_to_vaddr(&first, 0x10, &vaddr));
    assert_int_equal(vaddr, 0x1010);
    assert_true(elf_offset_to_vaddr(&second, 0x10, &vaddr));
    assert_int_equal(vaddr, 0x1010);
}

static uint64_t bias_of(const struct elf_segments *s, uint64_t file_offset, uint64_t length)
{
    uint64_t bias = 0;

    return elf_load_bias(s, 0x7f0000000000 + file_offset, file_offset, length, 4096, &bias) ? bias - 0x7f0000000000 : 1;
}

TEST(load_bias)
{
    /* As lld lays files out: each segment begins on the page where the one before ends, a page further in memory. */
    const struct elf_segments lld = SEGMENTS({0, 0, 0x800, 0x800, R}, {0x1800, 0x800, 0x1000, 0x1000, RX},
                                             {0x3800, 0x1800, 0x100, 0x100, R}, {0x4900, 0x1900, 0x100, 0x2000, RW});

    assert_int_equal(bias_of(&lld, 0, 0x2000), (uint64_t)-0x1000);
    /* The second page of the code, in a mapping of its own. */
    assert_int_equal(bias_of(&lld, 0x1000, 0x1000), (uint64_t)-0x1000);
    assert_int_equal(bias_of(&lld, 0x2000, 0x1000), 1);
    /* Nothing executable there: what there is. */
    const struct elf_segments data = SEGMENTS({0x3000, 0, 0x800, 0x800, R});
    assert_int_equal(bias_of(&data, 0, 0x1000), (uint64_t)-0x3000);
    /* A mapping that is longer than any segment, as the loader's first one is until it puts the others over it. */
    const struct elf_segments first = SEGMENTS({0x400000, 0, 0x1800, 0x1800, RX}, {0x602800, 0x1800, 0x100, 0x100, RW});
    assert_int_equal(bias_of(&first, 0, 0x203000), (uint64_t)-0x400000);
    assert_int_equal(bias_of(&(struct elf_segments){0}, 0, 0x1000), 1);
    /* Numbers out of a file that was made to deceive. */
    const struct elf_segments wild = SEGMENTS({UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, RX}, {0, 0x1000, UINT64_MAX, 0, RX});
    bias_of(&wild, 0x1000, UINT64_MAX);
}
