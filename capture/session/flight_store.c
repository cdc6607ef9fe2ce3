/* SPDX-License-Identifier: Apache-2.0 */
/* Parts are numbered from the recording's first on; the list has those that are kept. */
#include "capture/session/flight_store.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"

struct block {
    uint8_t *data;
    size_t len_bytes;
};

struct part {
    uint64_t begun_ns, bytes;
    uint64_t samples, lost;
    VEC(struct block) blocks;
};

struct flight_store {
    VEC(struct part) parts; /* oldest first */
    uint64_t bytes;
    bool writes;
    size_t part, block;     /* the next one for the file; while it is written */
    uint64_t samples, lost; /* of parts that the file has and that are not kept any more */
};

struct flight_store *flight_store_create(void)
{
    return calloc(1, sizeof(struct flight_store));
}

static void free_part(struct part *p)
{
    for (size_t i = 0; i < p->blocks.count; i++)
        free(p->blocks.data[i].data);
    VEC_DEINIT(&p->blocks);
}

void flight_store_destroy(struct flight_store *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->parts.count; i++)
        free_part(&f->parts.data[i]);
    VEC_DEINIT(&f->parts);
    free(f);
}

static struct part *newest(const struct flight_store *f)
{
    return f->parts.count ? &f->parts.data[f->parts.count - 1] : NULL;
}

bool flight_store_begin(struct flight_store *f, uint64_t time_ns)
{
    return VEC_PUSH(&f->parts, ((struct part){.begun_ns = time_ns}));
}

bool flight_store_add(struct flight_store *f, const void *data, size_t len_bytes)
{
    struct part *p = newest(f);
    struct block block = {.data = malloc(len_bytes), .len_bytes = len_bytes};

    if (!p || !block.data || !VEC_PUSH(&p->blocks, block)) {
        free(block.data);
        return false;
    }
    memcpy(block.data, data, len_bytes);
    p->bytes += len_bytes;
    f->bytes += len_bytes;
    return true;
}

void flight_store_count(struct flight_store *f, uint64_t samples, uint64_t lost)
{
    struct part *p = newest(f);

    if (p) {
        p->samples = samples;
        p->lost = lost;
    }
}

/* ---- what is not kept ---- */

/* Whether there is a part beside the newest, and the file needs nothing of it. */
static bool may_drop(const struct flight_store *f)
{
    return f->parts.count > 1 && (!f->writes || f->part > 0);
}

static void drop_oldest(struct flight_store *f)
{
    struct part *p = &f->parts.data[0];

    if (f->writes) {
        f->samples += p->samples;
        f->lost += p->lost;
        f->part--;
    }
    f->bytes -= p->bytes;
    free_part(p);
    f->parts.count--;
    memmove(p, p + 1, f->parts.count * sizeof *p);
}

void flight_store_drop_before(struct flight_store *f, uint64_t since_ns)
{
    while (may_drop(f) && f->parts.data[1].begun_ns <= since_ns)
        drop_oldest(f);
}

void flight_store_drop_above(struct flight_store *f, uint64_t most_bytes)
{
    while (may_drop(f) && f->bytes > most_bytes)
        drop_oldest(f);
}

uint64_t flight_store_since_ns(const struct flight_store *f)
{
    return f->parts.count ? f->parts.data[0].begun_ns : 0;
}

uint64_t flight_store_part_ns(const struct flight_store *f)
{
    return f->parts.count ? newest(f)->begun_ns : 0;
}

uint64_t flight_store_bytes(const struct flight_store *f)
{
    return f->bytes;
}

uint64_t flight_store_part_bytes(const struct flight_store *f)
{
    return f->parts.count ? newest(f)->bytes : 0;
}

/* ---- a file ---- */

void flight_store_write(struct flight_store *f)
{
    f->writes = true;
    f->part = f->block = 0;
    f->samples = f->lost = 0;
}

bool flight_store_next(struct flight_store *f, const void **data, size_t *len_bytes)
{
    while (f->writes && f->part < f->parts.count) {
        const struct part *p = &f->parts.data[f->part];
        if (f->block < p->blocks.count) {
            *data = p->blocks.data[f->block].data;
            *len_bytes = p->blocks.data[f->block++].len_bytes;
            return true;
        }
        if (f->part + 1 == f->parts.count)
            return false; /* more may come */
        f->part++;
        f->block = 0;
    }
    return false;
}

void flight_store_written(struct flight_store *f, uint64_t *samples, uint64_t *lost)
{
    for (size_t i = 0; f->writes && i < f->parts.count; i++) {
        f->samples += f->parts.data[i].samples;
        f->lost += f->parts.data[i].lost;
    }
    *samples = f->samples;
    *lost = f->lost;
    f->writes = false;
}
