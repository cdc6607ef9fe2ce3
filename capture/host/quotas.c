/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of an owner is the "dynamic threshold" of switches with shared buffers: it needs no list of who competes,
 * and leaves room for a newcomer at any time.
 */
#include "capture/host/quotas.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/owner.h"
#include "formats/base/clock.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/*
 * Owners that are told apart, and of one block of ids. Those beyond share one account, or their block's, so that a user with
 * many ids gains nothing.
 */
#define OWNERS_MAX 1024
#define OWNERS_OF_BLOCK 64
#define OWNER_OTHERS 0
#define OWNER_NONE UINT32_MAX
/* This part of a pool is its reserve. */
#define RESERVE_PART 8

struct limit {
    uint64_t per_second, burst, pool, first; /* pool: a factor */
};
static const struct limit defaults[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool, first) {per_second, burst, pool, first},
#include "capture/host/quotas.def"
#undef QUOTA
};

struct usage {
    uint64_t used, updated_ns;
};

/* Of an account, an owner or a pool: what was taken, apart from what was taken of the reserve. */
struct usages {
    struct usage main[QUOTA_COUNT], reserve[QUOTA_COUNT];
};

struct owner {
    uint64_t key;
    uint32_t block;     /* index of the account of all ids of its block, OWNER_NONE: it is of none */
    uint32_t members;   /* owners that are of this block */
    uint32_t processes; /* that count for it now */
    struct usages used;
};

struct account {
    bool live, named, refused_any;
    uint32_t owner; /* index in owners */
    struct usage usage[QUOTA_COUNT]; /* of the reserve, too */
    uint64_t reserved[QUOTA_COUNT];  /* of what it holds: how much is of the reserve */
    uint64_t refused[QUOTA_COUNT];
};

struct quotas {
    struct limit limits[QUOTA_COUNT];
    VEC(struct account) accounts; /* by slot */
    VEC(struct owner) owners;     /* the first stands for all users that have no entry of their own */
    struct map owner_index;       /* key -> index in owners */
    struct usages pool;
    uint64_t time_ns;  /* of the latest quota_take() */
    uint64_t refusing; /* accounts with refused_any */
};

struct error *quotas_create(struct quotas **out)
{
    struct quotas *q = calloc(1, sizeof *q);

    if (!q || !VEC_RESERVE(&q->owners, 1)) {
        quotas_destroy(q);
        return error_no_memory();
    }
    q->owners.data[q->owners.count++] = (struct owner){.block = OWNER_NONE};
    memcpy(q->limits, defaults, sizeof q->limits);
    *out = q;
    return NULL;
}

void quotas_destroy(struct quotas *q)
{
    if (!q)
        return;
    VEC_DEINIT(&q->accounts);
    VEC_DEINIT(&q->owners);
    map_deinit(&q->owner_index);
    free(q);
}

void quotas_scale(struct quotas *q, enum quota kind, uint64_t each, uint64_t pool)
{
    q->limits[kind].per_second *= each;
    q->limits[kind].burst *= each;
    q->limits[kind].first *= each;
    q->limits[kind].pool *= pool;
}

uint64_t quotas_pool(const struct quotas *q, enum quota kind)
{
    return q->limits[kind].burst * q->limits[kind].pool;
}

/* ---- usage ---- */

/* Lets flow out what time allows. The rest of a unit is kept in updated_ns, so that many calls leak as one would. */
static void leak(struct usage *u, uint64_t per_second, uint64_t time_ns)
{
    if (!per_second || time_ns <= u->updated_ns)
        return;
    if (!u->used) {
        u->updated_ns = time_ns;
        return;
    }
    unsigned __int128 flown = (unsigned __int128)(time_ns - u->updated_ns) * per_second / NS_PER_S;
    if (flown >= u->used) {
        *u = (struct usage){0, time_ns};
        return;
    }
    u->used -= (uint64_t)flown;
    u->updated_ns += (uint64_t)(flown * NS_PER_S / per_second);
}

static void usage_give(struct usage *u, uint64_t amount)
{
    u->used -= amount < u->used ? amount : u->used;
}

/* How much of a pool is kept for what programs need first. */
static uint64_t reserve_of(const struct limit *l)
{
    return l->first ? l->burst * l->pool / RESERVE_PART : 0;
}

static void leak_shared(struct usages *u, enum quota kind, const struct limit *l, uint64_t time_ns)
{
    leak(&u->main[kind], l->per_second * l->pool, time_ns);
    leak(&u->reserve[kind], l->per_second * l->pool / RESERVE_PART, time_ns);
}

/* ---- owners ---- */

/* An account that no process counts for, and that is empty, can serve another owner. */
static bool owner_is_idle(const struct quotas *q, struct owner *o)
{
    if (o->processes || o->members)
        return false;
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        leak_shared(&o->used, (enum quota)i, &q->limits[i], q->time_ns);
        if (o->used.main[i].used || o->used.reserve[i].used)
            return false;
    }
    return true;
}

/* The key of an account that is nobody's. */
#define NOBODY UINT64_MAX

