/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises interpreters among ELF files.
 *
 * Most files on a host are none, and every executable mapping comes through here, so the
 * question "is it one?" must cost next to nothing: the hash table of the dynamic symbols says
 * in a handful of small reads that a name is not there (its Bloom filter usually with the
 * first), and the names of the sections say whether an interpreter lies in an executable that
 * exports nothing. Only what passes has its symbol table read.
 *
 * The file is read with pread and never mapped: it may shrink while we read it. libelf gives
 * the headers and the section names; contents are read here, through program headers, each
 * read checked against them. Nothing in the file is trusted: a bad one is no interpreter.
 */
#include "formats/cpython/image.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/bytes.h"

#define SEGMENTS_MAX 64
#define SECTIONS_MAX 65536
#define CHAIN_MAX 4096   /* symbols looked at for one name */
#define RELOCS_MAX 4000000
#define NAME_MAX_BYTES 64
#define DEBUG_OFFSETS_MAX 2048

struct segment {
    uint64_t vaddr, offset, file_bytes;
};

struct elf_file {
    int fd;
    Elf *elf;
    GElf_Ehdr ehdr;
    struct segment segments[SEGMENTS_MAX];
    uint32_t segment_count;
    GElf_Phdr tls, dynamic; /* p_memsz, p_filesz 0: none */
    uint64_t hash, gnu_hash, symbols, strings, strings_bytes, relocs, relocs_bytes;
    GElf_Shdr symtab, runtime; /* sh_size 0: none */
};

static void elf_file_deinit(struct elf_file *f)
{
    if (f->elf)
        elf_end(f->elf);
}

static bool read_at(const struct elf_file *f, uint64_t offset, void *out, size_t len_bytes)
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

/* How many bytes of the file stand behind `vaddr`, and where. */
static uint64_t file_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t *offset)
{
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const struct segment *s = &f->segments[i];
        if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_bytes) {
            *offset = s->offset + (vaddr - s->vaddr);
            return s->file_bytes - (vaddr - s->vaddr);
        }
    }
    return 0;
}

static bool read_vaddr(const struct elf_file *f, uint64_t vaddr, void *out, size_t len_bytes)
{
    uint64_t offset;

    return file_bytes_at(f, vaddr, &offset) >= len_bytes && read_at(f, offset, out, len_bytes);
}

static bool read_u64(const struct elf_file *f, uint64_t vaddr, uint64_t *out)
{
    return read_vaddr(f, vaddr, out, sizeof *out);
}

static void read_segments(struct elf_file *f)
{
    size_t count;

    if (elf_getphdrnum(f->elf, &count) != 0)
        return;
    for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(f->elf, (int)i, &ph))
            return;
        if (ph.p_type == PT_LOAD && ph.p_offset <= INT64_MAX && ph.p_filesz <= INT64_MAX)
            f->segments[f->segment_count++] = (struct segment){ph.p_vaddr, ph.p_offset, ph.p_filesz};
        else if (ph.p_type == PT_TLS)
            f->tls = ph;
        else if (ph.p_type == PT_DYNAMIC)
            f->dynamic = ph;
    }
}

static void read_dynamic(struct elf_file *f)
{
    Elf64_Dyn dyn[128];
    uint64_t offset = f->dynamic.p_offset, left = f->dynamic.p_filesz;

    while (left >= sizeof *dyn) {
        size_t n = left < sizeof dyn ? left / sizeof *dyn * sizeof *dyn : sizeof dyn;
        if (!read_at(f, offset, dyn, n))
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

/* Notes .PyRuntime and .symtab, by name and type. */
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
            const char *name = elf_strptr(f->elf, names, sh.sh_name);
            if (name && strcmp(name, ".PyRuntime") == 0)
                f->runtime = sh;
        }
    }
}

