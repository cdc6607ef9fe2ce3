/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/cpython/elf_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/elf/bounds.h"

#define SECTIONS_MAX 65536
#define CHAIN_MAX 4096 /* symbols looked at for one name */
#define NAME_MAX_BYTES 64

void elf_file_deinit(struct elf_file *f)
{
    if (f->elf)
        elf_end(f->elf);
}

bool elf_file_read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes)
{
    if (offset > INT64_MAX - len_bytes)
        return false;
    for (size_t done = 0; done < len_bytes;) {
        ssize_t n = pread(f->fd, (char *)out + done, len_bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

uint64_t elf_file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset)
{
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const struct elf_segment *s = &f->segments[i];
        if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_bytes) {
            *offset = s->offset + (vaddr - s->vaddr);
            return s->file_bytes - (vaddr - s->vaddr);
        }
    }
    return 0;
}

bool elf_file_read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes)
{
    uint64_t offset;

    return elf_file_bytes_at(f, vaddr, &offset) >= len_bytes && elf_file_read_at(f, offset, out, len_bytes);
}

static bool read_u64(const struct elf_file *f, uint64_t vaddr, uint64_t *out)
{
    return elf_file_read_vaddr(f, vaddr, out, sizeof *out);
}

static void read_segments(struct elf_file *f)
{
    size_t count;

    if (elf_getphdrnum(f->elf, &count) != 0)
        return;
    for (size_t i = 0; i < count && i < ELF_SEGMENTS_MAX; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(f->elf, (int)i, &ph))
            return;
        if (ph.p_type == PT_LOAD && ph.p_offset <= INT64_MAX && ph.p_filesz <= INT64_MAX)
            f->segments[f->segment_count++] = (struct elf_segment){ph.p_vaddr, ph.p_offset, ph.p_filesz};
        else if (ph.p_type == PT_TLS)
            f->tls = ph;
        else if (ph.p_type == PT_DYNAMIC)
            f->dynamic = ph;
        else if (ph.p_type == PT_INTERP)
            f->executable = true; /* a position-independent one */
    }
}

static void read_dynamic(struct elf_file *f)
{
    Elf64_Dyn dyn[128];
    uint64_t offset = f->dynamic.p_offset, left = f->dynamic.p_filesz;

    while (left >= sizeof *dyn) {
        size_t n = left < sizeof dyn ? left / sizeof *dyn * sizeof *dyn : sizeof dyn;
        if (!elf_file_read_at(f, offset, dyn, n))
            return;
        for (size_t i = 0; i < n / sizeof *dyn; i++) {
            uint64_t v = dyn[i].d_un.d_val;
            switch (dyn[i].d_tag) {
            case DT_NULL:
                return;
            case DT_HASH:
                f->hash = v;
                break;
            case DT_GNU_HASH:
                f->gnu_hash = v;
                break;
            case DT_SYMTAB:
                f->symbols = v;
                break;
            case DT_STRTAB:
                f->strings = v;
                break;
            case DT_STRSZ:
                f->strings_bytes = v;
                break;
            case DT_RELA:
                f->relocs = v;
                break;
            case DT_RELASZ:
                f->relocs_bytes = v;
                break;
            default:
                break;
            }
        }
        offset += n;
        left -= n;
    }
}

/* Notes .PyRuntime, .AsyncioDebug and .symtab, by name and type. */
static void read_sections(struct elf_file *f)
{
    size_t count, names;

    if (elf_getshdrnum(f->elf, &count) != 0 || elf_getshdrstrndx(f->elf, &names) != 0 || count > SECTIONS_MAX)
        return;
    for (size_t i = 1; i < count; i++) {
        Elf_Scn *section = elf_getscn(f->elf, i);
        GElf_Shdr sh;
        if (!section || !gelf_getshdr(section, &sh))
            return;
        if (sh.sh_type == SHT_SYMTAB) {
            f->symtab = sh;
        } else if (sh.sh_type == SHT_PROGBITS && (sh.sh_flags & SHF_WRITE)) {
            const char *name = elf_name(f->elf, names, sh.sh_name);
            if (name && strcmp(name, ".PyRuntime") == 0)
                f->runtime = sh;
            else if (name && strcmp(name, ".AsyncioDebug") == 0)
                f->asyncio = sh;
        }
    }
}

