/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/modcache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/arena.h"
#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/elf/identity.h"

enum { SEARCHED_MODULES_MAX = 4096 }; /* real traces have some hundreds */

struct modcache {
    struct binaries *binaries;
    struct limits *limits;
    bool has_archive;
    struct arena arena;
    struct intern keys; /* an entry has the number of its key */
    VEC(struct modcache_entry *) entries; /* in the arena, because callers keep pointers to them */
    struct buf key;
    struct perf_maps perf_maps;
    const char *path; /* the current file; NULL: its tables were read already, or there is no file */
};

struct error *modcache_create(const struct binaries_options *options, struct limits *limits, struct modcache **out)
{
    struct modcache *c = calloc(1, sizeof *c);

    if (!c)
        return error_no_memory();
    c->limits = c->arena.limits = c->keys.arena.limits = c->perf_maps.limits = c->perf_maps.ids.arena.limits = limits;
    struct error *err = binaries_create(options, &c->binaries);
    if (err) {
        free(c);
        return err;
    }
    c->has_archive = options->archives && options->archives[0];
    *out = c;
    return NULL;
}

bool modcache_has_archive(const struct modcache *c)
{
    return c->has_archive;
}

void modcache_destroy(struct modcache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->entries.count; i++) {
        struct modcache_entry *m = c->entries.data[i];
        limits_give(c->limits, 2 * m->image_len);
        symbols_close(m->symbols);
        unwind_module_close(m->unwind);
        binary_files_deinit(&m->files);
        free(m->trouble);
    }
    VEC_DEINIT(&c->entries);
    intern_deinit(&c->keys);
    arena_deinit(&c->arena);
    buf_deinit(&c->key);
    perf_maps_deinit(&c->perf_maps);
    binaries_destroy(c->binaries);
    free(c);
}

static bool is_place(const struct modcache_entry *m, const char *path)
{
    uint32_t i = 0;

    while (i < m->place_count && strcmp(m->places[i], path) != 0)
        i++;
    return i < m->place_count;
}

/* False: out of memory. */
static bool add_place(struct modcache *c, struct modcache_entry *m, const char *path)
{
    if (m->place_count == MODCACHE_PLACES_MAX || is_place(m, path))
        return true;
    const char *copy = arena_strndup(&c->arena, path, strlen(path));
    if (copy)
        m->places[m->place_count++] = copy;
    return copy != NULL;
}

/* What else the epoch calls a new entry: frames that are met first are named as well then. False: out of memory. */
static bool add_places(struct modcache *c, const struct epoch *e, struct modcache_entry *m)
{
    bool ok = add_place(c, m, m->path);

    if (!m->build_id_len || m->kind != TRACE_MODULE_ELF || e->modules.count > SEARCHED_MODULES_MAX)
        return ok;
    for (size_t i = 1; ok && i < e->modules.count; i++) {
        const struct trace_module *other = &e->modules.data[i].def;
        if (other->kind == m->kind && other->id_kind == m->id_kind && other->build_id.len_bytes == m->build_id_len &&
            !memcmp(other->build_id.data, m->build_id, m->build_id_len))
            ok = add_place(c, m, epoch_text(e, other->path));
    }
    return ok;
}

struct error *modcache_index(struct modcache *c, const struct epoch *e, uint32_t module, uint32_t *index)
{
    const struct epoch_module *m = &e->modules.data[module];
    const char *path = epoch_text(e, m->def.path);
    bool has_id = m->def.id_kind != TRACE_ID_NONE && m->def.build_id.len_bytes;
    bool added;

    buf_clear(&c->key);
    buf_put_u32(&c->key, m->def.kind);
    buf_put_u32(&c->key, has_id ? m->def.id_kind : TRACE_ID_NONE);
    if (has_id) {
        buf_put(&c->key, m->def.build_id.data, m->def.build_id.len_bytes);
    } else {
        buf_put_str(&c->key, path);
        buf_put_u8(&c->key, 0);
        buf_put(&c->key, m->image.data, m->image.len_bytes);
    }
    if (c->key.bad || c->key.len_bytes > UINT32_MAX)
        return error_no_memory();
    *index = intern_id(&c->keys, c->key.data, (uint32_t)c->key.len_bytes, &added);
    if (*index == INTERN_NONE)
        return error_no_memory();
    if (!added)
        return add_place(c, c->entries.data[*index], path) ? NULL : error_no_memory();

