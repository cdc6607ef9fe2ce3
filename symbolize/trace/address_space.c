/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/address_space.h"

#include <string.h>

#include "formats/base/sort.h"

void address_space_deinit(struct address_space *m)
{
    VEC_DEINIT(&m->changes);
    VEC_DEINIT(&m->now);
    *m = (struct address_space){0};
}

bool address_space_add(struct address_space *m, const struct mapping_change *change)
{
    if (change->mapping.end <= change->mapping.address)
        return true;
    if (m->changes.count && change->time_ns < m->changes.data[m->changes.count - 1].time_ns)
        m->changes_unsorted = true;
    return VEC_PUSH(&m->changes, *change);
}

static int by_time(const void *a, const void *b)
{
    const struct mapping_change *x = a, *y = b;

    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Stable: changes of the same time apply in the order of the file. */
static bool sort_changes(struct address_space *m)
{
    m->changes_unsorted = !sort_stable(m->changes.data, m->changes.count, sizeof *m->changes.data, by_time);
    return !m->changes_unsorted;
}

/* The first mapping that ends after the address. */
static size_t first_after(const struct address_space *m, uint64_t address)
{
    size_t lo = 0, hi = m->now.count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->now.data[mid].end <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Removes the range of the change from `now` (may split a mapping), and inserts the new mapping there. */
static bool apply(struct address_space *m, const struct mapping_change *change)
{
    const struct mapping *new = &change->mapping;
    size_t first = first_after(m, new->address), last = first;
    struct mapping parts[3];
    size_t part_count = 0;

    while (last < m->now.count && m->now.data[last].address < new->end)
        last++;
    if (first < last && m->now.data[first].address < new->address) {
        parts[part_count] = m->now.data[first];
        parts[part_count++].end = new->address;
    }
    if (!change->unmapped)
        parts[part_count++] = *new;
    if (first < last && m->now.data[last - 1].end > new->end) {
        struct mapping right = m->now.data[last - 1];
        right.file_offset += new->end - right.address;
        right.address = new->end;
        parts[part_count++] = right;
    }
    size_t tail = m->now.count - last;
    if (!VEC_RESERVE(&m->now, first + part_count + tail))
        return false;
    struct mapping *at = m->now.data + first;
    if (tail)
        memmove(at + part_count, m->now.data + last, tail * sizeof *at);
    if (part_count)
        memcpy(at, parts, part_count * sizeof *at);
    m->now.count = first + part_count + tail;
    return true;
}

bool address_space_move(struct address_space *m, uint64_t time_ns)
{
    bool over = m->changes_unsorted;

    if (over && !sort_changes(m))
        return false;
    if (over || (m->applied && m->changes.data[m->applied - 1].time_ns > time_ns)) {
        m->applied = 0;
        m->now.count = 0;
        m->version++;
    }
    size_t applied = m->applied;
    while (m->applied < m->changes.count && m->changes.data[m->applied].time_ns <= time_ns) {
        if (!limits_work(m->limits, 40 + m->now.count / 4) || !apply(m, &m->changes.data[m->applied]))
            return false;
        m->applied++;
    }
    if (m->applied != applied)
        m->version++;
    return true;
}

const struct mapping *address_space_find(const struct address_space *m, uint64_t address)
{
    size_t i = first_after(m, address);

    return i < m->now.count && m->now.data[i].address <= address ? &m->now.data[i] : NULL;
}
