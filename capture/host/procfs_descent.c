/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted by parent, all children of a process lie side by side; each process found is looked up as a parent once. */
#include "capture/host/procfs_descent.h"

#include <stdlib.h>
#include <unistd.h>

#include "capture/host/procfs_task.h"
#include "formats/base/map.h"

static int by_parent(const void *a, const void *b)
{
    const struct procfs_parentage *x = a, *y = b;

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The index of the first child of `parent`; that of somebody else's child, or `count`, when it has none. */
static size_t first_child(const struct procfs_parentage *list, size_t count, uint32_t parent)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (list[mid].parent < parent)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool add_children(const struct procfs_parentage *list, size_t count, uint32_t parent, struct map *known,
                         struct procfs_pids *out)
{
    for (size_t i = first_child(list, count, parent); i < count && list[i].parent == parent; i++) {
        if (map_get(known, list[i].pid))
            continue;
        if (!map_set(known, list[i].pid, 1) || !VEC_PUSH(&out->list, (pid_t)list[i].pid))
            return false;
    }
    return true;
}

struct error *procfs_descend(struct procfs_parentage *list, size_t count, const uint32_t *roots, size_t root_count,
                             struct procfs_pids *out)
{
    struct map known = {0};
    bool ok = true;

    if (count)
        qsort(list, count, sizeof *list, by_parent);
    for (size_t i = 0; ok && i < root_count; i++)
        ok = map_set(&known, roots[i], 1);
    for (size_t i = 0; ok && i < root_count; i++)
        ok = add_children(list, count, roots[i], &known, out);
    for (size_t i = 0; ok && i < out->list.count; i++) /* the list grows meanwhile */
        ok = add_children(list, count, (uint32_t)out->list.data[i], &known, out);
    map_deinit(&known);
    return ok ? NULL : error_no_memory();
}

struct error *procfs_descendants(const uint32_t *roots, size_t root_count, struct procfs_pids *out)
{
    VEC(struct procfs_parentage) list = {0};
    struct procfs_pids all;
    struct error *err;

    *out = (struct procfs_pids){0};
    TRY(procfs_pids(&all));
    err = VEC_RESERVE(&list, all.list.count) ? NULL : error_no_memory();
    for (size_t i = 0; !err && i < all.list.count; i++) {
        struct procfs_stat stat;
        if (all.list.data[i] != getpid() && procfs_stat(all.list.data[i], 0, &stat))
            list.data[list.count++] = (struct procfs_parentage){(uint32_t)all.list.data[i], stat.parent_tgid};
    }
    if (!err)
        err = procfs_descend(list.data, list.count, roots, root_count, out);
    if (err)
        VEC_DEINIT(&out->list);
    VEC_DEINIT(&list);
    VEC_DEINIT(&all.list);
    return err;
}
