/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: from call frame information assembled by hand, one for every operation
 * and encoding; and damaged.
 */
#include "tests/unit/test.h"

#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/unit/table_text.h"

static int start_libelf(void **state)
{
    (void)state;
    return elf_version(EV_CURRENT) == EV_NONE;
}

TESTS_WITH(start_libelf, NULL);

/* ---- call frame information by hand ---- */

enum { BASE = 0x400000, TEXT = 0x1000, TEXT_LEN = 0x3000, CFI = 0x4000, ENTRY = 0x60 };

/* An ELF image: text at TEXT, the section at CFI, headers behind it. */
struct image {
    struct buf cfi, all;
    bool debug_frame, compressed;
    uint32_t cie_at;
    uint8_t encoding;
    bool sized; /* there is a 'z' in the augmentation */
    uint64_t hdr_vaddr;
};

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void patch_len(struct buf *b, size_t at)
{
    while ((b->len_bytes - at) % 8)
        buf_put_u8(b, DW_CFA_nop);
    uint32_t len = (uint32_t)(b->len_bytes - at - 4);
    memcpy(b->data + at, &len, 4);
}

static void put_pointer(struct image *m, uint8_t encoding, uint64_t value)
{
    uint64_t here = BASE + CFI + m->cfi.len_bytes;

    if (encoding == DW_EH_PE_aligned) {
        while ((BASE + CFI + m->cfi.len_bytes) % 8)
            buf_put_u8(&m->cfi, 0);
        buf_put_u64(&m->cfi, value);
        return;
    }
    if ((encoding & 0x70) == DW_EH_PE_pcrel)
        value -= here;
    else if ((encoding & 0x70) == DW_EH_PE_datarel)
        value -= m->hdr_vaddr;
    switch (encoding & 0x0f) {
    case DW_EH_PE_uleb128:
        buf_put_uleb(&m->cfi, value);
        break;
    case DW_EH_PE_sleb128:
        for (int i = 0; i < 9; i++, value = (uint64_t)((int64_t)value >> 7))
            buf_put_u8(&m->cfi, (value & 0x7f) | 0x80);
        buf_put_u8(&m->cfi, value & 0x7f);
        break;
    case DW_EH_PE_udata2:
    case DW_EH_PE_sdata2:
        buf_put_u16(&m->cfi, (uint16_t)value);
        break;
    case DW_EH_PE_udata4:
    case DW_EH_PE_sdata4:
        buf_put_u32(&m->cfi, (uint32_t)value);
        break;
    default:
        buf_put_u64(&m->cfi, value);
        break;
    }
}

/* def_cfa rsp+8; the return address at CFA - 8. */
#define USUAL DW_CFA_def_cfa, 7, 8, DW_CFA_offset + 16, 1

static void put_cie(struct image *m, const char *augmentation, uint8_t encoding, uint8_t code_align,
                    const uint8_t *program, size_t len)
{
    m->cie_at = (uint32_t)m->cfi.len_bytes;
    m->encoding = encoding;
    m->sized = augmentation[0] == 'z';
    buf_put_u32(&m->cfi, 0);
    buf_put_u32(&m->cfi, m->debug_frame ? UINT32_MAX : 0);
    buf_put_u8(&m->cfi, m->debug_frame ? 4 : 1);
    buf_put(&m->cfi, augmentation, strlen(augmentation) + 1);
    if (m->debug_frame) {
        buf_put_u8(&m->cfi, 8);
        buf_put_u8(&m->cfi, 0);
    }
    buf_put_u8(&m->cfi, code_align);
    buf_put_u8(&m->cfi, 0x78); /* -8 */
    buf_put_u8(&m->cfi, 16);
    if (m->sized) {
        size_t at = m->cfi.len_bytes;
        buf_put_u8(&m->cfi, 0);
        for (const char *c = augmentation + 1; *c; c++) {
            if (*c == 'R') {
                buf_put_u8(&m->cfi, encoding);
            } else if (*c == 'L') {
                buf_put_u8(&m->cfi, DW_EH_PE_sdata4 | DW_EH_PE_pcrel);
            } else if (*c == 'P') {
                buf_put_u8(&m->cfi, DW_EH_PE_indirect | DW_EH_PE_sdata4 | DW_EH_PE_pcrel);
                buf_put_u32(&m->cfi, 0x1234);
            }
        }
        m->cfi.data[at] = (uint8_t)(m->cfi.len_bytes - at - 1);
    }
    buf_put(&m->cfi, program, len);
    patch_len(&m->cfi, m->cie_at);
}

static void put_fde(struct image *m, uint64_t start, uint64_t len_bytes, const uint8_t *program, size_t len)
{
    size_t at = m->cfi.len_bytes;

    buf_put_u32(&m->cfi, 0);
    buf_put_u32(&m->cfi, m->debug_frame ? m->cie_at : (uint32_t)(at + 4 - m->cie_at));
    put_pointer(m, m->encoding, start);
    put_pointer(m, m->encoding & 0x0f, len_bytes);
    if (m->sized) {
        buf_put_u8(&m->cfi, 4); /* a pointer to a language's data */
        buf_put_u32(&m->cfi, 0x40404040);
    }
    buf_put(&m->cfi, program, len);
    patch_len(&m->cfi, at);
}

enum { WITH_SECTIONS = 1, WITH_HDR = 2, WITH_TABLE = 4, WITH_COMPRESSION = 8, WITH_ENTRY = 16 };

