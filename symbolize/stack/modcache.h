/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binaries that a trace speaks of, each found and opened once, however many epochs,
 * processes and paths it appears under. What tells binaries apart is the build ID; one
 * without a build ID is told apart by its path, and an image in memory by its contents.
 */
#ifndef SYMBOLIZE_STACK_MODCACHE_H
#define SYMBOLIZE_STACK_MODCACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/binary/binaries.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/perf_maps.h"
#include "symbolize/binary/symbols.h"
#include "symbolize/unwind/unwind.h"

struct modcache_entry {
    uint32_t kind, id_kind; /* enum trace_module_kind, enum trace_id_kind */
    const uint8_t *build_id;
    uint32_t build_id_len;
    const char *path; /* the first one it was recorded under */
    const uint8_t *image;
    uint64_t image_len;
    /* What became of it. */
    bool looked_up;
    struct binary_files files;
    char *trouble; /* why a file that was found is of no use, or NULL */
    uint64_t perf_map_names; /* lines that were read of its table of symbols */
    uint64_t perf_map_bad;   /* those that were not: they break the form, or are too many */
    struct symbols *symbols;
    struct unwind_module *unwind;
    /* Counted by the resolver: samples with a frame of it that is shown, and with one that has no name. */
    uint64_t sample_count, unresolved_count;
};

struct modcache;
struct error *modcache_create(const struct binaries_options *options, struct modcache **out);
void modcache_destroy(struct modcache *c);
/* The number of an epoch's module. Opens nothing. */
struct error *modcache_index(struct modcache *c, const struct epoch *e, uint32_t module, uint32_t *index);
uint32_t modcache_count(const struct modcache *c);
/* Stays where it is as long as the cache lives. */
struct modcache_entry *modcache_get(struct modcache *c, uint32_t index);
/* Its symbols, opened at the first call; what can have none opens empty. A broken file is noted, not an error. */
struct error *modcache_symbols(struct modcache *c, uint32_t index, struct symbols **out);
/*
 * The symbols of generated code, for a module that is the anonymous memory of a process: NULL when the trace has none.
 * Reads the file at hand once more, the first time.
 */
struct error *modcache_perf_map(struct modcache *c, uint32_t index, struct perf_map **out);
/* From here on entries come from that file, "-" for one that cannot be read twice; it must stay valid. */
void modcache_begin_file(struct modcache *c, const char *path);
/* A table out of a file that cannot be read twice. */
struct error *modcache_add_perf_map(struct modcache *c, const struct epoch *e, const struct trace_perf_map *rec);
/* The same for unwinding. */
struct error *modcache_unwind(struct modcache *c, uint32_t index, struct unwind_module **out);

#endif
