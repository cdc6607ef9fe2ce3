/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The key of a file is the root, the user, the working directory if the name is relative, and the name: whatever of these
 * differs, the answer may differ. The table begins anew with each epoch, as the ids in it do.
 */
#include "capture/trace/source_table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/privileges.h"
#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/code_file.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

/* Files of one epoch. Quotas are reached before in any ordinary program. */
#define FILES_MAX 65536

struct asked_file {
    uint32_t asker;   /* index of `askers` */
    uint32_t process; /* id of a record */
    uint32_t name_at; /* in its key */
    bool answered;
    struct source_fact fact;
};

struct source_table {
    struct worker *worker;
    uint64_t epoch;                /* counts up; looks of an earlier one are dropped */
    struct intern keys;            /* of files */
    VEC(struct asked_file) files; /* by key's id */
    VEC(struct source_asker) askers; /* their folders are owned; the newest one is the most likely */
    struct source_look *forming;   /* names of the newest asker that are still to be sent; NULL: none */
    uint32_t out;                  /* names of this epoch that the worker has */
    struct buf key;                /* scratch */
};

struct error *source_table_create(struct source_table **out)
{
    struct source_table *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    struct error *err = worker_create(privileges_drop_to_read, &s->worker);
    if (err) {
        free(s);
        return err;
    }
    *out = s;
    return NULL;
}

static void clear(struct source_table *s)
{
    source_look_destroy(s->forming);
    s->forming = NULL;
    for (size_t i = 0; i < s->askers.count; i++)
        free((char *)s->askers.data[i].folder);
    s->askers.count = s->files.count = 0;
    intern_deinit(&s->keys);
    s->epoch++;
    s->out = 0;
}

void source_table_destroy(struct source_table *s)
{
    if (!s)
        return;
    worker_destroy(s->worker);
    clear(s);
    VEC_DEINIT(&s->files);
    VEC_DEINIT(&s->askers);
    buf_deinit(&s->key);
    free(s);
}

/* ---- questions ---- */

/* A name that no file has: `<string>`, that of a cell of a notebook, or one with characters that could not be read or encoded. */
static bool is_no_path(const char *name, size_t len_bytes)
{
    uint32_t hash;

    return !len_bytes || len_bytes >= PATH_MAX || strlen(name) != len_bytes ||
           !code_file_is_path(name) || code_file_is_of_ipykernel(name, &hash) || strstr(name, "\xef\xbf\xbd");
}

static const char *name_of(const struct source_table *s, uint32_t id)
{
    return (const char *)intern_get(&s->keys, id)->data + s->files.data[id].name_at;
}

/* Puts the key into s->key. Returns where the name begins in it. */
static uint32_t make_key(struct source_table *s, const struct source_asker *asker, const char *name)
{
    buf_clear(&s->key);
    buf_put(&s->key, &asker->root, sizeof asker->root);
    buf_put_u32(&s->key, asker->user);
    buf_put_u8(&s->key, name[0] == '/' ? 0 : asker->folder ? 1 : 2);
    if (name[0] != '/' && asker->folder)
        buf_put(&s->key, asker->folder, strlen(asker->folder) + 1);
    uint32_t at = (uint32_t)s->key.len_bytes;
    buf_put(&s->key, name, strlen(name) + 1);
    return at;
}

static struct error *find_asker(struct source_table *s, const struct source_asker *asker, uint32_t *index)
{
    struct source_asker copy = *asker;

    for (size_t i = s->askers.count; i--;) {
        if (s->askers.data[i].life == asker->life) {
            *index = (uint32_t)i;
            return NULL;
        }
    }
    copy.folder = asker->folder ? strdup(asker->folder) : NULL;
    *index = (uint32_t)s->askers.count;
    if ((asker->folder && !copy.folder) || !VEC_PUSH(&s->askers, copy)) {
        free((char *)copy.folder);
        return error_no_memory();
    }
    return NULL;
}

/* The worker takes the names. Where it cannot, their files stay unanswered. */
static void send(struct source_table *s)
{
    struct source_look *l = s->forming;
    uint32_t count = l ? l->count : 0;

    s->forming = NULL;
    if (l && worker_add(s->worker, &l->job))
        s->out += count;
}

static struct error *ask(struct source_table *s, const struct source_asker *asker, uint32_t id, bool again)
{
    struct source_look *l = s->forming;

