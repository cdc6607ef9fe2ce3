/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the map are cut into words; each label is an entry in the list of its pod, container, unit or host. */
#include "symbolize/push/label_map.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/lines.h"
#include "formats/base/utf8.h"
#include "formats/base/vec.h"
#include "formats/trace/container.h"
#include "symbolize/push/label_rule.h"
#include "symbolize/push/profile.h"

struct label_map {
    struct limits *limits;
    struct intern texts; /* of names and values, with their NUL */
    struct intern names; /* likewise: each once */
    struct intern keys;  /* a byte of the kind, and what it is about */
    VEC(uint32_t) heads; /* by key: its first entry */
    VEC(struct label_map_entry) entries;
    struct buf key; /* scratch */
};

struct error *label_map_create(struct limits *limits, struct label_map **out)
{
    struct label_map *m = calloc(1, sizeof *m);

    if (!m)
        return error_no_memory();
    m->limits = m->texts.arena.limits = m->names.arena.limits = m->keys.arena.limits = limits;
    *out = m;
    return NULL;
}

void label_map_destroy(struct label_map *m)
{
    if (!m)
        return;
    intern_deinit(&m->texts);
    intern_deinit(&m->names);
    intern_deinit(&m->keys);
    limits_give(m->limits, m->heads.count * sizeof *m->heads.data + m->entries.count * sizeof *m->entries.data);
    VEC_DEINIT(&m->heads);
    VEC_DEINIT(&m->entries);
    buf_deinit(&m->key);
    free(m);
}

/* ---- what a line is about ---- */

static const char *const kind_names[LABEL_MAP_KINDS] = {
    [LABEL_MAP_CONTAINER] = "container:", [LABEL_MAP_POD] = "pod:", [LABEL_MAP_UNIT] = "unit:", [LABEL_MAP_HOST] = "host:"};

static bool are_hex_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isxdigit((unsigned char)text[i]))
            return false;
    }
    return len;
}

/* As label_map_find() is asked for it. */
static void put_subject(struct buf *out, enum label_map_kind kind, const char *text, size_t len)
{
    static const char service[] = ".service";

    if (kind == LABEL_MAP_CONTAINER)
        container_skip_engine(&text, &len);
    if (kind == LABEL_MAP_CONTAINER && len > CONTAINER_ID_SHORT && are_hex_digits(text, len))
        len = CONTAINER_ID_SHORT;
    if (kind == LABEL_MAP_UNIT && len > strlen(service) && !memcmp(text + len - strlen(service), service, strlen(service)))
        len -= strlen(service);
    for (size_t i = 0; i < len; i++)
        buf_put_u8(out, (uint8_t)(kind == LABEL_MAP_POD ? tolower((unsigned char)text[i]) : text[i]));
}

/* The number of the key that the word names. */
static struct error *take_key(struct label_map *m, const char *word, size_t len, const char *origin, uint32_t *out)
{
    enum label_map_kind kind = 0;

    while (kind < LABEL_MAP_KINDS && strncmp(word, kind_names[kind], strlen(kind_names[kind])) != 0)
        kind++;
    if (kind == LABEL_MAP_KINDS || len <= strlen(kind_names[kind]))
        return error_create(ERROR_USAGE, "%s: a line begins with pod:UID, container:ID, unit:NAME or host:NAME, not '%.*s'", origin, (int)len,
                            word);
    size_t begin = strlen(kind_names[kind]), count = m->heads.count;
    buf_clear(&m->key);
    buf_put_u8(&m->key, (uint8_t)kind);
    put_subject(&m->key, kind, word + begin, len - begin);
    *out = m->key.bad ? INTERN_NONE : intern_id(&m->keys, m->key.data, (uint32_t)m->key.len_bytes, NULL);
    if (*out == INTERN_NONE || !VEC_EXTEND_COUNTED(m->limits, &m->heads, (size_t)*out + 1))
        return error_no_memory();
    if (*out >= count)
        m->heads.data[*out] = LABEL_MAP_END;
    return NULL;
}