    struct modcache_entry *entry = arena_calloc(&c->arena, 1, sizeof *entry);
    if (!entry)
        return error_no_memory();
    entry->kind = m->def.kind;
    entry->id_kind = has_id ? m->def.id_kind : TRACE_ID_NONE;
    entry->file_size = m->def.file_size;
    entry->path = arena_strndup(&c->arena, path, strlen(path));
    if (has_id) {
        entry->build_id_len = (uint32_t)m->def.build_id.len_bytes;
        entry->build_id = arena_dup(&c->arena, m->def.build_id.data, entry->build_id_len);
    }
    if (m->image.len_bytes) {
        /* Its symbols and its call frame information need a copy each. */
        if (!limits_take(c->limits, 2 * m->image.len_bytes))
            return error_no_memory();
        entry->image_len = m->image.len_bytes;
        entry->image = arena_dup(&c->arena, m->image.data, entry->image_len);
    }
    if (!entry->path || (has_id && !entry->build_id) || (entry->image_len && !entry->image) ||
        !VEC_PUSH(&c->entries, entry) || !add_places(c, e, entry))
        return error_no_memory();
    return NULL;
}

uint32_t modcache_count(const struct modcache *c)
{
    return (uint32_t)c->entries.count;
}

struct modcache_entry *modcache_get(struct modcache *c, uint32_t index)
{
    return c->entries.data[index];
}

static_assert((int)ELF_ID_NONE == TRACE_ID_NONE && (int)ELF_ID_BUILD_ID == TRACE_ID_BUILD_ID &&
                  (int)ELF_ID_CONTENT_HASH == TRACE_ID_CONTENT_HASH && (int)ELF_ID_PARTS_HASH == TRACE_ID_PARTS_HASH,
              "a module's kind of id is looked for as it is");

/* If a file cannot be read, its module has no names; only running out of memory is an error. */
static struct error *note(struct modcache_entry *m, struct error *err)
{
    if (!err || err->code == ERROR_NO_MEMORY)
        return err;
    if (!m->trouble)
        m->trouble = strdup(error_text(err));
    error_destroy(err);
    return m->trouble ? NULL : error_no_memory();
}

static struct error *look_up(struct modcache *c, struct modcache_entry *m)
{
    for (; m->looked_at < m->place_count && !m->files.binary; m->looked_at++) {
        const struct binary_key key = {
            .build_id = m->build_id, .build_id_len = m->build_id_len, .id_kind = m->id_kind, .path = m->places[m->looked_at],
            .file_size = m->file_size, .no_servers = m->looked_at};
        struct binary_files found;
        TRY(note(m, binaries_find(c->binaries, &key, &found)));
        if (found.binary || !m->looked_at) {
            binary_files_deinit(&m->files);
            m->files = found;
            symbols_close(m->symbols); /* of what was found before */
            m->symbols = NULL;
        } else { /* the problem of the first place stays */
            binary_files_deinit(&found);
        }
    }
    return NULL;
}

struct error *modcache_symbols(struct modcache *c, uint32_t index, struct symbols **out)
{
    struct modcache_entry *m = c->entries.data[index];

    if (m->kind == TRACE_MODULE_ELF && !m->image_len)
        TRY(look_up(c, m));
    if (!m->symbols) {
        if (m->image_len)
            TRY(note(m, symbols_open_memory(m->image, m->image_len, &m->symbols)));
        else if (m->kind == TRACE_MODULE_ELF)
            TRY(note(m, symbols_open(&m->files, &m->symbols)));
        if (!m->symbols) {
            struct binary_files none = {0};
            TRY(symbols_open(&none, &m->symbols));
        }
    }
    *out = m->symbols;
    return NULL;
}

struct error *modcache_unwind(struct modcache *c, uint32_t index, struct unwind_module **out)
{
    struct modcache_entry *m = c->entries.data[index];

    if (!m->unwind) {
        if (m->image_len)
            TRY(note(m, unwind_module_open_memory(m->image, m->image_len, &m->unwind)));
        else if (m->kind == TRACE_MODULE_ELF) {
            TRY(look_up(c, m));
            if (m->files.binary)
                TRY(note(m, unwind_module_open_files(&m->files, &m->unwind)));
        }
        if (!m->unwind)
            TRY(unwind_module_open(NULL, NULL, &m->unwind));
    }
    *out = m->unwind;
    return NULL;
}

void modcache_begin_file(struct modcache *c, const char *path)
{
    c->path = path;
}

struct error *modcache_add_perf_map(struct modcache *c, const struct epoch *e, const struct trace_perf_map *rec)
{
    return perf_maps_record(&c->perf_maps, e, rec);
}

struct error *modcache_perf_map(struct modcache *c, uint32_t index, struct perf_map **out)
{
    struct modcache_entry *entry = c->entries.data[index];

    *out = NULL;
    if (entry->kind != TRACE_MODULE_ANONYMOUS || !entry->build_id_len)
        return NULL;
    if (c->path)
        TRY(perf_maps_read(&c->perf_maps, c->path));
    c->path = NULL;
    *out = perf_maps_get(&c->perf_maps, entry->build_id, entry->build_id_len);
    if (!*out)
        return error_no_memory();
    entry->perf_map_names = (*out)->lines.count;
    entry->perf_map_bad = (*out)->bad_count;
    return NULL;
}
