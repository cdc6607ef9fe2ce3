/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/places.h"

#include "formats/base/columns.h"
#include "formats/emit/names.h"

enum { FUNCTION_COLUMNS = 120, FILE_COLUMNS = 80 };

/* What makes a place: texts by number. Has no padding. */
struct key {
    uint32_t kind, function, file, line;
};

/* Keeps `text` with a NUL behind it. INTERN_NONE: out of memory. */
static uint32_t keep(struct live_places *p, struct buf *text, size_t columns)
{
    struct buf cut = {0};

    columns_cut(&cut, text->data, text->len_bytes, columns);
    buf_put_u8(&cut, 0);
    uint32_t id = text->bad || cut.bad ? INTERN_NONE : intern_id(&p->texts, cut.data, (uint32_t)cut.len_bytes, NULL);
    buf_deinit(&cut);
    return id;
}

static const char *text_of(const struct live_places *p, uint32_t text)
{
    return (const char *)intern_get(&p->texts, text)->data;
}

/* Adds a place unless it is there. UINT32_MAX: out of memory. */
static uint32_t add(struct live_places *p, const struct key *key)
{
    bool added;

    if (p->list.count >= LIVE_PLACES_MAX) {
        uint32_t known = intern_find(&p->keys, key, sizeof *key);
        return known == INTERN_NONE ? LIVE_OTHERS : known;
    }
    uint32_t id = intern_id(&p->keys, key, sizeof *key, &added);
    struct live_place place = {.function = text_of(p, key->function), .file = text_of(p, key->file),
                               .line = key->line, .kind = (enum emit_frame_kind)key->kind};
    if (id == INTERN_NONE || (added && !VEC_PUSH(&p->list, place)))
        return UINT32_MAX;
    return id;
}

static bool add_mark(struct live_places *p, const char *text, uint32_t expected)
{
    struct key key = {.kind = EMIT_MARK};

    buf_clear(&p->scratch);
    buf_put_str(&p->scratch, text);
    key.function = keep(p, &p->scratch, FUNCTION_COLUMNS);
    buf_clear(&p->scratch);
    key.file = keep(p, &p->scratch, FILE_COLUMNS);
    return key.function != INTERN_NONE && key.file != INTERN_NONE && add(p, &key) == expected;
}

bool live_places_init(struct live_places *p, bool by_line)
{
    *p = (struct live_places){.by_line = by_line};
    return add_mark(p, "[others]", LIVE_OTHERS) && add_mark(p, NAME_NO_FRAMES, LIVE_NO_FRAMES);
}

void live_places_deinit(struct live_places *p)
{
    intern_deinit(&p->texts);
    intern_deinit(&p->keys);
    VEC_DEINIT(&p->list);
    VEC_DEINIT(&p->of_frame);
    buf_deinit(&p->scratch);
}

void live_places_forget_frames(struct live_places *p)
{
    p->of_frame.count = 0;
}

/* A binary's name, an extension module's without what says for which Python it is: _json.so for _json.cpython-313-x86_64-linux-gnu.so. */
static void put_binary(const char *path, struct buf *out)
{
    const char *name = name_base(path), *python = strstr(name, ".cpython-"), *end = strstr(name, ".so");
    struct buf text = {0};

    buf_put(&text, name, python && end > python ? (size_t)(python - name) : strlen(name));
    buf_put_str(&text, python && end > python ? end : "");
    name_plain(buf_cstr(&text), out);
    out->bad |= text.bad;
    buf_deinit(&text);
}

/* The file of a Python frame behind its package, or its name alone; of a native frame its binary's name. */
static void put_file(const struct emit_frame *frame, struct buf *out)
{
    const char *path = frame->kind == EMIT_PYTHON ? names_package_path(frame->file) : "";

    if (frame->kind == EMIT_NATIVE)
        put_binary(frame->module, out);
    else
        name_plain(*path == '/' ? name_base(path) : path, out);
}

/* Of a function that is unknown its binary. */
static void put_function(const struct names *names, const struct emit_frame *frame, struct buf *out)
{
    bool unknown = frame->kind == EMIT_NATIVE && !*frame->function && *frame->module && !name_is_generated(frame->module);

    /* A module's own code is <module>, as its file stands behind it. */
    if (frame->kind == EMIT_PYTHON && *frame->function) {
        name_plain(frame->function, out);
        return;
    }
    if (!unknown) {
        names_put_function(names, frame, false, out);
        return;
    }
    buf_put_str(out, "[");
    put_binary(frame->module, out);
    buf_put_str(out, "]");
}

/* Over the limit nothing is spelled that would not be kept. */
static uint32_t make(struct live_places *p, const struct emit_model *model, const struct emit_frame *frame)
{
    static const struct emit_options options = {.full_paths = true};
    const struct names names = {.model = model, .options = &options};
    struct key key = {.kind = (uint32_t)frame->kind};
    bool python = frame->kind == EMIT_PYTHON;

    if (p->list.count >= LIVE_PLACES_MAX && p->texts.count >= 4 * LIVE_PLACES_MAX)
        return LIVE_OTHERS;
    buf_clear(&p->scratch);
    put_function(&names, frame, &p->scratch);
    key.function = keep(p, &p->scratch, FUNCTION_COLUMNS);
    buf_clear(&p->scratch);
    put_file(frame, &p->scratch);
    key.file = keep(p, &p->scratch, FILE_COLUMNS);
    key.line = !python ? 0 : p->by_line ? frame->line : frame->function_line;
    return key.function == INTERN_NONE || key.file == INTERN_NONE ? UINT32_MAX : add(p, &key);
}

uint32_t live_places_of(struct live_places *p, const struct emit_model *model, uint32_t frame)
{
    if (frame < p->of_frame.count && p->of_frame.data[frame])
        return p->of_frame.data[frame] - 1;
    if (!VEC_EXTEND_ZERO(&p->of_frame, model->frame_count))
        return UINT32_MAX;
    uint32_t place = make(p, model, &model->frames[frame]);
    if (place != UINT32_MAX)
        p->of_frame.data[frame] = place + 1;
    return place;
}
