/* SPDX-License-Identifier: Apache-2.0 */
/* From looks at tasks to samples: what each stands for, its chain of awaiters, and when it is handed on. */
#include "tests/unit/test.h"

#include <inttypes.h>

#include "capture/asyncio/task_chains.h"
#include "capture/asyncio/task_waits.h"
#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"

#define S NS_PER_S

struct fixture {
    struct task_waits *waits;
    struct task_table table;
    struct quotas *quotas;
    struct buf text;
    uint64_t sum_ns;
};

static const struct task_owner owner = {.tgid = 7, .slot = 0, .life = 70};

/* A line for each sample: name<awaiter, time and weight in ms (+ where it goes on; ! where it is over), kind, frames innermost first with | behind those of each task. */
static struct error *put(void *fixture, const struct wire_sample *m, uint32_t len_bytes)
{
    struct fixture *f = fixture;
    const struct wire_python *frames = (const struct wire_python *)(m + 1);
    const char *text = (const char *)(frames + m->python_count);
    const char *nul = memchr(text, 0, m->task_len_bytes);

    assert_int_equal(len_bytes, sizeof *m + m->python_count * sizeof *frames + m->task_len_bytes);
    assert_int_equal(m->flags & ~(uint32_t)(WIRE_CONTINUES | WIRE_LASTS), WIRE_TASK);
    assert_int_equal(m->wait_site, owner.life);
    assert_int_equal(m->event, 3);
    f->sum_ns += m->period;
    buf_printf(&f->text, "%.*s", (int)(nul ? nul - text : (long)m->task_len_bytes), text);
    if (nul)
        buf_printf(&f->text, "<%.*s", (int)(text + m->task_len_bytes - nul - 1), nul + 1);
    buf_printf(&f->text, " %" PRIu64 " %" PRIu64 "%s%s %u", (uint64_t)m->time_ns / NS_PER_MS, (uint64_t)m->period / NS_PER_MS,
               m->flags & WIRE_CONTINUES ? "+" : "", m->flags & WIRE_LASTS ? "" : "!", m->wait_kind);
    for (uint32_t i = 0; i < m->python_count; i++) {
        if (frames[i].address & WIRE_RUN)
            buf_put_str(&f->text, "|");
        else
            buf_printf(&f->text, " %" PRIu64 "+%d", (uint64_t)frames[i].address, frames[i].offset);
    }
    buf_put_str(&f->text, m->python_end == LOSS_complete ? "\n" : " ...\n");
    return NULL;
}

static int setup(void **state)
{
    static struct fixture f;
    struct task_waits_options options = {.event = 3, .piece_ns = 10 * S, .put = put, .ctx = &f};

    f = (struct fixture){0};
    *state = &f;
    if (quotas_create(&f.quotas) || quotas_begin(f.quotas, owner.slot, 1000, false))
        return 1;
    options.quotas = f.quotas;
    return task_waits_create(&options, &f.waits) != NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    task_waits_destroy(f->waits);
    task_table_deinit(&f->table);
    quotas_destroy(f->quotas);
    buf_deinit(&f->text);
    return 0;
}

/* ---- tables ---- */

static void clear(struct fixture *f, uint64_t time_ns)
{
    struct task_table *t = &f->table;

    t->tasks.count = t->frames.count = t->loops.count = 0;
    buf_clear(&t->names);
    t->unread = t->changed = 0;
    t->time_ns = time_ns;
    assert_true(VEC_PUSH(&t->loops, ((struct task_loop){.tid = 8})));
}

/* Adds a task with one frame, at `code`; its address is that of its coroutine divided by 16. */
static struct task *add(struct fixture *f, const char *name, uint64_t coroutine, uint32_t state, uint64_t code, uint32_t awaiter)
{
    struct task_table *t = &f->table;
    const struct task task = {
        .address = coroutine / 16,
        .coroutine = coroutine,
        .state = state,
        .awaiter = awaiter,
        .awaiters = awaiter != TASK_NONE,
        .first_frame = (uint32_t)t->frames.count,
        .frame_count = 1,
        .name = (uint32_t)t->names.len_bytes,
        .name_len_bytes = (uint32_t)strlen(name),
    };

    buf_put_str(&t->names, name);
    assert_true(VEC_PUSH(&t->frames, ((struct wire_python){.address = code, .fingerprint = 1, .offset = 2})));
    assert_true(VEC_PUSH(&t->tasks, task));
    return &t->tasks.data[t->tasks.count - 1];
}

static void look(struct fixture *f)
{
    assert_null(task_waits_look(f->waits, &owner, &f->table, 10 * S));
}

