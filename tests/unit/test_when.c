/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of --when: how they are written, and when they hold. */
#include "tests/unit/test.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/when/condition.h"
#include "capture/when/cpu_clocks.h"
#include "capture/when/gil_waits.h"
#include "capture/when/judge.h"
#include "formats/base/clock.h"

STARTS_THREADS;

#define MS NS_PER_MS
#define S NS_PER_S

/* ---- the text ---- */

TEST(accepted)
{
    static const struct {
        const char *text;
        struct when_condition c;
    } rows[] = {
        {"cpu>2.5", {WHEN_CPU, 2.5, false, 2 * S, 300 * S}},
        {"cpu>80%", {WHEN_CPU, 0.8, true, 2 * S, 300 * S}},
        {"cpu>250%,for=500ms", {WHEN_CPU, 2.5, true, 500 * MS, 300 * S}},
        {"cpu>1,every=10m,for=3", {WHEN_CPU, 1, false, 3 * S, 600 * S}},
        {" cpu > 80% , for=1m, every=1h", {WHEN_CPU, 0.8, true, 60 * S, 3600 * S}},
        {"cpu>.5,for=100ms,for=1h,every=1,every=24h", {WHEN_CPU, 0.5, false, 3600 * S, 86400 * S}},
        {"runq>1.5,for=1s", {WHEN_RUNQ, 1.5, false, S, 300 * S}},
        {"gil>50%", {WHEN_GIL, 0.5, true, 2 * S, 300 * S}},
        {"cpu>100000", {WHEN_CPU, 100000, false, 2 * S, 300 * S}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct when_condition c;
        OK(when_read(rows[i].text, &c));
        assert_int_equal(c.fact, rows[i].c.fact);
        assert_float_equal(c.limit, rows[i].c.limit, 1e-9);
        assert_int_equal(c.percent, rows[i].c.percent);
        assert_int_equal(c.for_ns, rows[i].c.for_ns);
        assert_int_equal(c.every_ns, rows[i].c.every_ns);
    }
}

TEST(refused)
{
    static const struct {
        const char *text, *part; /* of the message */
    } rows[] = {
        {"", "begins with what is measured (cpu, runq, gil)"},
        {"load>3", "begins with what is measured (cpu"},
        {"cpux>3", "begins with what is measured"},
        {"cpu", "behind cpu comes > and a limit"},
        {"cpu<3", "behind cpu comes >"},
        {"cpu>=3", "'=3' does not begin with a number"},
        {"cpu>", "number of threads"},
        {"cpu>x", "number of threads"},
        {"cpu>-1", "number of threads"},
        {"cpu>1e3", "number of threads"},
        {"cpu>0x10", "number of threads"},
        {"cpu>nan", "number of threads"},
        {"cpu>1.2.3", "number of threads"},
        {"cpu>.", "number of threads"},
        {"cpu>1%%", "number of threads"},
        {"cpu>1111111111111111", "number of threads"},
        {"cpu>0", "more than 0"},
        {"cpu>0.000%", "more than 0"},
        {"cpu>100001", "at most 100000"},
        {"cpu>1,", "'' is neither for=TIME nor every=TIME"},
        {"cpu>1,fo=2s", "'fo=2s' is neither"},
        {"cpu>1,for", "'for' is neither"},
        {"cpu>1,for=", "for= wants a duration"},
        {"cpu>1,for=2x,every=1h", "not '2x'"},
        {"cpu>1,for=99ms", "from 100ms to 1h"},
        {"cpu>1,for=2h", "from 100ms to 1h"},
        {"cpu>1,for=0000000000000001", "for= wants a duration"},
        {"cpu>1,every=500ms", "from 1000ms to 24h"},
        {"cpu>1;for=2s", "number of threads"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct when_condition c;
        struct error *err = when_read(rows[i].text, &c);
        if (!err)
            fail_msg("%s is accepted", rows[i].text);
        assert_int_equal(err->code, ERROR_USAGE);
        if (!strstr(error_text(err), rows[i].part))
            fail_msg("%s: %s", rows[i].text, error_text(err));
        error_destroy(err);
    }
}

TEST(list)
{
    struct when_list list = {0};

    assert_false(when_list_has(NULL, WHEN_CPU));
    OK(when_list_add(&list, "gil>1"));
    assert_true(when_list_has(&list, WHEN_GIL));
    assert_false(when_list_has(&list, WHEN_CPU));
    while (list.count < WHEN_CONDITIONS_MAX)
        OK(when_list_add(&list, "cpu>1"));
    struct error *err = when_list_add(&list, "cpu>1");
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    error_destroy(err);
    assert_string_equal(list.texts[0], "gil>1");
}

TEST(reason)
{
    static const struct {
        const char *text, *reason;
        double level;
    } rows[] = {
        {"cpu>2.5,for=2s", "cpu 2.71 > 2.5 for 2s", 2.7109},
        {"cpu>80%,for=500ms", "cpu 93% > 80% for 0.5s", 0.93},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct when_condition c;
        struct buf text = {0};
        OK(when_read(rows[i].text, &c));
        when_put_reason(&c, rows[i].level, &text);
        buf_put_u8(&text, 0);
        assert_string_equal((const char *)text.data, rows[i].reason);
        buf_deinit(&text);
    }
}

/* ---- the judge ---- */

/* A host, and who looks at it. */
struct scene {
    struct when_condition conditions[2];
    struct when_judge judge;
    struct when_look now;
    uint32_t found;  /* of the last look */
    double level;
    uint32_t events; /* so far */
    uint64_t event_ns; /* of the last one, since the beginning */
    uint64_t step_ns;
};

static void begin(struct scene *s, const char *first, const char *second)
{
    memset(s, 0, sizeof *s);
    OK(when_read(first, &s->conditions[0]));
    if (second)
        OK(when_read(second, &s->conditions[1]));
    when_judge_init(&s->judge, s->conditions, second ? 2 : 1);
    s->step_ns = when_judge_interval_ns(&s->judge);
}

/* So many threads run for so long; returns how many events that brought. */
static uint32_t pass(struct scene *s, uint64_t time_ns, double threads)
{
    uint32_t before = s->events;

    for (uint64_t end_ns = s->now.time_ns + time_ns; s->now.time_ns < end_ns;) {
        uint64_t step = end_ns - s->now.time_ns < s->step_ns ? end_ns - s->now.time_ns : s->step_ns;
        s->now.time_ns += step;
        s->now.total_ns[WHEN_CPU] += (uint64_t)(threads * (double)step);
        s->found = when_judge_look(&s->judge, &s->now, &s->level);
        if (s->found != WHEN_NONE) {
            s->events++;
            s->event_ns = s->now.time_ns;
        }
    }
    return s->events - before;
}

TEST(holds)
{
    struct scene s;

    begin(&s, "cpu>80%,for=1s", NULL);
    assert_int_equal(s.step_ns, 125 * MS);
    assert_int_equal(pass(&s, 10 * S, 0.4), 0);
    assert_int_equal(pass(&s, 10 * S, 0.8), 0); /* as much as the limit is not more */
    assert_int_equal(pass(&s, 10 * S, 0.4), 0);
    assert_int_equal(pass(&s, 2 * S, 1), 1);
    assert_int_equal(s.event_ns, 31 * S);
    assert_true(s.level > 0.8 && s.level <= 1);
}

/* A condition holds without a pause, not on average; a single step is no pause. */
TEST(all_the_time)
{
    struct scene s;

    begin(&s, "cpu>80%,for=1s", NULL);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pass(&s, 750 * MS, 8), 0); /* ten times the limit, for less than the time */
        assert_int_equal(pass(&s, 375 * MS, 0), 0);
    }
    assert_int_equal(pass(&s, 500 * MS, 2), 0);
    assert_int_equal(pass(&s, 125 * MS, 0.5), 0);
    assert_int_equal(pass(&s, 375 * MS, 2), 1);
    begin(&s, "cpu>80%,for=1s", NULL);
    for (int i = 0; i < 100; i++) { /* every other step is above the limit, and the average is not */
        assert_int_equal(pass(&s, 125 * MS, 1), 0);
        assert_int_equal(pass(&s, 125 * MS, 0.5), 0);
    }
}

