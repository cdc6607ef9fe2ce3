/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/asyncio/task_waits.h"

#include <stdlib.h>
#include <string.h>

#include "capture/asyncio/task_chains.h"
#include "formats/base/clock.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/trace/trace.h"

/* Bytes of the names of a task and of the one that awaits it, each. */
#define NAME_MAX_BYTES 255
/* Tasks of all processes whose waits are added up; each sample of others is handed on by itself. */
#define WAITING_MAX 200000
/* What is kept of stacks and names of a process; when it is more all of it is handed on, and forgotten. */
#define KEPT_MAX_BYTES (UINT64_C(16) << 20)
/* The same of all processes. */
#define ALL_KEPT_MAX_BYTES (UINT64_C(48) << 20)
/* After so many tasks it is looked whether that is so. */
#define KEPT_CHECKED 256
/* A task that was not met for so long, in looks that were not complete, is gone. */
#define MISSED_NS (30 * NS_PER_S)
/* A sample is at most so much older than the look that shows that its wait is over. */
#define LATE_NS NS_PER_S

struct waiting_task {
    uint64_t address, coroutine;
    uint64_t chain;              /* hash of its stack */
    uint32_t stack, text, loop;  /* ids: of the account's stacks and texts, and an index of its loops */
    uint32_t kind;               /* enum wire_wait_kind */
    uint32_t look;               /* the last one that met it */
    uint64_t until_ns, owed_ns;  /* accounted for until then; of that so much was not handed on yet */
    bool begun;                  /* a part of this wait was handed on */
};

struct task_stack {
    bool cut;     /* it had more frames */
    bool written; /* a sample with it was handed on */
};

/* What is known of a process. */
struct account {
    struct task_owner owner;
    uint64_t looked_ns, still_ns;
    uint32_t look;
    VEC(struct waiting_task) tasks;
    struct map task_of; /* address -> index of tasks */
    struct intern stacks, texts;
    VEC(struct task_stack) stack_notes; /* by id of stacks */
    struct map stack_of; /* chain -> id of stacks */
    VEC(struct task_loop) loops;
    struct map loop_of; /* -> index of loops */
    uint64_t kept_bytes; /* as of the last look */
    bool forgot;         /* all tasks, in the last look */
};

struct message {
    struct wire_sample sample;
    uint8_t bytes[TASK_CHAIN_MAX * sizeof(struct wire_python) + 2 * NAME_MAX_BYTES + 32];
};

struct task_waits {
    struct task_waits_options o;
    VEC(struct account *) accounts;
    struct map account_of; /* life -> index of accounts */
    uint64_t count, most;
    uint64_t kept_bytes; /* of all accounts */
    /* scratch of one look */
    struct task_chains chains;
    VEC(uint32_t) loops; /* for each loop of the table its index in the account */
    struct buf text;
    struct message message;
};

struct error *task_waits_create(const struct task_waits_options *options, struct task_waits **out)
{
    struct task_waits *w = calloc(1, sizeof *w);

    if (!w)
        return error_no_memory();
    w->o = *options;
    *out = w;
    return NULL;
}

static void clear_account(struct account *a)
{
    VEC_DEINIT(&a->tasks);
    VEC_DEINIT(&a->stack_notes);
    VEC_DEINIT(&a->loops);
    map_deinit(&a->task_of);
    map_deinit(&a->stack_of);
    map_deinit(&a->loop_of);
    intern_deinit(&a->stacks);
    intern_deinit(&a->texts);
}

void task_waits_destroy(struct task_waits *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->accounts.count; i++) {
        clear_account(w->accounts.data[i]);
        free(w->accounts.data[i]);
    }
    VEC_DEINIT(&w->accounts);
    map_deinit(&w->account_of);
    task_chains_deinit(&w->chains);
    VEC_DEINIT(&w->loops);
    buf_deinit(&w->text);
    free(w);
}

static struct account *find(const struct task_waits *w, uint64_t life)
{
    const uint64_t *index = map_get(&w->account_of, life);

    return index ? w->accounts.data[*index] : NULL;
}

