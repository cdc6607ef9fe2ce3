/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup by hash as the dynamic linker does it (DT_GNU_HASH, else DT_HASH), through small reads of the file. */
#include "formats/elf/dynamic.h"

#include <string.h>

enum {
    CHAIN_MAX = 4096, /* symbols that are tried for one name */
    NAME_MAX_BYTES = 256,
    SYMBOLS_MAX = 16384, /* that are counted */
    NAMES_WINDOW_BYTES = 4096,
};

void elf_dynamic_read(const struct elf_file *f, struct elf_dynamic *out)
{
    Elf64_Dyn dyn[128];
    uint64_t offset = f->dynamic.p_offset, left = f->dynamic.p_filesz;

    *out = (struct elf_dynamic){0};
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
                out->hash = v;
                break;
            case DT_GNU_HASH:
                out->gnu_hash = v;
                break;
            case DT_SYMTAB:
                out->symbols = v;
                break;
            case DT_STRTAB:
                out->strings = v;
                break;
            case DT_STRSZ:
                out->strings_bytes = v;
                break;
            case DT_RELA:
                out->relocs = v;
                break;
            case DT_RELASZ:
                out->relocs_bytes = v;
                break;
            default:
                break;
            }
        }
        offset += n;
        left -= n;
    }
}

static bool name_is(const struct elf_file *f, const struct elf_dynamic *d, uint64_t name_offset, const char *name)
{
    char text[NAME_MAX_BYTES];
    size_t len = strlen(name) + 1;

    return len <= sizeof text && name_offset < d->strings_bytes && len <= d->strings_bytes - name_offset &&
           elf_file_read_vaddr(f, d->strings + name_offset, text, len) && memcmp(text, name, len) == 0;
}

static bool symbol_matches(const struct elf_file *f, const struct elf_dynamic *d, uint64_t index, const char *name, Elf64_Sym *sym)
{
    return elf_file_read_vaddr(f, d->symbols + index * sizeof *sym, sym, sizeof *sym) && sym->st_shndx != SHN_UNDEF &&
           name_is(f, d, sym->st_name, name);
}

static bool read_u64(const struct elf_file *f, uint64_t vaddr, uint64_t *out)
{
    return elf_file_read_vaddr(f, vaddr, out, sizeof *out);
}

static bool find_gnu_hash(const struct elf_file *f, const struct elf_dynamic *d, const char *name, Elf64_Sym *sym)
{
    struct {
        uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
    } head;
    uint32_t hash = 5381, index, chain[64];
    uint64_t bloom;

    for (const char *c = name; *c; c++)
        hash = hash * 33 + (uint8_t)*c;
    if (!elf_file_read_vaddr(f, d->gnu_hash, &head, sizeof head) || !head.bucket_count || !head.bloom_words ||
        (head.bloom_words & (head.bloom_words - 1)) || head.bloom_shift > 31)
        return false;
    uint64_t words = d->gnu_hash + sizeof head, buckets = words + (uint64_t)head.bloom_words * 8,
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
            if ((chain[i] | 1) == (hash | 1) && symbol_matches(f, d, (uint64_t)index + i, name, sym))
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

static bool find_sysv_hash(const struct elf_file *f, const struct elf_dynamic *d, const char *name, Elf64_Sym *sym)
{
    uint32_t head[2], index, hash = 0;

    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (uint8_t)*c;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    if (!elf_file_read_vaddr(f, d->hash, head, sizeof head) || !head[0])
        return false;
    uint64_t buckets = d->hash + sizeof head, chains = buckets + (uint64_t)head[0] * 4;
    if (!elf_file_read_vaddr(f, buckets + (uint64_t)(hash % head[0]) * 4, &index, sizeof index))
        return false;
    for (uint32_t seen = 0; index && index < head[1] && seen < CHAIN_MAX; seen++) {
        if (symbol_matches(f, d, index, name, sym))
            return true;
        if (!elf_file_read_vaddr(f, chains + (uint64_t)index * 4, &index, sizeof index))
            return false;
    }
    return false;
}

bool elf_find_exported(const struct elf_file *f, const struct elf_dynamic *d, const char *name, Elf64_Sym *sym)
{
    if (!d->symbols || !d->strings)
        return false;
    return d->gnu_hash ? find_gnu_hash(f, d, name, sym) : d->hash ? find_sysv_hash(f, d, name, sym) : false;
}

/* A part of the names, which mostly lie in the order of their symbols. */
struct names_window {
    uint64_t start, len_bytes;
    char text[NAMES_WINDOW_BYTES + 1];
};

/* The name at that offset of the strings, at least its first 16 bytes; NULL: it cannot be read. */
static const char *name_at(const struct elf_file *f, const struct elf_dynamic *d, struct names_window *w, uint64_t offset)
{
    uint64_t left = offset < d->strings_bytes ? d->strings_bytes - offset : 0, need = left < 16 ? left : 16;

    if (!left)
        return NULL;
    if (offset < w->start || offset - w->start + need > w->len_bytes) {
        w->start = offset;
        w->len_bytes = left < NAMES_WINDOW_BYTES ? left : NAMES_WINDOW_BYTES;
        if (!elf_file_read_vaddr(f, d->strings + offset, w->text, w->len_bytes)) {
            w->len_bytes = 0;
            return NULL;
        }
        w->text[w->len_bytes] = 0;
    }
    return w->text + (offset - w->start);
}

void elf_count_exported(const struct elf_file *f, const struct elf_dynamic *d, bool (*is)(const char *name), uint32_t *all,
                        uint32_t *liked)
{
    struct names_window names = {0};
    Elf64_Sym symbols[64];
    uint64_t left = d->symbols && d->strings > d->symbols ? (d->strings - d->symbols) / sizeof *symbols : 0, at = d->symbols;

    *all = *liked = 0;
    left = left < SYMBOLS_MAX ? left : SYMBOLS_MAX;
    while (left) {
        uint64_t n = left < 64 ? left : 64;
        if (!elf_file_read_vaddr(f, at, symbols, n * sizeof *symbols))
            return;
        for (uint64_t i = 0; i < n; i++) {
            const char *name = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF
                                   ? name_at(f, d, &names, symbols[i].st_name)
                                   : NULL;
            *all += name != NULL;
            *liked += name && is(name);
        }
        left -= n;
        at += n * sizeof *symbols;
    }
}
