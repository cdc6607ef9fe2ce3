/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the addresses of one module, from everything that was found of it.
 *
 * DWARF may lie in the binary or in its debug file, and parts of it, shared by the
 * debug files of a package, in one more that dwz made (.gnu_debugaltlink). Symbols
 * may lie in .symtab of either, in a compressed ELF file within the binary
 * (.gnu_debugdata, "minidebuginfo"), and in .dynsym. DWARF is asked first, then
 * the symbols for what DWARF does not cover (assembler, stubs of the PLT).
 *
 * The files may be anybody's. libdw gets their bytes, without a descriptor or a path: it would open other files that
 * these name, whatever those are.
 */
#include "symbolize/binary/symbols.h"

#include <elfutils/libdw.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/arena.h"
#include "formats/base/buf.h"
#include "formats/base/map.h"
#include "formats/elf/bounds.h"
#include "formats/elf/file.h"
#include "formats/elf/unpack.h"
#include "symbolize/binary/demangle.h"
#include "symbolize/binary/dwarf.h"
#include "symbolize/binary/image.h"
#include "symbolize/binary/symbol_table.h"

enum {
    UNPACKED_MAX = 1 << 28, /* bytes of .gnu_debugdata unpacked */
    SECTIONS_FREE = 4 << 20, /* bytes of compressed sections unpacked, and so many times the size of the file: */
    SECTIONS_FACTOR = 32,    /* compilers' debug information shrinks to a fifth */
};

/* One ELF file. */
struct file {
    struct image image;
    struct elf_file elf;
};

struct symbols {
    struct file binary, debug, supplement;
    uint8_t *unpacked; /* .gnu_debugdata */
    struct elf_file mini; /* the ELF file in `unpacked` */
    Elf *nothing_elf;
    Dwarf *dw, *supplement_dw, *nothing;
    struct dwarf *dwarf;
    struct symbol_table table;
    enum symbols_quality quality;
    struct map shown; /* name in the file -> struct shown */
    struct buf text;  /* scratch */
    struct arena names;
};

static void file_close(struct file *f)
{
    elf_file_close(&f->elf);
    image_deinit(&f->image);
}

/* `path` is for the message; NULL: an image in memory. */
static struct error *file_begin(struct file *f, const char *path)
{
    struct error *err = elf_file_open_memory(f->image.data, f->image.len_bytes, path, &f->elf);

    if (err || f->elf.is_elf)
        return err;
    file_close(f);
    return path ? error_at(ERROR_FORMAT, path, 0, "is not an ELF file")
                : error_create(ERROR_FORMAT, "the image is not an ELF file");
}

static struct error *file_open(struct file *f, int fd, const char *path)
{
    TRY(image_read_open(fd, path, &f->image));
    return file_begin(f, path);
}

void symbols_close(struct symbols *s)
{
    if (!s)
        return;
    dwarf_destroy(s->dwarf);
    dwarf_end(s->dw);
    dwarf_end(s->supplement_dw);
    dwarf_end(s->nothing);
    elf_end(s->nothing_elf);
    symbol_table_deinit(&s->table);
    elf_file_close(&s->mini);
    free(s->unpacked);
    file_close(&s->supplement);
    file_close(&s->debug);
    file_close(&s->binary);
    map_deinit(&s->shown);
    buf_deinit(&s->text);
    arena_deinit(&s->names);
    free(s);
}

/* Opens the binary, or the debug file in its place. */
static const struct elf_file *any_file(const struct symbols *s)
{
    return s->binary.elf.is_elf ? &s->binary.elf : &s->debug.elf;
}

/* Unpacks minidebuginfo. If it is damaged, only its symbols are lost. */
static struct error *open_mini(struct symbols *s)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t cap = 1 << 20, len = 0;
    lzma_ret ret = LZMA_OK;
    struct elf_section section;

    if (!elf_file_find_section(&s->binary.elf, ".gnu_debugdata", &section) ||
        lzma_stream_decoder(&stream, UNPACKED_MAX, 0) != LZMA_OK)
        return NULL;
    struct bytes packed = elf_section_bytes(&s->binary.elf, &section);
    stream.next_in = packed.pos;
    stream.avail_in = bytes_left(&packed);
    while (ret == LZMA_OK && cap <= UNPACKED_MAX) {
        uint8_t *grown = realloc(s->unpacked, cap);
        if (!grown)
            break;
        s->unpacked = grown;
        stream.next_out = grown + len;
        stream.avail_out = cap - len;
        ret = lzma_code(&stream, LZMA_FINISH);
        len = cap - stream.avail_out;
        cap *= 2;
    }
    lzma_end(&stream);
    if (ret == LZMA_STREAM_END)
        return elf_file_open_memory(s->unpacked, len, ".gnu_debugdata", &s->mini);
    return NULL;
}

