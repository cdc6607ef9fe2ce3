/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables of real files, row by row against libdw. */
#include "tests/unit/test.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tests/toolchain/elf_fixture.h"
#include "tests/unit/table_text.h"

static int start_libelf(void **state)
{
    (void)state;
    return elf_version(EV_CURRENT) == EV_NONE;
}

TESTS_WITH(start_libelf, NULL);

struct tally {
    uint64_t rows, ranges, compared, by_type[UNWIND_TYPE_COUNT], padding, unreadable;
};

/* What libdw says a register's value is, as a rule of ours; *known is false where it cannot be one. */
static struct unwind_rule rule_of_ops(const Dwarf_Op *ops, size_t count, bool *known)
{
    struct unwind_rule rule = {0};
    int64_t offset = 0;
    size_t i = 0;

    *known = true;
    if (!count)
        return rule;
    if (ops[i].atom == DW_OP_call_frame_cfa) {
        rule.base = UNWIND_BASE_CFA;
        /* Under an expression the CFA may stay unused. */
        i++;
        if (i < count && ops[i].atom >= DW_OP_breg0 && ops[i].atom <= DW_OP_breg15)
            rule.base = 0;
    }
    if (i < count && ops[i].atom >= DW_OP_breg0 && ops[i].atom <= DW_OP_breg15) {
        rule.base = ops[i].atom - DW_OP_breg0;
        offset = (int64_t)ops[i++].number;
    } else if (i < count && ops[i].atom == DW_OP_bregx && ops[i].number <= 15) {
        rule.base = (uint8_t)ops[i].number;
        offset = (int64_t)ops[i++].number2;
    } else if (i < count && ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg15) {
        rule.base = ops[i++].atom - DW_OP_reg0;
        *known = i == count;
        rule.kind = UNWIND_VALUE;
        return rule;
    } else if (i < count && ops[i].atom == DW_OP_regx && ops[i].number <= 15) {
        rule.base = (uint8_t)ops[i++].number;
        *known = i == count;
        rule.kind = UNWIND_VALUE;
        return rule;
    } else if (rule.base != UNWIND_BASE_CFA) {
        *known = false;
        return rule;
    }
    rule.kind = UNWIND_VALUE;
    for (; i < count; i++) {
        if (ops[i].atom == DW_OP_plus_uconst && rule.kind == UNWIND_VALUE) {
            offset += (int64_t)ops[i].number;
        } else if (ops[i].atom == DW_OP_plus_uconst) {
            rule.add += (int16_t)ops[i].number;
        } else if (ops[i].atom == DW_OP_deref && rule.kind == UNWIND_VALUE) {
            rule.kind = UNWIND_MEMORY;
        } else if (ops[i].atom == DW_OP_stack_value && i + 1 == count) {
            rule.offset = (int32_t)offset;
            return rule;
        } else {
            *known = false;
        }
    }
    rule.offset = (int32_t)offset;
    return rule;
}

/* A register's rule: libdw gives the place where it was saved. */
static struct unwind_rule libdw_rule(Dwarf_Frame *frame, int number, bool *known)
{
    Dwarf_Op memory[3], *ops;
    size_t count;

    assert_int_equal(dwarf_frame_register(frame, number, memory, &ops, &count), 0);
    if (!count)
        return (struct unwind_rule){.kind = ops ? UNWIND_UNDEFINED : UNWIND_SAME};
    struct unwind_rule rule = rule_of_ops(ops, count, known);
    if (*known && ops[count - 1].atom == DW_OP_stack_value)
        return rule;
    if (ops[0].atom == DW_OP_regx || (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31))
        return rule;
    if (rule.kind != UNWIND_VALUE)
        *known = false;
    rule.kind = UNWIND_MEMORY;
    return rule;
}

static bool same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == UNWIND_SAME || a->kind == UNWIND_UNDEFINED ||
           (a->base == b->base && a->offset == b->offset && a->add == b->add);
}

/* A row written out. */
static struct unwind_wide widen(const struct unwind_table *t, const struct unwind_row *row)
{
    struct unwind_wide wide = {0};
    uint8_t type = UNWIND_TYPE(row->type), rbx = UNWIND_RBX(row->type);

