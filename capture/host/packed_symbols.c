/* SPDX-License-Identifier: Apache-2.0 */
/* In a block: the distance from the address before, the module's number, the name with its NUL; then the next. */
#include "capture/host/packed_symbols.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "formats/base/buf.h"
#include "formats/base/bytes.h"
#include "formats/base/sort.h"
#include "formats/base/vec.h"

#define BLOCK_BYTES (8 << 10) /* a block ends behind the name that reaches it */
#define NAME_MAX_BYTES 1024   /* the kernel's longest has 512; longer ones are cut */
#define PACK_LEVEL 1
#define NO_BLOCK SIZE_MAX

struct block {
    uint64_t first; /* address of its first name */
    uint32_t at, packed_bytes, raw_bytes; /* in `packed` */
};

/* A name that came after one with a higher address. */
struct late_name {
    uint64_t address;
    uint32_t text, len, module; /* in late_text */
};

struct packed_symbols {
    VEC(struct block) blocks;
    size_t late_from; /* the first block of late names */
    struct buf packed;
    struct buf raw;   /* the block that is being filled */
    uint64_t raw_first, last;
    bool any;
    VEC(char *) modules; /* the first is the kernel itself, "" */
    VEC(struct late_name) late;
    struct buf late_text;
    ZSTD_CCtx *zstd;
    struct buf open; /* the block that a search has unpacked */
    size_t open_block;
};

struct packed_symbols *packed_symbols_create(void)
{
    struct packed_symbols *n = calloc(1, sizeof *n);
    char *kernel = strdup("");

    if (!n || !kernel || !VEC_PUSH(&n->modules, kernel)) {
        free(kernel);
        free(n);
        return NULL;
    }
    n->open_block = NO_BLOCK;
    n->zstd = ZSTD_createCCtx();
    if (n->zstd)
        return n;
    packed_symbols_destroy(n);
    return NULL;
}

/* Frees what only adding needs. */
static void end_adding(struct packed_symbols *n)
{
    ZSTD_freeCCtx(n->zstd);
    n->zstd = NULL;
    VEC_DEINIT(&n->late);
    buf_deinit(&n->late_text);
    buf_deinit(&n->raw);
}

void packed_symbols_destroy(struct packed_symbols *n)
{
    if (!n)
        return;
    end_adding(n);
    for (size_t i = 0; i < n->modules.count; i++)
        free(n->modules.data[i]);
    VEC_DEINIT(&n->modules);
    VEC_DEINIT(&n->blocks);
    buf_deinit(&n->packed);
    buf_deinit(&n->open);
    free(n);
}

static bool end_block(struct packed_symbols *n)
{
    size_t raw_bytes = n->raw.len_bytes, most = ZSTD_compressBound(raw_bytes);
    uint8_t *out = buf_reserve(&n->packed, most);

    if (!raw_bytes)
        return true;
    if (!out || n->raw.bad)
        return false;
    size_t packed_bytes = ZSTD_compressCCtx(n->zstd, out, most, n->raw.data, raw_bytes, PACK_LEVEL);
    if (ZSTD_isError(packed_bytes))
        return false;
    struct block block = {n->raw_first, (uint32_t)n->packed.len_bytes, (uint32_t)packed_bytes, (uint32_t)raw_bytes};
    n->packed.len_bytes += packed_bytes;
    buf_clear(&n->raw);
    return n->packed.len_bytes <= UINT32_MAX && VEC_PUSH(&n->blocks, block);
}

/* Adds a name whose address is higher than that of the one before. */
static bool put(struct packed_symbols *n, uint64_t address, const char *name, size_t len, uint32_t module)
{
    if (!n->raw.len_bytes)
        n->raw_first = n->last = address;
    buf_put_uleb(&n->raw, address - n->last);
    buf_put_uleb(&n->raw, module);
    buf_put(&n->raw, name, len);
    buf_put_u8(&n->raw, 0);
    n->last = address;
    return n->raw.len_bytes < BLOCK_BYTES || end_block(n);
}