static void look_at_one(struct fixture *f, uint64_t time_ns, uint32_t state, uint64_t code)
{
    clear(f, time_ns);
    add(f, "one", 1600, state, code, TASK_NONE);
    look(f);
}

/* What was handed on since the last call. */
static void expect(struct fixture *f, const char *text)
{
    assert_string_equal(buf_cstr(&f->text), text);
    buf_clear(&f->text);
}

/* ---- tests ---- */

/* A new stack is handed on at once; what follows adds up until the task waits elsewhere, half-way between two looks. */
TEST_WITH(time_adds_up, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    expect(f, "one 11000 500 11 500+2|\n");
    look_at_one(f, 12 * S, TASK_AWAITS_FUTURE, 500);
    look_at_one(f, 12 * S + S / 2, TASK_AWAITS_FUTURE, 500);
    expect(f, "");
    look_at_one(f, 13 * S, TASK_AWAITS_FUTURE, 501);
    expect(f, "one 12750 1750+! 11 500+2|\none 13000 250 11 501+2|\n");
    /* A stack that was written already waits for its end. */
    look_at_one(f, 14 * S, TASK_AWAITS_FUTURE, 500);
    expect(f, "one 13500 500+! 11 501+2|\n");
    clear(f, 15 * S);
    look(f);
    expect(f, "one 14500 1000! 11 500+2|\n");
    assert_int_equal(f->sum_ns, 4 * S);
    assert_int_equal(task_waits_count(f->waits), 0);
    assert_int_equal(task_waits_most(f->waits), 1);
}

/* The frames of the tasks that await it are outside of its own; who awaits tasks waits for them. */
TEST_WITH(chain, setup, teardown)
{
    struct fixture *f = *state;

    clear(f, 11 * S);
    add(f, "main", 1600, TASK_AWAITS_FUTURE, 500, TASK_NONE); /* a group: the future of all its tasks */
    add(f, "child", 3200, TASK_AWAITS_TASK, 501, 0);
    add(f, "leaf", 4800, TASK_READY, 502, 1)->awaiters = 3;
    look(f);
    expect(f, "main 11000 500 10 500+2|\n"
              "child<main 11000 500 10 501+2| 500+2|\n"
              "leaf<child and 2 more 11000 500 12 502+2| 501+2| 500+2|\n");
}

/* A chain changes when an awaiter goes on. */
TEST_WITH(chain_changes, setup, teardown)
{
    struct fixture *f = *state;

    for (uint64_t i = 0; i < 2; i++) {
        clear(f, (11 + i) * S);
        add(f, "main", 1600, TASK_AWAITS_TASK, 500 + i, TASK_NONE);
        add(f, "child", 3200, TASK_AWAITS_FUTURE, 600, 0);
        look(f);
    }
    expect(f, "main 11000 500 10 500+2|\nchild<main 11000 500 11 600+2| 500+2|\n"
              "main 11500 500+! 10 500+2|\nmain 12000 500 10 501+2|\n"
              "child<main 11500 500+! 11 600+2| 500+2|\nchild<main 12000 500 11 600+2| 501+2|\n");
}

/* A task that goes on in the same function waits elsewhere, and a second one there has a stack of its own. */
TEST_WITH(lines_of_a_function, setup, teardown)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        clear(f, (11 + (uint64_t)i) * S);
        add(f, "one", 1600, TASK_AWAITS_FUTURE, 500, TASK_NONE);
        add(f, "two", 3200, TASK_AWAITS_FUTURE, 500, TASK_NONE);
        f->table.frames.data[0].offset = 10 + i;
        f->table.frames.data[1].offset = 20;
        look(f);
    }
    expect(f, "one 11000 500 11 500+10|\ntwo 11000 500 11 500+20|\n"
              "one 11500 500+! 11 500+10|\none 12000 500 11 500+11|\n");
}

/* A damaged table: tasks that await each other, one task twice, one without frames. */
TEST_WITH(odd_tables, setup, teardown)
{
    struct fixture *f = *state;

    clear(f, 11 * S);
    add(f, "a", 1600, TASK_AWAITS_TASK, 500, 1);
    add(f, "b", 3200, TASK_AWAITS_TASK, 501, 0);
    add(f, "a", 1600, TASK_AWAITS_TASK, 500, 1);
    add(f, "c", 4800, TASK_AWAITS_FUTURE, 502, TASK_NONE)->frame_count = 0;
    look(f);
    assert_int_equal(task_waits_count(f->waits), 3);
    assert_int_equal(f->sum_ns, 3 * S / 2);
    expect(f, "a<b 11000 500 10 500+2| 501+2| ...\n" /* a ring is cut */
              "b<a 11000 500 10 501+2| 500+2| ...\n"
              "c 11000 500 11 ...\n");
}

