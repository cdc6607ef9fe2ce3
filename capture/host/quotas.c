/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of an owner is the "dynamic threshold" of switches with shared buffers: it needs no list of who competes,
 * and leaves room for a newcomer at any time.
 */
#include "capture/host/quotas.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/* Owners that are told apart. Those beyond share one account, so that a user with many ids gains nothing. */
#define OWNERS_MAX 1024
#define OWNER_OTHERS 0

struct limit {
    uint64_t per_second, burst, pool; /* pool: a factor */
};
static const struct limit defaults[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool) {per_second, burst, pool},
#include "capture/host/quotas.def"
#undef QUOTA
};

struct usage {
    uint64_t used, updated_ns;
};

struct owner {
    uint32_t uid;
    uint32_t processes; /* that count for it now */
    struct usage usage[QUOTA_COUNT];
};

struct account {
    bool live, named, refused_any;
    uint32_t owner; /* index in owners */
    struct usage usage[QUOTA_COUNT];
    uint64_t refused[QUOTA_COUNT];
};

struct quotas {
    struct limit limits[QUOTA_COUNT];
    VEC(struct account) accounts; /* by slot */
    VEC(struct owner) owners;     /* the first has all that are not told apart */
    struct map owner_index;       /* uid -> index in owners */
    struct usage pool[QUOTA_COUNT];
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
    q->owners.data[q->owners.count++] = (struct owner){0};
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

/* ---- owners ---- */

/* An account that no process counts for, and that is empty, can serve another owner. */
static bool owner_is_idle(const struct quotas *q, struct owner *o)
{
    if (o->processes)
        return false;
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        leak(&o->usage[i], q->limits[i].per_second * q->limits[i].pool, q->time_ns);
        if (o->usage[i].used)
            return false;
    }
    return true;
}

static uint32_t reuse_owner(struct quotas *q, uint32_t uid)
{
    for (uint32_t i = OWNER_OTHERS + 1; i < q->owners.count; i++) {
        struct owner *o = &q->owners.data[i];
        if (!owner_is_idle(q, o))
            continue;
        map_remove(&q->owner_index, o->uid);
        *o = (struct owner){.uid = uid};
        return map_set(&q->owner_index, uid, i) ? i : OWNER_OTHERS;
    }
    return OWNER_OTHERS;
}

static uint32_t find_owner(struct quotas *q, uint32_t uid)
{
    const uint64_t *known = map_get(&q->owner_index, uid);

    if (known)
        return (uint32_t)*known;
    if (q->owners.count >= OWNERS_MAX)
        return reuse_owner(q, uid);
    uint32_t index = (uint32_t)q->owners.count;
    if (!VEC_RESERVE(&q->owners, (size_t)index + 1) || !map_set(&q->owner_index, uid, index))
        return OWNER_OTHERS;
    q->owners.data[q->owners.count++] = (struct owner){.uid = uid};
    return index;
}

/* ---- processes ---- */

static struct account *find_account(const struct quotas *q, uint32_t slot)
{
    return slot < q->accounts.count && q->accounts.data[slot].live ? &q->accounts.data[slot] : NULL;
}

struct error *quotas_begin(struct quotas *q, uint32_t slot, uint32_t owner, bool named)
{
    if (!VEC_EXTEND_ZERO(&q->accounts, (size_t)slot + 1))
        return error_no_memory();
    quotas_end(q, slot);
    struct account *a = &q->accounts.data[slot];
    *a = (struct account){.live = true, .named = named, .owner = find_owner(q, owner)};
    q->owners.data[a->owner].processes++;
    return NULL;
}

/* What the process holds moves with it. What it used of a rate stays with the old owner. */
static void move_held(const struct account *a, struct owner *from, struct owner *to)
{
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        if (defaults[i].per_second)
            continue;
        usage_give(&from->usage[i], a->usage[i].used);
        to->usage[i].used += a->usage[i].used;
    }
}

void quotas_set_owner(struct quotas *q, uint32_t slot, uint32_t owner, bool named)
{
    struct account *a = find_account(q, slot);

    if (!a)
        return;
    a->named = named;
    uint32_t index = find_owner(q, owner);
    if (index == a->owner)
        return;
    struct owner *from = &q->owners.data[a->owner], *to = &q->owners.data[index];
    move_held(a, from, to);
    from->processes--;
    to->processes++;
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
    q->owners.data[a->owner].processes--;
    q->refusing -= a->refused_any;
    *a = (struct account){0};
}

/* ---- taking ---- */

static bool fits(const struct usage *u, uint64_t amount, uint64_t limit)
{
    return u->used <= limit && amount <= limit - u->used;
}

/* Whether the account, its owner and the pool have room for `amount` more. */
static bool has_room(struct quotas *q, struct account *a, enum quota kind, uint64_t amount, uint64_t time_ns)
{
    const struct limit *l = &q->limits[kind];
    struct usage *own = &a->usage[kind], *shared = &q->owners.data[a->owner].usage[kind], *pool = &q->pool[kind];
    uint64_t most = l->burst * l->pool;

    if (time_ns > q->time_ns)
        q->time_ns = time_ns;
    leak(own, l->per_second, time_ns);
    leak(shared, l->per_second * l->pool, time_ns);
    leak(pool, l->per_second * l->pool, time_ns);
    uint64_t left = most > pool->used ? most - pool->used : 0;
    return amount <= left && (a->named || (fits(own, amount, l->burst) && fits(shared, amount, left)));
}

static void use(struct quotas *q, struct account *a, enum quota kind, uint64_t amount)
{
    a->usage[kind].used += amount;
    q->owners.data[a->owner].usage[kind].used += amount;
    q->pool[kind].used += amount;
}

bool quota_try(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount, uint64_t time_ns)
{
    struct account *a = find_account(q, slot);

    if (!a || !has_room(q, a, kind, amount, time_ns))
        return false;
    use(q, a, kind, amount);
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
    bool room = has_room(q, a, kind, amount, time_ns);
    use(q, a, kind, amount);
    return room;
}

void quota_give(struct quotas *q, uint32_t slot, enum quota kind, uint64_t amount)
{
    struct account *a = find_account(q, slot);

    if (!a)
        return;
    usage_give(&a->usage[kind], amount);
    usage_give(&q->owners.data[a->owner].usage[kind], amount);
    usage_give(&q->pool[kind], amount);
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
#define QUOTA(name, loss, unit, per_second, burst, pool) #name,
#include "capture/host/quotas.def"
#undef QUOTA
    };

    return names[kind];
}

uint32_t quota_loss(enum quota kind)
{
    static const uint32_t losses[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool) LOSS_##loss,
#include "capture/host/quotas.def"
#undef QUOTA
    };

    return losses[kind];
}

const char *quota_unit(enum quota kind)
{
    static const char *const units[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool) unit,
#include "capture/host/quotas.def"
#undef QUOTA
    };

    return units[kind];
}