/* ---- DWARF ---- */

/* False: its compressed sections would be longer than those of an honest file. libdw unpacks what it is given. */
static bool unpacks_well(const struct elf_file *f)
{
    uint64_t left = SECTIONS_FREE + SECTIONS_FACTOR * f->len_bytes;
    struct elf_section s = {0};

    while (elf_file_next_section(f, &s)) {
        bool gnu = s.name && !strncmp(s.name, ".zdebug", 7);
        if (s.header.sh_type == SHT_NOBITS || (!gnu && !(s.header.sh_flags & SHF_COMPRESSED)))
            continue;
        if (!elf_take_budget(&left, elf_packed_read(f, &s).len_bytes))
            return false;
    }
    return true;
}

/*
 * A Dwarf in which nothing is found, for dwarf_setalt(): if a file names a supplement and none is set, libdw opens the
 * path that the file has for it.
 */
static Dwarf *open_nothing(Elf **elf)
{
    static const struct {
        Elf64_Ehdr header;
        Elf64_Shdr sections[3];
        char names[24], info[8];
    } image = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_DYN, .e_version = EV_CURRENT, .e_shoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 1},
        .sections = {{0},
                     {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_size = 24,
                      .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr)},
                     {.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_size = 8,
                      .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 24}},
        .names = "\0.shstrtab\0.debug_info",
    };

    *elf = elf_memory((char *)&image, sizeof image); /* libelf only reads it */
    return dwarf_begin_elf(*elf, DWARF_C_READ, NULL);
}

static bool is_read(const char *name)
{
    static const char *const unread[] = {".debug_loc", ".debug_loclists", ".debug_macro", ".debug_macinfo", ".debug_pubnames", ".debug_pubtypes"};

    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        if (!strcmp(name, unread[i]))
            return false;
    }
    return true;
}

/*
 * libdw unpacks every section that it knows. Those that nothing is looked up in, above all the places of variables, are
 * empty in the copy of the file that it gets. Call before libelf reads the headers.
 */
static void leave_out_sections(const struct elf_file *f)
{
    static const uint32_t empty = SHT_NOBITS;
    struct elf_section s = {0};

    while (elf_file_next_section(f, &s)) {
        if (s.name && s.header.sh_flags & SHF_COMPRESSED && !is_read(s.name))
            memcpy((uint8_t *)f->image + f->header.e_shoff + s.index * sizeof s.header + offsetof(Elf64_Shdr, sh_type), &empty, sizeof empty);
    }
}

/* NULL: no DWARF, or it cannot be read. */
static Dwarf *open_file_dwarf(struct symbols *s, const struct elf_file *f)
{
    if (f->image)
        leave_out_sections(f);
    Elf *elf = unpacks_well(f) ? elf_file_handle(f) : NULL;
    Dwarf *dw = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

    if (dw)
        dwarf_setalt(dw, s->nothing);
    return dw;
}

static struct error *open_dwarf(struct symbols *s, const struct binary_files *files)
{
    s->nothing = open_nothing(&s->nothing_elf);
    if (!s->nothing)
        return error_no_memory();
    s->dw = open_file_dwarf(s, s->debug.elf.is_elf ? &s->debug.elf : &s->binary.elf);
    if (!s->dw)
        return NULL; /* use the symbols */
    if (files->supplement) {
        /* Without it its names are missing. */
        error_destroy(file_open(&s->supplement, files->supplement_fd, files->supplement));
        s->supplement_dw = open_file_dwarf(s, &s->supplement.elf);
        if (s->supplement_dw)
            dwarf_setalt(s->dw, s->supplement_dw);
    }
    s->dwarf = dwarf_create(s->dw, &s->table.code);
    return s->dwarf ? NULL : error_no_memory();
}

/* Adds all symbols of the opened files. */
static struct error *read_files(struct symbols *s, const struct binary_files *files)
{
    const struct elf_file *binary = &s->binary.elf, *debug = &s->debug.elf;
    size_t symbols = 0;

    if (!any_file(s)->is_elf)
        return NULL;
    TRY(open_mini(s));
    bool ok = symbol_table_add_code(&s->table, any_file(s));
    ok = ok && symbol_table_add(&s->table, debug, SHT_SYMTAB) && symbol_table_add(&s->table, binary, SHT_SYMTAB);
    if (ok && s->table.symbols.count)
        s->quality = SYMBOLS_TABLE;
    ok = ok && symbol_table_add(&s->table, &s->mini, SHT_SYMTAB);
    if (ok && s->table.symbols.count && s->quality == SYMBOLS_NONE)
        s->quality = SYMBOLS_MINI;
    symbols = s->table.symbols.count;
    ok = ok && symbol_table_add(&s->table, binary, SHT_DYNSYM);
    if (ok && !symbols && s->table.symbols.count)
        s->quality = SYMBOLS_EXPORTED;
    ok = ok && symbol_table_add_plt(&s->table, binary) && symbol_table_finish(&s->table);
    if (!ok)
        return error_no_memory();
    TRY(open_dwarf(s, files));
    if (s->dwarf && dwarf_has_functions(s->dwarf))
        s->quality = SYMBOLS_DWARF;
    return NULL;
}