/* The section's neighbour .eh_frame_hdr, with a table of the FDEs at `fdes`. */
static void put_hdr(struct image *m, unsigned what, const uint64_t *starts, const uint32_t *fdes, uint32_t count)
{
    buf_put_u8(&m->all, 1);
    buf_put_u8(&m->all, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
    buf_put_u8(&m->all, what & WITH_TABLE ? DW_EH_PE_udata4 : DW_EH_PE_omit);
    buf_put_u8(&m->all, what & WITH_TABLE ? DW_EH_PE_datarel | DW_EH_PE_sdata4 : DW_EH_PE_omit);
    buf_put_u32(&m->all, (uint32_t)(BASE + CFI - (BASE + m->all.len_bytes)));
    if (!(what & WITH_TABLE))
        return;
    buf_put_u32(&m->all, count);
    for (uint32_t i = 0; i < count; i++) {
        buf_put_u32(&m->all, (uint32_t)(starts[i] - m->hdr_vaddr));
        buf_put_u32(&m->all, (uint32_t)(BASE + CFI + fdes[i] - m->hdr_vaddr));
    }
}

/* Where data-relative pointers count from has to be known before the section is made. */
enum { HDR = 0x8000 };

static void finish(struct image *m, unsigned what, const uint64_t *starts, const uint32_t *fdes, uint32_t count)
{
    static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
    struct buf *b = &m->all;
    size_t cfi_len = m->cfi.len_bytes, raw_len = cfi_len;

    if (!m->debug_frame)
        buf_put_u32(&m->cfi, 0);
    cfi_len = m->cfi.len_bytes;
    while (b->len_bytes < CFI)
        buf_put_u8(b, 0);
    m->compressed = what & WITH_COMPRESSION;
    if (m->compressed) {
        uLongf packed_len = compressBound(cfi_len);
        uint8_t packed[packed_len];
        Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = cfi_len, .ch_addralign = 8};
        assert_int_equal(compress(packed, &packed_len, m->cfi.data, cfi_len), Z_OK);
        buf_put(b, &head, sizeof head);
        buf_put(b, packed, packed_len);
        raw_len = sizeof head + packed_len;
    } else {
        buf_put(b, m->cfi.data, cfi_len);
        raw_len = cfi_len;
    }
    assert_true(b->len_bytes <= HDR);
    while (b->len_bytes < HDR)
        buf_put_u8(b, 0);
    if (what & WITH_HDR)
        put_hdr(m, what, starts, fdes, count);
    size_t hdr_len = b->len_bytes - HDR, names_at = b->len_bytes;
    buf_put(b, names, sizeof names);
    while (b->len_bytes % 8)
        buf_put_u8(b, 0);
    size_t sections_at = b->len_bytes;
    Elf64_Shdr sections[3] = {
        {0},
        {.sh_name = m->debug_frame ? 11 : 1, .sh_type = SHT_PROGBITS, .sh_addr = m->debug_frame ? 0 : BASE + CFI,
         .sh_offset = CFI, .sh_size = raw_len, .sh_flags = what & WITH_COMPRESSION ? SHF_COMPRESSED : 0, .sh_addralign = 8},
        {.sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = sizeof names},
    };
    if (what & WITH_SECTIONS)
        buf_put(b, sections, sizeof sections);
    Elf64_Ehdr ehdr = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
        .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof ehdr, .e_ehsize = sizeof ehdr,
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = what & WITH_HDR ? 3 : 2, .e_shentsize = sizeof(Elf64_Shdr),
        .e_shoff = what & WITH_SECTIONS ? sections_at : 0, .e_shnum = what & WITH_SECTIONS ? 3 : 0,
        .e_shstrndx = what & WITH_SECTIONS ? 2 : 0, .e_entry = what & WITH_ENTRY ? BASE + TEXT + ENTRY : 0,
    };
    Elf64_Phdr phdrs[3] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = BASE, .p_filesz = TEXT + TEXT_LEN, .p_memsz = TEXT + TEXT_LEN},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = CFI, .p_vaddr = BASE + CFI, .p_filesz = names_at - CFI,
         .p_memsz = names_at - CFI},
        {.p_type = PT_GNU_EH_FRAME, .p_offset = HDR, .p_vaddr = BASE + HDR, .p_filesz = hdr_len, .p_memsz = hdr_len},
    };
    assert_false(b->bad);
    memcpy(b->data, &ehdr, sizeof ehdr);
    memcpy(b->data + sizeof ehdr, phdrs, sizeof phdrs);
}

static void image_deinit(struct image *m)
{
    buf_deinit(&m->cfi);
    buf_deinit(&m->all);
}

/* All rows as "PC ROW; …", pc from the text's start. */
static void rows_text(const struct unwind_table *t, struct buf *out)
{
    for (uint32_t i = 0; i < t->row_count; i++) {
        buf_printf(out, "%s%x ", i ? "; " : "", t->rows[i].pc - TEXT);
        put_row_text(out, t, &t->rows[i]);
    }
}

static struct unwind_table *image_table(struct image *m)
{
    struct unwind_table *t, *again;
    int fd = memfd_create("image", MFD_CLOEXEC);