/* Returns the place of an account that is idle, but not `keep`, and is nobody's from now on; OWNER_OTHERS: there is none. */
static uint32_t idle_owner(struct quotas *q, uint32_t keep)
{
    for (uint32_t i = OWNER_OTHERS + 1; i < q->owners.count; i++) {
        struct owner *o = &q->owners.data[i];
        if (i == keep || !owner_is_idle(q, o))
            continue;
        if (o->key != NOBODY)
            map_remove(&q->owner_index, o->key);
        if (o->block != OWNER_NONE)
            q->owners.data[o->block].members--;
        *o = (struct owner){.key = NOBODY, .block = OWNER_NONE};
        return i;
    }
    return OWNER_OTHERS;
}

/* Returns the account of `key`, a new one if need be; of none in particular where there is no room for another. */
static uint32_t owner_account(struct quotas *q, uint64_t key, uint32_t block)
{
    const uint64_t *known = map_get(&q->owner_index, key);
    uint32_t index = (uint32_t)q->owners.count;

    if (known)
        return (uint32_t)*known;
    if (block != OWNER_NONE && q->owners.data[block].members >= OWNERS_OF_BLOCK)
        return block;
    if (index >= OWNERS_MAX)
        index = idle_owner(q, block);
    else if (!VEC_RESERVE(&q->owners, (size_t)index + 1))
        index = OWNER_OTHERS;
    if (index == OWNER_OTHERS || !map_set(&q->owner_index, key, index))
        return block == OWNER_NONE ? OWNER_OTHERS : block;
    q->owners.count += index == q->owners.count;
    q->owners.data[index] = (struct owner){.key = key, .block = block};
    if (block != OWNER_NONE)
        q->owners.data[block].members++;
    return index;
}

static uint32_t find_owner(struct quotas *q, uint64_t key)
{
    uint64_t block_key = owner_block(key);
    uint32_t block = block_key ? owner_account(q, block_key, OWNER_NONE) : OWNER_NONE;

    return owner_account(q, key, block);
}

/* The accounts that a process of `owner` counts for: its owner's, and its block's. */
#define FOR_EACH_OWNER(q, o, index)                                                        \
    for (struct owner *o = &(q)->owners.data[index]; o;                                    \
         o = o->block == OWNER_NONE ? NULL : &(q)->owners.data[o->block])

static void count_processes(struct quotas *q, uint32_t index, bool more)
{
    FOR_EACH_OWNER(q, o, index)
        o->processes += more ? 1 : UINT32_MAX;
}

/* ---- processes ---- */

static struct account *find_account(const struct quotas *q, uint32_t slot)
{
    return slot < q->accounts.count && q->accounts.data[slot].live ? &q->accounts.data[slot] : NULL;
}

struct error *quotas_begin(struct quotas *q, uint32_t slot, uint64_t owner, bool named)
{
    if (!VEC_EXTEND_ZERO(&q->accounts, (size_t)slot + 1))
        return error_no_memory();
    quotas_end(q, slot);
    struct account *a = &q->accounts.data[slot];
    *a = (struct account){.live = true, .named = named, .owner = find_owner(q, owner)};
    count_processes(q, a->owner, true);
    return NULL;
}

/* What the process holds, of all accounts that `index` stands for: taken from them, or added. */
static void move_held(struct quotas *q, const struct account *a, uint32_t index, bool add)
{
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        uint64_t reserved = a->reserved[i], rest = a->usage[i].used - reserved;
        if (defaults[i].per_second)
            continue;
        FOR_EACH_OWNER(q, o, index) {
            if (!add) {
                usage_give(&o->used.main[i], rest);
                usage_give(&o->used.reserve[i], reserved);
                continue;
            }
            o->used.main[i].used += rest;
            o->used.reserve[i].used += reserved;
        }
    }
}

/* What the process holds moves with it. What it used of a rate stays with the old owner. */
void quotas_set_owner(struct quotas *q, uint32_t slot, uint64_t owner, bool named)
{
    struct account *a = find_account(q, slot);

    if (!a)
        return;
    a->named = named;
    uint32_t index = find_owner(q, owner);
    if (index == a->owner)
        return;
    move_held(q, a, a->owner, false);
    move_held(q, a, index, true);
    count_processes(q, a->owner, false);
    count_processes(q, index, true);
    a->owner = index;
}

void quotas_end(struct quotas *q, uint32_t slot)
{
    struct account *a = find_account(q, slot);

    if (!a)
        return;
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        if (!defaults[i].per_second)
            quota_give(q, slot, (enum quota)i, a->usage[i].used);
    }
    count_processes(q, a->owner, false);
    q->refusing -= a->refused_any;
    *a = (struct account){0};
}

/* ---- taking ---- */

static bool fits(const struct usage *u, uint64_t amount, uint64_t limit)
{
    return u->used <= limit && amount <= limit - u->used;
}

/*
 * Whether an owner may take `amount` of the reserve, of which `left` is left. Half of that is for owners that have had less
 * than one program needs first: else those who came before would leave the next one half of what they found, and so on.
 */
