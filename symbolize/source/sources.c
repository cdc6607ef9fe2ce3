/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/source/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/arena.h"
#include "formats/base/buf.h"
#include "formats/base/code_file.h"
#include "formats/base/intern.h"
#include "formats/base/open_regular.h"
#include "formats/base/vec.h"
#include "symbolize/source/notebook.h"
#include "symbolize/source/source_match.h"
#include "symbolize/source/source_path.h"
#include "symbolize/source/source_text.h"

enum {
    LOOK_WORK = 3000,  /* of looking for one path, in steps of the limits */
    READ_WORK = 10,    /* of a byte that is read and decoded */
};

struct place {
    char *from;         /* clean; "": any suffix of a path is looked for */
    const char *folder; /* as given */
    int fd;
};

/* What was found under a name of the trace. */
struct source_entry {
    bool looked;
    struct emit_source *found; /* in the arena: entries move; NULL: nothing */
};

struct sources {
    struct emit_sources face; /* first: emitters have its address */
    VEC(struct place) places;
    struct notebooks notebooks;
    struct limits *limits;
    struct arena arena;       /* texts and paths of what was found */
    uint64_t text_bytes;
    struct intern names;      /* as in frames, with the NUL */
    VEC(struct source_entry) entries; /* by name */
    /* By name: its frames and its stamp, of as much of a model as was there. */
    uint32_t frames_indexed, stamps_indexed;
    VEC(uint32_t) frame_ends; /* where those of a name end in `frames`; they begin where those of the one before end */
    VEC(uint32_t) frames;
    VEC(uint32_t) stamps;     /* UINT32_MAX: there is none */
};

/* ---- the places ---- */

const char *source_folder(const char *argument, size_t *from_len)
{
    const char *equals = strchr(argument, '=');

    *from_len = equals ? (size_t)(equals - argument) : 0;
    return equals ? equals + 1 : argument;
}

static struct error *add_place(struct sources *s, const char *argument)
{
    size_t from_len;
    struct place place = {.folder = source_folder(argument, &from_len)};
    struct buf from = {0};

    if (notebook_is(place.folder))
        return notebooks_add(&s->notebooks, place.folder);
    char *given = strndup(argument, from_len);

