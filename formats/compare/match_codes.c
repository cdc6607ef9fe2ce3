/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the time of code objects over the runs of a side. */
#include "formats/compare/match_codes.h"

#include "formats/compare/conditions.h"

/* The part of a function's time that codes of one side alone must have, so that it says "changed". */
static const double CHANGED_LEAST = 0.1;

/* The time of a code cell: on the stack; of one that nobody counted there, as the owner. */
static double cell_time(const struct run_cell *cell)
{
    double time = cell->total > cell->self ? cell->total : cell->self;

    return time > 0 && time < 1e300 ? time : 0;
}

static void add_side(struct match_codes *c, const struct sides *s, enum side side)
{
    for (size_t i = 0; i < s->runs.count; i++) {
        const struct run_event *e = s->runs.data[i].event;
        for (size_t j = 0; side_of(s, i) == side && j < e->codes.count; j++)
            c->weight[side][e->codes.data[j].id] += cell_time(&e->codes.data[j]);
    }
    for (uint32_t code = 0; code < c->set->codes.count; code++) {
        uint32_t *main = &c->main_code[side][c->set->codes.data[code].function];
        double weight = c->weight[side][code];
        if (weight > 0 && (*main == RUN_SET_NONE || weight > c->weight[side][*main]))
            *main = code;
    }
}

struct error *match_codes_init(struct match_codes *c, const struct sides *s)
{
    *c = (struct match_codes){.set = s->set, .known = conditions_same_pythons(s)};
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        c->weight[side] = calloc(s->set->codes.count + 1, sizeof *c->weight[side]);
        c->main_code[side] = malloc((s->set->functions.count + 1) * sizeof *c->main_code[side]);
        if (!c->weight[side] || !c->main_code[side])
            return error_no_memory();
        memset(c->main_code[side], 0xff, (s->set->functions.count + 1) * sizeof *c->main_code[side]);
        add_side(c, s, side);
    }
    return NULL;
}

void match_codes_deinit(struct match_codes *c)
{
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        free(c->weight[side]);
        free(c->main_code[side]);
    }
    *c = (struct match_codes){0};
}

const struct run_code *match_codes_main(const struct match_codes *c, enum side side, uint32_t function)
{
    uint32_t code = function == RUN_SET_NONE ? RUN_SET_NONE : c->main_code[side][function];

    return code == RUN_SET_NONE ? NULL : &c->set->codes.data[code];
}

uint64_t match_codes_fingerprint(const struct match_codes *c, enum side side, uint32_t function)
{
    const struct run_code *code = match_codes_main(c, side, function);

    return code && c->known ? code->fingerprint : 0;
}

/* The time of one code of a subject, by fingerprint. */
struct code_share {
    uint32_t subject;
    uint64_t fingerprint;
    double weight[SIDE_COUNT];
};

static int compare_shares(const void *a, const void *b)
{
    const struct code_share *x = a, *y = b;

    if (x->subject != y->subject)
        return x->subject < y->subject ? -1 : 1;
    return (x->fingerprint > y->fingerprint) - (x->fingerprint < y->fingerprint);
}

/* What the shares of one subject say. */
static enum compare_code judge(const struct code_share *shares, size_t count)
{
    double all[SIDE_COUNT] = {0}, alone[SIDE_COUNT] = {0};

    for (size_t i = 0, next; i < count; i = next) {
        double weight[SIDE_COUNT] = {0};
        if (!shares[i].fingerprint)
            return COMPARE_CODE_UNKNOWN;
        for (next = i; next < count && shares[next].fingerprint == shares[i].fingerprint; next++)
            for (enum side side = 0; side < SIDE_COUNT; side++)
                weight[side] += shares[next].weight[side];
        for (enum side side = 0; side < SIDE_COUNT; side++) {
            all[side] += weight[side];
            alone[side] += weight[!side] > 0 ? 0 : weight[side];
        }
    }
    if (!(all[SIDE_OLD] > 0 && all[SIDE_NEW] > 0))
        return COMPARE_CODE_UNKNOWN;
    bool changed = alone[SIDE_OLD] >= CHANGED_LEAST * all[SIDE_OLD] || alone[SIDE_NEW] >= CHANGED_LEAST * all[SIDE_NEW];
    return changed ? COMPARE_CODE_CHANGED : COMPARE_CODE_EQUAL;
}

struct error *match_code_states(const struct match_codes *c, uint32_t *const *of_function, struct subject *subjects)
{
    size_t codes = c->set->codes.count, count = 0;
    struct code_share *shares = c->known ? calloc(SIDE_COUNT * codes + 1, sizeof *shares) : NULL;

    if (!shares)
        return c->known ? error_no_memory() : NULL;
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        for (size_t i = 0; i < codes; i++) {
            const struct run_code *code = &c->set->codes.data[i];
            uint32_t subject = of_function[side][code->function];
            if (c->weight[side][i] > 0 && subject != RUN_SET_NONE) {
                shares[count] = (struct code_share){subject, code->fingerprint, {0}};
                shares[count++].weight[side] = c->weight[side][i];
            }
        }
    }
    qsort(shares, count, sizeof *shares, compare_shares);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && shares[next].subject == shares[i].subject; next++)
            ;
        subjects[shares[i].subject].code = judge(shares + i, next - i);
    }
    free(shares);
    return NULL;
}