static struct account *add(struct task_waits *w, const struct task_owner *owner, uint64_t since_ns)
{
    struct account *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->owner = *owner;
    a->looked_ns = since_ns;
    if (VEC_PUSH(&w->accounts, a)) {
        if (map_set(&w->account_of, owner->life, w->accounts.count - 1))
            return a;
        w->accounts.count--;
    }
    free(a);
    return NULL;
}

/* ---- samples ---- */

/* Hands on a sample of a task, which has waited for `ns` until `time_ns`; with `lasts` it waits on. */
static struct error *put(struct task_waits *w, struct account *a, struct waiting_task *t, uint64_t ns, uint64_t time_ns, bool lasts)
{
    const struct intern_entry *stack = intern_get(&a->stacks, t->stack), *text = intern_get(&a->texts, t->text);
    const struct task_loop *loop = &a->loops.data[t->loop];
    struct task_stack *note = &a->stack_notes.data[t->stack];
    struct message *m = &w->message;

    if (!ns)
        return NULL;
    m->sample = (struct wire_sample){
        .type = WIRE_SAMPLE,
        .flags = WIRE_TASK | (t->begun ? WIRE_CONTINUES : 0) | (lasts ? WIRE_LASTS : 0),
        .time_ns = time_ns,
        .tgid = a->owner.tgid,
        .tid = loop->tid,
        .event = w->o.event,
        .period = ns,
        .python_count = stack->len_bytes / (uint32_t)sizeof(struct wire_python),
        .python_end = note->cut ? LOSS_python_too_deep : stack->len_bytes ? LOSS_complete : LOSS_python_fault,
        .native_last_cfa = WIRE_CFA_NONE,
        .thread_handle = loop->thread_handle,
        .interpreter = loop->interpreter,
        .interpreter_id = loop->interpreter_id,
        .task_len_bytes = text->len_bytes,
        .wait_kind = t->kind,
        .system_call = WIRE_NO_SYSTEM_CALL,
        .wait_site = a->owner.life,
    };
    memcpy(m->bytes, stack->data, stack->len_bytes);
    memcpy(m->bytes + stack->len_bytes, text->data, text->len_bytes);
    note->written = t->begun = true;
    return w->o.put(w->o.ctx, &m->sample, (uint32_t)sizeof m->sample + stack->len_bytes + text->len_bytes);
}

/* Hands on what a task has waited so far, as above. `now_ns` is the time of the look, or that at which the file ends. */
static struct error *put_owed(struct task_waits *w, struct account *a, struct waiting_task *t, uint64_t now_ns, bool lasts)
{
    uint64_t ns = t->owed_ns, time_ns = t->until_ns + LATE_NS < now_ns ? now_ns - LATE_NS : t->until_ns;

    time_ns = time_ns < now_ns ? time_ns : now_ns;

    t->owed_ns = 0;
    return put(w, a, t, ns, time_ns, lasts);
}

/*
 * The task is not where it was when it was last met: half of the time since then is of this wait, or of `most_ns` if that is
 * less. `time_ns` is that of the look.
 */
static struct error *end_wait(struct task_waits *w, struct account *a, struct waiting_task *t, uint64_t most_ns, uint64_t time_ns)
{
    uint64_t since_ns = time_ns - t->until_ns, half_ns = (since_ns < most_ns ? since_ns : most_ns) / 2;

    t->owed_ns += half_ns;
    t->until_ns += half_ns;
    return put_owed(w, a, t, time_ns, false);
}

/* ---- stacks, names, loops ---- */

static struct error *find_stack(struct task_waits *w, struct account *a, const struct task_table *table, uint32_t task,
                                uint32_t *id)
{
    uint64_t chain = w->chains.seen.data[task].chain;
    const uint64_t *known = map_get(&a->stack_of, chain);
    bool added, cut;

    if (known) {
        *id = (uint32_t)*known;
        return NULL;
    }
    uint32_t count = task_chains_build(&w->chains, table, task, &cut);
    *id = intern_id(&a->stacks, w->chains.entries, count * (uint32_t)sizeof *w->chains.entries, &added);
    if (*id == INTERN_NONE || (added && !VEC_PUSH(&a->stack_notes, ((struct task_stack){.cut = cut}))) ||
        !map_set(&a->stack_of, chain, *id))
        return error_no_memory();
    return NULL;
}

