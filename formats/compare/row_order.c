/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the texts of rows. */
#include "formats/compare/row_order.h"

#include <math.h>

static int order_texts(const struct run_set *set, uint32_t a, uint32_t b)
{
    return a == b ? 0 : strcmp(run_set_text_get(set, a), run_set_text_get(set, b));
}

static int order_numbers(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int order_functions(const struct run_set *set, uint32_t a, uint32_t b)
{
    if (a == b || a == RUN_SET_NONE || b == RUN_SET_NONE)
        return order_numbers(a, b);
    const struct run_function *x = &set->functions.data[a], *y = &set->functions.data[b];
    int order = order_texts(set, x->file, y->file);
    if (!order)
        order = order_texts(set, x->name, y->name);
    return order ? order : order_numbers(x->first_line, y->first_line);
}

/* From the nodes to the root. */
static int order_nodes(const struct run_set *set, uint32_t a, uint32_t b)
{
    while (a != b && a != RUN_SET_NONE && b != RUN_SET_NONE) {
        const struct run_node *x = &set->nodes.data[a], *y = &set->nodes.data[b];
        int order = order_functions(set, x->function, y->function);
        if (order)
            return order;
        a = x->parent;
        b = y->parent;
    }
    return a == b ? 0 : a == RUN_SET_NONE ? -1 : 1;
}

static int order_lines(const struct run_set *set, uint32_t a, uint32_t b)
{
    if (a == b || a == RUN_SET_NONE || b == RUN_SET_NONE)
        return order_numbers(a, b);
    const struct run_line *x = &set->lines.data[a], *y = &set->lines.data[b];
    uint64_t x_code = set->codes.data[x->code].fingerprint, y_code = set->codes.data[y->code].fingerprint;
    return x->line != y->line ? order_numbers(x->line, y->line) : (x_code > y_code) - (x_code < y_code);
}

int row_name_order(const struct run_set *set, const struct compare_row *a, const struct compare_row *b)
{
    int order = (int)a->kind - (int)b->kind;

    if (!order)
        order = order_functions(set, a->function, b->function);
    if (!order && a->module != b->module)
        order = a->module == RUN_SET_NONE ? -1 : b->module == RUN_SET_NONE ? 1 : order_texts(set, a->module, b->module);
    if (!order)
        order = order_lines(set, a->line, b->line);
    return order ? order : order_nodes(set, a->node, b->node);
}

int row_surest_order(const struct run_set *set, const struct compare_row *a, const struct compare_row *b)
{
    if (a->q != b->q)
        return a->q < b->q ? -1 : 1;
    if (a->p != b->p)
        return a->p < b->p ? -1 : 1;
    double a_new = fabs(a->new_value - a->old_value), b_new = fabs(b->new_value - b->old_value);
    if (a_new != b_new)
        return a_new > b_new ? -1 : 1;
    return row_name_order(set, a, b);
}