/* Looks in between, and a first one anywhere, change nothing. */
TEST(more_looks)
{
    struct scene s;

    for (uint64_t step = MS; step < 60 * MS; step += 7 * MS) {
        begin(&s, "cpu>80%,for=1s", NULL);
        s.step_ns = step;
        assert_int_equal(pass(&s, 10 * S, 0.7), 0);
        assert_int_equal(pass(&s, 2 * S, 1), 1);
        assert_in_range(s.event_ns, 11 * S - 125 * MS, 11 * S + 250 * MS);
    }
}

/* A look that comes late finds what all the time before it was like. */
TEST(late_look)
{
    struct scene s;

    begin(&s, "cpu>80%,for=1s", NULL);
    pass(&s, 5 * S, 0.1);
    s.step_ns = 7 * S;
    assert_int_equal(pass(&s, 7 * S, 0.7), 0);
    assert_int_equal(pass(&s, 7 * S, 0.9), 1);
}

/* Two looks at one moment are no division by zero, and a first look says nothing. */
TEST(first_looks)
{
    struct scene s;

    begin(&s, "cpu>1%,for=100ms", NULL);
    s.now = (struct when_look){.time_ns = 100 * S, .total_ns = {[WHEN_CPU] = 50 * S}};
    assert_int_equal(when_judge_look(&s.judge, &s.now, &s.level), WHEN_NONE);
    assert_int_equal(when_judge_look(&s.judge, &s.now, &s.level), WHEN_NONE);
    assert_int_equal(pass(&s, S, 0), 0);
    assert_int_equal(pass(&s, S, 1), 1);
}