    if (type == UNWIND_WIDE)
        return t->wide[row->cfa8];
    wide.cfa = (struct unwind_rule){UNWIND_VALUE, type == UNWIND_RBP ? 6 : 7, 0, row->cfa8 * 8};
    wide.ra = (struct unwind_rule){UNWIND_MEMORY, UNWIND_BASE_CFA, 0, -8};
    if (row->rbp8)
        wide.rbp = (struct unwind_rule){UNWIND_MEMORY, UNWIND_BASE_CFA, 0, row->rbp8 * 8};
    if (rbx == UNWIND_RBX_LOST)
        wide.rbx.kind = UNWIND_UNDEFINED;
    else if (rbx)
        wide.rbx = (struct unwind_rule){UNWIND_MEMORY, UNWIND_BASE_CFA, 0, -8 - 8 * rbx};
    if (type == UNWIND_SIGNAL) {
        wide.cfa = (struct unwind_rule){UNWIND_MEMORY, 7, 0, 160};
        wide.ra = (struct unwind_rule){UNWIND_MEMORY, 7, 0, 168};
        wide.rbp = (struct unwind_rule){UNWIND_MEMORY, 7, 0, 120};
        wide.rbx = (struct unwind_rule){UNWIND_MEMORY, 7, 0, 128};
    }
    return wide;
}

static bool is_plt_ops(const Dwarf_Op *ops, size_t count, unsigned threshold)
{
    static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};

    if (count != sizeof atoms || ops[0].number != 8 || ops[1].number || ops[4].atom != DW_OP_lit0 + threshold)
        return false;
    for (size_t i = 0; i < count; i++)
        if (i != 4 && ops[i].atom != atoms[i])
            return false;
    return true;
}

static void disagree(const struct unwind_table *t, const char *path, uint64_t vaddr, const char *what)
{
    struct buf text = {0};
    struct unwind_row row = unwind_table_lookup(t, vaddr);

    put_row_text(&text, t, &row);
    print_message("%s %#" PRIx64 ": %s: %s\n", path, vaddr, what, buf_cstr(&text));
    buf_deinit(&text);
    fail();
}

/* At `vaddr` the row in force and libdw must say the same, or the row say why it cannot. */
static void compare_frame(const struct unwind_table *t, const char *path, Dwarf_Frame *frame, uint64_t vaddr, bool signal)
{
    struct unwind_row row = unwind_table_lookup(t, vaddr);
    struct unwind_wide ours = widen(t, &row);
    uint8_t type = UNWIND_TYPE(row.type);
    bool cfa_known, ra_known = true, rbp_known = true, rbx_known = true, rsp_known = true;
    Dwarf_Op *ops;
    size_t count;

    struct unwind_rule ra = libdw_rule(frame, 16, &ra_known);
    if (type == UNWIND_END || (ra.kind == UNWIND_UNDEFINED && ra_known)) {
        if (ra.kind != UNWIND_UNDEFINED || type != UNWIND_END)
            disagree(t, path, vaddr, "end");
        return;
    }
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
    struct unwind_rule cfa = rule_of_ops(ops, count, &cfa_known);
    struct unwind_rule rbp = libdw_rule(frame, 6, &rbp_known), rbx = libdw_rule(frame, 3, &rbx_known),
                       rsp = libdw_rule(frame, 7, &rsp_known);
    if (type == UNWIND_OTHER) {
        bool named = (row.cfa8 == UNWIND_OTHER_CFA && !cfa_known) || (row.cfa8 == UNWIND_OTHER_RETURN && !ra_known) ||
                     (row.cfa8 == UNWIND_OTHER_STACK && (!rsp_known || rsp.kind != UNWIND_VALUE || rsp.base != UNWIND_BASE_CFA || rsp.offset)) ||
                     (row.cfa8 == UNWIND_OTHER_SIGNAL && signal);
        if (!named)
            disagree(t, path, vaddr, "no reason to be other");
        return;
    }
    if (signal != (type == UNWIND_SIGNAL))
        disagree(t, path, vaddr, "signal frame");
    if (type == UNWIND_PLT ? !is_plt_ops(ops, count, row.cfa8) : !cfa_known || !same_rule(&ours.cfa, &cfa))
        disagree(t, path, vaddr, "CFA");
    if (!ra_known || !same_rule(&ours.ra, &ra))
        disagree(t, path, vaddr, "return address");
    if (ours.rbp.kind == UNWIND_UNDEFINED ? rbp_known && rbp.kind != UNWIND_UNDEFINED : !rbp_known || !same_rule(&ours.rbp, &rbp))
        disagree(t, path, vaddr, "RBP");
    /* libdw 0.188 takes RBX for lost where nothing is said of it: its default rules name rax instead. */
    if (ours.rbx.kind == UNWIND_UNDEFINED ? rbx_known && rbx.kind != UNWIND_UNDEFINED
        : ours.rbx.kind == UNWIND_SAME    ? rbx.kind != UNWIND_SAME && rbx.kind != UNWIND_UNDEFINED
                                          : !rbx_known || !same_rule(&ours.rbx, &rbx))
        disagree(t, path, vaddr, "RBX");
}

