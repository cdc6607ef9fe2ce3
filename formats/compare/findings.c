/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: a level for p, the findings at that level, and the level that so many findings are worth. */
#include "formats/compare/findings.h"

#include <math.h>

#include "formats/compare/estimates.h"
#include "formats/compare/peel.h"
#include "formats/compare/stories.h"

/* The level only falls, and after one or two rounds it stays. */
enum { ROUNDS_MAX = 8 };

/* The p that a discovery may have at most, by how many there are that no other explains (Benjamini and Hochberg); 0: there are
 * none. */
static double find_level(const struct test_rows *r, double alpha)
{
    size_t discoveries = 0;

    for (size_t i = 0; i < r->rows.count; i++) {
        const struct test_row *row = &r->rows.data[i];
        discoveries += row->shown.tested && !row_is_explained(row) && row->shown.q < alpha;
    }
    return r->rows.count ? alpha * (double)discoveries / (double)r->rows.count : 0;
}

static void forget_answers(struct test_rows *r)
{
    for (size_t i = 0; i < r->rows.count; i++) {
        struct test_row *row = &r->rows.data[i];
        row->shown.answer = COMPARE_CANNOT_TELL;
        row->shown.because = COMPARE_NO_ROW;
        row->estimate = row->measured;
        row->p = row->shown.p;
        estimates_show(row);
    }
}

/* Are all findings discoveries still? */
static bool all_stay(const struct test_rows *r, double alpha)
{
    for (size_t i = 0; i < r->rows.count; i++) {
        const struct test_row *row = &r->rows.data[i];
        if (row->shown.answer != COMPARE_CANNOT_TELL && !row_is_explained(row) && !(row->shown.q < alpha))
            return false;
    }
    return true;
}

/* What the rounds left behind: a row has an answer if its q is below alpha, or that of the row that explains it. */
static void settle(struct test_rows *r, double alpha)
{
    for (size_t i = 0; i < r->rows.count; i++) {
        struct compare_row *shown = &r->rows.data[i].shown;
        if (row_is_explained(&r->rows.data[i]))
            continue;
        if (shown->answer == COMPARE_CANNOT_TELL)
            shown->q = fmax(shown->q, alpha);
        else if (!(shown->q < alpha))
            shown->answer = COMPARE_CANNOT_TELL;
    }
    for (size_t i = 0; i < r->rows.count; i++) {
        struct compare_row *shown = &r->rows.data[i].shown;
        if (shown->because != COMPARE_NO_ROW && r->rows.data[shown->because].shown.answer == COMPARE_CANNOT_TELL) {
            shown->answer = COMPARE_CANNOT_TELL;
            shown->because = COMPARE_NO_ROW;
        }
    }
}

struct error *findings_answer(struct test_rows *r, double alpha)
{
    double level = find_level(r, alpha);

    for (int i = 0; i < ROUNDS_MAX && level > 0; i++) {
        forget_answers(r);
        TRY(peel(r, level));
        TRY(stories_tell(r, level));
        TRY(estimates_correct(r));
        if (all_stay(r, alpha))
            break;
        level = fmin(find_level(r, alpha), level);
    }
    settle(r, alpha);
    return NULL;
}