static void put_name(struct buf *out, const struct task_table *table, const struct task *t)
{
    uint32_t len = t->name_len_bytes < NAME_MAX_BYTES ? t->name_len_bytes : NAME_MAX_BYTES;

    buf_put(out, table->names.data + t->name, len);
}

/* The task's name, NUL, and the name of the task that awaits it: "main", or "main and 2 more". */
static struct error *find_text(struct task_waits *w, struct account *a, const struct task_table *table, const struct task *t,
                               uint64_t time_ns, uint32_t *id)
{
    buf_clear(&w->text);
    put_name(&w->text, table, t);
    if (t->awaiter != TASK_NONE && table->tasks.data[t->awaiter].name_len_bytes) {
        buf_put_u8(&w->text, 0);
        put_name(&w->text, table, &table->tasks.data[t->awaiter]);
        if (t->awaiters > 1)
            buf_printf(&w->text, " and %u more", t->awaiters - 1);
    }
    if (w->text.bad)
        return error_no_memory();
    *id = intern_find(&a->texts, w->text.data, (uint32_t)w->text.len_bytes);
    if (*id != INTERN_NONE)
        return NULL;
    if (w->o.quotas && w->text.len_bytes &&
        !quota_take(w->o.quotas, a->owner.slot, QUOTA_task_name_bytes, w->text.len_bytes, time_ns))
        buf_clear(&w->text);
    *id = intern_id(&a->texts, w->text.data, (uint32_t)w->text.len_bytes, NULL);
    return *id == INTERN_NONE ? error_no_memory() : NULL;
}

/* Finds those loops of the account that the table has. */
static struct error *find_loops(struct task_waits *w, struct account *a, const struct task_table *table)
{
    w->loops.count = 0;
    for (size_t i = 0; i < table->loops.count; i++) {
        const struct task_loop *loop = &table->loops.data[i];
        uint64_t key = task_mix(task_mix(1, loop->tid), loop->interpreter);
        const uint64_t *known = map_get(&a->loop_of, key);
        uint32_t index = known ? (uint32_t)*known : (uint32_t)a->loops.count;
        if (known)
            a->loops.data[index] = *loop; /* its handle may be known by now */
        else if (!VEC_PUSH(&a->loops, *loop) || !map_set(&a->loop_of, key, index))
            return error_no_memory();
        if (!VEC_PUSH(&w->loops, index))
            return error_no_memory();
    }
    return NULL;
}

/* ---- looks ---- */

static uint32_t kind_of(const struct task *t, const struct task_seen *seen)
{
    if (t->state == TASK_READY)
        return WIRE_WAIT_EVENT_LOOP;
    return t->state == TASK_AWAITS_TASK || seen->awaits_tasks ? WIRE_WAIT_TASK : WIRE_WAIT_FUTURE;
}

static void remove_task(struct task_waits *w, struct account *a, size_t index)
{
    map_remove(&a->task_of, a->tasks.data[index].address);
    a->tasks.data[index] = a->tasks.data[--a->tasks.count];
    if (index < a->tasks.count)
        *map_get(&a->task_of, a->tasks.data[index].address) = index;
    w->count--;
}

/* A task waits elsewhere than at the last look, or is new: `known` is its place, NULL: it has none. */
static struct error *begin_wait(struct task_waits *w, struct account *a, struct waiting_task *known,
                                const struct waiting_task *now, uint64_t time_ns)
{
    struct waiting_task *t = known;

    if (!known && w->count >= WAITING_MAX) {
        struct waiting_task once = *now; /* the half until the next look, too: that will find it new again */
        once.owed_ns = time_ns - a->looked_ns;
        return put_owed(w, a, &once, time_ns, true);
    }
    if (known) {
        TRY(end_wait(w, a, known, UINT64_MAX, time_ns));
        *known = *now;
    } else {
        if (!VEC_PUSH(&a->tasks, *now))
            return error_no_memory();
        if (!map_set(&a->task_of, now->address, a->tasks.count - 1)) {
            a->tasks.count--;
            return error_no_memory();
        }
        t = &a->tasks.data[a->tasks.count - 1];
        if (++w->count > w->most)
            w->most = w->count;
    }
    return a->stack_notes.data[t->stack].written ? NULL : put_owed(w, a, t, time_ns, true);
}