bool elf_file_init(struct elf_file *f, int fd)
{
    struct stat st;
    char magic[SELFMAG];

    *f = (struct elf_file){.fd = fd};
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !elf_file_read_at(f, 0, magic, sizeof magic) ||
        memcmp(magic, ELFMAG, SELFMAG) != 0)
        return false;
    elf_version(EV_CURRENT);
    f->elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->ehdr) ||
        f->ehdr.e_ident[EI_CLASS] != ELFCLASS64 || f->ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
        (f->ehdr.e_type != ET_EXEC && f->ehdr.e_type != ET_DYN))
        return false;
    f->executable = f->ehdr.e_type == ET_EXEC;
    read_segments(f);
    read_dynamic(f);
    read_sections(f);
    return true;
}

static bool name_is(const struct elf_file *f, uint64_t name_offset, const char *name)
{
    char text[NAME_MAX_BYTES];
    size_t len = strlen(name) + 1;

    return len <= sizeof text && name_offset < f->strings_bytes && len <= f->strings_bytes - name_offset &&
           elf_file_read_vaddr(f, f->strings + name_offset, text, len) && memcmp(text, name, len) == 0;
}

static bool symbol_matches(const struct elf_file *f, uint64_t index, const char *name, Elf64_Sym *sym)
{
    return elf_file_read_vaddr(f, f->symbols + index * sizeof *sym, sym, sizeof *sym) && sym->st_shndx != SHN_UNDEF &&
           name_is(f, sym->st_name, name);
}

static bool find_gnu_hash(const struct elf_file *f, const char *name, Elf64_Sym *sym)
{
    struct {
        uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
    } head;
    uint32_t hash = 5381, index, chain[64];
    uint64_t bloom;

    for (const char *c = name; *c; c++)
        hash = hash * 33 + (uint8_t)*c;
    if (!elf_file_read_vaddr(f, f->gnu_hash, &head, sizeof head) || !head.bucket_count || !head.bloom_words ||
        (head.bloom_words & (head.bloom_words - 1)) || head.bloom_shift > 31)
        return false;
    uint64_t words = f->gnu_hash + sizeof head, buckets = words + (uint64_t)head.bloom_words * 8,
             chains = buckets + (uint64_t)head.bucket_count * 4;
    if (!read_u64(f, words + (hash / 64 & (head.bloom_words - 1)) * 8, &bloom) || !(bloom >> hash % 64 & 1) ||
        !(bloom >> (hash >> head.bloom_shift) % 64 & 1))
        return false;
    if (!elf_file_read_vaddr(f, buckets + (uint64_t)(hash % head.bucket_count) * 4, &index, sizeof index) ||
        index < head.first_symbol)
        return false;
    for (uint32_t seen = 0; seen < CHAIN_MAX;) {
        uint64_t at = chains + (uint64_t)(index - head.first_symbol) * 4, offset;
        uint64_t have = elf_file_bytes_at(f, at, &offset) / 4;
        size_t n = have < sizeof chain / 4 ? (size_t)have : sizeof chain / 4;
        if (!n || !elf_file_read_at(f, offset, chain, n * 4))
            return false;
        for (size_t i = 0; i < n; i++) {
            if ((chain[i] | 1) == (hash | 1) && symbol_matches(f, (uint64_t)index + i, name, sym))
                return true;
            if (chain[i] & 1)
                return false;
        }
        if (index > UINT32_MAX - n)
            return false;
        index += (uint32_t)n;
        seen += (uint32_t)n;
    }
    return false;
}

static bool find_sysv_hash(const struct elf_file *f, const char *name, Elf64_Sym *sym)
{
    uint32_t head[2], index, hash = 0;

    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (uint8_t)*c;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    if (!elf_file_read_vaddr(f, f->hash, head, sizeof head) || !head[0])
        return false;
    uint64_t buckets = f->hash + sizeof head, chains = buckets + (uint64_t)head[0] * 4;
    if (!elf_file_read_vaddr(f, buckets + (uint64_t)(hash % head[0]) * 4, &index, sizeof index))
        return false;
    for (uint32_t seen = 0; index && index < head[1] && seen < CHAIN_MAX; seen++) {
        if (symbol_matches(f, index, name, sym))
            return true;
        if (!elf_file_read_vaddr(f, chains + (uint64_t)index * 4, &index, sizeof index))
            return false;
    }
    return false;
}

bool elf_file_find_exported(const struct elf_file *f, const char *name, Elf64_Sym *sym)
{
    if (!f->symbols || !f->strings)
        return false;
    return f->gnu_hash ? find_gnu_hash(f, name, sym) : f->hash ? find_sysv_hash(f, name, sym) : false;
}