/* What libdw knows of a file: .eh_frame, and .debug_frame where that is silent. */
struct by_libdw {
    Dwarf_CFI *eh_frame, *debug_frame; /* may be NULL */
    Dwarf *dwarf;
};

static bool find_frame(struct by_libdw *by, uint64_t vaddr, Dwarf_Frame **frame)
{
    return (by->eh_frame && dwarf_cfi_addrframe(by->eh_frame, vaddr, frame) == 0) ||
           (by->debug_frame && dwarf_cfi_addrframe(by->debug_frame, vaddr, frame) == 0);
}

/* Every row, and within each row every range that libdw tells apart. */
static void compare_rows(const struct unwind_table *t, const char *path, struct by_libdw *by, uint64_t entry,
                         struct tally *tally)
{
    for (uint32_t i = 0; i < t->row_count; i++) {
        uint64_t at = t->base_vaddr + t->rows[i].pc,
                 end = i + 1 < t->row_count ? t->base_vaddr + t->rows[i + 1].pc : at + 1;
        tally->rows++;
        tally->by_type[UNWIND_TYPE(t->rows[i].type)]++;
        while (at < end) {
            Dwarf_Frame *frame = NULL;
            Dwarf_Addr range_start, range_end;
            bool signal;
            bool found = find_frame(by, at, &frame);
            tally->ranges++;
            if (t->rows[i].type == UNWIND_NONE) {
                if (found)
                    disagree(t, path, at, "none");
                break;
            }
            if (t->rows[i].type == UNWIND_OTHER && t->rows[i].cfa8 == UNWIND_OTHER_PROGRAM) {
                tally->unreadable++;
                free(frame);
                break;
            }
            if (!found && at == entry && t->rows[i].type == UNWIND_END) {
                assert_true(end - at <= 64);
                break;
            }
            if (!found) {
                /* Padding between functions belongs to the row before. */
                uint64_t gap_end = at;
                while (gap_end < end && gap_end - at <= 63 && !find_frame(by, gap_end, &frame))
                    gap_end++;
                free(frame);
                if (gap_end - at > 63)
                    disagree(t, path, at, "libdw has nothing");
                tally->padding += gap_end - at;
                at = gap_end;
                continue;
            }
            assert_int_equal(dwarf_frame_info(frame, &range_start, &range_end, &signal), 16);
            compare_frame(t, path, frame, at, signal);
            tally->compared++;
            free(frame);
            assert_true(range_end > at);
            at = range_end;
        }
    }
}