/* After how long a task has a piece: not all of those that began together at once. */
static uint64_t piece_ns(const struct task_waits *w, const struct waiting_task *t)
{
    uint64_t half = w->o.piece_ns / 2;

    return half + (task_mix(1, t->address) >> 32) % (half + 1);
}

static struct error *take(struct task_waits *w, struct account *a, const struct task_table *table, uint32_t index)
{
    const struct task *t = &table->tasks.data[index];
    const struct task_seen *seen = &w->chains.seen.data[index];
    const uint64_t *place = map_get(&a->task_of, t->address);
    struct waiting_task *known = place ? &a->tasks.data[*place] : NULL;
    struct waiting_task now = {.address = t->address, .coroutine = t->coroutine, .chain = seen->chain,
                               .kind = kind_of(t, seen), .look = a->look, .until_ns = table->time_ns,
                               .loop = w->loops.data[t->loop],
                               .owed_ns = (table->time_ns - a->looked_ns + 1) / (a->forgot ? 1 : 2)};

    if (known && known->coroutine == t->coroutine) /* the last look may have left it out */
        now.owed_ns = (table->time_ns - known->until_ns + 1) / 2;

    if (known && known->look == a->look)
        return NULL; /* the table has it twice */
    if (t->state == TASK_CHANGED) { /* it is there: the next look says what the time since the last one was */
        if (known)
            known->look = a->look;
        return NULL;
    }
    if (t->state == TASK_RUNNING) {
        if (!known)
            return NULL;
        TRY(end_wait(w, a, known, UINT64_MAX, table->time_ns));
        remove_task(w, a, (size_t)(known - a->tasks.data));
        return NULL;
    }
    TRY(find_text(w, a, table, t, table->time_ns, &now.text));
    if (known && known->coroutine == now.coroutine && known->text == now.text && known->chain == now.chain &&
        known->kind == now.kind && known->loop == now.loop) {
        known->look = a->look;
        known->owed_ns += table->time_ns - known->until_ns;
        known->until_ns = table->time_ns;
        return known->owed_ns >= piece_ns(w, known) ? put_owed(w, a, known, table->time_ns, true) : NULL;
    }
    TRY(find_stack(w, a, table, index, &now.stack));
    return begin_wait(w, a, known, &now, table->time_ns);
}

/*
 * Hands on what the tasks have waited that this look has not met. One that was looked for in vain before, when not all were
 * read, may have ended soon after it was met: it has no more than if it had been missed at once.
 */
static struct error *drop_gone(struct task_waits *w, struct account *a, const struct task_table *table)
{
    uint64_t since_look_ns = table->time_ns - a->looked_ns;

    for (size_t i = 0; i < a->tasks.count;) {
        struct waiting_task *t = &a->tasks.data[i];
        if (t->look == a->look || (table->unread && table->time_ns - t->until_ns < MISSED_NS)) {
            i++;
            continue;
        }
        TRY(end_wait(w, a, t, since_look_ns, table->time_ns));
        remove_task(w, a, i);
    }
    return NULL;
}

static struct error *put_all(struct task_waits *w, struct account *a, uint64_t time_ns)
{
    for (size_t i = 0; i < a->tasks.count; i++)
        TRY(put_owed(w, a, &a->tasks.data[i], time_ns, true));
    return NULL;
}

/* Hands on all that is known of the tasks, and forgets them; the account stays. */
static struct error *forget_tasks(struct task_waits *w, struct account *a, uint64_t time_ns)
{
    TRY(put_all(w, a, time_ns));
    w->count -= a->tasks.count;
    w->kept_bytes -= a->kept_bytes;
    a->kept_bytes = 0;
    clear_account(a);
    return NULL;
}

/* Notes what is kept of the stacks and names of a process. Returns whether that is more than may be. */
static bool keeps_too_much(struct task_waits *w, struct account *a)
{
    w->kept_bytes -= a->kept_bytes;
    a->kept_bytes = intern_bytes(&a->stacks) + intern_bytes(&a->texts) + a->stack_of.count * sizeof(struct map_slot) +
                    a->loops.count * (sizeof *a->loops.data + sizeof(struct map_slot));
    w->kept_bytes += a->kept_bytes;
    return a->kept_bytes > KEPT_MAX_BYTES || w->kept_bytes > ALL_KEPT_MAX_BYTES;
}