    if (l && (l->count == SOURCE_LOOK_NAMES || l->asker.life != asker->life || l->again != again)) {
        send(s);
        l = NULL;
    }
    if (!l)
        l = s->forming = source_look_create(asker, s->epoch, again);
    return l && source_look_add(l, id, name_of(s, id)) ? NULL : error_no_memory();
}

struct error *source_table_want(struct source_table *s, const struct source_owner *owner, const char *name, size_t len_bytes)
{
    struct asked_file file = {.process = owner->process};
    bool added;

    if (is_no_path(name, len_bytes))
        return NULL;
    file.name_at = make_key(s, &owner->asker, name);
    if (s->key.bad)
        return error_no_memory();
    if (intern_find(&s->keys, s->key.data, (uint32_t)s->key.len_bytes) != INTERN_NONE)
        return NULL;
    if (!quota_take(owner->quotas, owner->slot, QUOTA_sources, 1, owner->time_ns))
        return NULL;
    if (s->files.count >= FILES_MAX) {
        quota_refuse(owner->quotas, owner->slot, QUOTA_sources, 1);
        return NULL;
    }
    TRY(find_asker(s, &owner->asker, &file.asker));
    uint32_t id = intern_id(&s->keys, s->key.data, (uint32_t)s->key.len_bytes, &added);
    if (id == INTERN_NONE || !VEC_PUSH(&s->files, file))
        return error_no_memory();
    return ask(s, &s->askers.data[file.asker], id, false);
}

/* ---- answers ---- */

static void put(struct source_table *s, struct trace_writer *w, uint32_t id)
{
    const struct asked_file *file = &s->files.data[id];
    struct trace_source record = {
        .process = file->process,
        .file = trace_writer_cstr(w, name_of(s, id)),
        .time_ns = now_ns(),
        .state = file->fact.state,
        .size_bytes = file->fact.size_bytes,
        .modified_ns = file->fact.modified_ns,
    };

    trace_writer_put(w, TRACE_source, &record);
}

static bool is_same(const struct source_fact *a, const struct source_fact *b)
{
    return a->size_bytes == b->size_bytes && a->modified_ns == b->modified_ns;
}

/* Of a second look only another file counts: one that is gone, or cannot be looked at any more, was there all the same. */
static void take_answer(struct source_table *s, struct trace_writer *w, const struct source_question *q, bool again)
{
    struct asked_file *file = &s->files.data[q->id];

    if (again && (q->fact.state != TRACE_SOURCE_FILE || is_same(&q->fact, &file->fact)))
        return;
    file->answered = true;
    file->fact = q->fact;
    put(s, w, q->id);
}

/* Of a look that was given up it is not known of which epoch it was, so there may seem to be fewer left than there are. */
static void took(struct source_table *s, uint32_t count)
{
    s->out -= count < s->out ? count : s->out;
}

static void take_answers(struct source_table *s, struct trace_writer *w)
{
    for (struct worker_job *job; (job = worker_take(s->worker)); job->destroy(job)) {
        const struct source_look *l = source_look_of_job(job);
        if (l->epoch != s->epoch)
            continue;
        took(s, l->count);
        for (uint32_t i = 0; i < l->count; i++)
            take_answer(s, w, &l->questions[i], l->again);
    }
}

void source_table_serve(struct source_table *s, struct trace_writer *w)
{
    send(s);
    if (s->out)
        take_answers(s, w);
}

void source_table_tend(struct source_table *s, uint64_t time_ns)
{
    uint32_t count;

    if (worker_give_up(s->worker, time_ns, &count))
        took(s, count);
}

static void settle(struct source_table *s, struct trace_writer *w, uint64_t until_ns)
{
    send(s);
    while (s->out && worker_wait(s->worker, until_ns))
        take_answers(s, w);
}

struct error *source_table_end_epoch(struct source_table *s, struct trace_writer *w, bool again, uint64_t until_ns)
{
    settle(s, w, until_ns);
    for (uint32_t i = 0; i < s->files.count; i++) {
        struct asked_file *file = &s->files.data[i];
        if (!file->answered)
            put(s, w, i);
        else if (again && file->fact.state == TRACE_SOURCE_FILE)
            TRY(ask(s, &s->askers.data[file->asker], i, true));
    }
    if (again)
        settle(s, w, until_ns);
    clear(s);
    return NULL;
}