static void print_tally(const char *name, const struct unwind_table *t, const struct tally *tally)
{
    const char *slash = strrchr(name, '/');

    print_message("%s: %" PRIu64 " rows, %" PRIu64 " ranges, %" PRIu64 " equal to libdw's; %" PRIu64 " without information, %"
                  PRIu64 " ends, %" PRIu64 " plt, %" PRIu64 " signal, %" PRIu64 " wide (%u), other: %" PRIu64 " cfa, %" PRIu64
                  " return, %" PRIu64 " rsp, %" PRIu64 " signal, %" PRIu64 " program; %" PRIu64 " bytes of padding; %.2f ms\n",
                  slash ? slash + 1 : name, tally->rows, tally->ranges, tally->compared, tally->by_type[UNWIND_NONE],
                  tally->by_type[UNWIND_END], tally->by_type[UNWIND_PLT], tally->by_type[UNWIND_SIGNAL],
                  tally->by_type[UNWIND_WIDE], t->wide_count, t->stats.other[UNWIND_OTHER_CFA],
                  t->stats.other[UNWIND_OTHER_RETURN], t->stats.other[UNWIND_OTHER_STACK],
                  t->stats.other[UNWIND_OTHER_SIGNAL], t->stats.other[UNWIND_OTHER_PROGRAM], tally->padding,
                  (double)t->stats.build_ns / 1e6);
}

static void compare_elf(const struct unwind_table *t, const char *path, Elf *elf)
{
    struct tally tally = {0};
    GElf_Ehdr header;

    assert_non_null(elf);
    assert_non_null(gelf_getehdr(elf, &header));
    struct by_libdw by = {.eh_frame = dwarf_getcfi_elf(elf), .dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL)};
    by.debug_frame = by.dwarf ? dwarf_getcfi(by.dwarf) : NULL;
    assert_true(by.eh_frame || by.debug_frame);
    assert_true(t->row_count > 0);
    check_table(t);
    compare_rows(t, path, &by, header.e_entry, &tally);
    print_tally(path, t, &tally);
    assert_true(tally.compared > 0);
    if (by.eh_frame)
        dwarf_cfi_end(by.eh_frame);
    dwarf_end(by.dwarf);
    elf_end(elf);
}

static bool compare_file(const char *path)
{
    struct unwind_table *t;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    OK(unwind_table_build(fd, path, NULL, &t));
    compare_elf(t, path, elf_begin(fd, ELF_C_READ_MMAP, NULL));
    unwind_table_destroy(t);
    close(fd);
    return true;
}

