/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/inventory.h"

#include <string.h>

void inventory_deinit(struct inventory *v)
{
    intern_deinit(&v->texts);
    VEC_DEINIT(&v->weights);
}

uint32_t inventory_value(struct inventory *v, const char *text)
{
    uint32_t len = (uint32_t)strnlen(text, 255);
    uint32_t value = intern_find(&v->texts, text, len);

    if (value != INTERN_NONE)
        return value;
    if (v->texts.count >= INVENTORY_VALUES_MAX || !VEC_RESERVE(&v->weights, v->weights.count + 1)) {
        v->full = true;
        return INVENTORY_NONE;
    }
    value = intern_id(&v->texts, text, len, NULL);
    if (value == INTERN_NONE)
        return INVENTORY_NONE;
    v->weights.data[v->weights.count++] = (struct inventory_weight){0};
    return value;
}

static uint64_t weight_of(const struct inventory *v, uint32_t value, bool chosen)
{
    return chosen ? v->weights.data[value].chosen : v->weights.data[value].all;
}

/* The heaviest value that is lighter than `last`, or as heavy and behind it in the order of first sight. */
static uint32_t next_heaviest(const struct inventory *v, bool chosen, uint32_t last)
{
    uint32_t best = INVENTORY_NONE;

    for (uint32_t i = 0; i < v->weights.count; i++) {
        uint64_t weight = weight_of(v, i, chosen);
        if (!weight)
            continue;
        if (last != INVENTORY_NONE) {
            uint64_t before = weight_of(v, last, chosen);
            if (weight > before || (weight == before && i <= last))
                continue;
        }
        if (best == INVENTORY_NONE || weight > weight_of(v, best, chosen))
            best = i;
    }
    return best;
}

uint32_t inventory_put(const struct inventory *v, bool chosen, struct buf *out)
{
    uint32_t count = 0, last = INVENTORY_NONE;

    for (uint32_t i = 0; i < v->weights.count; i++)
        count += weight_of(v, i, chosen) != 0;
    for (uint32_t i = 0; i < count && i < INVENTORY_LISTED_MAX; i++) {
        last = next_heaviest(v, chosen, last);
        const struct intern_entry *text = intern_get(&v->texts, last);
        buf_put_str(out, i ? ", " : "");
        buf_put(out, text->data, text->len_bytes);
    }
    if (v->full)
        buf_put_str(out, " and others");
    else if (count > INVENTORY_LISTED_MAX)
        buf_printf(out, " and %u more", count - INVENTORY_LISTED_MAX);
    return count;
}
