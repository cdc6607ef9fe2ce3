/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process at one time: sorted by address, not overlapping. A
 * new mapping replaces the parts of older ones that it covers, as in the kernel.
 */
#ifndef CAPTURE_BINARY_CODE_MAPPINGS_H
#define CAPTURE_BINARY_CODE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/host/procfs.h"

struct module;

struct code_mapping {
    uint64_t time_ns; /* 0: before the capture began */
    uint64_t address, length, file_offset;
    uint32_t protection, map_flags, device_major, device_minor;
    uint64_t inode, inode_generation;
    struct module *module; /* NULL: it has none, or was not looked up yet */
    bool looked_up;        /* `module` is set, if there is one */
    uint8_t build_id[20];
    uint32_t build_id_len;
    char *path;
};

/* A VEC(struct code_mapping). {0} is empty. */
struct code_mappings {
    struct code_mapping *data;
    size_t count, cap;
};

void code_mappings_deinit(struct code_mappings *list);
/* Returns the index of the first mapping that ends after `address`, or `count` when there is no such mapping. */
size_t code_mappings_first_behind(const struct code_mappings *list, uint64_t address);
/* Returns the mapping that contains `address`, or NULL. */
struct code_mapping *code_mappings_find(const struct code_mappings *list, uint64_t address);
/* Adds a copy of `m`, cuts what it covers, and stores its index in `*at`. False: out of memory. */
bool code_mappings_add(struct code_mappings *list, const struct code_mapping *m, size_t *at);
/* Copies a list, for a process that was forked, and sets time_ns of every mapping. False: out of memory. */
bool code_mappings_copy(struct code_mappings *to, const struct code_mappings *from, uint64_t time_ns);
/* Returns what is known of the file behind a mapping. The result borrows from `m`. */
struct procfs_file code_mapping_file(const struct code_mapping *m);
/* Whether the mapping has no file: code that a program generated at run time. */
bool code_mapping_is_anonymous(const struct code_mapping *m);

#endif
