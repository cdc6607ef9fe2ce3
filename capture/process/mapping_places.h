/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of lists of mappings in the array that the sampler reads. Processes that share a list share its copy, and so do those
 * of equal lists; one of its holders pays for it.
 *
 * A list that was copied is never changed: a process whose mappings change gets another one. A sample that is being taken may
 * still go by the list of before, so what is given back is used again only when mapping_places_free() says so; and where a sample
 * takes longer than that, it sees that the number in front of its list is gone (outlived_tables() of bpf/sampler_native.h).
 */
#ifndef CAPTURE_PROCESS_MAPPING_PLACES_H
#define CAPTURE_PROCESS_MAPPING_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/binary/extents.h"
#include "capture/host/quotas.h"
#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

struct mapping_place {
    uint64_t hash; /* of its bytes */
    uint64_t id; /* as in code_mappings_place(); never used again */
    uint32_t start, count; /* with the element in front of the list */
    uint32_t holders; /* processes; 0: this place is free */
    uint32_t payer;   /* slot of the one of them whose quota it counts for */
};

struct mapping_places {
    struct quotas *quotas;      /* borrowed */
    struct wire_mapping *lists; /* the sampler's array, NULL without tables; borrowed */
    struct extents space;       /* of that array: which parts are in use */
    /* Makes pages of the array before they are written to; NULL: they are there. */
    struct error *(*map_pages)(void *ctx, const void *start, size_t len_bytes);
    void *ctx;
    VEC(struct mapping_place) all; /* the first stands for nowhere */
    VEC(uint32_t) unused;          /* of these */
    struct map by_id;              /* -> index in `all` */
    struct map by_hash;            /* -> index in `all`, of one with that hash */
    uint64_t last_id;
};

/*
 * `lists` has `count` elements, or is NULL. The first element heads an empty list, for processes that have none: places are
 * numbers from 1 on, 0 is nowhere.
 */
struct error *mapping_places_init(struct mapping_places *m, struct quotas *quotas, struct wire_mapping *lists, uint32_t count);
void mapping_places_deinit(struct mapping_places *m);

static inline const struct mapping_place *mapping_places_at(const struct mapping_places *m, uint32_t place)
{
    return &m->all.data[place];
}

/* The number of the list that the sampler compares; 0: it does not fit, then rows are not cached. */
static inline uint32_t mapping_place_key(const struct mapping_place *p)
{
    return p->id <= UINT32_MAX ? (uint32_t)p->id : 0;
}

/* The place of that id; 0: there is none, or not any more. */
uint32_t mapping_places_find(const struct mapping_places *m, uint64_t id);
/*
 * The place of a list of `count` elements, of which the first is its head with the number of the others: one where an equal list
 * lies, or a new one, which `slot` pays for. Nobody holds a new one. 0 in *place: there is no room.
 */
struct error *mapping_places_lay(struct mapping_places *m, uint32_t slot, const struct wire_mapping *list, uint32_t count,
                                 uint64_t time_ns, uint32_t *place);
/* One more process holds a place, which may be 0. */
void mapping_places_hold(struct mapping_places *m, uint32_t place);
/* The process of `slot` leaves its place, which may be 0. True: others hold it, and one of them has to pay for it now. */
bool mapping_places_release(struct mapping_places *m, uint32_t place, uint32_t slot, uint64_t time_ns);
void mapping_places_pay(struct mapping_places *m, uint32_t place, uint32_t slot);
/* What was given back before `before_ns` is free. */
struct error *mapping_places_free(struct mapping_places *m, uint64_t before_ns);

#endif