    assert_true(fd >= 0 && write(fd, m->all.data, m->all.len_bytes) == (ssize_t)m->all.len_bytes);
    OK(unwind_table_build(fd, "file", NULL, &t));
    close(fd);
    check_table(t);
    OK(unwind_table_build_memory(m->all.data, m->all.len_bytes, "image", &again));
    assert_int_equal(again->row_count, t->row_count);
    assert_int_equal(t->wide_count, again->wide_count);
    assert_int_equal(t->index_count, again->index_count);
    if (t->row_count) {
        assert_memory_equal(t->rows, again->rows, t->row_count * sizeof *t->rows);
        assert_memory_equal(t->index, again->index, t->index_count * sizeof *t->index);
    }
    if (t->wide_count)
        assert_memory_equal(t->wide, again->wide, t->wide_count * sizeof *t->wide);
    unwind_table_destroy(again);
    return t;
}

static void assert_rows(struct image *m, const char *expected)
{
    struct unwind_table *t = image_table(m);
    struct buf text = {0};

    rows_text(t, &text);
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
    unwind_table_destroy(t);
}

/* ---- each operation ---- */

static void assert_program(const uint8_t *program, size_t len, const char *expected)
{
    struct image m = {0};

    put_cie(&m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
    put_fde(&m, BASE + TEXT, 0x40, program, len);
    finish(&m, WITH_SECTIONS, NULL, NULL, 0);
    assert_rows(&m, expected);
    image_deinit(&m);
}
#define PROGRAM(expected, ...) assert_program(BYTES(__VA_ARGS__), expected)
#define ADVANCE(n) (DW_CFA_advance_loc + (n))

TEST(operations)
{
    PROGRAM("0 rsp+8; 40 none", DW_CFA_nop);
    PROGRAM("0 rsp+8; 1 rsp+16 rbp@-16; 4 rbp+16 rbp@-16; 30 rsp+8 rbp@-16; 40 none", ADVANCE(1), DW_CFA_def_cfa_offset, 16,
            DW_CFA_offset + 6, 2, ADVANCE(3), DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc1, 0x2c, DW_CFA_def_cfa, 7, 8);
    PROGRAM("0 rsp+8; 2 rsp+16; 6 rsp+24; 40 none", DW_CFA_advance_loc2, 2, 0, DW_CFA_def_cfa_offset, 16,
            DW_CFA_advance_loc4, 4, 0, 0, 0, DW_CFA_def_cfa_offset, 24);
    PROGRAM("0 rsp+8; 8 rsp+16; 40 none", DW_CFA_set_loc, 0xda, 0xcf, 0xff, 0xff, DW_CFA_def_cfa_offset, 16);
    PROGRAM("0 rsp+16; 1 rsp+32; 2 rsp+48; 40 none", DW_CFA_def_cfa_sf, 7, 0x7e, ADVANCE(1), DW_CFA_def_cfa_offset_sf, 0x7c,
            ADVANCE(1), DW_CFA_def_cfa_offset, 48);
    /* Saved registers, by every way to say so. */
    PROGRAM("0 rsp+8 rbp@-24; 1 rsp+8 rbp@-32; 2 rsp+8 rbp@-16; 3 rsp+8 rbp@-48; 40 none", DW_CFA_offset_extended, 6, 3,
            ADVANCE(1), DW_CFA_offset_extended_sf, 6, 4, ADVANCE(1), DW_CFA_expression, 6, 2, DW_OP_lit16, DW_OP_minus,
            ADVANCE(1), DW_CFA_offset + 6, 6);
}

TEST(negative_offset)
{
    /* The opposite of what the factor says; the huge number, -5 perhaps, makes no sense. */
    PROGRAM("0 wide cfa=rsp+8 ra=[cfa-8] rbp=[cfa+16] rbx=same; "
            "1 wide cfa=rsp+8 ra=[cfa-8] rbp=lost rbx=same; 40 none", DW_CFA_GNU_negative_offset_extended, 6, 2, ADVANCE(1),
            DW_CFA_GNU_negative_offset_extended, 6, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
}

TEST(register_rules)
{
    PROGRAM("0 rsp+8 rbx@-16; 1 rsp+8 rbx@-120; 2 wide cfa=rsp+8 ra=[cfa-8] rbp=same rbx=[cfa-128]; 3 rsp+8 rbx lost; 4 rsp+8; 40 none",
            DW_CFA_offset + 3, 2, ADVANCE(1), DW_CFA_offset + 3, 15, ADVANCE(1), DW_CFA_offset + 3, 16, ADVANCE(1),
            DW_CFA_undefined, 3, ADVANCE(1), DW_CFA_same_value, 3);
    PROGRAM("0 rsp+8 rbp@-16; 1 rsp+8; 2 rsp+8 rbp@-24; 3 rsp+8; 4 wide cfa=rsp+8 ra=[cfa-8] rbp=lost rbx=same; 40 none",
            DW_CFA_offset + 6, 2, ADVANCE(1), DW_CFA_restore + 6, ADVANCE(1), DW_CFA_offset + 6, 3, ADVANCE(1),
            DW_CFA_restore_extended, 6, ADVANCE(1), DW_CFA_undefined, 6);
    /* vfork keeps its return address in rdi; a frame may keep RBP in a register or be told by value. */
    PROGRAM("0 wide cfa=rsp+8 ra=rdi+0 rbp=same rbx=same; 1 wide cfa=rsp+8 ra=[cfa-8] rbp=r8+0 rbx=same; "
            "2 wide cfa=rsp+8 ra=[cfa-8] rbp=cfa-32 rbx=same; 3 wide cfa=rsp+8 ra=[cfa-8] rbp=cfa-40 rbx=same; 40 none",
            DW_CFA_register, 16, 5, ADVANCE(1), DW_CFA_restore_extended, 16, DW_CFA_register, 6, 8, ADVANCE(1),
            DW_CFA_val_offset, 6, 4, ADVANCE(1), DW_CFA_val_offset_sf, 6, 5);
    PROGRAM("0 end; 8 rsp+8; 40 none", DW_CFA_undefined, 16, ADVANCE(8), DW_CFA_offset + 16, 1);
    /* The others are parsed and of no interest, a row does not change for them. */
    PROGRAM("0 rsp+8; 40 none", DW_CFA_offset + 12, 2, ADVANCE(1), DW_CFA_offset_extended, 40, 3, ADVANCE(1), DW_CFA_undefined, 0,
            ADVANCE(1), DW_CFA_restore + 12, DW_CFA_restore_extended, 40, ADVANCE(1), DW_CFA_GNU_args_size, 0x80, 1,
            DW_CFA_same_value, 13, DW_CFA_register, 14, 15, DW_CFA_val_expression, 2, 1, DW_OP_lit0, DW_CFA_expression, 2, 1, DW_OP_drop);
    PROGRAM("0 other 3; 1 rsp+8; 40 none", DW_CFA_offset + 7, 2, ADVANCE(1), DW_CFA_val_offset, 7, 0);
}

TEST(remember)
{
    PROGRAM("0 rsp+8; 1 rsp+16 rbp@-16; 2 rsp+8 rbp@-24; 3 rsp+24 rbp@-16; 4 rsp+16 rbp@-16; 40 none", ADVANCE(1),
            DW_CFA_def_cfa_offset, 16, DW_CFA_offset + 6, 2, DW_CFA_remember_state, ADVANCE(1), DW_CFA_def_cfa_offset, 8,
            DW_CFA_offset + 6, 3, ADVANCE(1), DW_CFA_restore_state, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 24, ADVANCE(1),
            DW_CFA_restore_state);
    PROGRAM("0 rsp+8; 1 other 5; 40 none", ADVANCE(1), DW_CFA_restore_state);

    uint8_t deep[200] = {ADVANCE(2)};
    memset(deep + 1, DW_CFA_remember_state, sizeof deep - 1);
    assert_program(deep, sizeof deep, "0 rsp+8; 2 other 5; 40 none");
}

TEST(expressions)
{
    /* A realigned stack (DRAP): the CFA in r10, later in a slot, RBP saved where RBP points. */
    PROGRAM("0 wide cfa=r10+0 ra=[cfa-8] rbp=same rbx=same; 1 wide cfa=r10+0 ra=[cfa-8] rbp=[rbp+0] rbx=same; "
            "2 wide cfa=[rbp-8] ra=[cfa-8] rbp=[rbp+0] rbx=[rbp-16]; 40 none",
            DW_CFA_def_cfa, 10, 0, ADVANCE(1), DW_CFA_expression, 6, 2, DW_OP_breg6, 0, ADVANCE(1), DW_CFA_def_cfa_expression, 3,
            DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression, 3, 2, DW_OP_breg6, 0x70);
    /* OpenSSL's way to keep the old stack pointer. */
    PROGRAM("0 wide cfa=[rsp+152]+8 ra=[cfa-8] rbp=same rbx=same; 1 wide cfa=rbx+24 ra=[cfa-8] rbp=same rbx=same; 40 none",
            DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0x98, 1, DW_OP_deref, DW_OP_plus_uconst, 8, ADVANCE(1), DW_CFA_def_cfa, 3, 24);
    PROGRAM("0 rsp+64; 1 wide cfa=[rsp+16]-4 ra=[cfa-8] rbp=same rbx=same; 2 rsp+136; 40 none", DW_CFA_def_cfa_expression, 4,
            DW_OP_breg7, 0x20, DW_OP_plus_uconst, 32, ADVANCE(1), DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0x10, DW_OP_deref,
            DW_OP_const1s, 0xfc, DW_OP_plus, ADVANCE(1), DW_CFA_def_cfa_expression, 7, DW_OP_const2u, 0x90, 0, DW_OP_breg7, 0,
            DW_OP_plus, DW_OP_nop, DW_CFA_def_cfa_expression, 8, DW_OP_breg7, 0x90, 1, DW_OP_lit2, DW_OP_lit6, DW_OP_plus,
            DW_OP_minus, DW_OP_nop);
    /* Not to be expressed: two loads, a product, a load of what a number says. */
    PROGRAM("0 other 1; 1 rsp+8; 2 other 1; 3 rsp+8; 4 other 1; 40 none", DW_CFA_remember_state, DW_CFA_def_cfa_expression, 4,
            DW_OP_breg7, 0, DW_OP_deref, DW_OP_deref, ADVANCE(1), DW_CFA_restore_state, DW_CFA_remember_state, ADVANCE(1),
            DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0, DW_OP_lit2, DW_OP_mul, ADVANCE(1), DW_CFA_restore_state, ADVANCE(1),
            DW_CFA_def_cfa_expression, 2, DW_OP_lit2, DW_OP_deref);
    PROGRAM("0 other 2; 1 wide cfa=rsp+8 ra=[cfa+8] rbp=same rbx=same; 2 wide cfa=rsp+8 ra=[rsp+24]+2 rbp=same rbx=same; 40 none",
            DW_CFA_val_expression, 16, 1, DW_OP_lit0, ADVANCE(1), DW_CFA_expression, 16, 2, DW_OP_plus_uconst, 8, ADVANCE(1),
            DW_CFA_val_expression, 16, 5, DW_OP_breg7, 24, DW_OP_deref, DW_OP_plus_uconst, 2);
    PROGRAM("0 wide cfa=rsp+8 ra=[cfa-8] rbp=lost rbx=same; 1 rsp+8 rbx lost; 40 none", DW_CFA_val_expression, 6, 1, DW_OP_lit3, ADVANCE(1), DW_CFA_same_value, 6, DW_CFA_val_expression, 3, 1, DW_OP_lit3);
    PROGRAM("0 plt 11; 10 plt 5; 20 other 1; 40 none", DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
            DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus, ADVANCE(16), DW_CFA_def_cfa_expression, 11,
            DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit5, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus,
            ADVANCE(16), DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit5,
            DW_OP_ge, DW_OP_lit2, DW_OP_shl, DW_OP_plus);
}

TEST(large_offsets)
{
    PROGRAM("0 rsp+524280; 1 wide cfa=rsp+524288 ra=[cfa-8] rbp=same rbx=same; 2 wide cfa=rsp+12 ra=[cfa-8] rbp=same rbx=same; "
            "3 wide cfa=rsp-8 ra=[cfa-8] rbp=same rbx=same; 4 other 1; 5 rsp+8 rbp@-1024; "
            "6 wide cfa=rsp+8 ra=[cfa-8] rbp=[cfa-1032] rbx=same; 40 none",
            DW_CFA_def_cfa_offset, 0xf8, 0xff, 0x1f, ADVANCE(1), DW_CFA_def_cfa_offset, 0x80, 0x80, 0x20, ADVANCE(1),
            DW_CFA_def_cfa_offset, 12, ADVANCE(1), DW_CFA_def_cfa_offset_sf, 1, ADVANCE(1), DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff,
            0xff, 0xff, 1, ADVANCE(1), DW_CFA_def_cfa, 7, 8, DW_CFA_offset + 6, 0x80, 1, ADVANCE(1), DW_CFA_offset + 6, 0x81, 1);
    PROGRAM("0 other 1; 40 none", DW_CFA_def_cfa, 33, 8);
}

TEST(broken_programs)
{
    PROGRAM("0 rsp+8; 3 other 5; 40 none", ADVANCE(3), 0x3f);
    PROGRAM("0 other 5; 40 none", DW_CFA_def_cfa_expression, 100);
    PROGRAM("0 rsp+8; 1 other 5; 40 none", ADVANCE(1), DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 0, DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 0,
            DW_OP_deref, DW_CFA_def_cfa_offset, 8);
    /* Behind the function's end nothing holds. */
    PROGRAM("0 rsp+8; 40 none", DW_CFA_advance_loc1, 0x40, DW_CFA_def_cfa_offset, 16, ADVANCE(1), 0x3f);
    PROGRAM("0 rsp+8; 40 none", DW_CFA_advance_loc4, 0xff, 0xff, 0xff, 0xff, DW_CFA_def_cfa_offset, 16);
}

/* ---- CIEs, encodings, where things are ---- */

TEST(augmentations)
{
    static const char *const augmentations[] = {"zR", "zPLR", "zRB", "", "zLPR"};

    for (size_t i = 0; i < sizeof augmentations / sizeof augmentations[0]; i++) {
        struct image m = {0};
        put_cie(&m, augmentations[i], *augmentations[i] ? DW_EH_PE_sdata4 | DW_EH_PE_pcrel : DW_EH_PE_absptr, 4, BYTES(USUAL));
        put_fde(&m, BASE + TEXT, 0x10, BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16));
        finish(&m, WITH_SECTIONS, NULL, NULL, 0);
        assert_rows(&m, "0 rsp+8; 4 rsp+16; 10 none");
        image_deinit(&m);
    }
    struct image m = {0};
    put_cie(&m, "eh", DW_EH_PE_absptr, 1, BYTES(USUAL));
    put_fde(&m, BASE + TEXT, 0x10, BYTES(DW_CFA_nop));
    finish(&m, WITH_SECTIONS, NULL, NULL, 0);
    struct unwind_table *t = image_table(&m);
    assert_int_equal(t->row_count, 0);
    unwind_table_destroy(t);
    image_deinit(&m);
}

TEST(signal_frame)
{
#define SAVED(number, at) DW_CFA_expression, number, 3, DW_OP_breg7, ((at) & 0x7f) | 0x80, (at) >> 7
    static const uint8_t program[] = {
        DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref, SAVED(8, 40), SAVED(6, 120), SAVED(3, 128),
        SAVED(7, 160), SAVED(16, 168),
    };
    struct image m = {0};

    put_cie(&m, "zRS", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
    put_fde(&m, BASE + TEXT, 0x10, program, sizeof program);
    put_fde(&m, BASE + TEXT + 0x10, 0x10, BYTES(DW_CFA_nop));
    put_cie(&m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
    put_fde(&m, BASE + TEXT + 0x20, 0x10, program, sizeof program);
    finish(&m, WITH_SECTIONS, NULL, NULL, 0);
    assert_rows(&m, "0 signal; 10 other 4; 20 other 3; 30 none");
    image_deinit(&m);
}

TEST(encodings)
{
    static const uint8_t encodings[] = {
        DW_EH_PE_absptr, DW_EH_PE_uleb128, DW_EH_PE_sleb128, DW_EH_PE_udata4, DW_EH_PE_udata8, DW_EH_PE_sdata4,
        DW_EH_PE_sdata8, DW_EH_PE_pcrel | DW_EH_PE_absptr, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
        DW_EH_PE_pcrel | DW_EH_PE_sdata8, DW_EH_PE_pcrel | DW_EH_PE_sdata2, DW_EH_PE_pcrel | DW_EH_PE_udata8,
        DW_EH_PE_pcrel | DW_EH_PE_sleb128, DW_EH_PE_datarel | DW_EH_PE_sdata4, DW_EH_PE_datarel | DW_EH_PE_sdata2,
        DW_EH_PE_datarel | DW_EH_PE_sdata8, DW_EH_PE_datarel | DW_EH_PE_sleb128,
    };

    for (size_t i = 0; i < sizeof encodings; i++) {
        struct image m = {.hdr_vaddr = BASE + HDR};
        put_cie(&m, "zR", encodings[i], 1, BYTES(USUAL));
        put_fde(&m, BASE + TEXT, 0x10, BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16));
        put_fde(&m, BASE + TEXT + 0x200, 0x110, BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 24));
        finish(&m, WITH_SECTIONS | WITH_HDR, NULL, NULL, 0);
        assert_rows(&m, "0 rsp+8; 1 rsp+16; 10 none; 200 rsp+8; 201 rsp+24; 310 none");
        image_deinit(&m);
    }
    /* An aligned personality in front of the encoding that matters. */
    struct image m = {0};
    buf_put_u32(&m.cfi, 0);
    buf_put_u32(&m.cfi, 0);
    buf_put(&m.cfi, "\1zPR\0\1\x78\x10", 8);
    buf_put_u8(&m.cfi, 0);
    size_t at = m.cfi.len_bytes;
    buf_put_u8(&m.cfi, DW_EH_PE_aligned);
    while (m.cfi.len_bytes % 8)
        buf_put_u8(&m.cfi, 0xff);
    buf_put_u64(&m.cfi, 0x1234);
    buf_put_u8(&m.cfi, DW_EH_PE_sdata4 | DW_EH_PE_pcrel);
    m.cfi.data[at - 1] = (uint8_t)(m.cfi.len_bytes - at);
    buf_put(&m.cfi, BYTES(USUAL));
    patch_len(&m.cfi, 0);
    m.encoding = DW_EH_PE_sdata4 | DW_EH_PE_pcrel;
    m.sized = true;
    put_fde(&m, BASE + TEXT, 0x10, BYTES(DW_CFA_nop));
    finish(&m, WITH_SECTIONS, NULL, NULL, 0);
    assert_rows(&m, "0 rsp+8; 10 none");
    image_deinit(&m);
}

/* Indirect, or relative to what x86-64 does not have: not read, and counted. */
TEST(encodings_refused)
{
    static const uint8_t encodings[] = {0x90 | DW_EH_PE_sdata4, DW_EH_PE_textrel | DW_EH_PE_sdata4,
                                        DW_EH_PE_funcrel | DW_EH_PE_sdata4, 0x07, 0x60, DW_EH_PE_omit};

    for (size_t i = 0; i < sizeof encodings; i++) {
        struct image m = {0};
        put_cie(&m, "zR", encodings[i], 1, BYTES(USUAL));
        put_fde(&m, BASE + TEXT, 0x10, BYTES(DW_CFA_nop));
        put_cie(&m, "zR", DW_EH_PE_udata8, 1, BYTES(USUAL));
        put_fde(&m, BASE + TEXT + 0x100, 0x10, BYTES(DW_CFA_nop));
        finish(&m, WITH_SECTIONS, NULL, NULL, 0);
        struct unwind_table *t = image_table(&m);
        assert_int_equal(t->stats.fde_unreadable, 1);
        assert_int_equal(t->stats.fde_count, 1);
        unwind_table_destroy(t);
        image_deinit(&m);
    }
}

static void put_three(struct image *m, uint32_t fdes[3], uint64_t starts[3])
{
    put_cie(m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
    for (int i = 0; i < 3; i++) {
        fdes[i] = (uint32_t)m->cfi.len_bytes;
        starts[i] = (uint64_t)(BASE + TEXT + 0x100 * i);
        put_fde(m, starts[i], 0x80, BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16));
    }
}

TEST(places)
{
    static const char expected[] = "0 rsp+8; 1 rsp+16; 80 none; 100 rsp+8; 101 rsp+16; 180 none; 200 rsp+8; 201 rsp+16; 280 none";
    static const struct {
        unsigned what;
        bool debug_frame;
        uint32_t source;
    } cases[] = {
        {WITH_SECTIONS, false, UNWIND_SOURCE_EH_FRAME},
        {WITH_SECTIONS | WITH_HDR | WITH_TABLE, false, UNWIND_SOURCE_EH_FRAME},
        {WITH_HDR | WITH_TABLE, false, UNWIND_SOURCE_HDR},
        {WITH_HDR, false, UNWIND_SOURCE_EH_FRAME},
        {WITH_SECTIONS, true, UNWIND_SOURCE_DEBUG_FRAME},
        {WITH_SECTIONS | WITH_COMPRESSION, true, UNWIND_SOURCE_DEBUG_FRAME},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct image m = {.debug_frame = cases[i].debug_frame, .hdr_vaddr = BASE + HDR};
        uint32_t fdes[3];
        uint64_t starts[3];
        if (m.debug_frame) {
            put_cie(&m, "", DW_EH_PE_absptr, 1, BYTES(USUAL));
            for (int k = 2; k >= 0; k--)
                put_fde(&m, (uint64_t)(BASE + TEXT + 0x100 * k), 0x80, BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16));
        } else {
            put_three(&m, fdes, starts);
        }
        finish(&m, cases[i].what, starts, fdes, 3);
        struct unwind_table *t = image_table(&m);
        assert_int_equal(t->stats.source, cases[i].source);
        assert_int_equal(t->base_vaddr, BASE);
        unwind_table_destroy(t);
        assert_rows(&m, expected);
        image_deinit(&m);
    }
}

