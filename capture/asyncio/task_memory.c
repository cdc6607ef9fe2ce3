/* SPDX-License-Identifier: Apache-2.0 */
/* Pages lie in one buffer in the order in which they were read; a hash table finds them. */
#include "capture/asyncio/task_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "formats/base/clock.h"

#define PAGE_BYTES 4096ull
#define GROUP_PAGES 4   /* pages of the allocator of small objects: a pool */
#define CALL_PAGES TASK_MEMORY_CALL_PAGES

void task_memory_deinit(struct task_memory *m)
{
    VEC_DEINIT(&m->pages);
    map_deinit(&m->index);
    free(m->bytes);
    free(m->again);
    m->bytes = m->again = NULL;
    m->bytes_pages = 0;
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(PAGE_BYTES - 1);
}

void task_memory_start_clock(struct task_memory *m)
{
    m->began_ns = now_ns();
    m->cpu_began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool task_memory_is_late(struct task_memory *m)
{
    if (m->late)
        return true;
    uint64_t passed_ns = now_ns() - m->began_ns;
    if (passed_ns >= m->budget_ns) /* no more CPU time than that can have been spent before */
        m->late = passed_ns / TASK_MEMORY_WALL_TIMES >= m->budget_ns ||
                  clock_ns(CLOCK_THREAD_CPUTIME_ID) - m->cpu_began_ns >= m->budget_ns;
    return m->late;
}

/* Makes room for more pages: false beyond the limit. */
static bool make_room(struct task_memory *m, uint64_t more)
{
    uint64_t need = m->pages.count + more, room = m->bytes_pages ? m->bytes_pages : 256;

    if (need > TASK_MEMORY_PAGES_MAX)
        return false;
    while (room < need)
        room *= 2;
    if (room == m->bytes_pages)
        return true;
    uint8_t *bytes = realloc(m->bytes, room * PAGE_BYTES);
    if (!bytes) {
        m->no_memory = true;
        return false;
    }
    m->bytes = bytes;
    m->bytes_pages = (uint32_t)room;
    return true;
}

/* Takes the page at `address`, whose bytes were read to their place at the end, for one that is there. */
static void keep(struct task_memory *m, uint64_t address)
{
    const struct task_page page = {address, false};

    if (!map_set(&m->index, address, m->pages.count) || !VEC_PUSH(&m->pages, page)) {
        map_remove(&m->index, address);
        m->no_memory = true;
    }
}

/* What one call reads: pages that follow each other are one range. */
struct page_ranges {
    uint32_t count;
    struct iovec ranges[CALL_PAGES];
};

static void add_page(struct page_ranges *r, uint64_t address)
{
    struct iovec *last = r->count ? &r->ranges[r->count - 1] : NULL;

    if (last && address == (uint64_t)(uintptr_t)last->iov_base + last->iov_len)
        last->iov_len += PAGE_BYTES;
    else
        r->ranges[r->count++] = (struct iovec){(void *)(uintptr_t)address, PAGE_BYTES};
}

/* Reads `count` pages in one call, as many as there are up to the first that cannot be read. Returns how many. */
static uint32_t read_pages(struct task_memory *m, const uint64_t *addresses, uint32_t count)
{
    struct page_ranges r = {.count = 0};

    if (!make_room(m, count))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        add_page(&r, addresses[i]);
    uint64_t got = m->fn(m->ctx, r.ranges, r.count, m->bytes + m->pages.count * PAGE_BYTES) / PAGE_BYTES;
    for (uint32_t i = 0; i < got && i < count; i++)
        keep(m, addresses[i]);
    return got < count ? (uint32_t)got : count;
}

void task_memory_begin(struct task_memory *m, const uint64_t *addresses, uint32_t count)
{
    m->pages.count = 0;
    map_clear(&m->index);
    m->late = m->no_memory = false;
    for (uint32_t i = 0; i < count && !task_memory_is_late(m);) {
        uint32_t n = count - i < CALL_PAGES ? count - i : CALL_PAGES;
        uint32_t got = read_pages(m, addresses + i, n);
        i += got < n ? got + 1 : got; /* one that is not there any more is left out */
    }
}

/* Reads a page that is missing, with those around it if they are all there and new. Returns its place; -1: cannot be read. */
static int64_t fetch(struct task_memory *m, uint64_t page)
{
    uint64_t first = page & ~(GROUP_PAGES * PAGE_BYTES - 1), group[GROUP_PAGES];
    bool all_new = first <= UINT64_MAX - GROUP_PAGES * PAGE_BYTES;

    for (uint32_t i = 0; i < GROUP_PAGES; i++) {
        group[i] = first + i * PAGE_BYTES;
        all_new = all_new && !map_get(&m->index, group[i]);
    }
    if (task_memory_is_late(m))
        return -1;
    if (!(all_new && read_pages(m, group, GROUP_PAGES) > (page - first) / PAGE_BYTES))
        read_pages(m, &page, map_get(&m->index, page) ? 0 : 1);
    const uint64_t *place = map_get(&m->index, page);
    return place ? (int64_t)*place : -1;
}

static bool read_in_page(struct task_memory *m, uint64_t address, void *out, uint64_t len)
{
    uint64_t page = page_of(address);
    const uint64_t *found = map_get(&m->index, page);
    int64_t place = found ? (int64_t)*found : fetch(m, page);

    if (place < 0) {
        struct iovec range = {(void *)(uintptr_t)address, len};
        return m->pages.count + 1 > TASK_MEMORY_PAGES_MAX && !m->late && m->fn(m->ctx, &range, 1, out) == len;
    }
    m->pages.data[place].used = true;
    memcpy(out, m->bytes + (uint64_t)place * PAGE_BYTES + (address - page), len);
    return true;
}

bool task_memory_read(void *memory, uint64_t address, void *out, uint64_t len_bytes)
{
    struct task_memory *m = memory;
    uint8_t *to = out;

    if (len_bytes > UINT64_MAX - address)
        return false;
    while (len_bytes) {
        uint64_t here = PAGE_BYTES - (address & (PAGE_BYTES - 1));
        if (here > len_bytes)
            here = len_bytes;
        if (!read_in_page(m, address, to, here))
            return false;
        address += here;
        to += here;
        len_bytes -= here;
    }
    return true;
}

/*
 * Reads pages from the `first`-th on into `again`, compares them, and takes what has changed. Returns how many pages it was
 * done with; one that cannot be read any more has changed.
 */
static uint32_t compare_pages(struct task_memory *m, uint32_t first, bool *changed)
{
    uint8_t *bytes = m->bytes + first * PAGE_BYTES;
    struct page_ranges r = {.count = 0};
    uint32_t count = 0;

    for (; first + count < m->pages.count && count < CALL_PAGES; count++)
        add_page(&r, m->pages.data[first + count].address);
    uint64_t got = m->fn(m->ctx, r.ranges, r.count, m->again) / PAGE_BYTES;
    if (got < count) {
        memset(m->again + got * PAGE_BYTES, 0, PAGE_BYTES);
        count = (uint32_t)got + 1;
    }
    if (memcmp(bytes, m->again, count * PAGE_BYTES) != 0) {
        memcpy(bytes, m->again, count * PAGE_BYTES);
        *changed = true;
    }
    return count;
}

bool task_memory_changed(struct task_memory *m)
{
    bool changed = false;

    if (!m->again)
        m->again = malloc(CALL_PAGES * PAGE_BYTES);
    if (!m->again) {
        m->no_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < m->pages.count;)
        i += compare_pages(m, i, &changed);
    return changed;
}

static int compare_addresses(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint32_t task_memory_used(struct task_memory *m, uint64_t *addresses, uint32_t room)
{
    uint32_t count = 0, stored = 0;

    for (size_t i = 0; i < m->pages.count; i++) {
        if (!m->pages.data[i].used)
            continue;
        if (stored < room)
            addresses[stored++] = m->pages.data[i].address;
        count++;
    }
    if (stored) /* without room `addresses` may be NULL, which qsort() does not take */
        qsort(addresses, stored, sizeof *addresses, compare_addresses);
    return count;
}
