/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binaries that traces refer to. Each is found and opened once, however many epochs,
 * processes and paths it appears in. Binaries are identified by their build ID; one
 * without a build ID by its path, and an image in memory by its contents. Paths with one build ID are places of one
 * binary, which is looked for at each until it is found.
 */
#ifndef SYMBOLIZE_STACK_MODCACHE_H
#define SYMBOLIZE_STACK_MODCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "symbolize/binary/binaries.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/perf_maps.h"
#include "symbolize/binary/symbols.h"
#include "symbolize/unwind/unwind.h"

enum { MODCACHE_PLACES_MAX = 16 };

struct modcache_entry {
    uint32_t kind, id_kind; /* enum trace_module_kind, enum trace_id_kind */
    const uint8_t *build_id;
    uint32_t build_id_len;
    const char *path; /* the first one it was recorded under */
    const char *places[MODCACHE_PLACES_MAX]; /* all of them, that one first */
    uint32_t place_count;
    uint64_t file_size; /* as recorded */
    const uint8_t *image;
    uint64_t image_len;
    /* The result of the lookup. */
    uint32_t looked_at; /* places: until the binary is found */
    struct binary_files files;
    char *trouble; /* why a file that was found cannot be used, or NULL */
    uint64_t perf_map_names; /* lines that were read of its table of symbols */
    uint64_t perf_map_bad;   /* lines that were not read: malformed, or too many */
    struct symbols *symbols;
    struct unwind_module *unwind;
    /* Counted by the resolver: samples with a frame of it, and those that show one without a name. */
    uint64_t sample_count, unresolved_count;
};

struct modcache;
/* `limits` is borrowed; NULL: none. */
struct error *modcache_create(const struct binaries_options *options, struct limits *limits, struct modcache **out);
void modcache_destroy(struct modcache *c);
/* Sets *index to the number of an epoch's module in the cache. Opens no files. */
struct error *modcache_index(struct modcache *c, const struct epoch *e, uint32_t module, uint32_t *index);
/* Whether it was told to look into archives. */
bool modcache_has_archive(const struct modcache *c);
uint32_t modcache_count(const struct modcache *c);
/* The pointer stays valid as long as the cache lives. */
struct modcache_entry *modcache_get(struct modcache *c, uint32_t index);
/*
 * The symbols of a module, opened at the first call. A module without symbols gets an empty struct. A broken file
 * is not an error; entry->trouble says what is wrong. They stay until the next call for this module, or of modcache_unwind().
 */
struct error *modcache_symbols(struct modcache *c, uint32_t index, struct symbols **out);
/*
 * The symbols of generated code, for a module that is the anonymous memory of a process; NULL when the trace has none.
 * The first call reads the current file once more.
 */
struct error *modcache_perf_map(struct modcache *c, uint32_t index, struct perf_map **out);
/* Further entries come from that file; "-": it cannot be read twice. Borrowed until the next file begins. */
void modcache_begin_file(struct modcache *c, const char *path);
/* Adds a table of a file that cannot be read twice. */
struct error *modcache_add_perf_map(struct modcache *c, const struct epoch *e, const struct trace_perf_map *rec);
/* What the unwinder needs of a module, opened at the first call. */
struct error *modcache_unwind(struct modcache *c, uint32_t index, struct unwind_module **out);

#endif