static bool fits_reserve(const struct usage *u, uint64_t amount, const struct limit *l, uint64_t left)
{
    uint64_t half = reserve_of(l) / 2;

    return amount <= left && (fits(u, amount, l->first) || (left > half && fits(u, amount, left - half)));
}

enum room { ROOM_NONE, ROOM_MAIN, ROOM_RESERVE };

/* Whether the account, its owner and the pool have room for `amount` more, and where. */
static enum room find_room(struct quotas *q, struct account *a, enum quota kind, uint64_t amount, uint64_t time_ns)
{
    const struct limit *l = &q->limits[kind];
    struct usage *own = &a->usage[kind], *pool = &q->pool.main[kind], *kept = &q->pool.reserve[kind];
    uint64_t most = l->burst * l->pool, reserve = reserve_of(l);

    if (time_ns > q->time_ns)
        q->time_ns = time_ns;
    leak(own, l->per_second, time_ns);
    leak_shared(&q->pool, kind, l, time_ns);
    uint64_t used = pool->used + kept->used, left = most > used ? most - used : 0;
    uint64_t left_kept = reserve > kept->used ? reserve - kept->used : 0;
    if (a->named)
        return amount <= left ? ROOM_MAIN : ROOM_NONE;
    bool in_main = fits(own, amount, l->burst) && fits(pool, amount, most - reserve);
    bool in_reserve = fits(own, amount, l->first);
    FOR_EACH_OWNER(q, o, a->owner) {
        leak_shared(&o->used, kind, l, time_ns);
        in_main = in_main && fits(&o->used.main[kind], amount, left);
        bool is_owner = o == &q->owners.data[a->owner];
        in_reserve = in_reserve && (is_owner ? fits_reserve(&o->used.reserve[kind], amount, l, left_kept)
                                             : fits(&o->used.reserve[kind], amount, left_kept));
    }
    return in_main ? ROOM_MAIN : in_reserve ? ROOM_RESERVE : ROOM_NONE;
}

static void use(struct quotas *q, struct account *a, enum quota kind, uint64_t amount, bool of_reserve)
{
    a->usage[kind].used += amount;
    a->reserved[kind] += of_reserve && !defaults[kind].per_second ? amount : 0;
    (of_reserve ? q->pool.reserve : q->pool.main)[kind].used += amount;
    FOR_EACH_OWNER(q, o, a->owner)
        (of_reserve ? o->used.reserve : o->used.main)[kind].used += amount;
}

bool quota_try(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns)
{
    struct account *a = find_account(q, slot);

    enum room room = a ? find_room(q, a, kind, amount, time_ns) : ROOM_NONE;
    if (room == ROOM_NONE)
        return false;
    use(q, a, kind, amount, room == ROOM_RESERVE);
    return true;
}

bool quota_take(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns)
{
    bool taken = quota_try(q, slot, kind, amount, time_ns);

    quota_refuse(q, slot, kind, !taken);
    return taken;
}

bool quota_owe(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns)
{
    struct account *a = find_account(q, slot);

    if (!a)
        return false;
    enum room room = find_room(q, a, kind, amount, time_ns);
    use(q, a, kind, amount, room == ROOM_RESERVE);
    return room != ROOM_NONE;
}

void quota_give(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount)
{
    struct account *a = find_account(q, slot);

    if (!a)
        return;
    uint64_t reserved = amount < a->reserved[kind] ? amount : a->reserved[kind];
    usage_give(&a->usage[kind], amount);
    a->reserved[kind] -= reserved;
    usage_give(&q->pool.reserve[kind], reserved);
    usage_give(&q->pool.main[kind], amount - reserved);
    FOR_EACH_OWNER(q, o, a->owner) {
        usage_give(&o->used.reserve[kind], reserved);
        usage_give(&o->used.main[kind], amount - reserved);
    }
}

void quota_refuse(struct quotas *q, uint32_t slot, enum quota kind, uint64_t count)
{
    struct account *a = find_account(q, slot);

    if (!a || !count)
        return;
    a->refused[kind] += count;
    q->refusing += !a->refused_any;
    a->refused_any = true;
}

/* ---- refusals ---- */

bool quotas_refused(struct quotas *q, uint32_t slot, uint64_t counts[QUOTA_COUNT])
{
    struct account *a = find_account(q, slot);

    if (!a || !a->refused_any)
        return false;
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        counts[i] = a->refused[i];
        a->refused[i] = 0;
    }
    a->refused_any = false;
    q->refusing--;
    return true;
}

bool quotas_any_refused(const struct quotas *q)
{
    return q->refusing;
}

const char *quota_name(enum quota kind)
{
    static const char *const names[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool, first) #name,
#include "capture/host/quotas.def"
#undef QUOTA
    };

    return names[kind];
}

uint32_t quota_loss(enum quota kind)
{
    static const uint32_t losses[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool, first) LOSS_##loss,
#include "capture/host/quotas.def"
#undef QUOTA
    };

    return losses[kind];
}

const char *quota_unit(enum quota kind)
{
    static const char *const units[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool, first) unit,
#include "capture/host/quotas.def"
#undef QUOTA
    };

    return units[kind];
}
