/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where unwind tables lie that the sampler reads: in words, each table in one extent, its wide rows first, then its rows and its
 * index. There are more words when they are needed, up to a limit.
 */
#ifndef CAPTURE_BINARY_TABLE_SPACE_H
#define CAPTURE_BINARY_TABLE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/binary/extents.h"
#include "formats/base/err.h"
#include "formats/elf/unwind_table.h"

/* The words, which the sampler owns (capture/sampler/table_chunks.h). */
struct table_words {
    uint64_t *words;
    uint32_t count, max; /* so many there are now, and may be */
    /* Makes so many more words at least, and stores how many there are then, which may be as many as before. NULL: it cannot. */
    struct error *(*grow)(void *ctx, uint32_t more, uint32_t *count);
    /* Called before words are first accessed; NULL: all are mapped already. */
    struct error *(*map)(void *ctx, uint32_t start, uint32_t count);
    void *ctx;
};

/* What BPF reads, mapped into this process. The sampler owns it. */
struct tables_memory {
    struct table_words words;
    struct wire_module *modules;
    uint32_t module_count;
    /* Raised each time a table was taken out: the sampler then forgets the rows that it keeps. NULL: it keeps none. */
    uint32_t *generation;
    uint32_t *changes; /* raised before and after any change of `modules`; NULL: nobody asks */
};

struct table_space {
    struct table_words words;
    struct extents extents;
};

/* False: out of memory; then table_space_deinit() is still needed. */
bool table_space_init(struct table_space *s, const struct table_words *words);
void table_space_deinit(struct table_space *s);
/* How many words a table takes, and one that lies at a place. */
uint64_t table_words_of(const struct unwind_table *table);
uint32_t table_space_words(const struct wire_module *place);
/* Where the table lies. */
uint32_t table_space_start(const struct wire_module *place);
/* Lays a table in, and stores where. `*there`: false when there is no room, and cannot be more. */
struct error *table_space_put(struct table_space *s, const struct unwind_table *table, struct wire_module *place, bool *there);
bool table_space_equals(const struct table_space *s, const struct wire_module *place, const struct unwind_table *table);
/* The table at a place, which borrows the words. */
struct unwind_table table_space_view(const struct table_space *s, const struct wire_module *place);
/*
 * Gives back the extent of `place`, that a sample may still be reading. It becomes free in extents_free_after_grace(). False:
 * out of memory.
 */
bool table_space_give(struct table_space *s, const struct wire_module *place, uint64_t time_ns);
/* Whether something was given back that is not free yet. */
bool table_space_is_coming(const struct table_space *s);

#endif
