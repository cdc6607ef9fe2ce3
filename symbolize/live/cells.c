/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/cells.h"

#include "symbolize/live/places.h"

void live_cells_deinit(struct live_cells *c)
{
    map_deinit(&c->index);
    VEC_DEINIT(&c->list);
    VEC_DEINIT(&c->touched);
}

static uint64_t key_of(uint32_t thread, uint32_t place)
{
    return (uint64_t)thread << 32 | place;
}

/* Finds or adds a cell; UINT32_MAX: out of memory. */
static uint32_t find(struct live_cells *c, uint32_t thread, uint32_t place)
{
    const uint64_t *known = map_get(&c->index, key_of(thread, place));

    if (known)
        return (uint32_t)*known;
    /* One more may always be had, for all others together. */
    if (c->list.count >= LIVE_CELLS_MAX && (thread != LIVE_OTHERS || place != LIVE_OTHERS))
        return find(c, LIVE_OTHERS, thread == LIVE_OTHERS ? LIVE_OTHERS : place);
    uint32_t number = (uint32_t)c->list.count;
    if (!VEC_PUSH(&c->list, ((struct live_cell){.thread = thread, .place = place})))
        return UINT32_MAX;
    if (map_set(&c->index, key_of(thread, place), number))
        return number;
    c->list.count--;
    return UINT32_MAX;
}

struct live_weight *live_cells_at(struct live_cells *c, uint32_t thread, uint32_t *place, uint64_t serial)
{
    uint32_t number = find(c, thread, *place);
    size_t parity = serial & 1;

    if (number == UINT32_MAX)
        return NULL;
    struct live_cell *cell = &c->list.data[number];
    *place = cell->place;
    if (cell->serials[parity] != serial) {
        if (!VEC_PUSH(&c->touched, number))
            return NULL;
        cell->serials[parity] = serial;
        memset(cell->now[parity], 0, sizeof cell->now[parity]);
    }
    return cell->now[parity];
}

static void add(struct live_weight *to, const struct live_weight *more)
{
    for (int measure = 0; measure < LIVE_MEASURES; measure++) {
        to[measure].self += more[measure].self;
        to[measure].total += more[measure].total;
        to[measure].python += more[measure].python;
    }
}

void live_cells_end_interval(struct live_cells *c, uint64_t serial)
{
    for (size_t i = 0; i < c->touched.count; i++) {
        struct live_cell *cell = &c->list.data[c->touched.data[i]];
        add(cell->all, cell->now[serial & 1]);
    }
    c->touched.count = 0;
}

bool live_cells_are_many(const struct live_cells *c)
{
    return c->list.count > LIVE_CELLS_MAX / 4 * 3;
}

/* Adds a cell to the one of that thread and place. */
static bool move(struct live_cells *to, const struct live_cell *cell, uint32_t thread, uint32_t place)
{
    uint32_t number = find(to, thread, place);

    if (number == UINT32_MAX)
        return false;
    struct live_cell *target = &to->list.data[number];
    add(target->all, cell->all);
    for (int parity = 0; parity < 2; parity++) {
        if (cell->serials[parity] > target->serials[parity]) {
            target->serials[parity] = cell->serials[parity];
            memcpy(target->now[parity], cell->now[parity], sizeof cell->now[parity]);
        } else if (cell->serials[parity] == target->serials[parity]) {
            add(target->now[parity], cell->now[parity]);
        }
    }
    return true;
}

bool live_cells_renumber(struct live_cells *c, const uint32_t *threads, bool fold, uint64_t serial)
{
    struct live_cells made = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < c->list.count; i++) {
        struct live_cell cell = c->list.data[i];
        bool idle = fold && cell.serials[serial & 1] != serial;
        /* Functions that call each other have the same time in their totals. */
        for (int measure = 0; idle && cell.place != LIVE_OTHERS && measure < LIVE_MEASURES; measure++)
            cell.all[measure].total = cell.all[measure].self;
        ok = move(&made, &cell, idle ? LIVE_OTHERS : threads[cell.thread], idle ? LIVE_OTHERS : cell.place);
    }
    if (!ok) {
        live_cells_deinit(&made);
        return false;
    }
    live_cells_deinit(c);
    *c = made;
    return true;
}
