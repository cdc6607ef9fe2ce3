/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list is an array of pointers in order of address: looked up often, changed seldom. Lists and mappings count their
 * holders, and are copied before they are changed when there is more than one.
 */
#include "capture/binary/code_mappings.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "formats/base/vec.h"

struct held_mapping {
    struct code_mapping m;
    uint32_t holders; /* lists */
};

struct mapping_list {
    VEC(struct held_mapping *) all;
    uint32_t holders; /* processes */
    uint64_t place;
    uint64_t hash; /* 0: it is not in the pool's table */
    struct code_pool *pool;
};

void code_pool_deinit(struct code_pool *pool)
{
    paths_deinit(&pool->paths);
    map_deinit(&pool->lists);
}

uint64_t code_pool_bytes(const struct code_pool *pool)
{
    return pool->bytes + pool->paths.bytes;
}

/* ---- mappings ---- */

static struct held_mapping *mapping_create(struct code_pool *pool, const struct code_mapping *m)
{
    struct held_mapping *held = malloc(sizeof *held);

    if (!held)
        return NULL;
    *held = (struct held_mapping){.m = *m, .holders = 1};
    held->m.path = paths_hold(&pool->paths, m->path);
    if (!held->m.path) {
        free(held);
        return NULL;
    }
    pool->bytes += sizeof *held;
    return held;
}

static void mapping_release(struct code_pool *pool, struct held_mapping *held)
{
    if (--held->holders)
        return;
    paths_release(&pool->paths, held->m.path);
    pool->bytes -= sizeof *held;
    free(held);
}

/* Returns the list's mapping at `i`, which the caller may change; NULL: out of memory. */
static struct code_mapping *own_mapping(struct mapping_list *list, size_t i)
{
    struct held_mapping *held = list->all.data[i];

    if (held->holders == 1)
        return &held->m;
    struct held_mapping *copy = mapping_create(list->pool, &held->m);
    if (!copy)
        return NULL;
    mapping_release(list->pool, held);
    list->all.data[i] = copy;
    return &copy->m;
}

/* ---- lists ---- */

static bool reserve(struct mapping_list *list, size_t count)
{
    size_t before = list->all.cap;

    if (!VEC_RESERVE(&list->all, count))
        return false;
    list->pool->bytes += (list->all.cap - before) * sizeof *list->all.data;
    return true;
}

static struct mapping_list *list_create(struct code_pool *pool, const struct mapping_list *from)
{
    struct mapping_list *list = calloc(1, sizeof *list);

    if (!list)
        return NULL;
    list->pool = pool;
    list->holders = 1;
    if (from && !reserve(list, from->all.count + 1)) {
        free(list);
        return NULL;
    }
    pool->bytes += sizeof *list;
    for (size_t i = 0; from && i < from->all.count; i++) {
        from->all.data[i]->holders++;
        list->all.data[list->all.count++] = from->all.data[i];
    }
    return list;
}

/* The list ends, or is about to be changed. */
static void leave_table(struct mapping_list *list)
{
    if (list->hash)
        map_remove(&list->pool->lists, list->hash);
    list->hash = 0;
}

static void list_release(struct mapping_list *list)
{
    if (!list || --list->holders)
        return;
    leave_table(list);
    for (size_t i = 0; i < list->all.count; i++)
        mapping_release(list->pool, list->all.data[i]);
    list->pool->bytes -= sizeof *list + list->all.cap * sizeof *list->all.data;
    VEC_DEINIT(&list->all);
    free(list);
}

/* Gives the process a list of its own, to be changed. */
static bool own_list(struct code_mappings *m, struct code_pool *pool)
{
    if (m->list && m->list->holders == 1) {
        leave_table(m->list);
        m->list->place = 0;
        return true;
    }
    struct mapping_list *copy = list_create(pool, m->list);
    if (!copy)
        return false;
    list_release(m->list);
    m->list = copy;
    return true;
}

void code_mappings_deinit(struct code_mappings *m)
{
    list_release(m->list);
    *m = (struct code_mappings){0};
}

size_t code_mappings_count(const struct code_mappings *m)
{
    return m->list ? m->list->all.count : 0;
}

struct code_mapping *code_mappings_at(const struct code_mappings *m, size_t index)
{
    return &m->list->all.data[index]->m;
}

