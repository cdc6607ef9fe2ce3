/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the symbols in order of their addresses, each with the greatest address that was met in it. An address contradicts
 * them if it would get the name of another symbol, or would give another name to one that was met before.
 */
#include "formats/emit/perf_data/kernel_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/sha1.h"
#include "formats/base/vec.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/kernel_elf.h"

/* x86-64's hole below the kernel's half of the address space, from where on nothing is mapped, and its end. */
#define MADE_UP_START (KERNEL_NAMES_START + 0x1000)
#define REAL_START UINT64_C(0xffff880000000000)

enum {
    MADE_UP_BYTES = 16,   /* between two addresses of ours */
    /* hotspot shows one name for all addresses at which symbols of the kernel start: ours start this far below the first. */
    FIRST_BYTES = 1,
    NAME_MAX_BYTES = 400, /* perf reads lines of 512 characters */
};

struct symbol {
    uint64_t start, greatest; /* address met */
    uint32_t name;            /* spelled; NAMELESS: of addresses without a symbol */
};
#define NAMELESS UINT32_MAX

struct kernel_names {
    const struct emit_model *model;
    struct limits *limits;
    struct intern names;        /* spelled */
    VEC(struct symbol) symbols; /* by ascending start */
    VEC(uint64_t) made_up;      /* by name: its address in our range; 0: none yet */
    uint64_t made_up_nameless;  /* likewise */
    uint64_t made_up_end;
    VEC(uint64_t) addresses;    /* by frame; 0: not known yet */
    struct buf scratch;
    struct buf text;            /* the finished one */
    uint8_t build_id[SHA1_BYTES];
    uint64_t text_max_bytes;    /* taken from the limits for it */
};

struct error *kernel_names_create(const struct emit_model *model, struct limits *limits, struct kernel_names **out)
{
    struct kernel_names *k = calloc(1, sizeof *k);

    if (!k)
        return error_no_memory();
    *k = (struct kernel_names){.model = model, .limits = limits, .names.arena.limits = limits,
                               .made_up_end = MADE_UP_START};
    *out = k;
    return NULL;
}

static uint64_t counted_bytes(const struct kernel_names *k)
{
    return k->symbols.count * sizeof *k->symbols.data + k->made_up.count * sizeof *k->made_up.data +
           k->addresses.count * sizeof *k->addresses.data;
}

void kernel_names_destroy(struct kernel_names *k)
{
    if (!k)
        return;
    limits_give(k->limits, counted_bytes(k) + k->text_max_bytes);
    intern_deinit(&k->names);
    VEC_DEINIT(&k->symbols);
    VEC_DEINIT(&k->made_up);
    VEC_DEINIT(&k->addresses);
    buf_deinit(&k->scratch);
    buf_deinit(&k->text);
    free(k);
}

bool kernel_names_are_used(const struct kernel_names *k)
{
    return k->addresses.count;
}

static struct error *spell(struct kernel_names *k, const struct emit_frame *f, uint32_t *name)
{
    size_t len;

    *name = NAMELESS;
    if (!*f->function)
        return NULL;
    buf_clear(&k->scratch);
    name_word(f->function, &k->scratch);
    len = k->scratch.len_bytes < NAME_MAX_BYTES ? k->scratch.len_bytes : NAME_MAX_BYTES;
    if (!k->scratch.bad)
        *name = intern_id(&k->names, k->scratch.data, (uint32_t)len, NULL);
    return *name == INTERN_NONE ? error_no_memory() : NULL;
}

