/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/compare/source_maps.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/compare/comparison.h"
#include "symbolize/compare/line_map.h"
#include "symbolize/source/sources.h"

struct source_maps {
    struct sources *old_sources, *new_sources;
    struct limits *limits;
    struct emit_model no_model; /* which of several files ran is not asked: stamps of both sides are not told apart */
    struct intern pairs;        /* both names, with a 0 byte between them */
    VEC(struct line_map) maps;  /* by pair */
    struct error *err;
};

static struct error *open_place(const char *place, struct limits *limits, struct sources **out)
{
    struct option_texts one = {.data = &place, .count = 1, .cap = 1};

    return sources_create(&one, limits, out);
}

struct error *source_maps_create(const char *old_place, const char *new_place, struct limits *limits, struct source_maps **out)
{
    struct source_maps *s = calloc(1, sizeof *s);

    *out = s;
    if (!s)
        return error_no_memory();
    s->limits = limits;
    TRY(open_place(old_place, limits, &s->old_sources));
    return open_place(new_place, limits, &s->new_sources);
}

void source_maps_destroy(struct source_maps *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->maps.count; i++)
        line_map_deinit(&s->maps.data[i]);
    VEC_DEINIT(&s->maps);
    intern_deinit(&s->pairs);
    sources_destroy(s->old_sources);
    sources_destroy(s->new_sources);
    error_destroy(s->err);
    free(s);
}

/* Of files that are not found on both sides the map is empty. */
static struct error *make_map(struct source_maps *s, const char *old_file, const char *new_file, struct line_map *map)
{
    struct emit_sources *old = sources_for_emitters(s->old_sources), *new = sources_for_emitters(s->new_sources);
    const struct emit_source *old_source, *new_source;

    TRY(old->find(old, &s->no_model, old_file, &old_source));
    TRY(new->find(new, &s->no_model, new_file, &new_source));
    return old_source && new_source ? line_map_init(map, old_source->text, new_source->text, s->limits) : NULL;
}

static struct error *find_map(struct source_maps *s, const char *old_file, const char *new_file, const struct line_map **out)
{
    struct line_map map = {0};
    struct buf key = {0};

    buf_put(&key, old_file, strlen(old_file) + 1);
    buf_put_str(&key, new_file);
    uint32_t pair = key.bad ? INTERN_NONE : intern_id(&s->pairs, (const char *)key.data, (uint32_t)key.len_bytes, NULL);
    buf_deinit(&key);
    if (pair == INTERN_NONE)
        return error_no_memory();
    struct error *err = pair == s->maps.count ? make_map(s, old_file, new_file, &map) : NULL;
    if (!err && pair == s->maps.count && !VEC_PUSH(&s->maps, map))
        err = error_no_memory();
    if (err)
        line_map_deinit(&map);
    else
        *out = &s->maps.data[pair];
    return err;
}

uint32_t source_maps_line(struct source_maps *s, const char *old_file, const char *new_file, uint32_t old_line)
{
    const struct line_map *map = NULL;

    if (!s->err)
        s->err = find_map(s, old_file, new_file, &map);
    return s->err || !map->new_lines ? COMPARE_LINE_UNKNOWN : line_map_get(map, old_line);
}

struct error *source_maps_error(struct source_maps *s)
{
    struct error *err = s->err;

    s->err = NULL;
    return err;
}
