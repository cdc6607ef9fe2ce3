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

struct mapping {
    uint64_t time_ns; /* 0: before the capture began */
    uint64_t address, length, file_offset;
    uint32_t protection, map_flags, device_major, device_minor;
    uint64_t inode, inode_generation;
    struct module *module; /* NULL: none */
    bool looked_up;        /* module was looked for */
    uint8_t build_id[20];
    uint32_t build_id_len;
    char *path;
};

/* A VEC(struct mapping). {0} is an empty one. */
struct mappings {
    struct mapping *data;
    size_t count, cap;
};

void mappings_deinit(struct mappings *list);
/* The first mapping that ends behind `address`: an index, `count` when there is none. */
size_t mappings_first_behind(const struct mappings *list, uint64_t address);
/* The mapping that holds `address`, or NULL. */
struct mapping *mappings_find(const struct mappings *list, uint64_t address);
/* Cuts out what lies there and puts a copy of `m` in; its place in *at. False: out of memory. */
bool mappings_add(struct mappings *list, const struct mapping *m, size_t *at);
/* A copy of a list, for a process that was forked: all are mapped at `time_ns`. False: out of memory. */
bool mappings_copy(struct mappings *to, const struct mappings *from, uint64_t time_ns);
/* What is known of the file behind it; refers to `m`. */
struct procfs_file mapping_file(const struct mapping *m);
/* Memory that no file is behind: code that a program makes at run time. */
bool mapping_is_anonymous(const struct mapping *m);

#endif
