/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/elf/cfi_file.h"

#include <elf.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/elf/bounds.h"

#define CFI_BYTES_MAX (256ull << 20)
#define NAMES_BYTES_MAX (1ull << 20)
#define PAGE_MASK 4095ull
enum { SEGMENTS_MAX = 4096 };

/* Bytes of the file, copied or in place; NULL where there are none. They live as long as `elf`. */
static const uint8_t *take_bytes(Elf *elf, uint64_t offset, uint64_t len_bytes)
{
    if (!len_bytes || len_bytes > CFI_BYTES_MAX || offset > INT64_MAX - len_bytes)
        return NULL;
    Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)offset, len_bytes, ELF_T_BYTE);
    return data && data->d_size == len_bytes ? data->d_buf : NULL;
}

static struct error *read_segments(struct cfi_file *f, Elf *elf, GElf_Phdr *hdr)
{
    uint64_t lowest = UINT64_MAX;
    size_t count = 0;
    GElf_Phdr p;

    *hdr = (GElf_Phdr){0};
    if (elf_getphdrnum(elf, &count) || count > SEGMENTS_MAX)
        return error_path(ERROR_FORMAT, f->path, "its program headers cannot be read");
    for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &p); i++) {
        if (p.p_type == PT_GNU_EH_FRAME)
            *hdr = p;
        if (p.p_type != PT_LOAD)
            continue;
        lowest = p.p_vaddr < lowest ? p.p_vaddr : lowest;
        uint64_t len = p.p_filesz < f->len_bytes ? p.p_filesz : f->len_bytes;
        if ((p.p_flags & PF_X) && len && p.p_vaddr <= UINT64_MAX - len && f->code_count < CFI_FILE_CODE_MAX) {
            f->code[f->code_count].start = p.p_vaddr;
            f->code[f->code_count].offset = p.p_offset;
            f->code[f->code_count++].end = p.p_vaddr + len;
        }
    }
    f->base_vaddr = lowest & ~PAGE_MASK;
    for (uint32_t i = 0; i < f->code_count; i++)
        if (f->code[i].end - f->base_vaddr > UINT32_MAX)
            return error_path(ERROR_LIMIT, f->path, "its code is spread over more than 4 GiB");
    return NULL;
}

/* The bytes of the file behind `vaddr`, up to the segment's end. */
static uint64_t bytes_behind(Elf *elf, uint64_t vaddr, uint64_t *offset)
{
    size_t count = 0;
    GElf_Phdr p;

    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && i < SEGMENTS_MAX && gelf_getphdr(elf, (int)i, &p); i++) {
        if (p.p_type != PT_LOAD || vaddr < p.p_vaddr || vaddr - p.p_vaddr >= p.p_filesz)
            continue;
        *offset = p.p_offset + (vaddr - p.p_vaddr);
        return p.p_filesz - (vaddr - p.p_vaddr);
    }
    return 0;
}

enum packing { PLAIN, PACKED, PACKED_GNU /* .zdebug_*: "ZLIB", the length in big endian, the data */ };

/* How many bytes a packed section says it has; 0 where it cannot be read. */
static uint64_t unpacked_len(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, enum packing packing)
{
    GElf_Chdr header;

    if (packing == PACKED)
        return gelf_getchdr(scn, &header) ? header.ch_size : 0;
    const uint8_t *data = sh->sh_size > 12 ? take_bytes(elf, sh->sh_offset, 12) : NULL;
    struct bytes b = bytes_of(data, data ? 12 : 0);
    if (!bytes_take(&b, 4) || memcmp(data, "ZLIB", 4))
        return 0;
    return __builtin_bswap64(bytes_u64(&b));
}

static struct error *use_section(const struct cfi_file *f, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, enum packing packing,
                                 struct cfi_section *out)
{
    const uint8_t *data;
    uint64_t len = sh->sh_size;

    if (packing != PLAIN) {
        /* Sections that are loaded never are; and libelf writes to the header of one that it decompresses. */
        if (!out->debug_frame || f->image || !(len = unpacked_len(elf, scn, sh, packing)))
            return NULL;
    }
    if (len > CFI_BYTES_MAX || sh->sh_size > CFI_BYTES_MAX)
        return error_path(ERROR_LIMIT, f->path, "it has %llu bytes of call frame information",
                          (unsigned long long)(len > sh->sh_size ? len : sh->sh_size));
    if (packing != PLAIN) {
        int done = packing == PACKED ? elf_compress(scn, 0, 0) : elf_compress_gnu(scn, 0, 0);
        Elf_Data *all = done >= 0 ? elf_getdata(scn, NULL) : NULL;
        data = all ? all->d_buf : NULL;
        len = all ? all->d_size : 0;
    } else {
        data = take_bytes(elf, sh->sh_offset, len);
    }
    if (data && len) {
        out->data = data;
        out->len_bytes = len;
        out->vaddr = sh->sh_addr;
    }
    return NULL;
}

/* The section, by the way it is to be read; *out says which one. */
static struct error *find_section(const struct cfi_file *f, Elf *elf, struct cfi_section *out)
{
    size_t names;
    GElf_Shdr sh;

