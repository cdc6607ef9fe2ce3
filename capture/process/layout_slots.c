/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/process/layout_slots.h"

#include <string.h>

#include "formats/base/clock.h"
#include "formats/cpython/layout_find.h"

/* So long the one that was there before may be read: by a child of its last process, until that is known. */
#define GRACE_NS (5 * NS_PER_S)

/* Rows that are equal have the first one's slot. */
static void set_rows(struct layout_slots *l)
{
    struct py_layout row;

    for (uint32_t i = 0; !l->begun && i < LAYOUT_SLOTS_MAX && py_layout_row(i, &row); i++)
        l->all[i] = (struct layout_slot){.layout = row, .of_row = true};
    l->begun = true;
}

/* Also one that nobody holds any more: the sampler still has it. */
static uint32_t find(const struct layout_slots *l, const struct py_layout *layout)
{
    for (uint32_t i = 0; i < LAYOUT_SLOTS_MAX; i++) {
        if ((l->all[i].holders || l->all[i].released_ns || l->all[i].of_row) && !memcmp(&l->all[i].layout, layout, sizeof *layout))
            return i;
    }
    return LAYOUT_NONE;
}

static uint32_t find_free(const struct layout_slots *l, uint64_t time_ns)
{
    for (uint32_t i = 0; i < LAYOUT_SLOTS_MAX; i++) {
        const struct layout_slot *s = &l->all[i];
        if (!s->of_row && !s->holders && (!s->released_ns || time_ns >= s->released_ns + GRACE_NS))
            return i;
    }
    return LAYOUT_NONE;
}

uint32_t layout_slots_take(struct layout_slots *l, struct quotas *quotas, uint32_t slot, const struct py_layout *layout,
                           uint64_t time_ns, bool *fresh)
{
    set_rows(l);
    uint32_t index = find(l, layout);
    if (index != LAYOUT_NONE && l->all[index].of_row) {
        *fresh = !l->all[index].given;
        l->all[index].given = true;
        l->all[index].holders++;
        return index;
    }
    *fresh = index == LAYOUT_NONE;
    if (*fresh)
        index = find_free(l, time_ns);
    if (index == LAYOUT_NONE)
        return LAYOUT_NONE;
    struct layout_slot *s = &l->all[index];
    if (!s->holders) {
        if (!quota_try(quotas, slot, QUOTA_layouts, 1, time_ns))
            return LAYOUT_NONE;
        *s = (struct layout_slot){.layout = *layout, .payer = slot};
    }
    s->holders++;
    return index;
}

bool layout_slots_may_have_room(const struct layout_slots *l, uint64_t since_ns)
{
    return l->released_ns && l->released_ns + GRACE_NS >= since_ns;
}

bool layout_slots_wants_heir(const struct layout_slots *l, uint32_t index, uint32_t slot)
{
    return !l->all[index].of_row && l->all[index].payer == slot && l->all[index].holders > 1;
}

void layout_slots_leave(struct layout_slots *l, struct quotas *quotas, uint32_t index, uint32_t slot, uint32_t heir,
                        uint64_t time_ns)
{
    struct layout_slot *s = &l->all[index];

    if (s->of_row) {
        s->holders--;
        return;
    }
    if (s->payer == slot) {
        quota_give(quotas, slot, QUOTA_layouts, 1);
        l->released_ns = time_ns; /* its user may bring another one */
        if (s->holders > 1) {
            quota_owe(quotas, heir, QUOTA_layouts, 1, time_ns);
            s->payer = heir;
        }
    }
    if (--s->holders)
        return;
    s->released_ns = l->released_ns = time_ns;
}
