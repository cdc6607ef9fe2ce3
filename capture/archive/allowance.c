/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by owner, and of all owners but root. Root's files are on no account but their own, so nobody uses it up. */
#include "capture/archive/allowance.h"

void allowance_init(struct allowance *a, uint64_t owner_bytes_max)
{
    *a = (struct allowance){.owner_bytes_max = owner_bytes_max ? owner_bytes_max : ALLOWANCE_OWNER_BYTES,
                            .all_bytes_max = ALLOWANCE_ALL_BYTES};
}

void allowance_deinit(struct allowance *a)
{
    VEC_DEINIT(&a->owners);
}

/* Whether the sum stays within the limit. */
static bool fits(uint64_t used, uint64_t len_bytes, uint64_t most)
{
    return used <= most && len_bytes <= most - used;
}

bool allowance_take(struct allowance *a, uid_t owner, uint64_t len_bytes)
{
    size_t i = 0;

    if (!owner) {
        if (!fits(a->root_bytes, len_bytes, a->all_bytes_max))
            return false;
        a->root_bytes += len_bytes;
        return true;
    }
    while (i < a->owners.count && a->owners.data[i].owner != owner)
        i++;
    if (i == a->owners.count && !VEC_PUSH(&a->owners, ((struct allowance_use){owner, 0})))
        return false;
    struct allowance_use *use = &a->owners.data[i];
    if (!fits(use->bytes, len_bytes, a->owner_bytes_max) || !fits(a->others_bytes, len_bytes, a->all_bytes_max))
        return false;
    use->bytes += len_bytes;
    a->others_bytes += len_bytes;
    return true;
}
