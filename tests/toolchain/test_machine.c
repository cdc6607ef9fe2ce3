/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of machines: what every row must hold to, and x86-64 against what the system's headers and the assembler
 * say. A new machine adds its lines to the second half.
 */
#include "tests/unit/test.h"

#include <elf.h>
#include <ucontext.h>

#include "formats/elf/file.h"
#include "formats/elf/machine.h"
#include "formats/elf/unwind_row.h"
#include "symbolize/unwind/remote.h"
#include "tests/toolchain/elf_fixture.h"

static const char *const names[] = {"x86_64"};

TEST(rows)
{
    assert_null(machine_by_name("pdp11"));
    assert_null(machine_by_name(""));
    assert_null(machine_by_elf(EM_PDP11));
    assert_null(machine_by_elf(EM_NONE));
    assert_null(remote_of(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct machine *m = machine_by_name(names[i]);
        uint64_t seen = 0;
        assert_non_null(m);
        assert_ptr_equal(machine_by_elf(m->elf_machine), m);
        assert_non_null(remote_of(m));
        assert_true(m->register_count <= MACHINE_REGISTERS_MAX && m->general_count <= UNWIND_BASE_CFA);
        assert_true(m->pc < m->register_count && m->sp < m->general_count && m->fp < m->general_count);
        for (uint32_t k = 0; k < m->register_count; k++)
            seen |= (uint64_t)1 << m->signal_registers[k];
        assert_int_equal(seen, ((uint64_t)1 << m->register_count) - 1);
        assert_true(m->sigreturn_syscall < m->sigreturn_len);
        assert_int_equal(m->page_bytes & (m->page_bytes - 1), 0);
        assert_true(m->row_kinds >> UNWIND_NONE & 1);
    }
}

#ifdef __x86_64__
/* The kernel's order of registers in a signal's frame is that of the C library's ucontext. */
TEST(x86_64_signal)
{
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const struct machine *m = machine_by_name("x86_64");

    assert_int_equal(m->signal_registers_at, offsetof(ucontext_t, uc_mcontext.gregs));
    for (uint32_t i = 0; i < m->register_count; i++)
        assert_int_equal(order[m->signal_registers[i]], i);
}
#endif

/* What an assembler makes of the instructions, at address 0x1000 of a section of their own. */
static uint8_t *assemble(const struct fixture *f, const char *text, uint64_t *len_bytes)
{
    struct elf_section section;
    struct elf_file file;
    char path[512];

    fixture_write(f, "a.s", text, strlen(text));
    assert_true(fixture_run(f, "cc -c -o a.o a.s && ld -Ttext=0x1000 --unresolved-symbols=ignore-all -e 0 -o a a.o"));
    snprintf(path, sizeof path, "%s/a", f->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    OK(elf_file_open(fd, path, NULL, &file));
    assert_true(elf_file_find_section(&file, ".text", &section));
    assert_int_equal(section.header.sh_addr, 0x1000);
    struct bytes b = elf_section_bytes(&file, &section);
    *len_bytes = bytes_left(&b);
    uint8_t *code = calloc(1, *len_bytes + MACHINE_CODE_SLACK);
    memcpy(code, b.pos, *len_bytes);
    elf_file_close(&file);
    close(fd);
    return code;
}

TEST_WITH(x86_64_padding, fixture_init, fixture_deinit)
{
    const struct machine *m = machine_by_name("x86_64");
    uint64_t len;

    /* Every length of NOP that the assembler makes, and what it is not to be taken for. */
    for (unsigned size = 1; size < 16; size++) {
        char text[64];
        snprintf(text, sizeof text, ".nops %u\n", size);
        uint8_t *code = assemble(*state, text, &len);
        assert_int_equal(len, size);
        size_t at = 0, one;
        while (at < len && (one = m->padding_len(code + at, len - at)))
            at += one;
        assert_int_equal(at, len);
        assert_int_equal(m->padding_len(code, size - 1 ? size - 1 : 1) > (size - 1 ? size - 1 : 1), 0);
        free(code);
    }
    uint8_t *code = assemble(*state, "ret\nint3\nendbr64\n", &len);
    assert_int_equal(m->padding_len(code, len), 0);
    assert_int_equal(m->padding_len(code + 1, len - 1), 1);
    assert_int_equal(m->padding_len(code + 2, len - 2), 0);
    free(code);
}

TEST_WITH(x86_64_code, fixture_init, fixture_deinit)
{
    const struct machine *m = machine_by_name("x86_64");
    uint64_t len, at = 0;

    uint8_t *code = assemble(*state, "lea 0x2000(%rip), %rdx\n", &len);
    assert_true(m->address_at(code, 0x1000, &at));
    assert_int_equal(at, 0x1000 + len + 0x2000);
    assert_false(m->load_at(code, 0x1000, false, true, &at));
    free(code);
    code = assemble(*state, "mov $0x401234, %esi\n", &len);
    assert_true(m->address_at(code, 0x1000, &at) && at == 0x401234);
    free(code);
    code = assemble(*state, "mov -8(%rip), %rax\nmov 0x100(%rip), %edi\nmov 0x601000, %edi\n", &len);
    assert_true(m->load_at(code, 0x1000, false, true, &at) && at == 0x1000 + 7 - 8);
    assert_false(m->load_at(code, 0x1000, true, true, &at));
    assert_true(m->load_at(code + 7, 0x1007, true, false, &at) && at == 0x1007 + 6 + 0x100);
    assert_true(m->load_at(code + 13, 0x100d, true, false, &at) && at == 0x601000);
    free(code);
    code = assemble(*state, "jmp .+0x1000\njne .-0x200\njmp .+4\n", &len);
    assert_true(m->jump_at(code, 0x1000, &at) && at == 0x2000);
    assert_true(m->jump_at(code + 5, 0x1005, &at) && at == 0x1005 - 0x200);
    assert_false(m->jump_at(code + 11, 0x100b, &at)); /* over no distance */
    free(code);
    code = assemble(*state, "endbr64\nbnd jmp *0x3000(%rip)\nnopl (%rax)\nret\n", &len);
    assert_true(m->stub_slot(code, 16, 0x1000, &at) && at == 0x1000 + 11 + 0x3000);
    assert_false(m->stub_slot(code + 11, len - 11, 0x100b, &at));
    free(code);
}

static struct machine_tls tls_of(const struct fixture *f, const char *text)
{
    uint64_t len;
    uint8_t *code = assemble(f, text, &len);
    struct machine_tls tls = machine_by_name("x86_64")->tls_at(code, len, 0x1000);

    free(code);
    return tls;
}

TEST_WITH(x86_64_tls, fixture_init, fixture_deinit)
{
    struct machine_tls tls = tls_of(*state, "mov %fs:-16, %rax\nret\n");

    assert_true(tls.model == MACHINE_TLS_OFFSET && tls.offset == -16);
    tls = tls_of(*state, "mov %fs:0, %rax\nmov -0x1000(%rax), %rax\nret\n");
    assert_true(tls.model == MACHINE_TLS_OFFSET && tls.offset == -0x1000);
    tls = tls_of(*state, "mov %fs:0, %rax\nadd 0x500(%rip), %rax\nret\n");
    assert_true(tls.model == MACHINE_TLS_SLOT && tls.slot == 0x1000 + 16 + 0x500);
    tls = tls_of(*state, "push %rbp\nmov 0x500(%rip), %rax\nmov %fs:(%rax), %rax\nret\n");
    assert_true(tls.model == MACHINE_TLS_SLOT && tls.slot == 0x1000 + 8 + 0x500);
    tls = tls_of(*state, "mov $-24, %rax\nmov %fs:(%rax), %rax\nret\n");
    assert_true(tls.model == MACHINE_TLS_OFFSET && tls.offset == -24);
    tls = tls_of(*state, "lea 0x500(%rip), %rax\ncall *(%rax)\nret\n");
    assert_true(tls.model == MACHINE_TLS_DESCRIPTOR && tls.slot == 0x1000 + 7 + 0x500);
    tls = tls_of(*state, ".byte 0x66\nlea 0x500(%rip), %rdi\n.byte 0x66, 0x66, 0x48\ncall .+0x100\nret\n");
    assert_true(tls.model == MACHINE_TLS_MODULE && tls.slot == 0x1000 + 8 + 0x500 && !tls.offset);
    tls = tls_of(*state, "lea 0x500(%rip), %rdi\ncall .+0x100\nmov 0x28(%rax), %rax\nret\n");
    assert_true(tls.model == MACHINE_TLS_MODULE && tls.slot == 0x1000 + 7 + 0x500 && tls.offset == 0x28);
    /* Local dynamic whose offset is nowhere. */
    assert_int_equal(tls_of(*state, "lea 0x500(%rip), %rdi\ncall .+0x100\nret\n").model, MACHINE_TLS_UNKNOWN);
    assert_int_equal(tls_of(*state, "mov %rdi, %rax\nret\n").model, MACHINE_TLS_UNKNOWN);
}
