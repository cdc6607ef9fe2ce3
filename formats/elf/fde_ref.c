/* SPDX-License-Identifier: Apache-2.0 */
/* A radix sort by pc, one byte a round, lowest first, which is stable. Most files have their FDEs in order already. */
#include "formats/elf/fde_ref.h"

#include <stdlib.h>

bool fde_refs_sort(struct fde_ref *refs, size_t count)
{
    bool sorted = true;

    for (size_t i = 1; i < count && sorted; i++)
        sorted = refs[i - 1].pc <= refs[i].pc;
    if (sorted)
        return true;
    struct fde_ref *from = refs, *to = malloc(count * sizeof *to);
    if (!to)
        return false;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        size_t at[256] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            at[from[i].pc >> shift & 255]++;
        for (size_t i = 0; i < 256; i++) {
            size_t here = at[i];
            at[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[at[from[i].pc >> shift & 255]++] = from[i];
        struct fde_ref *swap = from;
        from = to;
        to = swap;
    }
    /* After an even number of rounds the result is back in `refs`. */
    free(to);
    return true;
}
