/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up addresses in DWARF.
 *
 * .debug_aranges is optional (clang leaves it out) and where it exists it may be
 * incomplete, so the ranges of compilation units are read from the units themselves,
 * once. The functions of a unit are collected at the first address in it: every
 * subprogram and inlined subroutine that has code becomes a node with its parent,
 * and their ranges go into an index that answers with the innermost. A lookup is two
 * binary searches and one more in the line table; the outer frames are the parents.
 */
#include "symbolize/binary/dwarf.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/arena.h"
#include "formats/base/map.h"

enum {
    DEPTH_MAX = 512,        /* of nested DIEs; compilers stay below 100 */
    NODE_MAX = 1 << 24,     /* per unit */
    RANGES_FREE = 1 << 22,  /* plus one for each RANGE_BYTES of the file: many DIEs may share one long list */
    RANGE_BYTES = 16,
    NO_NODE = UINT32_MAX,
};

struct die_node {
    Dwarf_Die die;
    uint32_t parent;                   /* the node it is inlined into, or NO_NODE */
    bool named;                        /* `name` was looked for */
    bool mangled;                      /* it is a linkage name */
    const char *name;
    uint32_t first_range, range_count; /* in unit->ranges */
};

struct unit {
    Dwarf_Die die;
    bool walked;
    bool plain_types; /* no type holds a function */
    VEC(struct die_node) nodes;
    VEC(struct range) ranges; /* of nodes, in their order */
    struct ranges index;      /* values: nodes */
    Dwarf_Files *files;
    size_t file_count;
};

struct dwarf {
    const struct ranges *code;
    struct map files; /* name as libdw has it -> absolute */
    struct arena names;
    VEC(struct unit) units;
    struct ranges index; /* values: units */
    uint64_t ranges_left; /* that may be read, not counting each DIE's first */
};

static void unit_deinit(struct unit *u)
{
    VEC_DEINIT(&u->nodes);
    VEC_DEINIT(&u->ranges);
    ranges_deinit(&u->index);
}

void dwarf_destroy(struct dwarf *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->units.count; i++)
        unit_deinit(&d->units.data[i]);
    VEC_DEINIT(&d->units);
    ranges_deinit(&d->index);
    map_deinit(&d->files);
    arena_deinit(&d->names);
    free(d);
}

/* Calls libdw for each range of a DIE with code; those of dropped functions are passed over. */
static bool add_ranges(struct dwarf *d, Dwarf_Die *die, struct ranges *out, uint32_t value)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t offset = 0;

    while ((offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0) {
        if (ranges_find(d->code, low) && !ranges_add(out, low, high, value))
            return false;
        if (!d->ranges_left)
            break;
        d->ranges_left--;
    }
    return true;
}

/* Languages whose types have no functions: a third of a unit need not be looked at. */
static bool types_hold_no_functions(int language)
{
    switch (language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_Mips_Assembler:
        return true;
    default:
        return false;
    }
}

static bool may_hold_functions(const struct unit *u, int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
    case DW_TAG_namespace:
    case DW_TAG_module:
        return true;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
        return !u->plain_types;
    default:
        return false;
    }
}

/* Ranges of the nodes, kept apart from the index because pieces of it no longer know where a range began. */
static bool add_node(struct dwarf *d, struct unit *u, Dwarf_Die *die, uint32_t parent, uint32_t *out)
{
    struct ranges own = {0};
    struct die_node node = {.die = *die, .parent = parent, .first_range = (uint32_t)u->ranges.count};
    uint32_t number = (uint32_t)u->nodes.count;
    bool ok = number < NODE_MAX && add_ranges(d, die, &own, number);

    for (size_t i = 0; ok && i < own.rows.count; i++)
        ok = VEC_PUSH(&u->ranges, own.rows.data[i]);
    node.range_count = (uint32_t)own.rows.count;
    ranges_deinit(&own);
    *out = parent;
    if (!ok || !node.range_count)
        return ok;
    *out = number;
    return VEC_PUSH(&u->nodes, node);
}

/* Collects the nodes below a DIE; false when memory ran out. */
static bool walk(struct dwarf *d, struct unit *u, Dwarf_Die *above, uint32_t parent, unsigned depth)
{
    Dwarf_Die die;

    if (depth > DEPTH_MAX || dwarf_child(above, &die) != 0)
        return true;
    do {
        int tag = dwarf_tag(&die);
        if (!may_hold_functions(u, tag))
            continue;
        uint32_t node = parent;
        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
            /* A function inside another is not inlined into it. */
            uint32_t into = tag == DW_TAG_subprogram ? NO_NODE : parent;
            if (!add_node(d, u, &die, into, &node))
                return false;
        }
        if (!walk(d, u, &die, node, depth + 1))
            return false;
    } while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

static void walk_unit(struct dwarf *d, struct unit *u)
{
    u->walked = true;
    u->plain_types = types_hold_no_functions(dwarf_srclang(&u->die));
    /* Nodes that were collected before memory ran out stay usable. */
    walk(d, u, &u->die, NO_NODE, 0);
    for (size_t i = 0; i < u->nodes.count; i++)
        for (uint32_t r = 0; r < u->nodes.data[i].range_count; r++) {
            struct range *range = &u->ranges.data[u->nodes.data[i].first_range + r];
            if (!ranges_add(&u->index, range->low, range->high, (uint32_t)i))
                break;
        }
    ranges_finish(&u->index);
    dwarf_getsrcfiles(&u->die, &u->files, &u->file_count);
}