struct error *symbols_open(const struct binary_files *files, struct symbols **out)
{
    struct symbols *s = calloc(1, sizeof *s);
    struct error *err = NULL;

    if (!s)
        return error_no_memory();
    if (files->binary)
        err = file_open(&s->binary, files->binary_fd, files->binary);
    if (!err && files->debug && (!files->binary || strcmp(files->debug, files->binary)))
        err = file_open(&s->debug, files->debug_fd, files->debug);
    if (!err)
        err = read_files(s, files);
    if (err) {
        symbols_close(s);
        return err;
    }
    *out = s;
    return NULL;
}

struct error *symbols_open_memory(const void *image, uint64_t len_bytes, struct symbols **out)
{
    const struct binary_files none = {0};
    struct symbols *s = calloc(1, sizeof *s);
    struct error *err = NULL;

    if (!s)
        return error_no_memory();
    err = image_copy(image, len_bytes, &s->binary.image);
    if (!err)
        err = file_begin(&s->binary, NULL);
    if (!err)
        err = read_files(s, &none);
    if (err) {
        symbols_close(s);
        return err;
    }
    *out = s;
    return NULL;
}

/* A name as it is shown, with what demangle() says of it. */
struct shown {
    const char *name;
    enum demangle_layer layer;
};

/* Demangles a name and drops the symbol version. The result is cached. */
static struct shown shown_name(struct symbols *s, const char *name)
{
    uint64_t key = (uint64_t)(uintptr_t)name;
    struct shown shown = {.name = name};

    if (!name || !*name)
        return (struct shown){.name = ""};
    uint64_t *known = map_get(&s->shown, key);
    if (known)
        return *(const struct shown *)(uintptr_t)*known;
    size_t len = strcspn(name, "@");
    char *plain = arena_strndup(&s->names, name, len);
    bool demangled = plain && demangle(plain, &s->text, &shown.layer);
    if (demangled || name[len]) {
        /* symbol_table.c made "name@plt"; the linker made "name@VERSION" and "name@@VERSION". */
        if (!demangled) {
            buf_clear(&s->text);
            buf_put(&s->text, name, len);
        }
        if (!strcmp(name + len, "@plt"))
            buf_put_str(&s->text, "@plt");
        char *joined = s->text.bad ? NULL : arena_strndup(&s->names, (const char *)s->text.data, s->text.len_bytes);
        if (joined)
            shown.name = joined;
    }
    struct shown *kept = arena_dup(&s->names, &shown, sizeof shown);
    if (kept)
        map_set(&s->shown, key, (uint64_t)(uintptr_t)kept);
    return shown;
}

uint32_t symbols_lookup(struct symbols *s, uint64_t vaddr, struct symbol_frame *frames, uint32_t max)
{
    bool unqualified = false;
    uint32_t count = s->dwarf ? dwarf_lookup(s->dwarf, vaddr, frames, max, &unqualified) : 0;

    if (!max)
        return 0;
    if (!count)
        frames[count++] = (struct symbol_frame){.file = ""};
    struct symbol_frame *outer = &frames[count - 1];
    if (!outer->function || unqualified) {
        const struct table_symbol *symbol = symbol_table_find(&s->table, vaddr);
        if (symbol && (!outer->function || vaddr - symbol->start == outer->offset)) {
            outer->function = symbol->name;
            outer->offset = vaddr - symbol->start;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct shown shown = shown_name(s, frames[i].function);
        frames[i].function = shown.name;
        frames[i].layer = shown.layer;
    }
    return count;
}

enum symbols_quality symbols_quality(const struct symbols *s)
{
    return s->quality;
}

const char *symbols_quality_text(enum symbols_quality quality)
{
    static const char *const texts[] = {[SYMBOLS_NONE] = "no names",
                                        [SYMBOLS_EXPORTED] = "only exported names",
                                        [SYMBOLS_MINI] = "minidebuginfo",
                                        [SYMBOLS_TABLE] = "symbol table",
                                        [SYMBOLS_DWARF] = "DWARF"};

    return texts[quality];
}

bool symbols_vaddr(const struct symbols *s, uint64_t file_offset, uint64_t *vaddr)
{
    return elf_offset_to_vaddr(&any_file(s)->segments, file_offset, vaddr);
}