static void compare_pattern(const char *pattern)
{
    glob_t found;
    bool any = false;

    if (!glob(pattern, GLOB_TILDE, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            any = compare_file(found.gl_pathv[i]) || any;
        globfree(&found);
    }
    if (!any) {
        print_message("%s: not there\n", pattern);
        skip();
    }
}

TEST(libc)
{
    compare_pattern("/lib/x86_64-linux-gnu/libc.so.6");
}
TEST(loader)
{
    compare_pattern("/lib64/ld-linux-x86-64.so.2");
}
TEST(libcrypto)
{
    compare_pattern("/usr/lib/x86_64-linux-gnu/libcrypto.so.?*");
}
TEST(libpython)
{
    compare_pattern("~/.pyenv/versions/3.*/lib/libpython3.*.so.1.0");
}
TEST(libstdcxx)
{
    compare_pattern("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}
/* More of them: files named in UNWIND_TABLE_FILES, separated by colons. */
TEST(named_files)
{
    const char *names = getenv("UNWIND_TABLE_FILES");

    if (!names)
        skip();
    char *copy = strdup(names);
    for (char *save, *name = strtok_r(copy, ":", &save); name; name = strtok_r(NULL, ":", &save))
        if (!compare_file(name))
            print_message("%s: not there\n", name);
    free(copy);
}

TEST(self)
{
    assert_true(compare_file("/proc/self/exe"));
}

/* ---- of what the compiler is told to make ---- */

/* Functions of every shape: in a leaf, with saved registers, with a moving and with a realigned stack. */
static const char shapes[] =
    "#include <alloca.h>\n"
    "#define F __attribute__((noinline, used))\n"
    "extern volatile int sink; volatile int sink __attribute__((weak, visibility(\"hidden\")));\n"
    "F static int leaf(int n) { return sink += n; }\n"
    "F static int saved(int a, int b, int c) { for (int i = 0; i < a; i++) a += leaf(b) * leaf(c) + leaf(a + b) * leaf(a + c); return a; }\n"
    "F static int moving(int n) { volatile char *p = alloca(n); p[0] = n; return leaf(p[n / 2]) + n; }\n"
    "F static int realigned(int n) { volatile char w[64] __attribute__((aligned(64))); w[n & 63] = n; return leaf(w[3]); }\n"
    "F static int both(int n) { volatile char w[64] __attribute__((aligned(64))); volatile char *p = alloca(n); w[n & 63] = p[0] = n; return leaf(w[3] + p[1]); }\n"
    "F static int many(int n, int a, int b, int c, int d, int e, int f, int g) { return leaf(n) + saved(a, b, c) + saved(d, e, f) + g; }\n"
    "int ENTRY(int n);\n"
    "F int ENTRY(int n) { return saved(n, 2, 3) + moving(n) + realigned(n) + both(n) + many(n, 1, 2, 3, 4, 5, 6, 7); }\n";

static struct unwind_table *build_table(const struct fixture *f, const char *name)
{
    struct unwind_table *t;
    char path[512];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    OK(unwind_table_build(fd, path, NULL, &t));
    close(fd);
    return t;
}

static void compare_in(const struct fixture *f, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    assert_true(compare_file(path));
}

#define NO_EH "-fno-asynchronous-unwind-tables -fno-unwind-tables"
#define LIBRARY "gcc -DENTRY=entry -w -shared -fPIC -nostdlib -Wl,--build-id=none "

/* The same code with its information in .debug_frame gives the same rows, packed or not. */
TEST_WITH(debug_frame, fixture_init, fixture_deinit)
{
    static const char *const kinds[] = {"-O0", "-O1", "-O2", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -mstackrealign",
                                        "-O3 -march=x86-64-v3"};
    static const char *const packings[] = {"", "-gz=zlib", "-gz=zlib-gnu", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"};
    const struct fixture *f = *state;

    fixture_write(f, "shapes.c", shapes, sizeof shapes - 1);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_true(fixture_run(f, LIBRARY "%s -o eh.so shapes.c", kinds[i]));
        struct unwind_table *eh = build_table(f, "eh.so");
        assert_int_equal(eh->stats.source, UNWIND_SOURCE_EH_FRAME);
        assert_true(eh->stats.fde_count >= 7);
        compare_in(f, "eh.so");
        for (size_t k = 0; k < sizeof packings / sizeof packings[0] && (k < 1 || i == 2); k++) {
            assert_true(fixture_run(f, LIBRARY "%s -g " NO_EH " %s -o debug.so shapes.c", kinds[i], packings[k]));
            if (!strcmp(packings[k], "-gz=zlib"))
                assert_true(fixture_run(f, "readelf -SW debug.so | grep -q ' .debug_frame .* C '"));
            if (!strcmp(packings[k], "-gz=zlib-gnu"))
                assert_true(fixture_run(f, "readelf -SW debug.so | grep -q ' .zdebug_frame '"));
            struct unwind_table *debug = build_table(f, "debug.so");
            assert_int_equal(debug->stats.source, UNWIND_SOURCE_DEBUG_FRAME);
            assert_int_equal(debug->stats.fde_debug, eh->stats.fde_count);
            assert_int_equal(debug->row_count, eh->row_count);
            assert_memory_equal(debug->rows, eh->rows, eh->row_count * sizeof *eh->rows);
            assert_int_equal(debug->wide_count, eh->wide_count);
            if (eh->wide_count)
                assert_memory_equal(debug->wide, eh->wide, eh->wide_count * sizeof *eh->wide);
            unwind_table_destroy(debug);
            compare_in(f, "debug.so");
        }
        unwind_table_destroy(eh);
    }
}

#define BOOTSTRAP "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object"

/* Where a greenlet begins is the end of a stack, from the first to the last byte of that function; the others' rows stay. */
TEST_WITH(stack_start, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;

    fixture_write(f, "shapes.c", shapes, sizeof shapes - 1);
    assert_true(fixture_run(f, "(echo 'int both(int) __asm__(\"" BOOTSTRAP "\");'; sed 's/F static int both/F int both/' shapes.c) "
                               ">start.c && " LIBRARY "-O2 -fno-toplevel-reorder -o start.so start.c"));
    struct unwind_table *t = build_table(f, "start.so");
    uint64_t start = fixture_symbol(f, "start.so", BOOTSTRAP), end = start;
    while (UNWIND_TYPE(unwind_table_lookup(t, end).type) == UNWIND_END)
        end++;
    uint64_t next = fixture_symbol(f, "start.so", "many"); /* with at most 15 bytes of padding before it */
    assert_true(end > start + 32 && end > next - 16 && end <= next);
    struct unwind_row before = unwind_table_lookup(t, start - 1), after = unwind_table_lookup(t, next);
    assert_int_not_equal(UNWIND_TYPE(before.type), UNWIND_END);
    assert_int_equal(UNWIND_TYPE(after.type), UNWIND_RSP);
    assert_int_equal(after.cfa8, 1);
    uint64_t ends = 0;
    for (uint32_t i = 0; i < t->row_count; i++)
        ends += t->rows[i].type == UNWIND_END;
    assert_int_equal(ends, 1);
    unwind_table_destroy(t);
}

/* A program of parts with the one, the other, and both: each address by .eh_frame where that knows it. */
TEST_WITH(mixed, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;

    fixture_write(f, "shapes.c", shapes, sizeof shapes - 1);
    static const char main_c[] = "int eh(int), debug(int), both_(int); int main(void) { return eh(1) + debug(2) + both_(3); }\n";
    fixture_write(f, "main.c", main_c, sizeof main_c - 1);
    assert_true(fixture_run(f, "gcc -O2 -w -c -DENTRY=eh -o eh.o shapes.c && gcc -O2 -w -g -c " NO_EH " -DENTRY=debug -o debug.o shapes.c && "
                               "(echo 'asm(\".cfi_sections .eh_frame, .debug_frame\");'; cat shapes.c) >both.c && "
                               "gcc -O2 -w -g -c -DENTRY=both_ -o both.o both.c && gcc -O2 -w " NO_EH " -c main.c && "
                               "gcc -o mixed main.o eh.o debug.o both.o && strip -S -o stripped mixed"));
    struct unwind_table *t = build_table(f, "mixed"), *without = build_table(f, "stripped");
    assert_int_equal(t->stats.source, UNWIND_SOURCE_EH_FRAME);
    assert_true(t->stats.fde_debug >= 7);
    assert_true(t->stats.fde_covered >= 7);
    assert_true(t->stats.fde_count > 2 * t->stats.fde_debug);
    uint64_t debug = fixture_symbol(f, "mixed", "debug"), both = fixture_symbol(f, "mixed", "both_"),
             main_ = fixture_symbol(f, "mixed", "main");
    assert_int_equal(UNWIND_TYPE(unwind_table_lookup(t, debug).type), UNWIND_RSP);
    assert_int_equal(UNWIND_TYPE(unwind_table_lookup(t, both).type), UNWIND_RSP);
    /* Without information of any kind; never the row of the function before. */
    assert_int_equal(unwind_table_lookup(t, main_).type, UNWIND_NONE);
    assert_int_equal(unwind_table_lookup(t, main_ + 4).type, UNWIND_NONE);
    assert_int_equal(unwind_table_lookup(without, debug).type, UNWIND_NONE);
    assert_int_equal(unwind_table_lookup(without, main_).type, UNWIND_NONE);
    unwind_table_destroy(t);
    unwind_table_destroy(without);
    compare_in(f, "mixed");
    compare_in(f, "stripped");
}

TEST(vdso)
{
    const Elf64_Ehdr *image = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    struct unwind_table *t;

    if (!image)
        skip();
    uint64_t len = image->e_shoff + (uint64_t)image->e_shnum * image->e_shentsize;
    OK(unwind_table_build_memory(image, len, "[vdso]", &t));
    compare_elf(t, "[vdso]", elf_memory((char *)(uintptr_t)image, len));
    unwind_table_destroy(t);
}
