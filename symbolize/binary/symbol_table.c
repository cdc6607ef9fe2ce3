/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses a symbol for an address. Several may have it: aliases, versions, labels. The
 * one that people are most likely to write is shown: functions before labels, global
 * symbols before local ones, those with few leading underscores, then an arbitrary but
 * fixed choice. If functions overlap, the narrowest one that contains the address wins.
 * A symbol without a size (hand-written assembler) extends to the next one, and is used
 * only where no symbol with a size is.
 */
#include "symbolize/binary/symbol_table.h"

#include <string.h>

#include "formats/base/map.h"
#include "formats/elf/bounds.h"
#include "formats/elf/machine.h"

enum {
    NAME_COMPARED = 4096,      /* bytes of a name that the choice depends on */
    STUB_NAMES_MAX = 64 << 20, /* bytes, of all stubs; many may have the same endless name */
};

bool symbol_table_add_code(struct symbol_table *t, const struct elf_file *f)
{
    struct elf_section s = {0};

    while (elf_file_next_section(f, &s)) {
        if ((s.header.sh_flags & SHF_ALLOC) && (s.header.sh_flags & SHF_EXECINSTR) &&
            !ranges_add(&t->code, s.header.sh_addr, s.header.sh_addr + s.header.sh_size, 0))
            return false;
    }
    for (size_t i = 0; !t->code.rows.count && i < f->segments.count; i++) {
        const struct elf_segment *segment = &f->segments.data[i];
        if ((segment->flags & PF_X) && !ranges_add(&t->code, segment->vaddr, segment->vaddr + segment->mem_size, 0))
            return false;
    }
    return ranges_finish(&t->code);
}

static bool is_function(const struct symbol_table *t, const Elf64_Sym *sym, const char *name)
{
    unsigned type = ELF64_ST_TYPE(sym->st_info);

    if (!name || !*name || sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON)
        return false;
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
        return false;
    /* Local labels of the assembler, and the mapping symbols that some targets put between code and data. */
    if (type == STT_NOTYPE && (name[0] == '$' || (name[0] == '.' && name[1] == 'L')))
        return false;
    return ranges_find(&t->code, sym->st_value) != NULL;
}

bool symbol_table_add(struct symbol_table *t, const struct elf_file *f, uint32_t section_type)
{
    struct elf_section section = {0};

    while (elf_file_next_section(f, &section)) {
        Elf64_Sym sym;
        if (section.header.sh_type != section_type)
            continue;
        struct bytes b = elf_section_bytes(f, &section);
        if (b.bad)
            continue;
        /* A file has at most one table of each type. The first symbol is empty. */
        bytes_skip(&b, sizeof sym);
        for (const uint8_t *at; bytes_left(&b) && (at = bytes_take(&b, sizeof sym));) {
            memcpy(&sym, at, sizeof sym);
            const char *name = elf_file_string(f, section.header.sh_link, sym.st_name);
            if (!is_function(t, &sym, name))
                continue;
            struct table_symbol s = {
                .start = sym.st_value, .end = sym.st_value + sym.st_size, .name = name,
                .type = ELF64_ST_TYPE(sym.st_info), .bind = ELF64_ST_BIND(sym.st_info),
            };
            if (s.end < s.start)
                s.end = s.start;
            if (!VEC_PUSH(&t->symbols, s))
                return false;
        }
        break;
    }
    return true;
}

static unsigned underscores(const char *name)
{
    unsigned n = 0;

    while (n < NAME_COMPARED && name[n] == '_')
        n++;
    return n;
}

/* Which of two symbols with the same extent to show: negative for `x`. */
static int preference(const struct table_symbol *x, const struct table_symbol *y)
{
    bool x_label = x->type == STT_NOTYPE, y_label = y->type == STT_NOTYPE;
    bool x_local = x->bind == STB_LOCAL, y_local = y->bind == STB_LOCAL;
    unsigned x_score = underscores(x->name), y_score = underscores(y->name);

    if (x_label != y_label)
        return x_label - y_label;
    if (x_local != y_local)
        return x_local - y_local;
    if (x_score != y_score)
        return x_score < y_score ? -1 : 1;
    if (x->bind != y->bind)
        return x->bind < y->bind ? -1 : 1; /* global before weak */
    size_t x_len = strnlen(x->name, NAME_COMPARED), y_len = strnlen(y->name, NAME_COMPARED);
    if (x_len != y_len)
        return x_len < y_len ? -1 : 1;
    int order = strncmp(x->name, y->name, NAME_COMPARED);
    return order ? order : x->name < y->name ? -1 : x->name > y->name;
}