/* Takes all tasks of a table. Where they keep too much, what is known is forgotten, and they are new in the next look. */
static struct error *take_all(struct task_waits *w, struct account *a, const struct task_table *table)
{
    bool forgot = false;

    TRY(task_chains_find(&w->chains, table));
    TRY(find_loops(w, a, table));
    for (size_t i = 0; i < table->tasks.count; i++) {
        TRY(take(w, a, table, (uint32_t)i));
        if (i % KEPT_CHECKED == 0 && keeps_too_much(w, a)) {
            TRY(forget_tasks(w, a, table->time_ns));
            TRY(find_loops(w, a, table));
            forgot = true;
        }
    }
    TRY(drop_gone(w, a, table));
    a->forgot = forgot;
    return NULL;
}

/* What was found still is accounted for, as another look would have. */
static void take_still(struct account *a)
{
    if (a->still_ns <= a->looked_ns)
        return;
    for (size_t i = 0; i < a->tasks.count; i++) {
        struct waiting_task *t = &a->tasks.data[i];
        if (t->look != a->look)
            continue;
        t->owed_ns += a->still_ns - t->until_ns;
        t->until_ns = a->still_ns;
    }
    a->looked_ns = a->still_ns;
}

struct error *task_waits_look(struct task_waits *w, const struct task_owner *owner, const struct task_table *table,
                              uint64_t since_ns)
{
    struct account *a = find(w, owner->life);

    if (!a && !table->tasks.count)
        return NULL;
    if (!a && !(a = add(w, owner, since_ns)))
        return error_no_memory();
    take_still(a);
    if (table->time_ns <= a->looked_ns)
        return NULL;
    a->look++;
    TRY(take_all(w, a, table));
    a->looked_ns = table->time_ns;
    if (!keeps_too_much(w, a))
        return NULL;
    a->forgot = true;
    return forget_tasks(w, a, table->time_ns);
}

void task_waits_still(struct task_waits *w, uint64_t life, uint64_t time_ns)
{
    struct account *a = find(w, life);

    if (a && time_ns > a->still_ns)
        a->still_ns = time_ns;
}

struct error *task_waits_end(struct task_waits *w, uint64_t life, uint64_t time_ns)
{
    const uint64_t *place = map_get(&w->account_of, life);

    if (!place)
        return NULL;
    size_t index = *place;
    struct account *a = w->accounts.data[index];
    take_still(a);
    for (size_t i = 0; i < a->tasks.count && time_ns > a->looked_ns; i++)
        TRY(end_wait(w, a, &a->tasks.data[i], UINT64_MAX, time_ns));
    TRY(forget_tasks(w, a, time_ns > a->looked_ns ? time_ns : a->looked_ns));
    free(a);
    map_remove(&w->account_of, life);
    w->accounts.data[index] = w->accounts.data[--w->accounts.count];
    if (index < w->accounts.count)
        *map_get(&w->account_of, w->accounts.data[index]->owner.life) = index;
    return NULL;
}

struct error *task_waits_cut(struct task_waits *w, uint64_t time_ns)
{
    for (size_t i = 0; i < w->accounts.count; i++) {
        take_still(w->accounts.data[i]);
        TRY(put_all(w, w->accounts.data[i], time_ns));
    }
    return NULL;
}

uint64_t task_waits_count(const struct task_waits *w)
{
    return w->count;
}

uint64_t task_waits_most(const struct task_waits *w)
{
    return w->most;
}

uint64_t task_waits_bytes(const struct task_waits *w)
{
    uint64_t bytes = sizeof *w;

    for (size_t i = 0; i < w->accounts.count; i++) {
        const struct account *a = w->accounts.data[i];
        bytes += sizeof *a + a->tasks.cap * sizeof *a->tasks.data + intern_bytes(&a->stacks) + intern_bytes(&a->texts) +
                 (a->task_of.slot_count + a->stack_of.slot_count) * sizeof(struct map_slot);
    }
    return bytes;
}
