/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process as they are at one time: by address, not
 * overlapping. What is mapped over something cuts it, as in the kernel.
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
    struct module *module; /* NULL: no module, or not looked for */
    bool looked_up;        /* module was looked for */
    uint8_t build_id[20];
    uint32_t build_id_len;
    char *path;
};

/* A VEC(struct code_mapping). {0} is an empty one. */
struct code_mappings {
    struct code_mapping *data;
    size_t count, cap;
};

void code_mappings_deinit(struct code_mappings *list);
/* The first mapping that ends behind `address`: an index, `count` when all end before. */
size_t code_mappings_first_behind(const struct code_mappings *list, uint64_t address);
/* The mapping that holds `address`, or NULL. */
struct code_mapping *code_mappings_find(const struct code_mappings *list, uint64_t address);
/* Cuts out what lies there and puts a copy of `m` in; its place in *at. False: out of memory. */
bool code_mappings_add(struct code_mappings *list, const struct code_mapping *m, size_t *at);
/* A copy of a list, for a process that was forked: all are mapped at `time_ns`. False: out of memory. */
bool code_mappings_copy(struct code_mappings *to, const struct code_mappings *from, uint64_t time_ns);
/* What is known of the file behind it; refers to `m`. */
struct procfs_file code_mapping_file(const struct code_mapping *m);
/* Memory that no file is behind: code that a program makes at run time. */
bool code_mapping_is_anonymous(const struct code_mapping *m);

#endif
