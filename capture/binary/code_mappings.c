/* SPDX-License-Identifier: Apache-2.0 */
/* An array in order of address: few mappings, looked up often, changed seldom. */
#include "capture/binary/code_mappings.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"

void code_mappings_deinit(struct code_mappings *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->data[i].path);
    VEC_DEINIT(list);
}

size_t code_mappings_first_behind(const struct code_mappings *list, uint64_t address)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (list->data[mid].address + list->data[mid].length <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct code_mapping *code_mappings_find(const struct code_mappings *list, uint64_t address)
{
    size_t at = code_mappings_first_behind(list, address);

    return at < list->count && list->data[at].address <= address ? &list->data[at] : NULL;
}

/* Puts a mapping (taking its path over) into the list at `at`. */
static bool insert(struct code_mappings *list, size_t at, const struct code_mapping *m)
{
    if (!VEC_RESERVE(list, list->count + 1))
        return false;
    memmove(list->data + at + 1, list->data + at, (list->count - at) * sizeof *list->data);
    list->data[at] = *m;
    list->count++;
    return true;
}

/* What is mapped over is gone: cut out of the list. */
static bool cut(struct code_mappings *list, uint64_t start, uint64_t end)
{
    size_t at = code_mappings_first_behind(list, start), keep = at;

    if (at < list->count && list->data[at].address < start) {
        struct code_mapping *m = &list->data[at];
        uint64_t m_end = m->address + m->length;
        m->length = start - m->address;
        keep = ++at;
        if (m_end > end) {
            struct code_mapping right = *m;
            right.path = strdup(m->path);
            right.address = end;
            right.length = m_end - end;
            right.file_offset += end - m->address;
            if (!right.path || !insert(list, at, &right)) {
                free(right.path);
                return false;
            }
            return true;
        }
    }
    while (at < list->count && list->data[at].address + list->data[at].length <= end)
        free(list->data[at++].path);
    if (at < list->count && list->data[at].address < end) {
        uint64_t gone = end - list->data[at].address;
        list->data[at].address += gone;
        list->data[at].length -= gone;
        list->data[at].file_offset += gone;
    }
    if (at > keep)
        memmove(list->data + keep, list->data + at, (list->count - at) * sizeof *list->data);
    list->count -= at - keep;
    return true;
}

bool code_mappings_add(struct code_mappings *list, const struct code_mapping *m, size_t *at)
{
    struct code_mapping copy = *m;

    copy.path = strdup(m->path);
    if (!copy.path || !cut(list, m->address, m->address + m->length)) {
        free(copy.path);
        return false;
    }
    *at = code_mappings_first_behind(list, m->address);
    if (!insert(list, *at, &copy)) {
        free(copy.path);
        return false;
    }
    return true;
}

bool code_mappings_copy(struct code_mappings *to, const struct code_mappings *from, uint64_t time_ns)
{
    for (size_t i = 0; i < from->count; i++) {
        struct code_mapping m = from->data[i];
        m.time_ns = time_ns;
        m.path = strdup(m.path);
        if (!m.path || !VEC_PUSH(to, m)) {
            free(m.path);
            return false;
        }
    }
    return true;
}

struct procfs_file code_mapping_file(const struct code_mapping *m)
{
    return (struct procfs_file){
        .device_major = m->device_major,
        .device_minor = m->device_minor,
        .inode = m->inode,
        .build_id = m->build_id,
        .build_id_len = m->build_id_len,
    };
}

bool code_mapping_is_anonymous(const struct code_mapping *m)
{
    return m->path[0] != '/' || !strncmp(m->path, "//anon", 6) || !strncmp(m->path, "/memfd:", 7) ||
           !strncmp(m->path, "/dev/zero", 9);
}