static bool name_is(const struct elf_file *f, uint64_t name_offset, const char *name)
{
    char text[NAME_MAX_BYTES];
    size_t len = strlen(name) + 1;

    return len <= sizeof text && name_offset < f->strings_bytes && len <= f->strings_bytes - name_offset &&
           read_vaddr(f, f->strings + name_offset, text, len) && memcmp(text, name, len) == 0;
}

static bool symbol_matches(const struct elf_file *f, uint64_t index, const char *name, Elf64_Sym *sym)
{
    return read_vaddr(f, f->symbols + index * sizeof *sym, sym, sizeof *sym) && sym->st_shndx != SHN_UNDEF &&
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
    if (!read_vaddr(f, f->gnu_hash, &head, sizeof head) || !head.bucket_count || !head.bloom_words ||
        (head.bloom_words & (head.bloom_words - 1)) || head.bloom_shift > 31)
        return false;
    uint64_t words = f->gnu_hash + sizeof head, buckets = words + (uint64_t)head.bloom_words * 8,
             chains = buckets + (uint64_t)head.bucket_count * 4;
    if (!read_u64(f, words + (hash / 64 & (head.bloom_words - 1)) * 8, &bloom) || !(bloom >> hash % 64 & 1) ||
        !(bloom >> (hash >> head.bloom_shift) % 64 & 1))
        return false;
    if (!read_vaddr(f, buckets + (uint64_t)(hash % head.bucket_count) * 4, &index, sizeof index) ||
        index < head.first_symbol)
        return false;
    for (uint32_t seen = 0; seen < CHAIN_MAX;) {
        uint64_t at = chains + (uint64_t)(index - head.first_symbol) * 4, offset;
        uint64_t have = file_bytes_at(f, at, &offset) / 4;
        size_t n = have < sizeof chain / 4 ? (size_t)have : sizeof chain / 4;
        if (!n || !read_at(f, offset, chain, n * 4))
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
    if (!read_vaddr(f, f->hash, head, sizeof head) || !head[0])
        return false;
    uint64_t buckets = f->hash + sizeof head, chains = buckets + (uint64_t)head[0] * 4;
    if (!read_vaddr(f, buckets + (uint64_t)(hash % head[0]) * 4, &index, sizeof index))
        return false;
    for (uint32_t seen = 0; index && index < head[1] && seen < CHAIN_MAX; seen++) {
        if (symbol_matches(f, index, name, sym))
            return true;
        if (!read_vaddr(f, chains + (uint64_t)index * 4, &index, sizeof index))
            return false;
    }
    return false;
}

/* A symbol that the file defines for others. */
static bool find_exported(const struct elf_file *f, const char *name, Elf64_Sym *sym)
{
    if (!f->symbols || !f->strings)
        return false;
    return f->gnu_hash ? find_gnu_hash(f, name, sym) : f->hash ? find_sysv_hash(f, name, sym) : false;
}

/* ---- what we look for ---- */

enum wanted {
    SYM_RUNTIME,
    SYM_CODE_TYPE,
    SYM_VERSION,
    SYM_EVAL,
    SYM_GET_CURRENT,
    SYM_GET_UNCHECKED,
    SYM_UNCHECKED_GET,
    SYM_CURRENT_OLD, /* up to 3.6 */
    SYM_DEBUG_NEW,   /* debug builds only: 3.9 and later */
    SYM_DEBUG_OLD,   /* up to 3.11 */
    SYM_TLS,
    SYM_COUNT,
};
static const char *const wanted_names[SYM_COUNT] = {
    [SYM_RUNTIME] = "_PyRuntime",
    [SYM_CODE_TYPE] = "PyCode_Type",
    [SYM_VERSION] = "Py_Version",
    [SYM_EVAL] = "_PyEval_EvalFrameDefault",
    [SYM_GET_CURRENT] = "_PyThreadState_GetCurrent",
    [SYM_GET_UNCHECKED] = "PyThreadState_GetUnchecked",
    [SYM_UNCHECKED_GET] = "_PyThreadState_UncheckedGet",
    [SYM_CURRENT_OLD] = "_PyThreadState_Current",
    [SYM_DEBUG_NEW] = "_Py_NegativeRefcount",
    [SYM_DEBUG_OLD] = "_Py_RefTotal",
    [SYM_TLS] = "_Py_tss_tstate",
};

struct found {
    Elf64_Sym symbols[SYM_COUNT]; /* st_shndx SHN_UNDEF: not there */
};

static bool has(const struct found *found, enum wanted w)
{
    return found->symbols[w].st_shndx != SHN_UNDEF;
}

static void add_eval_range(struct py_image *img, uint64_t start, uint64_t len_bytes)
{
    if (!len_bytes || start > UINT64_MAX - len_bytes)
        return;
    for (uint32_t i = 0; i < img->eval_range_count; i++) {
        if (img->eval_ranges[i].start == start)
            return;
    }
    if (img->eval_range_count < sizeof img->eval_ranges / sizeof *img->eval_ranges)
        img->eval_ranges[img->eval_range_count++] = (struct py_range){start, start + len_bytes};
}

/* One pass over .symtab: what is not exported, and the parts of the eval loop that the compiler split off. */
static void read_symtab(const struct elf_file *f, struct found *found, struct py_image *img)
{
    Elf64_Sym syms[256];
    uint64_t left = f->symtab.sh_size / sizeof *syms, offset = f->symtab.sh_offset;
    size_t eval_len = strlen(wanted_names[SYM_EVAL]);

    while (left) {
        size_t n = left < 256 ? (size_t)left : 256;
        if (!read_at(f, offset, syms, n * sizeof *syms))
            return;
        for (size_t i = 0; i < n; i++) {
            unsigned type = ELF64_ST_TYPE(syms[i].st_info);
            if (syms[i].st_shndx == SHN_UNDEF || (type != STT_OBJECT && type != STT_FUNC && type != STT_TLS))
                continue;
            const char *name = elf_strptr(f->elf, f->symtab.sh_link, syms[i].st_name);
            if (!name || (name[0] != '_' && name[0] != 'P'))
                continue;
            for (int w = 0; w < SYM_COUNT; w++) {
                if (!has(found, w) && strcmp(name, wanted_names[w]) == 0 && (type == STT_TLS) == (w == SYM_TLS))
                    found->symbols[w] = syms[i];
            }
            if (type == STT_FUNC && strncmp(name, wanted_names[SYM_EVAL], eval_len) == 0 &&
                (name[eval_len] == '.' || !name[eval_len]))
                add_eval_range(img, syms[i].st_value, syms[i].st_size);
        }
        offset += n * sizeof *syms;
        left -= n;
    }
}

/* ---- where a thread keeps its thread state ---- */

static uint64_t tls_block_bytes(const struct elf_file *f)
{
    uint64_t align = f->tls.p_align ? f->tls.p_align : 1;

    if (align > 1u << 20 || f->tls.p_memsz > 1u << 30)
        return 0;
    return (f->tls.p_memsz + align - 1) / align * align;
}

static void set_local_exec(const struct elf_file *f, int64_t offset, struct py_tls *tls)
{
    if (offset < 0 && offset >= -(int64_t)tls_block_bytes(f))
        *tls = (struct py_tls){.kind = PY_TLS_LOCAL_EXEC, .offset = offset};
}

/*
 * The offset that the dynamic linker stores in the second half of a tls_index at `slot`: by a
 * relocation where it depends on a symbol, else it stands in the file.
 */
static bool module_offset_at(const struct elf_file *f, uint64_t slot, uint64_t *out)
{
    Elf64_Rela rela[256];
    uint64_t offset, count = f->relocs_bytes / sizeof *rela;
    bool has_module = false, has_offset = false;

    if (!f->relocs || count > RELOCS_MAX || file_bytes_at(f, f->relocs, &offset) < f->relocs_bytes ||
        !read_u64(f, slot + 8, out))
        return false;
    while (count) {
        size_t n = count < 256 ? (size_t)count : 256;
        if (!read_at(f, offset, rela, n * sizeof *rela))
            return false;
        for (size_t i = 0; i < n; i++) {
            uint32_t type = ELF64_R_TYPE(rela[i].r_info);
            uint64_t index = ELF64_R_SYM(rela[i].r_info);
            Elf64_Sym sym = {0};
            if (rela[i].r_offset == slot && type == R_X86_64_DTPMOD64)
                has_module = true;
            if (rela[i].r_offset != slot + 8 || type != R_X86_64_DTPOFF64 || has_offset)
                continue;
            if (index && !read_vaddr(f, f->symbols + index * sizeof sym, &sym, sizeof sym))
                return false;
            has_offset = true;
            *out = sym.st_value + (uint64_t)rela[i].r_addend;
        }
        offset += n * sizeof *rela;
        count -= n;
    }
    return has_module;
}

static int32_t imm32_at(const uint8_t *p)
{
    int32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/*
 * Reads it off the code of a function that does little else than load the variable. What compilers and the
 * linker's relaxations make of it on x86-64 (System V TLS ABI): local exec, a fixed offset; initial exec, an
 * offset in a GOT slot; general and local dynamic, a tls_index in the GOT; TLS descriptors, two words there.
 */
static void decode_tls(const struct elf_file *f, const Elf64_Sym *function, struct py_tls *tls)
{
    uint8_t code[64 + 16] = {0};
    size_t len = function->st_size && function->st_size < 64 ? function->st_size : 64;
    uint64_t base = function->st_value, offset;

    if (f->ehdr.e_machine != EM_X86_64 || !read_vaddr(f, base, code, len))
        return;
    for (size_t i = 0; i < len; i++) {
        const uint8_t *p = code + i;
        uint64_t next = base + i;
        /* mov reg, fs:imm32; of a fs:0 (the thread pointer) the addition follows. */
        if (p[0] == 0x64 && (p[1] & 0xfb) == 0x48 && p[2] == 0x8b && (p[3] & 0xc7) == 0x04 && p[4] == 0x25) {
            if (imm32_at(p + 5)) {
                set_local_exec(f, imm32_at(p + 5), tls);
                return;
            }
            const uint8_t *q = p + 9;
            if ((q[0] & 0xf8) == 0x48 && (q[1] == 0x8d || q[1] == 0x8b) && (q[2] & 0xc0) == 0x80 &&
                (q[2] & 7) != 4) { /* lea or mov reg, [reg + imm32] */
                set_local_exec(f, imm32_at(q + 3), tls);
                return;
            }
            if ((q[0] & 0xf8) == 0x48 && q[1] == 0x03 && (q[2] & 0xc7) == 0x05) { /* add reg, [rip + disp32] */
                *tls = (struct py_tls){.kind = PY_TLS_SLOT, .slot_vaddr = next + 16 + (uint64_t)(int64_t)imm32_at(q + 3)};
                return;
            }
        }
        /* mov reg, imm32; mov reg, fs:[reg] */
        if (p[0] == 0x48 && p[1] == 0xc7 && (p[2] & 0xf8) == 0xc0 && p[7] == 0x64) {
            set_local_exec(f, imm32_at(p + 3), tls);
            return;
        }
        /* mov reg, [rip + disp32]; mov reg, fs:[reg] */
        if ((p[0] & 0xfb) == 0x48 && p[1] == 0x8b && (p[2] & 0xc7) == 0x05 && p[7] == 0x64) {
            *tls = (struct py_tls){.kind = PY_TLS_SLOT, .slot_vaddr = next + 7 + (uint64_t)(int64_t)imm32_at(p + 3)};
            return;
        }
        /* lea rax, [rip + disp32]; call [rax] */
        if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x05 && p[7] == 0xff && p[8] == 0x10) {
            *tls = (struct py_tls){.kind = PY_TLS_DESCRIPTOR, .slot_vaddr = next + 7 + (uint64_t)(int64_t)imm32_at(p + 3)};
            return;
        }
        /* lea rdi, [rip + disp32]; call __tls_get_addr */
        if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x3d) {
            uint64_t slot = next + 7 + (uint64_t)(int64_t)imm32_at(p + 3);
            bool general = i && p[-1] == 0x66;
            if (!module_offset_at(f, slot, &offset))
                return;
            if (!general) { /* local dynamic: the module's block; the variable's offset in it follows the call */
                const uint8_t *q = p + 7;
                while (q < code + len && !(q[0] == 0x48 && q[1] == 0x8b && ((q[2] & 0xc7) == 0x80 || (q[2] & 0xc7) == 0x40)))
                    q++;
                if (q >= code + len)
                    return;
                offset += (q[2] & 0xc7) == 0x80 ? (uint64_t)(int64_t)imm32_at(q + 3) : (uint64_t)(int64_t)(int8_t)q[3];
            }
            if (offset < f->tls.p_memsz)
                *tls = (struct py_tls){.kind = PY_TLS_MODULE, .offset = (int64_t)offset, .module_id_vaddr = slot};
            return;
        }
    }
}

