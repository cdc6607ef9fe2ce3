/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/code_file.h"

#include <string.h>

static const char cell_start[] = "cell ", cell_end[] = " of ipykernel";
enum { HASH_DIGITS = 8 };

bool code_file_is_path(const char *name)
{
    size_t len = strlen(name);

    return len && !(name[0] == '<' && name[len - 1] == '>') && !code_file_is_cell(name, NULL);
}

/* The decimal number that `text` begins with, where it fits; returns what follows it, NULL: there is none. */
static const char *read_number(const char *text, uint32_t *out)
{
    uint64_t value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > UINT32_MAX)
            return NULL;
    }
    *out = (uint32_t)value;
    return at > text ? at : NULL;
}

bool code_file_is_of_ipykernel(const char *name, uint32_t *hash)
{
    static const char folder[] = "/ipykernel_";
    const char *base = strrchr(name, '/'), *at = base;
    uint32_t pid;

    if (!base)
        return false;
    while (at > name && at[-1] != '/')
        at--;
    if (at == name || strncmp(at - 1, folder, sizeof folder - 1))
        return false;
    const char *end = read_number(at - 1 + sizeof folder - 1, &pid);
    if (end != base)
        return false;
    end = read_number(base + 1, hash);
    return end && !strcmp(end, ".py");
}

void code_file_put_cell(uint32_t hash, struct buf *out)
{
    buf_printf(out, "%s%0*x%s", cell_start, HASH_DIGITS, hash, cell_end);
}

bool code_file_is_cell(const char *name, uint32_t *hash)
{
    uint32_t value = 0;

    if (strncmp(name, cell_start, sizeof cell_start - 1))
        return false;
    name += sizeof cell_start - 1;
    for (int i = 0; i < HASH_DIGITS; i++, name++) {
        if (*name >= '0' && *name <= '9')
            value = value << 4 | (uint32_t)(*name - '0');
        else if (*name >= 'a' && *name <= 'f')
            value = value << 4 | (uint32_t)(*name - 'a' + 10);
        else
            return false;
    }
    if (hash)
        *hash = value;
    return !strcmp(name, cell_end);
}

uint32_t code_file_cell_hash(const char *text, size_t len_bytes)
{
    static const uint32_t m = 0x5bd1e995, seed = 0xc70f6907;
    const uint8_t *bytes = (const uint8_t *)text;
    uint32_t h = seed ^ (uint32_t)len_bytes, k;

    for (; len_bytes >= 4; bytes += 4, len_bytes -= 4) {
        k = (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24) * m;
        k = (k ^ k >> 24) * m;
        h = h * m ^ k;
    }
    k = 0;
    for (size_t i = len_bytes; i--;)
        k = k << 8 | bytes[i];
    if (len_bytes)
        h = (h ^ k) * m;
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}
