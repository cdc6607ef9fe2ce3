/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/frame_cache.h"

enum { KEPT_MAX_BYTES = 16 << 20 };

void frame_cache_deinit(struct frame_cache *c)
{
    intern_deinit(&c->codes);
    intern_deinit(&c->places);
    VEC_DEINIT(&c->frames);
    VEC_DEINIT(&c->epoch_codes);
    buf_deinit(&c->scratch);
}

void frame_cache_end_epoch(struct frame_cache *c)
{
    c->epoch_codes.count = 0;
}

static void put_bytes(struct buf *out, struct trace_bytes b)
{
    buf_put_u64(out, b.len_bytes);
    buf_put(out, b.data, b.len_bytes);
}

/* All fields of a CODE record but its id. */
static void put_code(const struct trace_code *r, struct buf *out)
{
    const uint64_t numbers[] = {r->python_version, r->python_flags,  (uint64_t)r->first_line, r->co_flags,
                                r->code_len_bytes, r->name_form,     r->name_len,             r->qualname_form,
                                r->qualname_len,   r->filename_form, r->filename_len,         r->line_table_form,
                                r->line_table_len, r->id != 0};

    buf_put(out, numbers, sizeof numbers);
    put_bytes(out, r->name);
    put_bytes(out, r->qualname);
    put_bytes(out, r->filename);
    put_bytes(out, r->line_table);
}

static void begin_anew(struct frame_cache *c)
{
    intern_deinit(&c->codes);
    intern_deinit(&c->places);
    VEC_DEINIT(&c->frames);
    c->epoch_codes.count = 0;
}

/* The number of the code's contents; false: out of memory. */
static bool find_code(struct frame_cache *c, const struct epoch *e, uint32_t code, uint32_t *out)
{
    if (!VEC_EXTEND_NONE(&c->epoch_codes, e->codes.count))
        return false;
    uint32_t *known = &c->epoch_codes.data[code];
    if (*known == FRAME_CACHE_NONE) {
        buf_clear(&c->scratch);
        put_code(&e->codes.data[code], &c->scratch);
        if (!c->scratch.bad && c->scratch.len_bytes <= UINT32_MAX)
            *known = intern_id(&c->codes, c->scratch.data, (uint32_t)c->scratch.len_bytes, NULL);
    }
    *out = *known;
    return *known != FRAME_CACHE_NONE;
}

uint32_t *frame_cache_find(struct frame_cache *c, const struct epoch *e, uint32_t code, int64_t at, uint32_t interpreter)
{
    struct {
        int64_t at;
        uint32_t code, interpreter;
    } place = {.at = at, .interpreter = interpreter};

    if (intern_bytes(&c->codes) + intern_bytes(&c->places) + c->frames.count * sizeof *c->frames.data > KEPT_MAX_BYTES)
        begin_anew(c);
    if (!find_code(c, e, code, &place.code))
        return NULL;
    uint32_t id = intern_id(&c->places, &place, sizeof place, NULL);
    return id != INTERN_NONE && VEC_EXTEND_NONE(&c->frames, (size_t)id + 1) ? &c->frames.data[id] : NULL;
}