/* How many symbols begin at or below the address. */
static size_t count_below(const struct kernel_names *k, uint64_t address)
{
    size_t low = 0, high = k->symbols.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (k->symbols.data[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct error *insert(struct kernel_names *k, size_t at, struct symbol symbol)
{
    size_t behind = k->symbols.count - at;

    if (!limits_take(k->limits, sizeof symbol) || !limits_work(k->limits, 100 + behind) ||
        !VEC_PUSH(&k->symbols, symbol))
        return error_no_memory();
    memmove(k->symbols.data + at + 1, k->symbols.data + at, behind * sizeof symbol);
    k->symbols.data[at] = symbol;
    return NULL;
}

/* Takes in an address of a symbol that starts at `start`; *fits false: it contradicts the others. */
static struct error *take_in(struct kernel_names *k, uint64_t start, uint64_t address, uint32_t name, bool *fits)
{
    size_t below = count_below(k, address);
    struct symbol *before = below ? &k->symbols.data[below - 1] : NULL;

    *fits = start >= REAL_START && start <= address && address < KERNEL_NAMES_END;
    if (!*fits)
        return NULL;
    if (before && before->name == name && (before->start == start || name == NAMELESS)) {
        if (address > before->greatest)
            before->greatest = address;
        return NULL;
    }
    *fits = !before || before->greatest < start;
    return *fits ? insert(k, below, (struct symbol){start, address, name}) : NULL;
}

/* Sets *address to that of the name in our own range. */
static struct error *make_up(struct kernel_names *k, uint32_t name, uint64_t *address)
{
    uint64_t *known = &k->made_up_nameless;

    if (name != NAMELESS) {
        if (!VEC_EXTEND_COUNTED(k->limits, &k->made_up, (size_t)name + 1))
            return error_no_memory();
        known = &k->made_up.data[name];
    }
    if (!*known) {
        *known = k->made_up_end + FIRST_BYTES;
        TRY(insert(k, count_below(k, *known), (struct symbol){k->made_up_end, *known, name}));
        k->made_up_end += MADE_UP_BYTES;
    }
    *address = *known;
    return NULL;
}

struct error *kernel_names_address(struct kernel_names *k, uint32_t frame, uint64_t *address)
{
    const struct emit_frame *f = &k->model->frames[frame];
    uint32_t name;
    bool fits;

    if (!VEC_EXTEND_COUNTED(k->limits, &k->addresses, (size_t)frame + 1))
        return error_no_memory();
    *address = k->addresses.data[frame];
    if (*address)
        return NULL;
    TRY(spell(k, f, &name));
    *address = f->address;
    uint64_t start = f->address - (name == NAMELESS ? FIRST_BYTES : f->symbol_offset);
    TRY(take_in(k, start, f->address, name, &fits));
    if (!fits)
        TRY(make_up(k, name, address));
    k->addresses.data[frame] = *address;
    return NULL;
}

static const struct intern_entry *name_of(const struct kernel_names *k, const struct symbol *s)
{
    static const char unknown[] = "[unknown]";
    static const struct intern_entry nameless = {.data = (const uint8_t *)unknown, .len_bytes = sizeof unknown - 1};

    return s->name == NAMELESS ? &nameless : intern_get(&k->names, s->name);
}

/* perf takes the first symbol for where the kernel begins; and a symbol without another one behind it for a page. */
static void put_text(const struct kernel_names *k, struct buf *text)
{
    uint64_t end = KERNEL_NAMES_START;

    buf_printf(text, "%" PRIx64 " T _text\n", KERNEL_NAMES_START);
    for (size_t i = 0; i < k->symbols.count; i++) {
        const struct symbol *s = &k->symbols.data[i];
        buf_printf(text, "%" PRIx64 " T ", s->start);
        const struct intern_entry *name = name_of(k, s);
        buf_put(text, name->data, name->len_bytes);
        buf_put_u8(text, '\n');
        end = s->greatest;
    }
    buf_printf(text, "%" PRIx64 " T _end\n", end + 1);
}

struct error *kernel_names_finish(struct kernel_names *k)
{
    /* Of the text, and of the ELF file's tables. */
    uint64_t max = k->symbols.count * (uint64_t)(2 * NAME_MAX_BYTES + 50);
    struct sha1 sha;

    if (!limits_take(k->limits, max) || !limits_work(k->limits, max))
        return error_no_memory();
    k->text_max_bytes = max;
    put_text(k, &k->text);
    if (k->text.bad)
        return error_no_memory();
    sha1_init(&sha);
    sha1_add(&sha, k->text.data, k->text.len_bytes);
    sha1_end(&sha, k->build_id);
    return NULL;
}

const uint8_t *kernel_names_build_id(const struct kernel_names *k)
{
    return k->build_id;
}

struct error *kernel_names_write(const struct kernel_names *k, FILE *out)
{
    return fwrite(k->text.data, k->text.len_bytes, 1, out) == 1 ? NULL
                                                                 : error_os(errno, "cannot write the kernel's symbols");
}

struct error *kernel_names_write_elf(const struct kernel_names *k, FILE *out)
{
    /* The symbol that the record of the kernel's mapping names: it says that the kernel was not moved since. */
    static const char first[] = "_text";
    struct kernel_elf elf = {0};

    kernel_elf_symbol(&elf, first, sizeof first - 1, KERNEL_NAMES_START, KERNEL_NAMES_START);
    for (size_t i = 0; i < k->symbols.count; i++) {
        const struct symbol *s = &k->symbols.data[i];
        const struct intern_entry *name = name_of(k, s);
        uint64_t end = i + 1 < k->symbols.count ? s[1].start : s->greatest + 1;
        kernel_elf_symbol(&elf, name->data, name->len_bytes, s->start, end);
    }
    struct error *err = kernel_elf_write(&elf, KERNEL_NAMES_START, KERNEL_NAMES_END, k->build_id, out);
    kernel_elf_deinit(&elf);
    return err;
}