    if (!given)
        return error_no_memory();
    if (!strcmp(given, "/"))
        buf_put_u8(&from, '/');
    else if (from_len && !source_path_clean(given, &from)) {
        free(given);
        buf_deinit(&from);
        return error_create(ERROR_USAGE, "--source %s: what stands before = is no path", argument);
    }
    free(given);
    place.from = from.bad ? NULL : strdup(buf_cstr(&from));
    buf_deinit(&from);
    place.fd = open(place.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct error *err = !place.from      ? error_no_memory()
                        : place.fd < 0 ? error_file(errno, place.folder, "cannot be searched for source files")
                                       : NULL;
    if (!err && VEC_PUSH(&s->places, place))
        return NULL;
    if (place.fd >= 0)
        close(place.fd);
    free(place.from);
    return err ? err : error_no_memory();
}

/* ---- what the model knows of names ---- */

static uint32_t name_id(struct sources *s, const char *name)
{
    return intern_id(&s->names, name, (uint32_t)strlen(name) + 1, NULL);
}

static bool has_source(const struct emit_frame *f)
{
    return *f->file && (f->kind == EMIT_PYTHON || f->kind == EMIT_NATIVE);
}

/* Puts the frames of each name together, by counting. */
static bool index_frames(struct sources *s, const struct emit_model *m)
{
    if (!limits_work(s->limits, 100 * (uint64_t)m->frame_count))
        return false;
    for (uint32_t i = 0; i < m->frame_count; i++) {
        if (has_source(&m->frames[i]) && name_id(s, m->frames[i].file) == INTERN_NONE)
            return false;
    }
    s->frame_ends.count = s->frames.count = 0;
    if (!VEC_EXTEND_ZERO(&s->frame_ends, s->names.count) || !VEC_EXTEND_ZERO(&s->frames, m->frame_count))
        return false;
    for (uint32_t i = 0; i < m->frame_count; i++) {
        if (has_source(&m->frames[i]))
            s->frame_ends.data[name_id(s, m->frames[i].file)]++;
    }
    uint32_t sum = 0;
    for (uint32_t id = 0; id < s->names.count; id++) {
        uint32_t count = s->frame_ends.data[id];
        s->frame_ends.data[id] = sum; /* where they begin, until all are there */
        sum += count;
    }
    for (uint32_t i = 0; i < m->frame_count; i++) {
        if (has_source(&m->frames[i]))
            s->frames.data[s->frame_ends.data[name_id(s, m->frames[i].file)]++] = i;
    }
    s->frames_indexed = m->frame_count;
    return true;
}

static bool index_stamps(struct sources *s, const struct emit_model *m)
{
    if (!limits_work(s->limits, 100 * (uint64_t)m->source_stamp_count))
        return false;
    for (uint32_t i = 0; i < m->source_stamp_count; i++) {
        uint32_t id = name_id(s, m->source_stamps[i].file);
        if (id == INTERN_NONE || !VEC_EXTEND_NONE(&s->stamps, (size_t)id + 1))
            return false;
        s->stamps.data[id] = i;
    }
    s->stamps_indexed = m->source_stamp_count;
    return true;
}

static bool index_model(struct sources *s, const struct emit_model *m)
{
    return (s->frames_indexed == m->frame_count || index_frames(s, m)) &&
           (s->stamps_indexed == m->source_stamp_count || index_stamps(s, m));
}

/* ---- one candidate ---- */

/* The bytes of a regular file; false: there is none, or it is too large. */
static bool read_file(int fd, struct buf *out)
{
    enum { PIECE = 1 << 16 };

    while (out->len_bytes <= SOURCE_FILE_MAX_BYTES) {
        uint8_t *to = buf_reserve(out, PIECE);
        ssize_t n = to ? read(fd, to, PIECE) : -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        out->len_bytes += (size_t)n;
    }
    return false;
}

struct candidate_source {
    struct buf text, path, reason;
    enum emit_source_match match;
};

static void candidate_source_deinit(struct candidate_source *c)
{
    buf_deinit(&c->text);
    buf_deinit(&c->path);
    buf_deinit(&c->reason);
    *c = (struct candidate_source){0};
}

static struct error *judge(struct sources *s, const struct emit_model *m, uint32_t id, const struct stat *st, struct candidate_source *c)
{
    struct source_lines lines = {0};
    bool has_frames = id < s->frame_ends.count;
    uint32_t first = has_frames && id ? s->frame_ends.data[id - 1] : 0;
    bool has_stamp = id < s->stamps.count && s->stamps.data[id] != UINT32_MAX;
    struct source_match match = {.model = m,
                                 .frames = has_frames ? s->frames.data + first : NULL,
                                 .frame_count = has_frames ? s->frame_ends.data[id] - first : 0,
                                 .stamp = has_stamp ? &m->source_stamps[s->stamps.data[id]] : NULL,
                                 .size_bytes = (uint64_t)st->st_size,
                                 .modified = st->st_mtim,
                                 .lines = &lines,
                                 .limits = s->limits};

    bool ok = source_lines_init(&lines, buf_cstr(&c->text), c->text.len_bytes) && source_match_judge(&match, &c->match, &c->reason);
    source_lines_deinit(&lines);
    return ok && !c->reason.bad ? NULL : error_no_memory();
}

/* *found: there is a file, and `c` is filled in. */
static struct error *look(struct sources *s, const struct emit_model *m, uint32_t id, const struct place *place, const char *path,
                          struct candidate_source *c, bool *found)
{
    struct buf bytes = {0};
    struct stat st;

