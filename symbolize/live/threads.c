/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/threads.h"

#include <stdio.h>
#include <stdlib.h>

#include "formats/base/columns.h"
#include "formats/emit/names.h"
#include "symbolize/live/places.h"

enum { NAME_COLUMNS = (LIVE_NAME_BYTES - 1) / 4 }; /* a character has four bytes at most */

bool live_threads_init(struct live_threads *t)
{
    struct live_thread others = {.process = "[others]"};

    *t = (struct live_threads){0};
    return VEC_PUSH(&t->list, others);
}

void live_threads_deinit(struct live_threads *t)
{
    map_deinit(&t->index);
    VEC_DEINIT(&t->list);
    VEC_DEINIT(&t->of_model);
}

void live_threads_forget_model(struct live_threads *t)
{
    t->of_model.count = 0;
}

static void cut_text(struct buf *text, char out[LIVE_NAME_BYTES])
{
    struct buf cut = {0};

    columns_cut(&cut, text->data, text->len_bytes, NAME_COLUMNS);
    snprintf(out, LIVE_NAME_BYTES, "%s", buf_cstr(&cut));
    buf_deinit(text);
    buf_deinit(&cut);
}

static void spell_process(const struct emit_process *process, char out[LIVE_NAME_BYTES])
{
    struct buf text = {0};

    name_process_plain(process, &text);
    cut_text(&text, out);
}

static void spell_thread(const struct emit_thread *thread, char out[LIVE_NAME_BYTES])
{
    struct buf text = {0};

    name_plain(thread->name, &text);
    cut_text(&text, out);
}

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
    return (uint64_t)pid << 32 | tid;
}

static uint32_t find(struct live_threads *t, const struct emit_process *process, const struct emit_thread *thread)
{
    const uint64_t *known = map_get(&t->index, key_of(process->pid, thread->tid));
    struct live_thread made = {.pid = process->pid, .tid = thread->tid};
    uint32_t number = known ? (uint32_t)*known : (uint32_t)t->list.count;

    if (!known) {
        if (t->list.count >= LIVE_THREADS_MAX)
            return LIVE_OTHERS;
        if (!VEC_PUSH(&t->list, made))
            return UINT32_MAX;
        if (!map_set(&t->index, key_of(process->pid, thread->tid), number)) {
            t->list.count--;
            return UINT32_MAX;
        }
    }
    spell_process(process, t->list.data[number].process);
    spell_thread(thread, t->list.data[number].name);
    return number;
}

uint32_t live_threads_of(struct live_threads *t, const struct emit_model *model, uint32_t thread)
{
    const struct emit_thread *shown = &model->threads[thread];

    if (thread < t->of_model.count && t->of_model.data[thread])
        return t->of_model.data[thread] - 1;
    if (!VEC_EXTEND_ZERO(&t->of_model, model->thread_count))
        return UINT32_MAX;
    uint32_t number = find(t, &model->processes[shown->process], shown);
    if (number != UINT32_MAX)
        t->of_model.data[thread] = number + 1;
    return number;
}

struct live_deeds *live_threads_now(struct live_threads *t, uint32_t number, uint64_t serial)
{
    struct live_thread *thread = &t->list.data[number];
    size_t parity = serial & 1;

    if (thread->serials[parity] != serial) {
        thread->serials[parity] = serial;
        thread->now[parity] = (struct live_deeds){0};
    }
    return &thread->now[parity];
}

void live_threads_end_interval(struct live_threads *t, uint64_t serial)
{
    for (size_t i = 0; i < t->list.count; i++) {
        struct live_thread *thread = &t->list.data[i];
        const struct live_deeds *now = live_thread_now(thread, serial);
        for (int measure = 0; measure < LIVE_MEASURES; measure++)
            thread->all_ns[measure] += now->ns[measure];
    }
}

bool live_threads_are_many(const struct live_threads *t)
{
    return t->list.count > LIVE_THREADS_MAX / 4 * 3;
}

/* Adds what a thread did since the start to that of all without a row. */
static void fold(struct live_threads *t, const struct live_thread *thread)
{
    for (int measure = 0; measure < LIVE_MEASURES; measure++)
        t->list.data[LIVE_OTHERS].all_ns[measure] += thread->all_ns[measure];
}

bool live_threads_shrink(struct live_threads *t, uint64_t serial, uint32_t **numbers)
{
    uint32_t *map = calloc(t->list.count, sizeof *map);
    uint32_t kept = LIVE_OTHERS + 1;

    if (!map)
        return false;
    map_clear(&t->index);
    for (uint32_t i = kept; i < t->list.count; i++) {
        const struct live_thread *thread = &t->list.data[i];
        /* Without room in its table, which is as large as it was, a thread would not be found, but made again. */
        if (thread->serials[serial & 1] != serial || !map_set(&t->index, key_of(thread->pid, thread->tid), kept)) {
            fold(t, thread);
            continue;
        }
        map[i] = kept;
        t->list.data[kept++] = *thread;
    }
    t->list.count = kept;
    t->of_model.count = 0;
    *numbers = map;
    return true;
}