    if (elf_getshdrstrndx(elf, &names) || !gelf_getshdr(elf_getscn(elf, names), &sh) || sh.sh_size > NAMES_BYTES_MAX)
        return NULL;
    for (Elf_Scn *scn = NULL; !out->data && (scn = elf_nextscn(elf, scn));) {
        if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS || !sh.sh_size)
            continue;
        const char *name = elf_name(elf, names, sh.sh_name);
        if (name && !strcmp(name, out->debug_frame ? ".debug_frame" : ".eh_frame"))
            TRY(use_section(f, elf, scn, &sh, sh.sh_flags & SHF_COMPRESSED ? PACKED : PLAIN, out));
        else if (name && out->debug_frame && !strcmp(name, ".zdebug_frame"))
            TRY(use_section(f, elf, scn, &sh, PACKED_GNU, out));
    }
    return NULL;
}

/* Without section headers the header that the loader maps tells where .eh_frame starts, and its table where each FDE is. */
static void use_hdr(struct cfi_file *f, Elf *elf, const GElf_Phdr *hdr)
{
    uint64_t offset, len;
    const uint8_t *data = take_bytes(elf, hdr->p_offset, hdr->p_filesz);

    if (!data || !cfi_table_read(data, hdr->p_filesz, hdr->p_vaddr, &f->table))
        return;
    len = bytes_behind(elf, f->table.eh_frame_vaddr, &offset);
    len = len < CFI_BYTES_MAX ? len : CFI_BYTES_MAX;
    data = take_bytes(elf, offset, len);
    if (!data)
        return;
    f->eh_frame = (struct cfi_section){data, len, f->table.eh_frame_vaddr, hdr->p_vaddr, false};
    f->by_table = f->table.count;
    if (!f->by_table) {
        /* No table either: from its start up to the terminator. */
        struct bytes all = bytes_of(data, len);
        for (uint64_t entry = bytes_u32(&all); entry && !all.bad; entry = bytes_u32(&all))
            bytes_skip(&all, entry == UINT32_MAX ? bytes_u64(&all) : entry);
        f->eh_frame.len_bytes = all.bad ? len : bytes_offset(&all);
    }
}

struct error *cfi_file_read(Elf *elf, struct cfi_file *f)
{
    GElf_Ehdr header;
    GElf_Phdr hdr;

    if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || !gelf_getehdr(elf, &header) ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
        return error_path(ERROR_FORMAT, f->path, "is no 64-bit ELF executable or shared library");
    if (header.e_machine != EM_X86_64)
        return error_path(ERROR_UNSUPPORTED, f->path, "is for machine %u, not x86-64", header.e_machine);
    f->entry = header.e_entry;
    TRY(read_segments(f, elf, &hdr));
    f->eh_frame = (struct cfi_section){.hdr_vaddr = hdr.p_vaddr};
    TRY(find_section(f, elf, &f->eh_frame));
    if (!f->eh_frame.data && hdr.p_filesz)
        use_hdr(f, elf, &hdr);
    f->debug_frame = (struct cfi_section){.debug_frame = true};
    return find_section(f, elf, &f->debug_frame);
}

bool cfi_file_code(const struct cfi_file *f, uint64_t vaddr, uint64_t *end)
{
    for (uint32_t i = 0; i < f->code_count; i++) {
        if (vaddr >= f->code[i].start && vaddr < f->code[i].end) {
            *end = f->code[i].end;
            return true;
        }
    }
    return false;
}

/* Bytes of code, in ascending order for little reading; NULL where the file has none. Good until the next call. */
static const uint8_t *code_bytes(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes)
{
    uint32_t i = 0;

    while (i < f->code_count && (vaddr < f->code[i].start || vaddr >= f->code[i].end))
        i++;
    if (i == f->code_count || len_bytes > f->code[i].end - vaddr || len_bytes > sizeof f->window)
        return NULL;
    uint64_t into = vaddr - f->code[i].start, offset = f->code[i].offset + into;
    if (offset < into || offset > f->len_bytes || len_bytes > f->len_bytes - offset)
        return NULL;
    if (f->image)
        return f->image + offset;
    if (offset < f->window_offset || offset + len_bytes > f->window_offset + f->window_len) {
        ssize_t n = pread(f->fd, f->window, sizeof f->window, (off_t)offset);
        f->window_offset = offset;
        f->window_len = n > 0 ? (uint64_t)n : 0;
        if (len_bytes > f->window_len)
            return NULL;
    }
    return f->window + (offset - f->window_offset);
}

/* How long a NOP is (Intel's manual, volume 2, NOP: 0F 1F with an address that is not used), with its prefixes; 0: none. */
static size_t nop_len(const uint8_t *p, size_t left)
{
    size_t n = 0;

    while (n < left && (p[n] == 0x66 || p[n] == 0x2e))
        n++;
    if (n < left && p[n] == 0x90)
        return n + 1;
    if (left - n < 3 || p[n] != 0x0f || p[n + 1] != 0x1f)
        return 0;
    uint8_t mode = p[n + 2] >> 6, base = p[n + 2] & 7;
    n += 3 + (mode != 3 && base == 4) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
    return n <= left ? n : 0;
}

bool cfi_file_is_padding(struct cfi_file *f, uint64_t vaddr, uint64_t len_bytes)
{
    const uint8_t *p = code_bytes(f, vaddr, len_bytes);
    size_t len = 0;

    if (!p)
        return false;
    for (size_t at = 0; at < len_bytes; at += len) {
        len = !p[at] || p[at] == 0xcc ? 1 : nop_len(p + at, len_bytes - at);
        if (!len)
            return false;
    }
    return true;
}