    *found = false;
    if (!limits_work(s->limits, LOOK_WORK))
        return error_no_memory();
    int fd = open_regular(place->fd, path, OPEN_FOLLOW);
    if (fd < 0)
        return NULL;
    bool ok = !fstat(fd, &st) && (uint64_t)st.st_size <= SOURCE_FILE_MAX_BYTES && read_file(fd, &bytes);
    close(fd);
    struct error *err = NULL;
    if (ok && !limits_work(s->limits, READ_WORK * (uint64_t)bytes.len_bytes))
        err = error_no_memory();
    if (ok && !err) {
        source_text_decode(bytes.data, bytes.len_bytes, &c->text);
        const char *slash = *place->folder && place->folder[strlen(place->folder) - 1] == '/' ? "" : "/";
        buf_printf(&c->path, "%s%s%s", place->folder, slash, path + (*path == '/'));
        err = c->text.bad || c->path.bad ? error_no_memory() : judge(s, m, id, &st, c);
        *found = !err;
    }
    buf_deinit(&bytes);
    return err;
}

/* ---- the best candidate ---- */

/* Files of these names are everywhere. */
static bool says_nothing(const char *file)
{
    return !strcmp(file, "__init__.py") || !strcmp(file, "__main__.py");
}

/* Where the last part of a path begins, and how long it is without slashes at its end. */
static const char *last_part(const char *path, size_t len, size_t *part_len)
{
    size_t from;

    while (len && path[len - 1] == '/')
        len--;
    for (from = len; from && path[from - 1] != '/'; from--)
        ;
    *part_len = len - from;
    return path + from;
}

/* Is a file that has nothing but its name in common with the recorded path another file? */
static bool is_stray(const struct place *place, const char *name, const char *path, const struct candidate_source *c)
{
    size_t above = strlen(name) - strlen(path), len, folder_len;

    if (*place->from || strchr(path, '/') || !above || c->match == EMIT_SOURCE_SAME)
        return false;
    /* The folder itself may be the one in which the recorded file lay. */
    const char *part = last_part(name, above, &len), *folder = last_part(place->folder, strlen(place->folder), &folder_len);
    if (len && len == folder_len && !memcmp(part, folder, len))
        return false;
    return c->match == EMIT_SOURCE_CHANGED || says_nothing(path);
}

static int rank(enum emit_source_match match)
{
    static const int ranks[] = {[EMIT_SOURCE_CHANGED] = 0, [EMIT_SOURCE_UNKNOWN] = 1, [EMIT_SOURCE_SAME] = 2};

    return ranks[match];
}

/* All paths that one place has for the name, the longest first, until no better one can come. */
static struct error *look_in(struct sources *s, const struct emit_model *m, uint32_t id, const struct place *place, const char *name,
                             struct candidate_source *best, bool *has_best)
{
    bool has_stamp = id < s->stamps.count && s->stamps.data[id] != UINT32_MAX;
    const char *path = *place->from ? source_path_in(name, place->from) : name;

    while (path && !(*has_best && rank(best->match) >= rank(has_stamp ? EMIT_SOURCE_SAME : EMIT_SOURCE_UNKNOWN))) {
        struct candidate_source c = {0};
        bool found;
        struct error *err = look(s, m, id, place, path, &c, &found);
        if (err) {
            candidate_source_deinit(&c);
            return err;
        }
        if (found && !is_stray(place, name, path, &c) && (!*has_best || rank(c.match) > rank(best->match))) {
            candidate_source_deinit(best);
            *best = c;
            *has_best = true;
        } else {
            candidate_source_deinit(&c);
        }
        path = *place->from ? NULL : source_path_shorter(path);
    }
    return NULL;
}

/* Keeps what was found, if there is room. */
static struct error *keep(struct sources *s, const struct candidate_source *c, struct emit_source **out)
{
    if (c->text.len_bytes > SOURCES_MAX_BYTES - s->text_bytes)
        return NULL;
    struct emit_source *source = arena_alloc(&s->arena, sizeof *source);
    if (!source)
        return error_no_memory();
    *source = (struct emit_source){.path = arena_strndup(&s->arena, (const char *)c->path.data, c->path.len_bytes),
                                   .text = arena_strndup(&s->arena, (const char *)c->text.data, c->text.len_bytes),
                                   .len_bytes = c->text.len_bytes,
                                   .match = c->match,
                                   .reason = arena_strndup(&s->arena, (const char *)c->reason.data, c->reason.len_bytes)};
    if (!source->path || !source->text || !source->reason)
        return error_no_memory();
    s->text_bytes += c->text.len_bytes;
    *out = source;
    return NULL;
}

static struct error *search_cell(struct sources *s, uint32_t hash, struct source_entry *entry)
{
    const struct notebook_cell *cell = notebooks_find(&s->notebooks, hash);
    struct candidate_source c = {.match = EMIT_SOURCE_SAME};