uint64_t code_mappings_time(const struct code_mappings *m, const struct code_mapping *mapping)
{
    return mapping->time_ns > m->since_ns ? mapping->time_ns : m->since_ns;
}

size_t code_mappings_first_behind(const struct code_mappings *m, uint64_t address)
{
    size_t low = 0, high = code_mappings_count(m);

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct code_mapping *at = code_mappings_at(m, mid);
        if (at->address + at->length <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct code_mapping *code_mappings_find(const struct code_mappings *m, uint64_t address)
{
    size_t i = code_mappings_first_behind(m, address);
    struct code_mapping *at = i < code_mappings_count(m) ? code_mappings_at(m, i) : NULL;

    return at && at->address <= address ? at : NULL;
}

void code_mappings_share(struct code_mappings *to, const struct code_mappings *from, uint64_t time_ns)
{
    *to = (struct code_mappings){.list = from->list, .since_ns = time_ns};
    if (to->list)
        to->list->holders++;
}

bool code_mappings_are_shared(const struct code_mappings *a, const struct code_mappings *b)
{
    return a->list && a->list == b->list;
}

/* ---- equal lists ---- */

/* Paths are kept once, so equal ones lie at one address. */
static bool is_equal_mapping(const struct code_mapping *a, const struct code_mapping *b)
{
    return a->address == b->address && a->length == b->length && a->file_offset == b->file_offset &&
           a->protection == b->protection && a->map_flags == b->map_flags && a->device_major == b->device_major &&
           a->device_minor == b->device_minor && a->inode == b->inode && a->inode_generation == b->inode_generation &&
           a->module == b->module && a->looked_up == b->looked_up && a->path == b->path && a->replaced_ns == b->replaced_ns &&
           a->build_id_len == b->build_id_len && !memcmp(a->build_id, b->build_id, a->build_id_len);
}

/* Whether a process that has had one list since `time_ns` may as well have the other. */
static bool is_equal_list(const struct mapping_list *a, const struct mapping_list *b, uint64_t time_ns)
{
    if (a->all.count != b->all.count)
        return false;
    for (size_t i = 0; i < a->all.count; i++) {
        if (!is_equal_mapping(&a->all.data[i]->m, &b->all.data[i]->m) || b->all.data[i]->m.time_ns > time_ns)
            return false;
    }
    return true;
}

/* Of what cannot change as long as the list does not. Never 0. */
static uint64_t hash_of(const struct mapping_list *list)
{
    uint64_t hash = (uintptr_t)list->pool;

    for (size_t i = 0; i < list->all.count; i++) {
        const struct code_mapping *m = &list->all.data[i]->m;
        const uint64_t facts[] = {m->address, m->length, m->file_offset, m->inode, (uintptr_t)m->path};
        hash = XXH3_64bits_withSeed(facts, sizeof facts, hash);
    }
    return hash ? hash : 1;
}

void code_mappings_unify(struct code_mappings *m, struct code_pool *pool)
{
    size_t count = code_mappings_count(m);

    if (!count || m->list->holders > 1)
        return;
    uint64_t since_ns = code_mappings_time(m, code_mappings_at(m, 0)), hash = hash_of(m->list);
    for (size_t i = 1; i < count; i++) {
        if (code_mappings_time(m, code_mappings_at(m, i)) != since_ns)
            return;
    }
    const uint64_t *known = map_get(&pool->lists, hash);
    struct mapping_list *other = known ? (struct mapping_list *)(uintptr_t)*known : NULL;
    if (!other) {
        if (map_set(&pool->lists, hash, (uintptr_t)m->list)) /* else it is not found */
            m->list->hash = hash;
    } else if (other != m->list && is_equal_list(m->list, other, since_ns)) {
        list_release(m->list);
        other->holders++;
        *m = (struct code_mappings){.list = other, .since_ns = since_ns};
    }
}

uint64_t code_mappings_place(const struct code_mappings *m)
{
    return m->list ? m->list->place : 0;
}

void code_mappings_set_place(struct code_mappings *m, uint64_t place)
{
    if (m->list)
        m->list->place = place;
}

/* ---- adding ---- */

/* Puts a mapping, which the list takes over, at index `i`. There must be room. */
static void insert(struct mapping_list *list, size_t i, struct held_mapping *held)
{
    struct held_mapping **all = list->all.data;

    memmove(all + i + 1, all + i, (list->all.count - i) * sizeof *all);
    all[i] = held;
    list->all.count++;
}

/* Takes the mappings from index `first` to before `end` out. */
static void take_out(struct mapping_list *list, size_t first, size_t end)
{
    struct held_mapping **all = list->all.data;

    for (size_t i = first; i < end; i++)
        mapping_release(list->pool, all[i]);
    memmove(all + first, all + end, (list->all.count - end) * sizeof *all);
    list->all.count -= end - first;
}

/* A mapping that begins earlier loses what is from `start` on. What it has from `end` on becomes one of its own. */
static bool cut_end(struct mapping_list *list, size_t i, uint64_t start, uint64_t end)
{
    struct code_mapping *left = own_mapping(list, i);

    if (!left)
        return false;
    struct code_mapping right = *left;
    left->length = start - left->address;
    if (right.address + right.length <= end)
        return true;
    right.length -= end - right.address;
    right.file_offset += end - right.address;
    right.address = end;
    struct held_mapping *held = mapping_create(list->pool, &right);
    if (!held)
        return false;
    insert(list, i + 1, held);
    return true;
}

/* Cuts out what is mapped over. There must be room for one more mapping. */
static bool cut(struct code_mappings *m, uint64_t start, uint64_t end)
{
    struct mapping_list *list = m->list;
    size_t i = code_mappings_first_behind(m, start), first;

    if (i < list->all.count && code_mappings_at(m, i)->address < start) {
        if (!cut_end(list, i, start, end))
            return false;
        i++;
    }
    first = i;
    while (i < list->all.count && code_mappings_at(m, i)->address + code_mappings_at(m, i)->length <= end)
        i++;
    take_out(list, first, i);
    if (first < list->all.count && code_mappings_at(m, first)->address < end) {
        struct code_mapping *right = own_mapping(list, first);
        if (!right)
            return false;
        uint64_t gone = end - right->address;
        right->address += gone;
        right->length -= gone;
        right->file_offset += gone;
    }
    return true;
}

/* Of the mappings with the same path those of the earlier half of their time go; at least one, if there is any. */
static void drop_oldest(struct mapping_list *list, const char *path)
{
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    size_t kept = 0;

    for (size_t i = 0; i < list->all.count; i++) {
        const struct code_mapping *m = &list->all.data[i]->m;
        if (strcmp(m->path, path))
            continue;
        first_ns = m->time_ns < first_ns ? m->time_ns : first_ns;
        last_ns = m->time_ns > last_ns ? m->time_ns : last_ns;
    }
    uint64_t until_ns = first_ns < last_ns ? first_ns + (last_ns - first_ns) / 2 : last_ns;
    for (size_t i = 0; i < list->all.count; i++) {
        struct held_mapping *held = list->all.data[i];
        if (held->m.time_ns <= until_ns && !strcmp(held->m.path, path))
            mapping_release(list->pool, held);
        else
            list->all.data[kept++] = held;
    }
    list->all.count = kept;
}

/* Whether the memory of all is used up, for a process that has this many already. */
static bool pool_is_full(const struct code_mappings *m, const struct code_pool *pool, const char *path)
{
    return code_pool_bytes(pool) >= CODE_MAPPINGS_BYTES &&
           (code_mappings_count(m) >= CODE_MAPPINGS_FEW || paths_cost(&pool->paths, path) > CODE_MAPPINGS_PATH_FEW);
}

/* Takes out what was there before a mapping that the list has no room for: its addresses mean something else now. */
static enum code_mappings_result only_cut(struct code_mappings *m, struct code_pool *pool, uint64_t start, uint64_t end)
{
    size_t i = code_mappings_first_behind(m, start);

    if (i == code_mappings_count(m) || code_mappings_at(m, i)->address >= end)
        return CODE_MAPPINGS_UNCHANGED;
    if (!own_list(m, pool) || !reserve(m->list, m->list->all.count + 1) || !cut(m, start, end))
        return CODE_MAPPINGS_NO_MEMORY;
    return CODE_MAPPINGS_CUT;
}

enum code_mappings_result code_mappings_cut(struct code_mappings *m, struct code_pool *pool, uint64_t address, uint64_t length)
{
    return only_cut(m, pool, address, address + length);
}

/* Whether an address in both is unwound by the same rows: another extent of one mapping, or generated code, which has none. */
static bool is_unwound_alike(const struct code_mapping *a, const struct code_mapping *b)
{
    if (code_mapping_is_anonymous(a) || code_mapping_is_anonymous(b))
        return code_mapping_is_anonymous(a) && code_mapping_is_anonymous(b);
    return a->address - a->file_offset == b->address - b->file_offset && !strcmp(a->path, b->path) &&
           !code_mapping_is_other_file(a, b);
}

/* When the addresses of a new mapping last got another meaning, by what was there before. */
static uint64_t replaced_ns(const struct code_mappings *m, const struct code_mapping *mapping)
{
    uint64_t last_ns = 0;

    for (size_t i = code_mappings_first_behind(m, mapping->address); i < code_mappings_count(m); i++) {
        const struct code_mapping *before = code_mappings_at(m, i);
        if (before->address >= mapping->address + mapping->length)
            break;
        uint64_t ns = is_unwound_alike(before, mapping) ? before->replaced_ns : mapping->time_ns;
        last_ns = ns > last_ns ? ns : last_ns;
    }
    return last_ns;
}

enum code_mappings_result code_mappings_add(struct code_mappings *m, struct code_pool *pool,
                                            const struct code_mapping *mapping, size_t *at)
{
    uint64_t start = mapping->address, end = start + mapping->length;

    if (pool_is_full(m, pool, mapping->path))
        return only_cut(m, pool, start, end);
    if (!own_list(m, pool))
        return CODE_MAPPINGS_NO_MEMORY;
    if (m->list->all.count >= CODE_MAPPINGS_MAX)
        drop_oldest(m->list, mapping->path);
    if (m->list->all.count >= CODE_MAPPINGS_MAX)
        return only_cut(m, pool, start, end);
    uint64_t replaced = replaced_ns(m, mapping);
    struct held_mapping *held = mapping_create(pool, mapping);
    if (!held || !reserve(m->list, m->list->all.count + 2) || !cut(m, start, end)) {
        if (held)
            mapping_release(pool, held);
        return CODE_MAPPINGS_NO_MEMORY;
    }
    held->m.replaced_ns = replaced;
    *at = code_mappings_first_behind(m, start);
    insert(m->list, *at, held);
    return CODE_MAPPINGS_ADDED;
}

bool code_mappings_keep(struct code_mappings *m, struct code_pool *pool, const struct address_range *there, size_t count)
{
    size_t kept = 0, gone = 0, k = 0;

    for (int pass = 0; pass < 2; pass++) {
        k = kept = 0;
        for (size_t i = 0; i < code_mappings_count(m); i++) {
            struct held_mapping *held = m->list->all.data[i];
            while (k < count && there[k].end <= held->m.address)
                k++;
            bool is_there = k < count && there[k].start < held->m.address + held->m.length;
            if (pass && is_there)
                m->list->all.data[kept++] = held;
            else if (pass)
                mapping_release(pool, held);
            else
                gone += !is_there;
        }
        if (!gone)
            return true;
        if (!pass && !own_list(m, pool))
            return false;
    }
    m->list->all.count = kept;
    return true;
}

/* ---- files ---- */

bool code_mapping_is_other_file(const struct code_mapping *a, const struct code_mapping *b)
{
    if (a->device_major != b->device_major || a->device_minor != b->device_minor)
        return a->by_event && b->by_event; /* of some file systems /proc shows another device */
    return a->inode != b->inode || (a->by_event && b->by_event && a->inode_generation != b->inode_generation);
}

struct procfs_file code_mapping_file(const struct code_mapping *m)
{
    return (struct procfs_file){
        .device_major = m->device_major,
        .device_minor = m->device_minor,
        .inode = m->inode,
        .build_id = m->build_id,
        .build_id_len = m->build_id_len,
        .mapped_ns = m->time_ns,
    };
}

bool code_mapping_is_anonymous(const struct code_mapping *m)
{
    return m->path[0] != '/' || !strncmp(m->path, "//anon", 6) || !strncmp(m->path, "/memfd:", 7) ||
           !strncmp(m->path, "/dev/zero", 9);
}
