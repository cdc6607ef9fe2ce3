/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code runs in our own ELF file, which a child cuts and lets grow again all the time: whoever has it mapped while
 * reading it is ended by SIGBUS, whoever reads it in steps sees every state.
 * usage: cut_elf SECONDS
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/attack.h"

enum {
    SECTIONS = 60000,
    SECTIONS_AT = 1 << 20,
    NAMES_AT = 7 << 20,
    FILE_BYTES = 8 << 20,
    NOTE_AT = 0x200,
    NOTE_BYTES = 36,
    CODE_AT = 0x400,
};

static void put(int fd, const void *data, size_t len_bytes, off_t at)
{
    if (pwrite(fd, data, len_bytes, at) != (ssize_t)len_bytes)
        DIE("pwrite");
}

static void build(int fd)
{
    static const char names[16] = "\0.gnu_debugx";
    static Elf64_Shdr sections[SECTIONS];
    static unsigned char note[NOTE_BYTES] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU";
    const Elf64_Ehdr header = {
        .e_ident = "\177ELF\2\1\1", .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1, .e_phoff = 64,
        .e_shoff = SECTIONS_AT, .e_ehsize = 64, .e_phentsize = 56, .e_phnum = 2, .e_shentsize = 64, .e_shnum = SECTIONS,
        .e_shstrndx = 1,
    };
    const Elf64_Phdr segments[2] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096, .p_align = 4096},
        {.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = NOTE_AT, .p_vaddr = NOTE_AT, .p_filesz = NOTE_BYTES,
         .p_memsz = NOTE_BYTES, .p_align = 4},
    };

    memset(note + 16, getpid() & 0xff, 20);
    for (int i = 1; i < SECTIONS; i++)
        sections[i] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = 0x800, .sh_size = 16, .sh_name = 1};
    sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof(names)};
    if (ftruncate(fd, FILE_BYTES))
        DIE("ftruncate");
    put(fd, &header, sizeof(header), 0);
    put(fd, segments, sizeof(segments), 64);
    put(fd, note, sizeof(note), NOTE_AT);
    put(fd, "\xeb\xfe", 2, CODE_AT);
    put(fd, sections, sizeof(sections), SECTIONS_AT);
    put(fd, names, sizeof(names), NAMES_AT);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    unsigned seconds = (unsigned)atoi(argv[1]);
    int fd = open("cut.so", O_RDWR | O_CREAT | O_TRUNC, 0755);
    if (fd < 0)
        DIE("cut.so");
    build(fd);
    wait_for_go();
    char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (code == MAP_FAILED)
        DIE("mmap");
    if (!fork()) {
        alarm(seconds + 5); /* longer than the recording: an archive is packed at its end */
        for (;;) {
            usleep(3000);
            if (ftruncate(fd, 4096))
                DIE("ftruncate");
            usleep(3000);
            build(fd);
        }
    }
    alarm(seconds);
    ((void (*)(void))(code + CODE_AT))();
    return 0;
}