/* ---- labels ---- */

/* A copy with a NUL; NULL: out of memory. */
static const char *keep(struct label_map *m, struct intern *texts, const char *text, size_t len)
{
    buf_clear(&m->key);
    buf_put(&m->key, text, len);
    buf_put_u8(&m->key, 0);
    uint32_t id = m->key.bad ? INTERN_NONE : intern_id(texts, m->key.data, (uint32_t)m->key.len_bytes, NULL);
    return id == INTERN_NONE ? NULL : (const char *)intern_get(texts, id)->data;
}

static struct error *check_value(const char *origin, const char *value, size_t len)
{
    if (!len)
        return error_create(ERROR_USAGE, "%s: a label lacks its value", origin);
    if (len > PROFILE_LABEL_VALUE_MAX)
        return error_create(ERROR_USAGE, "%s: the value of a label has %d bytes at most", origin, PROFILE_LABEL_VALUE_MAX);
    if (!utf8_is_printable(value, len))
        return error_create(ERROR_USAGE, "%s: a label holds characters that cannot be shown", origin);
    return NULL;
}

static struct error *take_label(struct label_map *m, uint32_t key, const char *word, size_t len, const char *origin)
{
    const char *equals = memchr(word, '=', len);
    size_t name_len = equals ? (size_t)(equals - word) : len;

    if (!equals)
        return error_create(ERROR_USAGE, "%s: labels are written label=value, not '%.*s'", origin, (int)len, word);
    TRY(label_check_name(origin, word, name_len));
    TRY(check_value(origin, equals + 1, len - name_len - 1));
    struct label_map_entry entry = {.name = keep(m, &m->names, word, name_len),
                                    .value = keep(m, &m->texts, equals + 1, len - name_len - 1),
                                    .next = m->heads.data[key]};
    if (!entry.name || !entry.value)
        return error_no_memory();
    for (uint32_t i = entry.next; i != LABEL_MAP_END; i = m->entries.data[i].next) {
        if (!strcmp(m->entries.data[i].name, entry.name))
            return error_create(ERROR_USAGE, "%s: it has the label %s already", origin, entry.name);
    }
    if (!limits_take(m->limits, sizeof entry) || !VEC_PUSH(&m->entries, entry))
        return error_no_memory();
    m->heads.data[key] = (uint32_t)m->entries.count - 1;
    return NULL;
}

struct error *label_map_add(struct label_map *m, const char *line, const char *origin)
{
    static const char blanks[] = " \t\r";
    uint32_t key = 0;

    for (size_t len, words = 0; *line; line += len + strspn(line + len, blanks), words++) {
        len = strcspn(line, blanks);
        if (words)
            TRY(take_label(m, key, line, len, origin));
        else
            TRY(take_key(m, line, len, origin, &key));
    }
    return NULL;
}

static struct error *take_line(void *ctx, const char *line, const char *origin)
{
    return label_map_add(ctx, line, origin);
}

struct error *label_map_read(struct label_map *m, const char *path)
{
    return lines_read(path, take_line, m);
}

/* ---- asking ---- */

uint32_t label_map_find(const struct label_map *m, enum label_map_kind kind, const char *text)
{
    struct buf key = {0};

    buf_put_u8(&key, (uint8_t)kind);
    buf_put_str(&key, text);
    uint32_t id = key.bad ? INTERN_NONE : intern_find(&m->keys, key.data, (uint32_t)key.len_bytes);
    buf_deinit(&key);
    return id == INTERN_NONE ? LABEL_MAP_END : m->heads.data[id];
}

const struct label_map_entry *label_map_entry(const struct label_map *m, uint32_t index)
{
    return &m->entries.data[index];
}

uint32_t label_map_name_count(const struct label_map *m)
{
    return m->names.count;
}

const char *label_map_name(const struct label_map *m, uint32_t number)
{
    return (const char *)intern_get(&m->names, number)->data;
}
