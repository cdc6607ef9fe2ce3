/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of chains. Each text lies behind its entry, so a path leads back to it. */
#define XXH_INLINE_ALL
#include "capture/binary/paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct path_entry {
    struct path_entry *next; /* in the bucket */
    uint32_t hash, holders;
    char text[];
};

enum { BUCKETS_FIRST = 64 };

/* Seeded by the table's address, so that nobody can choose paths that all lie in one chain. */
static uint32_t hash_of(const struct paths *p, const char *text)
{
    return (uint32_t)XXH3_64bits_withSeed(text, strlen(text), (uintptr_t)p);
}

static uint64_t entry_bytes(const char *text)
{
    return sizeof(struct path_entry) + strlen(text) + 1;
}

void paths_deinit(struct paths *p)
{
    for (size_t i = 0; i < p->bucket_count; i++) {
        for (struct path_entry *e = p->buckets[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
    }
    free(p->buckets);
    *p = (struct paths){0};
}

static bool grow(struct paths *p)
{
    size_t count = p->bucket_count ? p->bucket_count * 2 : BUCKETS_FIRST;
    struct path_entry **buckets = calloc(count, sizeof *buckets);

    if (!buckets)
        return false;
    for (size_t i = 0; i < p->bucket_count; i++) {
        for (struct path_entry *e = p->buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = buckets[e->hash & (count - 1)];
            buckets[e->hash & (count - 1)] = e;
        }
    }
    free(p->buckets);
    p->bytes += (count - p->bucket_count) * sizeof *buckets;
    p->buckets = buckets;
    p->bucket_count = count;
    return true;
}

static struct path_entry *find(const struct paths *p, const char *text, uint32_t hash)
{
    struct path_entry *e = p->bucket_count ? p->buckets[hash & (p->bucket_count - 1)] : NULL;

    while (e && (e->hash != hash || strcmp(e->text, text)))
        e = e->next;
    return e;
}

const char *paths_hold(struct paths *p, const char *text)
{
    uint32_t hash = hash_of(p, text);
    struct path_entry *e = find(p, text, hash);

    if (e) {
        e->holders++;
        return e->text;
    }
    if (p->count >= p->bucket_count && !grow(p))
        return NULL;
    e = malloc(entry_bytes(text));
    if (!e)
        return NULL;
    struct path_entry **bucket = &p->buckets[hash & (p->bucket_count - 1)];
    e->hash = hash;
    e->holders = 1;
    e->next = *bucket;
    strcpy(e->text, text);
    *bucket = e;
    p->count++;
    p->bytes += entry_bytes(text);
    return e->text;
}

void paths_release(struct paths *p, const char *path)
{
    if (!path)
        return;
    struct path_entry *e = (struct path_entry *)(void *)((char *)(uintptr_t)path - offsetof(struct path_entry, text));
    if (--e->holders)
        return;
    struct path_entry **link = &p->buckets[e->hash & (p->bucket_count - 1)];
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    p->count--;
    p->bytes -= entry_bytes(path);
    free(e);
}

uint64_t paths_cost(const struct paths *p, const char *text)
{
    return find(p, text, hash_of(p, text)) ? 0 : entry_bytes(text);
}