/* For a unit that does not say which addresses it covers: takes the ranges of its functions. */
static bool add_function_ranges(struct dwarf *d, struct unit *u, uint32_t number)
{
    walk_unit(d, u);
    for (size_t i = 0; i < u->ranges.count; i++)
        if (!ranges_add(&d->index, u->ranges.data[i].low, u->ranges.data[i].high, number))
            return false;
    return true;
}

struct dwarf *dwarf_create(Dwarf *dw, const struct ranges *code)
{
    struct dwarf *d = calloc(1, sizeof *d);
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    size_t file_bytes = 0;
    uint8_t type;

    if (!d)
        return NULL;
    d->code = code;
    elf_rawfile(dwarf_getelf(dw), &file_bytes);
    d->ranges_left = RANGES_FREE + file_bytes / RANGE_BYTES;
    /* The DIE of a split unit is not asked for: to find it libdw would open a path that the file names. */
    while (dwarf_get_units(dw, cu, &cu, NULL, &type, &die, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        int tag = dwarf_tag(&die);
        if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
            continue; /* a dwz partial unit has no code of its own */
        struct unit u = {.die = die};
        uint32_t number = (uint32_t)d->units.count;
        size_t before = d->index.rows.count;
        if (!VEC_PUSH(&d->units, u) || !add_ranges(d, &die, &d->index, number) ||
            (d->index.rows.count == before && !add_function_ranges(d, &d->units.data[number], number)))
            goto no_memory;
    }
    if (ranges_finish(&d->index))
        return d;
no_memory:
    dwarf_destroy(d);
    return NULL;
}

bool dwarf_has_functions(const struct dwarf *d)
{
    return d->index.rows.count > 0;
}

static const char *string_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;

    /* Through abstract origin and specification. */
    return dwarf_attr_integrate(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static const char *name_of(struct die_node *n)
{
    if (!n->named) {
        n->named = true;
        n->name = string_attribute(&n->die, DW_AT_linkage_name);
        if (!n->name)
            n->name = string_attribute(&n->die, DW_AT_MIPS_linkage_name);
        n->mangled = n->name;
        if (!n->name)
            n->name = string_attribute(&n->die, DW_AT_name);
    }
    return n->name;
}

static bool language_mangles(struct unit *u)
{
    switch (dwarf_srclang(&u->die)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_ObjC_plus_plus:
    case DW_LANG_Rust:
        return true;
    default:
        return false;
    }
}

static uint32_t number_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;

    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

/* Line tables may name files relative to the directory that the compiler ran in. */
static const char *absolute_file(struct dwarf *d, struct unit *u, const char *file)
{
    Dwarf_Attribute attribute;

    if (!file || !strcmp(file, "???"))
        return "";
    if (*file == '/')
        return file;
    uint64_t *known = map_get(&d->files, (uint64_t)(uintptr_t)file);
    if (known)
        return (const char *)(uintptr_t)*known;
    const char *dir = dwarf_formstring(dwarf_attr(&u->die, DW_AT_comp_dir, &attribute));
    size_t size = dir ? strlen(dir) + strlen(file) + 2 : 0;
    char *joined = dir && *dir ? arena_alloc(&d->names, size) : NULL;
    if (joined)
        snprintf(joined, size, "%s/%s", dir, file);
    map_set(&d->files, (uint64_t)(uintptr_t)file, (uint64_t)(uintptr_t)(joined ? joined : file));
    return joined ? joined : file;
}

static uint64_t offset_in(const struct unit *u, const struct die_node *n, uint64_t vaddr)
{
    for (uint32_t i = 0; i < n->range_count; i++) {
        const struct range *r = &u->ranges.data[n->first_range + i];
        if (vaddr >= r->low && vaddr < r->high)
            return vaddr - r->low;
    }
    return 0;
}

static void source_of(struct dwarf *d, struct unit *u, uint64_t vaddr, struct symbol_frame *frame)
{
    Dwarf_Line *line = dwarf_getsrc_die(&u->die, vaddr);
    int number = 0, column = 0;

    if (!line)
        return;
    frame->file = absolute_file(d, u, dwarf_linesrc(line, NULL, NULL));
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        frame->line = (uint32_t)number;
    if (dwarf_linecol(line, &column) == 0 && column > 0)
        frame->column = (uint32_t)column;
}

uint32_t dwarf_lookup(struct dwarf *d, uint64_t vaddr, struct symbol_frame *frames, uint32_t max, bool *unqualified)
{
    const struct range *found = ranges_find(&d->index, vaddr);
    uint32_t count = 0;

    *unqualified = false;
    if (!found || !max)
        return 0;
    struct unit *u = &d->units.data[found->value];
    if (!u->walked)
        walk_unit(d, u);
    struct symbol_frame frame = {.file = ""};
    source_of(d, u, vaddr, &frame);
    found = ranges_find(&u->index, vaddr);
    for (uint32_t i = found ? found->value : NO_NODE; i != NO_NODE && count < max;) {
        struct die_node *n = &u->nodes.data[i];
        frame.function = name_of(n);
        frame.offset = offset_in(u, n, vaddr);
        frame.inlined = n->parent != NO_NODE;
        *unqualified = !frame.inlined && !n->mangled && language_mangles(u);
        frames[count++] = frame;
        /* The line of the caller is the place where the call was inlined. */
        frame.file =
            absolute_file(d, u, dwarf_filesrc(u->files, number_attribute(&n->die, DW_AT_call_file), NULL, NULL));
        frame.line = number_attribute(&n->die, DW_AT_call_line);
        frame.column = number_attribute(&n->die, DW_AT_call_column);
        i = n->parent;
    }
    if (!count && *frame.file)
        frames[count++] = frame;
    return count;
}