/* Events keep their distance, whichever condition brings them, however long it holds. */
TEST(distance)
{
    struct scene s;

    begin(&s, "cpu>80%,for=1s,every=1m", NULL);
    assert_int_equal(pass(&s, 3600 * S, 1), 60);
    begin(&s, "cpu>80%,for=1s,every=1m", "cpu>2,for=200ms,every=10s");
    assert_int_equal(pass(&s, 10 * S, 1), 1);
    assert_int_equal(s.judge.state[0].event_ns, s.event_ns);
    assert_int_equal(pass(&s, 10 * S, 3), 1); /* the second one */
    assert_int_equal(pass(&s, 40 * S, 0.5), 0);
    assert_int_equal(pass(&s, 5 * S, 1), 0); /* the first one held at that event, too, and its minute began anew */
    assert_int_equal(pass(&s, 10 * S, 1), 1);
    assert_in_range(s.event_ns, 70 * S, 70 * S + 500 * MS);
}

/* A condition that goes on to hold keeps no other one from being reported. */
TEST(others_distance)
{
    struct scene s;

    begin(&s, "cpu>2,for=1s,every=1h", "cpu>80%,for=1s,every=1m");
    assert_int_equal(pass(&s, 620 * S, 1), 11);
    assert_int_equal(pass(&s, 30 * S, 3), 1); /* the first one, in the minute of the second */
    assert_in_range(s.event_ns, 621 * S, 622 * S);
    assert_int_equal(pass(&s, 600 * S, 3), 10); /* its hour is not over; it is an event of the second one, too */
}

/* A day on which everything always holds, with the shortest looks: nothing overflows. */
TEST(long)
{
    struct scene s;

    begin(&s, "cpu>1%,for=100ms,every=1h", "cpu>1%,for=1h,every=1h");
    assert_int_equal(s.step_ns, 50 * MS);
    assert_int_equal(pass(&s, 24 * 3600 * S - S, 64), 24);
}

/* ---- clocks ---- */

/* A child that runs until it is killed, or this program ends. */
static pid_t spinner(void)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile uint64_t n = 0;; n++)
        ;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static uint64_t clock_of(pid_t pid)
{
    clockid_t clock;

    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    return clock_ns(clock);
}

static void wait_for_clock(pid_t pid, uint64_t ns)
{
    while (clock_of(pid) < ns)
        usleep(1000);
}

