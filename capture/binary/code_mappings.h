/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process at one time: sorted by address, not overlapping. A
 * new mapping replaces the parts of older ones that it covers, as in the kernel.
 *
 * A forked process shares its parent's list until one of the two changes, and then still
 * shares the mappings that are equal. Paths are kept once for all. So what a process costs
 * is what it maps itself; that has two limits: CODE_MAPPINGS_MAX for each process, and
 * CODE_MAPPINGS_BYTES for all, beyond which only processes with few mappings get more.
 */
#ifndef CAPTURE_BINARY_CODE_MAPPINGS_H
#define CAPTURE_BINARY_CODE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/binary/paths.h"
#include "capture/host/procfs.h"
#include "formats/base/map.h"

struct module;

struct code_mapping {
    uint64_t time_ns; /* 0: before the capture began; for a list, see code_mappings_time() */
    uint64_t address, length, file_offset;
    uint32_t protection, map_flags, device_major, device_minor;
    uint64_t inode, inode_generation;
    bool by_event;    /* it comes from an event, which has inode_generation; else from /proc */
    uint64_t replaced_ns; /* when its addresses, or some, last got another meaning; 0: never; set by code_mappings_add() */
    struct module *module; /* NULL: it has none, or was not looked up yet */
    bool looked_up;        /* `module` is set, if there is one */
    uint8_t build_id[20];
    uint32_t build_id_len;
    const char *path;
};

/* Far more than programs have: one with 10,000 libraries, or as many pieces of generated code, is recorded whole. */
#define CODE_MAPPINGS_MAX 16384
/* Memory for the mappings of all processes; beyond it those with CODE_MAPPINGS_FEW still get more, if paths are short. */
#define CODE_MAPPINGS_BYTES (UINT64_C(24) << 20)
#define CODE_MAPPINGS_FEW 512
#define CODE_MAPPINGS_PATH_FEW 256

/* What the lists of all processes share. {0} is empty. */
struct code_pool {
    struct paths paths;
    struct map lists; /* hash -> a list with that hash that code_mappings_unify() has met */
    uint64_t bytes;   /* of lists and mappings, without paths */
};
/* Every list must have been freed. */
void code_pool_deinit(struct code_pool *pool);
/* Returns the bytes of memory in use. */
uint64_t code_pool_bytes(const struct code_pool *pool);

/* {0} is empty. */
struct code_mappings {
    struct mapping_list *list; /* shared with other processes; NULL: empty */
    uint64_t since_ns;         /* when the process was forked; 0: it was not, since the capture began */
};

void code_mappings_deinit(struct code_mappings *m);
size_t code_mappings_count(const struct code_mappings *m);
/*
 * Returns the mapping with this index, in order of address. Other processes may share it: set only what is true of
 * the file for all of them (`module`, `looked_up`). Valid until this list is changed or freed.
 */
struct code_mapping *code_mappings_at(const struct code_mappings *m, size_t index);
/* Returns since when the process has this mapping of its list: a forked one has none that is older than itself. */
uint64_t code_mappings_time(const struct code_mappings *m, const struct code_mapping *mapping);
/* Returns the index of the first mapping that ends after `address`, or the count when there is no such mapping. */
size_t code_mappings_first_behind(const struct code_mappings *m, uint64_t address);
/* Whether two mappings surely show different files, as when one was put in the other's place under its name. */
bool code_mapping_is_other_file(const struct code_mapping *a, const struct code_mapping *b);
/* Returns the mapping that contains `address`, or NULL. */
struct code_mapping *code_mappings_find(const struct code_mappings *m, uint64_t address);

enum code_mappings_result {
    CODE_MAPPINGS_ADDED,
    CODE_MAPPINGS_CUT,       /* a limit is reached: the list has neither it nor what was there before */
    CODE_MAPPINGS_UNCHANGED, /* the same, and nothing was there before */
    CODE_MAPPINGS_NO_MEMORY,
};
/*
 * Adds a copy of `mapping`, cuts what it covers, and stores its index in `*at`. In a full list the older half of those
 * with the same path make room: the kernel does not report munmap(), so they may be gone.
 */
enum code_mappings_result code_mappings_add(struct code_mappings *m, struct code_pool *pool,
                                            const struct code_mapping *mapping, size_t *at);
/* Cuts out what lies at these addresses, of which no more is known than that it is another mapping. Never ADDED. */
enum code_mappings_result code_mappings_cut(struct code_mappings *m, struct code_pool *pool, uint64_t address, uint64_t length);
/* A range of addresses, `end` not included. */
struct address_range {
    uint64_t start, end;
};
struct address_ranges {
    struct address_range *data;
    size_t count, cap;
};
/*
 * Takes out the mappings that lie in none of the ranges, which are sorted by address and do not overlap. False: out of
 * memory.
 */
bool code_mappings_keep(struct code_mappings *m, struct code_pool *pool, const struct address_range *there, size_t count);
/*
 * Has the process share an equal list of another one, if there is one that was given to this function before. Its mappings
 * must be known since one time, as those are that were read from /proc together; else nothing happens.
 */
void code_mappings_unify(struct code_mappings *m, struct code_pool *pool);
/* Makes `to`, which is empty, share the list of `from`, for a process that was forked at `time_ns`. */
void code_mappings_share(struct code_mappings *to, const struct code_mappings *from, uint64_t time_ns);
/* Whether both share one list. Two empty ones do not. */
bool code_mappings_are_shared(const struct code_mappings *a, const struct code_mappings *b);
/*
 * Where the sampler's copy of the list is: a number that belongs to process_sampling.c, the same for all who share the
 * list. 0: there is none, or the list has changed since.
 */
uint64_t code_mappings_place(const struct code_mappings *m);
void code_mappings_set_place(struct code_mappings *m, uint64_t place);

/* Returns what is known of the file behind a mapping. The result borrows from `m`. */
struct procfs_file code_mapping_file(const struct code_mapping *m);
/* Whether the mapping has no file: code that a program generated at run time. */
bool code_mapping_is_anonymous(const struct code_mapping *m);

#endif