    if (!cell)
        return NULL;
    buf_put(&c.text, cell->text, cell->len_bytes);
    buf_printf(&c.path, "%s, code cell %u", cell->notebook, cell->number);
    struct error *err = c.text.bad || c.path.bad ? error_no_memory() : keep(s, &c, &entry->found);
    candidate_source_deinit(&c);
    return err;
}

static struct error *search(struct sources *s, const struct emit_model *m, uint32_t id, const char *file,
                            struct source_entry *entry)
{
    struct candidate_source best = {0};
    struct buf name = {0};
    bool has_best = false;
    struct error *err = NULL;
    uint32_t hash;

    if (code_file_is_cell(file, &hash))
        return search_cell(s, hash, entry);
    bool is_path = source_path_clean(file, &name);
    if (is_path && name.bad)
        err = error_no_memory();
    for (size_t i = 0; is_path && !err && i < s->places.count; i++)
        err = look_in(s, m, id, &s->places.data[i], buf_cstr(&name), &best, &has_best);
    if (!err && has_best)
        err = keep(s, &best, &entry->found);
    candidate_source_deinit(&best);
    buf_deinit(&name);
    return err;
}

static struct error *find(struct emit_sources *face, const struct emit_model *model, const char *file, const struct emit_source **found)
{
    struct sources *s = (struct sources *)face;

    *found = NULL;
    if (!*file)
        return NULL;
    uint32_t id = index_model(s, model) ? name_id(s, file) : INTERN_NONE;
    if (id == INTERN_NONE || !VEC_EXTEND_ZERO(&s->entries, (size_t)id + 1))
        return error_no_memory();
    struct source_entry *entry = &s->entries.data[id];
    if (!entry->looked)
        TRY(search(s, model, id, file, entry));
    entry->looked = true;
    *found = entry->found;
    return NULL;
}

/* ---- the storage ---- */

struct error *sources_create(const struct option_texts *arguments, struct limits *limits, struct sources **out)
{
    struct sources *s = calloc(1, sizeof *s);
    struct error *err = NULL;

    *out = NULL;
    if (!s)
        return error_no_memory();
    s->face.find = find;
    s->limits = limits;
    for (size_t i = 0; !err && i < arguments->count; i++)
        err = add_place(s, arguments->data[i]);
    if (err)
        sources_destroy(s);
    else
        *out = s;
    return err;
}

void sources_destroy(struct sources *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->places.count; i++) {
        close(s->places.data[i].fd);
        free(s->places.data[i].from);
    }
    VEC_DEINIT(&s->places);
    notebooks_deinit(&s->notebooks);
    arena_deinit(&s->arena);
    intern_deinit(&s->names);
    VEC_DEINIT(&s->entries);
    VEC_DEINIT(&s->frame_ends);
    VEC_DEINIT(&s->frames);
    VEC_DEINIT(&s->stamps);
    free(s);
}

struct emit_sources *sources_for_emitters(struct sources *s)
{
    return s ? &s->face : NULL;
}
