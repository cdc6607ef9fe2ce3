/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/composed_cache.h"

#include <string.h>

enum { KEPT_MAX_BYTES = 16 << 20 };

void composed_cache_deinit(struct composed_cache *c)
{
    intern_deinit(&c->keys);
    VEC_DEINIT(&c->composed);
    VEC_DEINIT(&c->modules);
}

const struct composed *composed_cache_find(const struct composed_cache *c, const struct buf *key)
{
    uint32_t id = intern_find(&c->keys, key->data, (uint32_t)key->len_bytes);

    return id == INTERN_NONE ? NULL : &c->composed.data[id];
}

static size_t kept_bytes(const struct composed_cache *c)
{
    return intern_bytes(&c->keys) + c->composed.count * sizeof *c->composed.data + c->modules.count * sizeof *c->modules.data;
}

void composed_cache_put(struct composed_cache *c, const struct buf *key, const struct composed *composed, const uint32_t *modules)
{
    struct composed kept = *composed;

    if (kept_bytes(c) + key->len_bytes > KEPT_MAX_BYTES)
        composed_cache_deinit(c);
    if (key->len_bytes > KEPT_MAX_BYTES / 2 || !VEC_RESERVE(&c->composed, c->composed.count + 1) ||
        !VEC_RESERVE(&c->modules, c->modules.count + composed->modules_count))
        return;
    kept.modules_first = (uint32_t)c->modules.count;
    if (intern_id(&c->keys, key->data, (uint32_t)key->len_bytes, NULL) == INTERN_NONE)
        return;
    c->composed.data[c->composed.count++] = kept;
    for (uint32_t i = 0; i < composed->modules_count; i++)
        c->modules.data[c->modules.count++] = modules[i];
}
