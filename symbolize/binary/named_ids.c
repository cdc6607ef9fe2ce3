/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/named_ids.h"

#include <string.h>

#include "formats/base/hex.h"
#include "formats/elf/identity.h"

void named_ids_deinit(struct named_ids *n)
{
    intern_deinit(&n->texts);
}

bool named_ids_add(struct named_ids *n, const uint8_t *id, uint32_t len_bytes)
{
    if (!len_bytes || len_bytes > ELF_BUILD_ID_MAX)
        return true; /* nothing is found by it */
    struct hex text = hex_of(id, len_bytes);
    return intern_id(&n->texts, text.text, 2 * len_bytes, NULL) != INTERN_NONE;
}

/* perf fills a short one up with zeros. */
static bool has(const struct named_ids *n, const char *hex, uint32_t len)
{
    for (;; len -= 2) {
        if (intern_find(&n->texts, hex, len) != INTERN_NONE)
            return true;
        if (len <= 2 || memcmp(hex + len - 2, "00", 2) != 0)
            return false;
    }
}

static bool is_hex(char c)
{
    return c && strchr("0123456789abcdef", c);
}

/* The same of .build-id/ab/cdef, where the first two digits are a folder of their own; the rest begins at `rest`. */
static bool has_divided(const struct named_ids *n, const char *member, const char *rest, size_t len)
{
    char text[2 * ELF_BUILD_ID_MAX];

    if (rest - member < 3 || len + 2 > sizeof text || !is_hex(rest[-2]) || !is_hex(rest[-3]) || (rest - member > 3 && rest[-4] != '/'))
        return false;
    memcpy(text, rest - 3, 2);
    memcpy(text + 2, rest, len);
    return has(n, text, (uint32_t)(len + 2));
}

bool named_ids_want(const struct named_ids *n, const char *member)
{
    static const char *const names[] = {"elf", "debug", "vdso"};
    const char *slash = strrchr(member, '/'), *start = slash;
    bool is_one = false;

    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++)
        is_one |= !strcmp(slash + 1, names[i]);
    if (!is_one)
        return true;
    while (start > member && is_hex(start[-1]))
        start--;
    size_t len = (size_t)(slash - start);
    bool is_id = len >= 16 && len <= 2 * ELF_BUILD_ID_MAX && len % 2 == 0 && (start == member || start[-1] == '/');
    return !is_id || has(n, start, (uint32_t)len) || has_divided(n, member, start, len);
}
