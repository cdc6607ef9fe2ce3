/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/binary/table_numbers.h"

void table_numbers_deinit(struct table_numbers *n)
{
    VEC_DEINIT(&n->of_file);
    VEC_DEINIT(&n->free);
}

bool table_numbers_find(struct table_numbers *n, uint32_t file, uint32_t *number, bool *added)
{
    *added = false;
    while (n->of_file.count <= file) {
        if (!VEC_PUSH(&n->of_file, TABLE_NUMBER_NONE))
            return false;
    }
    *number = n->of_file.data[file];
    if (*number != TABLE_NUMBER_NONE)
        return true;
    if (!n->free.count && n->count == n->max) {
        n->lacked++;
        return true;
    }
    if (!VEC_RESERVE(&n->free, (size_t)n->count + 1)) /* so that each number can be given back */
        return false;
    *number = n->of_file.data[file] = n->free.count ? n->free.data[--n->free.count] : n->count++;
    *added = true;
    return true;
}

void table_numbers_release(struct table_numbers *n, uint32_t file)
{
    n->free.data[n->free.count++] = n->of_file.data[file];
    n->of_file.data[file] = TABLE_NUMBER_NONE;
}