/* Functions that choose, as the program starts, which of several versions their name stands for: address -> symbol. */
static bool collect_choosers(const struct symbol_table *t, struct map *choosers)
{
    for (size_t i = 0; i < t->symbols.count; i++) {
        const struct table_symbol *s = &t->symbols.data[i];
        uint64_t *known = s->type == STT_GNU_IFUNC ? map_get(choosers, s->start) : NULL;
        if (s->type == STT_GNU_IFUNC && (!known || preference(s, &t->symbols.data[*known]) < 0) &&
            !map_set(choosers, s->start, i))
            return false;
    }
    return true;
}

/* What names the functions in GOT slots. */
struct slot_names {
    const struct machine *machine;
    const struct symbol_table *table;
    struct map choosers;
    const struct elf_file *file;
    struct bytes symbols; /* those that relocations refer to */
    size_t strings;       /* the section of their names */
};

/*
 * The name of what the dynamic linker stores in a slot, or NULL. Where a library calls a function of its own of which one
 * of several versions is chosen, the relocation names no symbol, only the address of the function that chooses.
 */
static const char *slot_name(const struct slot_names *n, const Elf64_Rela *rela)
{
    uint64_t type = ELF64_R_TYPE(rela->r_info), number = ELF64_R_SYM(rela->r_info);
    Elf64_Sym sym;

    if (type == n->machine->relocation_chosen) {
        uint64_t *chooser = map_get(&n->choosers, (uint64_t)rela->r_addend);
        return chooser ? n->table->symbols.data[*chooser].name : NULL;
    }
    if ((type != n->machine->relocation_jump_slot && type != n->machine->relocation_data) ||
        number >= bytes_left(&n->symbols) / sizeof sym)
        return NULL;
    memcpy(&sym, n->symbols.pos + number * sizeof sym, sizeof sym);
    const char *name = elf_file_string(n->file, n->strings, sym.st_name);
    return name && *name ? name : NULL;
}

/* Maps GOT slots to the names of what the dynamic linker stores there: slot address -> name. At most `left` bytes. */
static bool collect_slots(struct slot_names *n, uint64_t left, struct map *slots)
{
    const struct elf_file *f = n->file;
    struct elf_section s = {0};

    while (elf_file_next_section(f, &s)) {
        struct elf_section linked = {.index = s.header.sh_link};
        Elf64_Rela rela;
        if (s.header.sh_type != SHT_RELA || !(s.header.sh_flags & SHF_ALLOC) || !elf_take_budget(&left, s.header.sh_size))
            continue;
        if (linked.index >= f->section_count || f->sections[linked.index].sh_type != SHT_DYNSYM)
            continue;
        linked.header = f->sections[linked.index];
        struct bytes relocations = elf_section_bytes(f, &s);
        n->symbols = elf_section_bytes(f, &linked);
        n->strings = linked.header.sh_link;
        for (const uint8_t *at; bytes_left(&relocations) && (at = bytes_take(&relocations, sizeof rela));) {
            memcpy(&rela, at, sizeof rela);
            const char *name = slot_name(n, &rela);
            if (name && !map_set(slots, rela.r_offset, (uint64_t)(uintptr_t)name))
                return false;
        }
    }
    return true;
}

/* "name@plt" for each stub of a section that jumps through one of the slots. */
static bool add_stubs(struct symbol_table *t, const struct machine *machine, const Elf64_Shdr *section,
                      struct bytes data, const struct map *slots)
{
    bool small = section->sh_entsize == machine->stub_bytes_small;
    uint64_t stub_len = small ? machine->stub_bytes_small : machine->stub_bytes, slot;