/* A task that runs waits for nothing. */
TEST_WITH(running, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_RUNNING, 500);
    look_at_one(f, 12 * S, TASK_AWAITS_FUTURE, 500);
    look_at_one(f, 13 * S, TASK_AWAITS_FUTURE, 500);
    expect(f, "one 12000 500 11 500+2|\n");
    look_at_one(f, 14 * S, TASK_RUNNING, 501);
    expect(f, "one 13500 1500+! 11 500+2|\n");
    assert_int_equal(task_waits_count(f->waits), 0);
}

/* An address that is used again is another task, whichever of its marks shows it. */
TEST_WITH(address_again, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    look_at_one(f, 12 * S, TASK_AWAITS_FUTURE, 500);
    clear(f, 13 * S);
    add(f, "two", 1600, TASK_AWAITS_FUTURE, 500, TASK_NONE);
    look(f);
    clear(f, 14 * S);
    add(f, "two", 1600, TASK_AWAITS_FUTURE, 500, TASK_NONE)->coroutine = 1601;
    look(f);
    assert_null(task_waits_end(f->waits, owner.life, 15 * S));
    expect(f, "one 11000 500 11 500+2|\none 12500 1500+! 11 500+2|\ntwo 13500 1000! 11 500+2|\ntwo 14500 1000! 11 500+2|\n");
}

/* Who waits long has a sample each five to ten seconds, and not all have them at once. */
TEST_WITH(pieces, setup, teardown)
{
    enum { TASKS = 64 };
    struct fixture *f = *state;
    uint64_t handed_on_ns = 0;
    size_t most = 0;

    for (uint64_t second = 11; second <= 50; second++) {
        clear(f, second * S);
        for (uint64_t i = 1; i <= TASKS; i++)
            add(f, "t", 1600 * i, TASK_AWAITS_FUTURE, 500, TASK_NONE);
        size_t before = f->text.len_bytes;
        look(f);
        if (f->text.len_bytes - before > most && second > 11)
            most = f->text.len_bytes - before;
    }
    handed_on_ns = f->sum_ns;
    assert_in_range(handed_on_ns, TASKS * 30 * S, TASKS * 40 * S - 1);
    assert_in_range(most, 1, TASKS * strlen("t 11000 10000 11 500+2|\n") / 2);
    assert_null(task_waits_cut(f->waits, f->table.time_ns));
    assert_int_equal(f->sum_ns, TASKS * 40 * S - TASKS * S / 2); /* when they came is not known better */
    assert_int_equal(task_waits_count(f->waits), TASKS);
}

/* A look that was not complete says nothing about those that it lacks: the next one does. */
TEST_WITH(partial, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    clear(f, 12 * S);
    f->table.unread = 1;
    look(f);
    look_at_one(f, 13 * S, TASK_AWAITS_FUTURE, 500);
    look_at_one(f, 14 * S, TASK_CHANGED, 501);
    expect(f, "one 11000 500 11 500+2|\n");
    clear(f, 15 * S);
    look(f);
    expect(f, "one 14000 2500+! 11 500+2|\n");
}

/* Where looks are never complete, a task that has ended counts as missed by the first of them. */
TEST_WITH(always_partial, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    for (uint64_t second = 12; second < 60; second++) {
        clear(f, second * S);
        f->table.unread = 1;
        look(f);
    }
    assert_int_equal(task_waits_count(f->waits), 0);
    expect(f, "one 11000 500 11 500+2|\none 40000 500+! 11 500+2|\n");
}

/* A busy loop: in each look a task has changed, and others have ended since the last one. Those have half a look more. */
TEST_WITH(ended_beside_changed, setup, teardown)
{
    struct fixture *f = *state;

    for (uint64_t second = 11; second < 21; second++) {
        clear(f, second * S);
        add(f, "changes", 1600, TASK_CHANGED, 500, TASK_NONE);
        add(f, "short", 1600 * second, TASK_AWAITS_FUTURE, 501, TASK_NONE);
        f->table.changed = 1;
        look(f);
        assert_int_equal(task_waits_count(f->waits), 1);
    }
    assert_null(task_waits_cut(f->waits, f->table.time_ns));
    assert_int_equal(f->sum_ns, 9 * S + S / 2);
}