/* ---- functions beside and over each other ---- */

TEST(gaps_and_overlaps)
{
    struct image m = {0};

    put_cie(&m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
    put_fde(&m, BASE + TEXT + 0x300, 0x20, BYTES(DW_CFA_def_cfa_offset, 80));
    put_fde(&m, BASE + TEXT, 0x11, BYTES(DW_CFA_def_cfa_offset, 16));
    put_fde(&m, BASE + TEXT + 0x20, 0x10, BYTES(DW_CFA_def_cfa_offset, 24));  /* padding before */
    put_fde(&m, BASE + TEXT + 0x40, 0x10, BYTES(DW_CFA_def_cfa_offset, 32));  /* code before */
    put_fde(&m, BASE + TEXT + 0x50, 0x10, BYTES(DW_CFA_def_cfa_offset, 32));  /* the same row goes on */
    put_fde(&m, BASE + TEXT + 0x100, 0x80, BYTES(DW_CFA_def_cfa_offset, 40)); /* holds the next one, which wins */
    put_fde(&m, BASE + TEXT + 0x110, 0x10, BYTES(DW_CFA_def_cfa_offset, 48));
    put_fde(&m, BASE + TEXT + 0x200, 0x10, BYTES(DW_CFA_def_cfa_offset, 56)); /* the first of two counts */
    put_fde(&m, BASE + TEXT + 0x200, 0x20, BYTES(DW_CFA_def_cfa_offset, 64));
    put_fde(&m, BASE + TEXT + 0x1000000, 0x20, BYTES(DW_CFA_nop));
    put_fde(&m, 0, 0x20, BYTES(DW_CFA_nop));
    put_fde(&m, BASE + TEXT + TEXT_LEN - 0x10, 0x20, BYTES(ADVANCE(0x18), DW_CFA_def_cfa_offset, 16)); /* cut by the segment */
    finish(&m, WITH_SECTIONS, NULL, NULL, 0);
    memset(m.all.data + TEXT + 0x20, 0xc3, TEXT_LEN - 0x20);
    struct unwind_table *t = image_table(&m);
    assert_int_equal(t->stats.fde_count, 9);
    assert_int_equal(t->stats.fde_outside, 2);
    assert_int_equal(t->stats.fde_overlapping, 1);
    assert_int_equal(t->stats.fde_repeated, 1);
    unwind_table_destroy(t);
    assert_rows(&m, "0 rsp+16; 20 rsp+24; 30 none; 40 rsp+32; 60 none; 100 rsp+40; 110 rsp+48; 120 none; 200 rsp+56; "
                    "210 none; 300 rsp+80; 320 none; 2ff0 rsp+8; 3000 none");
    image_deinit(&m);
}

/* Between two functions is padding, or code without information however short: where the row before must not hold. */
TEST(padding)
{
    static const struct {
        const char *bytes; /* behind zeros */
        size_t len;
        bool padding;
    } cases[] = {
        {"", 0, true},
        {"\x90", 1, true},
        {"\xcc\xcc\xcc", 3, true},
        {"\x66\x90", 2, true},
        {"\x0f\x1f\x00", 3, true},
        {"\x0f\x1f\x40\x11", 4, true},
        {"\x0f\x1f\x44\x11\x22", 5, true},
        {"\x66\x0f\x1f\x44\x11\x22", 6, true},
        {"\x0f\x1f\x80\x11\x22\x33\x44", 7, true},
        {"\x0f\x1f\x84\x11\x22\x33\x44\x55", 8, true},
        {"\x66\x66\x2e\x0f\x1f\x84\x11\x22\x33\x44\x55\x90", 12, true},
        {"\xc3", 1, false},                                      /* ret */
        {"\xff\xd7\xc3", 3, false},                              /* call *%rdi; ret */
        {"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, false},      /* musl's signal trampoline */
        {"\x90\x90\x0f\x05\x90", 5, false},
        {"\x0f\x1f\x84\x11\x22\x33\x44", 7, false}, /* cut off */
        {"\x0f\x1f", 2, false},
        {"\x66\x2e", 2, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct image m = {0};
        put_cie(&m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
        put_fde(&m, BASE + TEXT, 0x11, BYTES(DW_CFA_def_cfa_offset, 16));
        put_fde(&m, BASE + TEXT + 0x20, 0x10, BYTES(DW_CFA_def_cfa_offset, 24));
        put_fde(&m, BASE + TEXT + 0x30 + 63, 0x10, BYTES(DW_CFA_def_cfa_offset, 32)); /* the longest padding */
        put_fde(&m, BASE + TEXT + 0x80 + 64, 0x10, BYTES(DW_CFA_def_cfa_offset, 40));
        finish(&m, WITH_SECTIONS, NULL, NULL, 0);
        memcpy(m.all.data + TEXT + 0x20 - cases[i].len, cases[i].bytes, cases[i].len);
        assert_rows(&m, cases[i].padding
                            ? "0 rsp+16; 20 rsp+24; 6f rsp+32; 7f none; c0 rsp+40; d0 none"
                            : "0 rsp+16; 11 none; 20 rsp+24; 6f rsp+32; 7f none; c0 rsp+40; d0 none");
        image_deinit(&m);
    }
}

/* The program's start, where nothing else is known of it. */
TEST(entry)
{
    static const struct {
        uint64_t start, len;
        const char *expected;
    } cases[] = {
        {0, 0, "60 end; a0 none"},
        {0, 0x20, "0 rsp+8; 20 none; 60 end; a0 none"},
        {0, 0x60, "0 rsp+8; 60 end; a0 none"},
        {0, 0x61, "0 rsp+8; 61 none"},
        {0x60, 0x10, "60 rsp+8; 70 none"},
        {0x70, 0x10, "60 end; 70 rsp+8; 80 none"},
        {0xa0, 0x10, "60 end; a0 rsp+8; b0 none"},
        {0x100, 0x10, "60 end; a0 none; 100 rsp+8; 110 none"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct image m = {0};
        put_cie(&m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
        if (cases[i].len)
            put_fde(&m, BASE + TEXT + cases[i].start, cases[i].len, BYTES(DW_CFA_nop));
        finish(&m, WITH_SECTIONS | WITH_ENTRY, NULL, NULL, 0);
        assert_rows(&m, cases[i].expected);
        image_deinit(&m);
    }
}

/* A full page of rows, in the order that costs most. */
TEST(dense_page)
{
    struct image m = {0};
    uint8_t program[3 * 0x300];

    for (size_t i = 0; i < sizeof program; i += 3) {
        program[i] = ADVANCE(1);
        program[i + 1] = DW_CFA_def_cfa_offset;
        program[i + 2] = i % 2 ? 16 : 24;
    }
    put_cie(&m, "zR", DW_EH_PE_sdata4 | DW_EH_PE_pcrel, 1, BYTES(USUAL));
    put_fde(&m, BASE + TEXT + 0x80, 0x400, program, sizeof program);
    finish(&m, WITH_SECTIONS, NULL, NULL, 0);
    struct unwind_table *t = image_table(&m);
    assert_int_equal(t->row_count, 0x302);
    for (uint32_t i = 0; i < t->index_count; i++)
        assert_true(UNWIND_PAGE_HIGH(t->index[i]) - UNWIND_PAGE_LOW(t->index[i]) <= 257);
    unwind_table_destroy(t);
    image_deinit(&m);
}

TEST(no_information)
{
    struct unwind_table *t;
    struct image m = {0};
    struct error *err = unwind_table_build_memory("#!/bin/sh\n", 10, "script", &t);

    assert_non_null(err);
    assert_int_equal(err->code, ERROR_FORMAT);
    assert_null(t);
    error_destroy(err);
    finish(&m, 0, NULL, NULL, 0);
    OK(unwind_table_build_memory(m.all.data, m.all.len_bytes, "bare", &t));
    assert_int_equal(t->row_count, 0);
    assert_int_equal(t->stats.source, UNWIND_SOURCE_NONE);
    assert_int_equal(unwind_table_lookup(t, BASE + TEXT).type, UNWIND_NONE);
    unwind_table_destroy(t);
    ((Elf64_Ehdr *)m.all.data)->e_machine = EM_AARCH64;
    err = unwind_table_build_memory(m.all.data, m.all.len_bytes, "arm", &t);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_UNSUPPORTED);
    error_destroy(err);
    image_deinit(&m);
}

/* Any byte may be any other: no crash, sound tables. */
TEST(damage)
{
    uint64_t seed = 1;

    for (unsigned kind = 0; kind < 3; kind++) {
        struct image m = {.hdr_vaddr = BASE + HDR, .debug_frame = kind == 2};
        uint32_t fdes[3];
        uint64_t starts[3];
        if (m.debug_frame) {
            put_cie(&m, "", DW_EH_PE_absptr, 1, BYTES(USUAL));
            put_fde(&m, BASE + TEXT, 0x80, BYTES(ADVANCE(1), DW_CFA_def_cfa_offset, 16));
        } else {
            put_three(&m, fdes, starts);
        }
        finish(&m, kind == 0 ? WITH_SECTIONS : kind == 1 ? WITH_HDR | WITH_TABLE : WITH_SECTIONS | WITH_COMPRESSION, starts,
               fdes, 3);
        uint8_t *copy = malloc(m.all.len_bytes);
        for (int round = 0; round < 20000; round++) {
            struct unwind_table *t;
            memcpy(copy, m.all.data, m.all.len_bytes);
            for (int i = 0; i < 3; i++) {
                static const uint32_t places[] = {0, CFI, HDR};
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                size_t at = places[seed >> 60 & 1 ? 1 : seed >> 61 & 1 ? 2 : 0] + (seed >> 33) % 256;
                copy[at % m.all.len_bytes] = seed >> 50 & 1 ? (uint8_t)(seed >> 40) : seed >> 51 & 1 ? 0xff : 0;
            }
            size_t len = m.all.len_bytes - (seed >> 45) % 3 * 100;
            int fd = memfd_create("damaged", MFD_CLOEXEC);
            assert_true(fd >= 0 && write(fd, copy, len) == (ssize_t)len);
            struct error *err = round % 2 ? unwind_table_build(fd, "damaged", NULL, &t)
                                          : unwind_table_build_memory(copy, len, "damaged", &t);
            close(fd);
            if (!err)
                for (uint32_t i = 1; i < t->row_count; i++)
                    assert_true(t->rows[i - 1].pc < t->rows[i].pc);
            error_destroy(err);
            unwind_table_destroy(t);
        }
        free(copy);
        image_deinit(&m);
    }
}