    for (uint64_t at = 0; at + stub_len <= bytes_left(&data); at += stub_len) {
        uint64_t vaddr = section->sh_addr + at;
        uint64_t *name = machine->stub_slot(data.pos + at, stub_len, vaddr, &slot) ? map_get(slots, slot) : NULL;
        if (!name)
            continue;
        const char *text = (const char *)(uintptr_t)*name;
        size_t name_len = strcspn(text, "@"); /* without a version */
        size_t len = name_len + sizeof "@plt";
        if (!elf_take_budget(&t->stub_names_left, len))
            return true;
        char *stub = arena_alloc(&t->names, len);
        if (!stub)
            return false;
        memcpy(stub, text, name_len);
        memcpy(stub + name_len, "@plt", sizeof "@plt");
        struct table_symbol s = {vaddr, vaddr + stub_len, stub, STT_FUNC, STB_LOCAL};
        if (!VEC_PUSH(&t->symbols, s))
            return false;
    }
    return true;
}

bool symbol_table_add_plt(struct symbol_table *t, const struct elf_file *f)
{
    struct map slots = {0};
    struct elf_section s = {0};
    const struct machine *machine = machine_by_elf(f->header.e_machine);
    struct slot_names names = {.machine = machine, .table = t, .file = f};

    if (!machine)
        return true;
    /* Honest sections are together no longer than their file. */
    bool ok = collect_choosers(t, &names.choosers) && collect_slots(&names, f->len_bytes, &slots);
    uint64_t left = f->len_bytes;
    t->stub_names_left = STUB_NAMES_MAX;
    while (ok && slots.count && elf_file_next_section(f, &s)) {
        if (s.header.sh_type == SHT_PROGBITS && (s.header.sh_flags & SHF_EXECINSTR) && s.name &&
            !strncmp(s.name, ".plt", 4) && elf_take_budget(&left, s.header.sh_size))
            ok = add_stubs(t, machine, &s.header, elf_section_bytes(f, &s), &slots);
    }
    map_deinit(&slots);
    map_deinit(&names.choosers);
    return ok;
}

static int by_extent(const void *a, const void *b)
{
    const struct table_symbol *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return 0;
}

bool symbol_table_finish(struct symbol_table *t)
{
    struct table_symbol *s = t->symbols.data;
    size_t kept = 0;

    if (t->symbols.count)
        qsort(s, t->symbols.count, sizeof *s, by_extent);
    for (size_t i = 0; i < t->symbols.count; i++) {
        if (!kept || by_extent(&s[kept - 1], &s[i]))
            s[kept++] = s[i];
        else if (preference(&s[i], &s[kept - 1]) < 0)
            s[kept - 1] = s[i];
    }
    t->symbols.count = kept;

    uint64_t next = UINT64_MAX, following = UINT64_MAX; /* starts of this symbol's group and of the next one */
    for (size_t i = kept; i-- > 0;) {
        if (s[i].start != next) {
            following = next;
            next = s[i].start;
        }
        const struct range *section = ranges_find(&t->code, s[i].start);
        if (s[i].end > s[i].start) {
            if (!ranges_add(&t->sized, s[i].start, s[i].end, (uint32_t)i))
                return false;
        } else if (section && !ranges_add(&t->unsized, s[i].start,
                                          following < section->high ? following : section->high, (uint32_t)i)) {
            return false;
        }
    }
    return ranges_finish(&t->sized) && ranges_finish(&t->unsized);
}

const struct table_symbol *symbol_table_find(const struct symbol_table *t, uint64_t vaddr)
{
    const struct range *r = ranges_find(&t->sized, vaddr);

    if (!r)
        r = ranges_find(&t->unsized, vaddr);
    return r ? &t->symbols.data[r->value] : NULL;
}

void symbol_table_deinit(struct symbol_table *t)
{
    ranges_deinit(&t->code);
    ranges_deinit(&t->sized);
    ranges_deinit(&t->unsized);
    VEC_DEINIT(&t->symbols);
    arena_deinit(&t->names);
}
