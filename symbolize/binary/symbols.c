/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the addresses of one module, from everything that was found of it.
 *
 * DWARF may lie in the binary or in its debug file, and parts of it, shared by the
 * debug files of a package, in one more that dwz made (.gnu_debugaltlink). Symbols
 * may lie in .symtab of either, in a compressed ELF file within the binary
 * (.gnu_debugdata, "minidebuginfo"), and in .dynsym. DWARF answers first; what it
 * has no function for (assembler, stubs of the PLT) the symbols answer.
 */
#include "symbolize/binary/symbols.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/arena.h"
#include "formats/base/map.h"
#include "formats/elf/bounds.h"
#include "formats/elf/identity.h"
#include "symbolize/binary/dwarf.h"
#include "symbolize/binary/image.h"
#include "symbolize/binary/symbol_table.h"

enum {
    UNPACKED_MAX = 1 << 28, /* bytes of .gnu_debugdata unpacked */
    MANGLED_MAX = 1 << 14,  /* longer names stay as they are */
};

/* One ELF file. */
struct file {
    struct image image;
    Elf *elf;
};

struct symbols {
    struct file binary, debug, supplement;
    uint8_t *unpacked; /* .gnu_debugdata */
    Elf *mini;
    Dwarf *dw, *supplement_dw;
    struct dwarf *dwarf;
    struct symbol_table table;
    struct elf_identity identity; /* its segments */
    const char *quality;
    struct map shown; /* name in the file -> name to show */
    struct arena names;
};

static void file_close(struct file *f)
{
    elf_end(f->elf);
    image_unmap(&f->image);
    *f = (struct file){0};
}

/* `path` is for the message; NULL: an image in memory. */
static struct error *file_begin(struct file *f, const char *path)
{
    if (f->image.data)
        f->elf = elf_memory((char *)f->image.data, f->image.len_bytes);
    if (f->elf && elf_kind(f->elf) == ELF_K_ELF)
        return NULL;
    file_close(f);
    return path ? error_at(ERROR_FORMAT, path, 0, "is no ELF file")
                : error_create(ERROR_FORMAT, "the image is no ELF file");
}

static struct error *file_open(struct file *f, int fd, const char *path)
{
    TRY(image_map_open(fd, path, &f->image));
    return file_begin(f, path);
}

void symbols_close(struct symbols *s)
{
    if (!s)
        return;
    dwarf_destroy(s->dwarf);
    dwarf_end(s->dw);
    dwarf_end(s->supplement_dw);
    symbol_table_deinit(&s->table);
    elf_end(s->mini); /* its bytes are in `unpacked` */
    free(s->unpacked);
    file_close(&s->supplement);
    file_close(&s->debug);
    file_close(&s->binary);
    elf_identity_deinit(&s->identity);
    map_deinit(&s->shown);
    arena_deinit(&s->names);
    free(s);
}

static Elf_Data *section_data(Elf *elf, const char *wanted)
{
    size_t names;

    if (!elf || elf_getshdrstrndx(elf, &names))
        return NULL;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        const char *name;
        if (gelf_getshdr(scn, &header) && header.sh_type == SHT_PROGBITS &&
            (name = elf_name(elf, names, header.sh_name)) && !strcmp(name, wanted))
            return elf_rawdata(scn, NULL);
    }
    return NULL;
}

/* Unpacks minidebuginfo. Damage there costs its symbols only. */
static void open_mini(struct symbols *s)
{
    Elf_Data *packed = section_data(s->binary.elf, ".gnu_debugdata");
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t cap = 1 << 20, len = 0;
    lzma_ret ret = LZMA_OK;

    if (!packed || !packed->d_buf || lzma_stream_decoder(&stream, UNPACKED_MAX, 0) != LZMA_OK)
        return;
    stream.next_in = packed->d_buf;
    stream.avail_in = packed->d_size;
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
        s->mini = elf_memory((char *)s->unpacked, len);
}

/* The dwz supplement. Without it what lies in there is nameless; libdw looks once more, in the host's folders. */
static void open_supplement(struct symbols *s, const struct binary_files *files)
{
    struct error *err = file_open(&s->supplement, files->supplement_fd, files->supplement);

    if (err) {
        error_destroy(err);
        return;
    }
    s->supplement_dw = dwarf_begin_elf(s->supplement.elf, DWARF_C_READ, NULL);
    if (s->supplement_dw)
        dwarf_setalt(s->dw, s->supplement_dw);
}

static struct error *open_dwarf(struct symbols *s, const struct binary_files *files)
{
    Elf *elf = s->debug.elf ? s->debug.elf : s->binary.elf;