/* An executable's TLS block ends at the thread pointer; a library's lies where the dynamic linker put it. */
static bool is_executable(const struct elf_file *f)
{
    size_t count;
    bool has_interpreter = false;

    if (f->ehdr.e_type == ET_EXEC)
        return true;
    if (elf_getphdrnum(f->elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        GElf_Phdr ph;
        if (gelf_getphdr(f->elf, (int)i, &ph) && ph.p_type == PT_INTERP)
            has_interpreter = true;
    }
    return has_interpreter;
}

static void find_tls(const struct elf_file *f, const struct found *found, struct py_tls *tls)
{
    static const enum wanted getters[] = {SYM_GET_CURRENT, SYM_GET_UNCHECKED, SYM_UNCHECKED_GET};

    for (size_t i = 0; i < sizeof getters / sizeof *getters && tls->kind == PY_TLS_NONE; i++) {
        if (has(found, getters[i]))
            decode_tls(f, &found->symbols[getters[i]], tls);
    }
    if (!has(found, SYM_TLS) || found->symbols[SYM_TLS].st_value >= f->tls.p_memsz)
        return;
    int64_t value = (int64_t)found->symbols[SYM_TLS].st_value;
    if (tls->kind == PY_TLS_MODULE)
        tls->offset = value;
    else if (tls->kind != PY_TLS_NONE)
        return;
    else if (is_executable(f))
        set_local_exec(f, value - (int64_t)tls_block_bytes(f), tls);
    else
        *tls = (struct py_tls){.kind = PY_TLS_MODULE, .offset = value};
}

/* ---- putting it together ---- */

static struct error *refuse(struct py_image *img, const char *why)
{
    img->refused = strdup(why);
    return img->refused ? NULL : error_no_memory();
}

static struct error *refuse_old(const struct elf_file *f, struct py_image *img)
{
    Elf64_Sym sym;
    const char *which = find_exported(f, "PyString_FromString", &sym) ? "CPython 2"
                        : !img->runtime_vaddr                         ? "CPython 3.6 or older"
                        : f->runtime.sh_size                          ? "CPython 3.10"
                                                                      : "CPython 3.7 to 3.9";
    struct error *err = error_create(ERROR_VERSION, "%s is not supported (known: %s)", which, py_versions_known());
    struct error *failed = refuse(img, error_text(err));

    error_destroy(err);
    return failed;
}

static struct error *describe(const struct elf_file *f, struct found *found, struct py_image *img)
{
    uint8_t table[DEBUG_OFFSETS_MAX];
    uint64_t offset, table_len = 0;

    img->runtime_vaddr = has(found, SYM_RUNTIME) ? found->symbols[SYM_RUNTIME].st_value : f->runtime.sh_addr;
    if (has(found, SYM_CODE_TYPE))
        img->code_type_vaddr = found->symbols[SYM_CODE_TYPE].st_value;
    if (has(found, SYM_EVAL))
        add_eval_range(img, found->symbols[SYM_EVAL].st_value, found->symbols[SYM_EVAL].st_size);
    if (img->runtime_vaddr) {
        table_len = file_bytes_at(f, img->runtime_vaddr, &offset);
        if (table_len > sizeof table)
            table_len = sizeof table;
        if (table_len < 24 || !read_at(f, offset, table, table_len) || memcmp(table, "xdebugpy", 8) != 0)
            table_len = 0;
    }
    if (has(found, SYM_VERSION)) {
        uint32_t version;
        if (read_vaddr(f, found->symbols[SYM_VERSION].st_value, &version, sizeof version))
            img->version_hex = version;
    }
    if (!img->version_hex && table_len) {
        struct bytes b = bytes_of(table + 8, 8);
        img->version_hex = (uint32_t)bytes_u64(&b);
    }
    if (!img->version_hex)
        return refuse_old(f, img);
    struct error *err =
        py_layout_find(img->version_hex, has(found, SYM_DEBUG_NEW) || has(found, SYM_DEBUG_OLD),
                       table_len ? table : NULL, (uint32_t)table_len, &img->layout);
    if (err && err->code == ERROR_NO_MEMORY)
        return err;
    if (err) {
        struct error *failed = refuse(img, error_text(err));
        error_destroy(err);
        return failed;
    }
    if (!img->runtime_vaddr || !img->code_type_vaddr)
        return refuse(img, "stripped so far that _PyRuntime or PyCode_Type cannot be found");
    find_tls(f, found, &img->tls_tstate);
    return NULL;
}

struct error *py_image_read(int fd, const char *path, struct py_image *out)
{
    struct elf_file __attribute__((cleanup(elf_file_deinit))) f = {.fd = fd};
    struct found found = {0};
    struct stat st;
    char magic[SELFMAG];

    memset(out, 0, sizeof *out);
    if (fstat(fd, &st) != 0)
        return error_file(errno, path, "cannot look at the file");
    if (!S_ISREG(st.st_mode) || !read_at(&f, 0, magic, sizeof magic) || memcmp(magic, ELFMAG, SELFMAG) != 0)
        return NULL;
    elf_version(EV_CURRENT);
    f.elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!f.elf || elf_kind(f.elf) != ELF_K_ELF || !gelf_getehdr(f.elf, &f.ehdr))
        return NULL;
    if (f.ehdr.e_ident[EI_CLASS] != ELFCLASS64 || f.ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
        (f.ehdr.e_type != ET_EXEC && f.ehdr.e_type != ET_DYN))
        return NULL;
    read_segments(&f);
    read_dynamic(&f);
    read_sections(&f);
    bool new = find_exported(&f, wanted_names[SYM_RUNTIME], &found.symbols[SYM_RUNTIME]);
    bool old = !new && find_exported(&f, wanted_names[SYM_CURRENT_OLD], &found.symbols[SYM_CURRENT_OLD]);
    if (!new && !old && !f.runtime.sh_size)
        return NULL;
    out->is_python = true;
    for (int w = 0; w < SYM_COUNT; w++) {
        if (!has(&found, w) && !find_exported(&f, wanted_names[w], &found.symbols[w]))
            found.symbols[w] = (Elf64_Sym){0};
    }
    read_symtab(&f, &found, out);
    struct error *err = describe(&f, &found, out);
    if (err)
        py_image_deinit(out);
    return err;
}

void py_image_deinit(struct py_image *img)
{
    free(img->refused);
    img->refused = NULL;
}