/* Who is met again elsewhere after such a look has waited all the time in between. */
TEST_WITH(partial_change, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    look_at_one(f, 12 * S, TASK_CHANGED, 600);
    look_at_one(f, 13 * S, TASK_AWAITS_FUTURE, 501);
    expect(f, "one 11000 500 11 500+2|\none 12000 1000+! 11 500+2|\none 13000 1000 11 501+2|\n");
}

/* More tasks than are remembered: each look hands on at once what the others have waited since the last one. */
TEST_WITH(many, setup, teardown)
{
    enum { REMEMBERED = 200000, MORE = 50 };
    struct fixture *f = *state;

    for (uint64_t second = 11; second < 14; second++) {
        clear(f, second * S);
        for (uint64_t i = 1; i <= REMEMBERED + MORE; i++)
            add(f, "t", 1600 * i, TASK_AWAITS_FUTURE, 500, TASK_NONE);
        look(f);
    }
    assert_null(task_waits_cut(f->waits, f->table.time_ns));
    assert_int_equal(task_waits_count(f->waits), REMEMBERED);
    assert_int_equal(f->sum_ns, REMEMBERED * (2 * S + S / 2) + MORE * UINT64_C(3) * S);
}

/* Tasks without frames that await each other in a line cost no more than a stack may have entries. */
TEST(line_without_frames)
{
    enum { TASKS = 3 * TASK_CHAIN_MAX };
    struct task_table table = {0};
    static struct task_chains chains;
    bool cut;

    for (uint32_t i = 0; i < TASKS; i++) {
        struct task t = {.address = i + 1, .awaiter = i + 1 < TASKS ? i + 1 : TASK_NONE};
        assert_true(VEC_PUSH(&table.tasks, t));
    }
    OK(task_chains_find(&chains, &table));
    assert_int_equal(task_chains_build(&chains, &table, 0, &cut), 0);
    assert_true(cut);
    assert_int_equal(task_chains_build(&chains, &table, TASKS - TASK_CHAIN_MAX, &cut), 0);
    assert_false(cut);
    for (uint32_t i = 0; i < TASKS; i++) /* when much was done, less is done for each */
        task_chains_build(&chains, &table, i, &cut);
    assert_in_range(chains.built_bytes, UINT64_C(2) << 20, UINT64_C(8) << 20);
    task_chains_deinit(&chains);
    task_table_deinit(&table);
}

/* A file ends before the time of the last look: what was seen by then is of this file. */
TEST_WITH(cut, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    look_at_one(f, 12 * S, TASK_AWAITS_FUTURE, 500);
    assert_null(task_waits_cut(f->waits, 12 * S - NS_PER_MS));
    expect(f, "one 11000 500 11 500+2|\none 11999 1000+ 11 500+2|\n");
    assert_null(task_waits_cut(f->waits, 12 * S));
    expect(f, "");
}

/* Where nothing ran, a look is as good as known. */
TEST_WITH(still, setup, teardown)
{
    struct fixture *f = *state;

    look_at_one(f, 11 * S, TASK_AWAITS_FUTURE, 500);
    task_waits_still(f->waits, owner.life, 12 * S);
    task_waits_still(f->waits, owner.life, 13 * S);
    look_at_one(f, 14 * S, TASK_AWAITS_FUTURE, 501);
    expect(f, "one 11000 500 11 500+2|\none 13500 2500+! 11 500+2|\none 14000 500 11 501+2|\n");
    task_waits_still(f->waits, owner.life, 16 * S);
    assert_null(task_waits_end(f->waits, owner.life, 17 * S));
    expect(f, "one 16500 2500+! 11 501+2|\n");
    task_waits_still(f->waits, owner.life, 17 * S); /* of nobody */
}

/* A process that makes up names without end loses them, and no time. */
TEST_WITH(name_quota, setup, teardown)
{
    struct fixture *f = *state;
    uint64_t refused[QUOTA_COUNT];
    char name[250] = "";

    memset(name, 'x', sizeof name - 1);
    for (uint64_t i = 1; i <= 30000; i++) {
        if (i % 100 == 1)
            clear(f, 10 * S + i / 100 * NS_PER_MS + 1);
        snprintf(name, 16, "%015" PRIu64, i);
        name[15] = 'x';
        add(f, name, 1600 * i, TASK_AWAITS_FUTURE, 500, TASK_NONE);
        if (i % 100 == 0)
            look(f);
    }
    assert_true(quotas_refused(f->quotas, owner.slot, refused));
    assert_in_range(refused[QUOTA_task_name_bytes], 10000, 20000);
    assert_in_range(task_waits_bytes(f->waits), 0, UINT64_C(16) << 20);
}