/* The number of a module, which most often is the one that was met last. UINT32_MAX: out of memory. */
static uint32_t module_number(struct packed_symbols *n, const char *module, size_t len)
{
    for (size_t i = n->modules.count; len && i-- > 1;) {
        if (strlen(n->modules.data[i]) == len && !memcmp(n->modules.data[i], module, len))
            return (uint32_t)i;
    }
    if (!len)
        return 0;
    char *copy = strndup(module, len);
    if (!copy || !VEC_PUSH(&n->modules, copy)) {
        free(copy);
        return UINT32_MAX;
    }
    return (uint32_t)(n->modules.count - 1);
}

bool packed_symbols_add(struct packed_symbols *n, uint64_t address, const char *name, size_t len, const char *module,
                      size_t module_len)
{
    uint32_t number = module_number(n, module, module_len);

    if (len > NAME_MAX_BYTES)
        len = NAME_MAX_BYTES;
    if (number == UINT32_MAX)
        return false;
    if (!n->any || address > n->last) {
        n->any = true;
        return put(n, address, name, len, number);
    }
    if (address == n->last)
        return true;
    struct late_name late = {address, (uint32_t)n->late_text.len_bytes, (uint32_t)len, number};
    buf_put(&n->late_text, name, len);
    return !n->late_text.bad && n->late_text.len_bytes <= UINT32_MAX && VEC_PUSH(&n->late, late);
}

static int by_address(const void *a, const void *b)
{
    const struct late_name *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

bool packed_symbols_end(struct packed_symbols *n)
{
    bool good = end_block(n) && sort_stable(n->late.data, n->late.count, sizeof *n->late.data, by_address);

    n->late_from = n->blocks.count;
    for (size_t i = 0; good && i < n->late.count; i++) {
        const struct late_name *late = &n->late.data[i];
        if (!i || late->address != late[-1].address)
            good = put(n, late->address, (const char *)n->late_text.data + late->text, late->len, late->module);
    }
    good = good && end_block(n);
    end_adding(n);
    /* What doubling reserved too much. */
    uint8_t *fits = n->packed.len_bytes ? realloc(n->packed.data, n->packed.len_bytes) : NULL;
    if (fits) {
        n->packed.data = fits;
        n->packed.cap_bytes = n->packed.len_bytes;
    }
    return good;
}

/* ---- searches ---- */

/* The last of blocks from `low` up to `high` that begins at or below the address; NO_BLOCK: none does. */
static size_t find_block(const struct packed_symbols *n, size_t low, size_t high, uint64_t address)
{
    size_t from = low;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (n->blocks.data[middle].first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low == from ? NO_BLOCK : low - 1;
}

static bool unpack(struct packed_symbols *n, size_t number)
{
    const struct block *block = &n->blocks.data[number];

    if (n->open_block == number)
        return true;
    n->open_block = NO_BLOCK;
    buf_clear(&n->open);
    uint8_t *out = buf_reserve(&n->open, block->raw_bytes);
    if (!out ||
        ZSTD_decompress(out, block->raw_bytes, n->packed.data + block->at, block->packed_bytes) != block->raw_bytes)
        return false;
    n->open.len_bytes = block->raw_bytes;
    n->open_block = number;
    return true;
}

/* Finds the last name in a block that begins at or below the address. */
static bool find_in_block(struct packed_symbols *n, size_t number, uint64_t address, struct packed_symbol *out)
{
    if (number == NO_BLOCK || !unpack(n, number))
        return false;
    struct bytes b = bytes_of(n->open.data, n->open.len_bytes);
    uint64_t at = n->blocks.data[number].first;
    bool found = false;
    while (bytes_left(&b)) {
        at += bytes_uleb(&b);
        uint64_t module = bytes_uleb(&b);
        const char *name = bytes_cstr(&b);
        if (b.bad || at > address || module >= n->modules.count)
            break;
        *out = (struct packed_symbol){at, name, n->modules.data[module]};
        found = true;
    }
    return found;
}

bool packed_symbols_find(struct packed_symbols *n, uint64_t address, struct packed_symbol *out)
{
    size_t in_order = find_block(n, 0, n->late_from, address);
    size_t late = find_block(n, n->late_from, n->blocks.count, address);
    struct packed_symbol first;

    if (!find_in_block(n, in_order, address, &first))
        return find_in_block(n, late, address, out);
    if (find_in_block(n, late, address, out) && out->address > first.address)
        return true;
    return find_in_block(n, in_order, address, out); /* its block may have been closed */
}