    s->dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (!s->dw)
        return NULL; /* none, or damaged beyond use: the symbols remain */
    if (files->supplement)
        open_supplement(s, files);
    s->dwarf = dwarf_create(s->dw, &s->table.code);
    return s->dwarf ? NULL : error_no_memory();
}

/* Everything that the opened files hold. */
static struct error *read_files(struct symbols *s, const struct binary_files *files)
{
    Elf *binary = s->binary.elf, *debug = s->debug.elf;
    Elf *any = binary ? binary : debug;
    size_t symbols = 0;

    if (!any)
        return NULL;
    const struct image *image = binary ? &s->binary.image : &s->debug.image;
    TRY(elf_identity_read_memory(image->data, image->len_bytes, "", &s->identity));
    open_mini(s);
    bool ok = symbol_table_add_code(&s->table, any);
    ok = ok && (!debug || symbol_table_add(&s->table, debug, SHT_SYMTAB));
    ok = ok && (!binary || symbol_table_add(&s->table, binary, SHT_SYMTAB));
    if (ok && s->table.symbols.count)
        s->quality = "symbol table";
    ok = ok && (!s->mini || symbol_table_add(&s->table, s->mini, SHT_SYMTAB));
    if (ok && s->table.symbols.count && !strcmp(s->quality, "none"))
        s->quality = "minidebuginfo";
    symbols = s->table.symbols.count;
    ok = ok && (!binary || symbol_table_add(&s->table, binary, SHT_DYNSYM));
    if (ok && !symbols && s->table.symbols.count)
        s->quality = "dynamic symbols";
    ok = ok && (!binary || symbol_table_add_plt(&s->table, binary)) && symbol_table_finish(&s->table);
    if (!ok)
        return error_no_memory();
    TRY(open_dwarf(s, files));
    if (s->dwarf && dwarf_has_functions(s->dwarf))
        s->quality = "DWARF";
    return NULL;
}

struct error *symbols_open(const struct binary_files *files, struct symbols **out)
{
    struct symbols *s = calloc(1, sizeof *s);
    struct error *err = NULL;

    if (!s)
        return error_no_memory();
    elf_version(EV_CURRENT);
    s->quality = "none";
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
    elf_version(EV_CURRENT);
    s->quality = "none";
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

/* Demangled, without the version of the symbol. The answer is kept. */
static const char *shown_name(struct symbols *s, const char *name)
{
    uint64_t key = (uint64_t)(uintptr_t)name;
    const char *shown = name;

    if (!name || !*name)
        return "";
    uint64_t *known = map_get(&s->shown, key);
    if (known)
        return (const char *)(uintptr_t)*known;
    size_t len = strcspn(name, "@");
    char *plain = len < MANGLED_MAX ? arena_strndup(&s->names, name, len) : NULL;
    char *demangled = plain ? cplus_demangle(plain, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO) : NULL;
    if (demangled || name[len]) {
        /* "name@plt" is ours; "name@VERSION" and "name@@VERSION" are the linker's. */
        const char *suffix = !strcmp(name + len, "@plt") ? "@plt" : "";
        const char *base = demangled ? demangled : plain ? plain : name;
        size_t size = strlen(base) + strlen(suffix) + 1;
        char *joined = arena_alloc(&s->names, size);
        if (joined) {
            snprintf(joined, size, "%s%s", base, suffix);
            shown = joined;
        }
        free(demangled);
    }
    map_set(&s->shown, key, (uint64_t)(uintptr_t)shown);
    return shown;
}

uint32_t symbols_lookup(struct symbols *s, uint64_t vaddr, struct symbol_frame *frames, uint32_t max)
{
    bool bare = false;
    uint32_t count = s->dwarf ? dwarf_lookup(s->dwarf, vaddr, frames, max, &bare) : 0;

    if (!max)
        return 0;
    if (!count)
        frames[count++] = (struct symbol_frame){.file = ""};
    struct symbol_frame *outer = &frames[count - 1];
    if (!outer->function || bare) {
        const struct symbol *symbol = symbol_table_find(&s->table, vaddr);
        if (symbol && (!outer->function || vaddr - symbol->start == outer->offset)) {
            outer->function = symbol->name;
            outer->offset = vaddr - symbol->start;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        frames[i].function = shown_name(s, frames[i].function);
    return count;
}

const char *symbols_quality(const struct symbols *s)
{
    return s->quality;
}

bool symbols_vaddr(const struct symbols *s, uint64_t file_offset, uint64_t *vaddr)
{
    for (size_t i = 0; i < s->identity.segments.count; i++) {
        const struct elf_segment *segment = &s->identity.segments.data[i];
        if (file_offset < segment->offset || file_offset - segment->offset >= segment->file_size)
            continue;
        *vaddr = file_offset - segment->offset + segment->vaddr;
        return true;
    }
    return false;
}
