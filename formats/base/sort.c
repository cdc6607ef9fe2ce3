/* SPDX-License-Identifier: Apache-2.0 */
/* A merge sort from the bottom up, between two buffers. */
#include "formats/base/sort.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In each round two neighbouring runs of `width` items become one. */
bool sort_stable(void *data, size_t count, size_t size_bytes, int (*compare)(const void *, const void *))
{
    if (count < 2)
        return true;
    uint8_t *from = data, *spare = calloc(count, size_bytes), *to = spare;
    if (!spare)
        return false;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t mid = start + width < count ? start + width : count;
            size_t end = start + 2 * width < count ? start + 2 * width : count;
            size_t a = start, b = mid;
            for (size_t i = start; i < end; i++) {
                bool left = a < mid && (b == end || compare(from + a * size_bytes, from + b * size_bytes) <= 0);
                memcpy(to + i * size_bytes, from + (left ? a++ : b++) * size_bytes, size_bytes);
            }
        }
        uint8_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != data)
        memcpy(data, from, count * size_bytes);
    free(spare);
    return true;
}