/* What is asked for counts from the first look on, a child that comes later from its beginning, strangers and the dead not. */
TEST(clocks)
{
    struct processes_options options = {.follow = true, .include_non_python = true};
    struct cpu_clocks clocks = {0};
    struct modules *modules;
    struct processes *p;

    pid_t busy = spinner(), stranger = spinner();
    uint32_t pid = (uint32_t)busy;
    OK(modules_create(&modules));
    OK(processes_create(&options, modules, &p));
    OK(processes_scan(p, &pid, 1));
    wait_for_clock(busy, 30 * MS);
    uint64_t before = clock_of(busy);
    OK(cpu_clocks_look(&clocks, p, now_ns()));
    assert_int_equal(clocks.total_ns, 0);
    uint64_t first = clock_of(busy);
    wait_for_clock(busy, first + 30 * MS);
    uint64_t last = clock_of(busy);
    OK(cpu_clocks_look(&clocks, p, now_ns()));
    assert_in_range(clocks.total_ns, last - first, clock_of(busy) - before);

    /* One that forks now, and is seen when it has run. */
    uint64_t fork_ns = now_ns();
    pid_t late = spinner();
    struct sideband_event fork_event = {.kind = SIDEBAND_FORK, .tgid = (uint32_t)late, .tid = (uint32_t)late, .parent_tgid = pid,
                                        .time_ns = fork_ns};
    OK(processes_apply(p, &fork_event));
    kill(busy, SIGSTOP);
    assert_int_equal(waitpid(busy, NULL, WUNTRACED), busy);
    uint64_t stopped = clock_of(busy); /* its stop is told before it has left its CPU */
    uint64_t total = clocks.total_ns + stopped - clocks.by_slot.data[processes_find(p, pid)->slot].cpu_ns;
    wait_for_clock(late, 30 * MS);
    OK(cpu_clocks_look(&clocks, p, now_ns()));
    assert_in_range(clocks.total_ns, total + 30 * MS, total + clock_of(busy) - stopped + clock_of(late));
    total = clocks.total_ns;
    end_child(late);
    end_child(busy);
    OK(cpu_clocks_look(&clocks, p, now_ns()));
    assert_int_equal(clocks.total_ns, total);
    end_child(stranger);
    cpu_clocks_deinit(&clocks);
    processes_destroy(p);
    modules_destroy(modules);
}

/* ---- locks ---- */

/* A look at the locks of two processes: how many waits began, and ended, in one of the first so far. */
static void look_at_gils(struct gil_waits *g, const struct wire_gil *first, const struct wire_gil *other, uint64_t time_ns)
{
    const struct wire_gil_key keys[] = {{.address = 0x2000, .tgid = 7}, {.address = 0x1000, .tgid = 8}};

    if (other)
        OK(gil_waits_add(g, &keys[1], other, time_ns));
    if (first)
        OK(gil_waits_add(g, &keys[0], first, time_ns));
    gil_waits_end_look(g);
}

/* Accounts come and go, in any order; what was waited before the first look does not count. Times are rounded to 64 ns. */
TEST(gils)
{
    struct gil_waits g = {0};
    struct wire_gil first = {.since_ns = S}, other = {.since_ns = 5 * S};

    first.waits += wire_gil_begins(2 * S);
    look_at_gils(&g, &first, NULL, 4 * S); /* one waits, for 2 s so far */
    assert_int_equal(g.total_ns, 0);
    first.waits += wire_gil_ends(5 * S);
    other.waits += wire_gil_begins(5 * S);
    look_at_gils(&g, &first, &other, 6 * S); /* for 1 s more; and one waits for a lock that nobody waited for before */
    assert_in_range(g.total_ns, 2 * S - 200, 2 * S + 200);
    first.waits += wire_gil_begins(6 * S);
    first.waits += wire_gil_begins(7 * S);
    look_at_gils(&g, &first, NULL, 8 * S); /* two; the other process has ended */
    assert_in_range(g.total_ns, 5 * S - 400, 5 * S + 400);
    first = (struct wire_gil){.since_ns = 9 * S}; /* the same place in another account */
    first.waits += wire_gil_begins(9 * S);
    look_at_gils(&g, &first, NULL, 10 * S);
    assert_in_range(g.total_ns, 6 * S - 600, 6 * S + 600);
    look_at_gils(&g, NULL, NULL, 11 * S);
    assert_in_range(g.total_ns, 6 * S - 600, 6 * S + 600);
    gil_waits_deinit(&g);
}
