/* SPDX-License-Identifier: Apache-2.0 */
/* What a push remembers: whatever ends it, and whatever becomes of its traces, nothing is skipped and repeats are known. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/push/ledger.h"
#include "symbolize/push/state.h"
#include "tests/unit/folder_fixture.h"
#include "tests/unit/push_fixture.h"

#define DESTINATION "store=pyroscope url=http://localhost:4040 window=15s"
#define HEAD "pysym push state 1\ndestination " DESTINATION "\n"

static const struct state_trace_id first = {0x1111}, second = {0x2222};

/* In memory if that can be: hundreds of files are forced to disk. */
static int folder_init(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    strcpy(f->dir, "/dev/shm/pysym-test-XXXXXX");
    if (mkdtemp(f->dir))
        return 0;
    free(f);
    return fixture_init(state);
}

static char path_of[128];
static const char *at(const struct fixture *f, const char *name)
{
    snprintf(path_of, sizeof path_of, "%s/%s", f->dir, name);
    return path_of;
}

static struct state *open_at(const char *path)
{
    struct state *s;

    OK(state_open(path, DESTINATION, &s));
    return s;
}

static void reopen(struct state **s, const char *path)
{
    state_close(*s);
    *s = open_at(path);
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    fclose(file);
    return text;
}

static void write_all(const char *path, const char *text, size_t len_bytes)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len_bytes, file), len_bytes);
    assert_int_equal(fclose(file), 0);
}

static void assert_refused(struct error *err, enum error_code code, const char *says)
{
    assert_non_null(err);
    if (err->code != code || !strstr(error_text(err), says))
        fail_msg("%d: %s", (int)err->code, error_text(err));
    error_destroy(err);
}

static void open_refused(const char *path, const char *destination, enum error_code code, const char *says)
{
    struct state *s = NULL;

    assert_refused(state_open(path, destination, &s), code, says);
    assert_null(s);
}

static void begin(struct state *s, struct state_trace_id trace, struct push_profile p)
{
    OK(state_begin(s, trace, &p));
}

static void answer(struct state *s, struct state_trace_id trace, struct push_profile p, bool settled)
{
    OK(state_answer(s, trace, &p, settled));
}

static void send_one(struct state *s, struct state_trace_id trace, struct push_profile p)
{
    begin(s, trace, p);
    answer(s, trace, p, true);
}

static enum state_of_profile find(const struct state *s, struct state_trace_id trace, struct push_profile p)
{
    return state_find(s, trace, &p);
}

/* Sent, answered, sent again: in memory, in a file, and in a file that is opened again after each step. */
static void steps_of_a_profile(const char *path, bool opened_again)
{
    struct push_profile p = push_fixture_profile(0, 0, 0, 100);
    struct state *s = open_at(path);

#define STEP(state_expected)                                          \
    do {                                                              \
        if (opened_again)                                             \
            reopen(&s, path);                                         \
        assert_int_equal(find(s, first, p), state_expected);          \
        assert_int_equal(find(s, second, p), STATE_NEW);              \
        for (uint32_t i = 1; i < 3; i++) {                            \
            assert_int_equal(find(s, first, push_fixture_profile(i, 0, 0, 100)), STATE_NEW); \
            assert_int_equal(find(s, first, push_fixture_profile(0, i, 0, 100)), STATE_NEW); \
            assert_int_equal(find(s, first, push_fixture_profile(0, 0, i, 100)), STATE_NEW); \
        }                                                             \
    } while (0)
    STEP(STATE_NEW);
    begin(s, first, p);
    STEP(STATE_UNANSWERED);
    answer(s, first, p, false);
    STEP(STATE_NEW);
    begin(s, first, p);
    STEP(STATE_UNANSWERED);
    begin(s, first, p);
    STEP(STATE_UNANSWERED);
    answer(s, first, p, false); /* that of the second: the first may be stored */
    STEP(STATE_UNANSWERED);
    begin(s, first, p);
    answer(s, first, p, false);
    STEP(STATE_UNANSWERED);
    begin(s, first, p);
    answer(s, first, p, true);
    STEP(STATE_SETTLED);
#undef STEP
    state_close(s);
}

TEST_WITH(steps_of_a_profile, folder_init, fixture_deinit)
{
    struct fixture *f = *state;

    steps_of_a_profile(NULL, false);
    steps_of_a_profile(at(f, "state"), false);
    steps_of_a_profile(at(f, "again"), true);
}

TEST_WITH(file, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));
    struct stat st;

    begin(s, first, push_fixture_profile(0, 0, 0, 100));
    send_one(s, first, push_fixture_profile(1, 0, 0, 7));
    OK(state_set_complete(s, second, 4096, false));
    OK(state_set_complete(s, first, 512, true));
    state_close(s);
    char *text = read_all(path_of);
    assert_memory_equal(text, HEAD, strlen(HEAD));
    const char *lines = text + strlen(HEAD);
    static const char *const expected[] = {"sent 0000000000001111 ", "sent 0000000000001111 ", "settled 0000000000001111 ",
                                           "complete 0000000000002222 4096\n", "paused 0000000000001111 512\n"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_memory_equal(lines, expected[i], strlen(expected[i]));
        lines = strchr(lines, '\n') + 1;
    }
    assert_string_equal(lines, "");
    free(text);
    assert_int_equal(stat(path_of, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

/* ---- a process or a host that ends at any moment ---- */

enum { CUT_PROFILES = 5, CUT_EVENTS = 9 };

static void cut_event(struct state *s, int number)
{
    struct push_profile p[CUT_PROFILES];

    for (uint32_t i = 0; i < CUT_PROFILES; i++)
        p[i] = push_fixture_profile(i % 3, i, 0, 10 + i);
    switch (number) {
    case 0: begin(s, first, p[0]); break;
    case 1: answer(s, first, p[0], true); break;
    case 2: begin(s, first, p[1]); break;
    case 3: answer(s, first, p[1], false); break;
    case 4: begin(s, first, p[2]); break;
    case 5: begin(s, first, p[3]); break;
    case 6: answer(s, first, p[3], true); break;
    case 7: OK(state_set_complete(s, second, 4096, false)); break;
    case 8: begin(s, first, p[4]); break;
    default: fail();
    }
}

static void assert_same(const struct state *a, const struct state *b)
{
    for (uint32_t i = 0; i < CUT_PROFILES; i++)
        assert_int_equal(find(a, first, push_fixture_profile(i % 3, i, 0, 10 + i)),
                         find(b, first, push_fixture_profile(i % 3, i, 0, 10 + i)));
    assert_int_equal(state_is_complete(a, second, 4096), state_is_complete(b, second, 4096));
}

/* The file cut at every byte has all events but the one that was cut. */
TEST_WITH(cut_anywhere, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    size_t ends[CUT_EVENTS];
    struct state *s = open_at(at(f, "whole")), *model = open_at(NULL);
    struct stat st;

    for (int i = 0; i < CUT_EVENTS; i++) {
        cut_event(s, i);
        assert_int_equal(stat(path_of, &st), 0);
        ends[i] = (size_t)st.st_size;
    }
    state_close(s);
    char *text = read_all(path_of);
    int events = 0;
    at(f, "cut");
    for (size_t len = 0; len <= ends[CUT_EVENTS - 1]; len++) {
        while (events < CUT_EVENTS && len >= ends[events])
            cut_event(model, events++);
        write_all(path_of, text, len);
        s = open_at(path_of);
        assert_same(s, model);
        /* It can be used, and knows the same after that. */
        if (len % 16 == 0) {
            send_one(s, second, push_fixture_profile(0, 0, 0, 1));
            reopen(&s, path_of);
            assert_same(s, model);
            assert_int_equal(find(s, second, push_fixture_profile(0, 0, 0, 1)), STATE_SETTLED);
        }
        state_close(s);
    }
    assert_int_equal(events, CUT_EVENTS);
    state_close(model);
    free(text);
}

/* After a crash of the host the end may be zeros. */
TEST_WITH(zeros_at_the_end, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));

    send_one(s, first, push_fixture_profile(0, 0, 0, 100));
    state_close(s);
    assert_true(fixture_run(f, "head -c 4000 /dev/zero >>state"));
    s = open_at(path_of);
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_SETTLED);
    state_close(s);
}

/* What a process has begun is there when it is killed right behind it. */
TEST_WITH(killed, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    int status;

    at(f, "state");
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        struct state *s = open_at(path_of);
        send_one(s, first, push_fixture_profile(0, 0, 0, 100));
        begin(s, first, push_fixture_profile(1, 0, 0, 100));
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct state *s = open_at(path_of);
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_SETTLED);
    assert_int_equal(find(s, first, push_fixture_profile(1, 0, 0, 100)), STATE_UNANSWERED);
    state_close(s);
}

/* What a store got, and what the processes that sent it knew, in memory that outlives them. */
enum { KILLED_PROFILES = 120, KILLS = 40 };

struct witness {
    volatile uint32_t stored[KILLED_PROFILES];
    volatile uint32_t repeats_told[KILLED_PROFILES]; /* before they are stored */
    volatile uint32_t steps; /* of all processes */
};

static void step(struct witness *w)
{
    w->steps++;
    usleep(100);
}

/* As a push does it, with a store that stores and may then not answer, or say that it will not. */
static void send_all(struct witness *w, uint32_t seed)
{
    struct state *s = open_at(path_of);

    srand(seed);
    for (uint32_t i = 0; i < KILLED_PROFILES; i++) {
        struct push_profile p = push_fixture_profile(i % 3, i / 3, 0, 1 + i);
        while (find(s, first, p) != STATE_SETTLED) {
            int luck = rand() % 4;
            w->repeats_told[i] += luck > 0 && find(s, first, p) == STATE_UNANSWERED;
            begin(s, first, p);
            step(w);
            w->stored[i] += luck > 0;
            step(w);
            if (luck != 1) /* 1: no answer; 0: not stored */
                answer(s, first, p, luck > 1);
            step(w);
        }
    }
    state_close(s);
}

/* Killed at whatever moment: all is stored, and what is stored more than once was known to be possible. */
TEST_WITH(killed_again_and_again, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct witness *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint32_t killed = 0, repeated = 0;
    int status = -1;

    assert_ptr_not_equal(w, MAP_FAILED);
    at(f, "state");
    fflush(NULL);
    for (uint32_t round = 0; status != 0; round++) {
        uint32_t until = w->steps + 1 + round * 7 % 13;
        pid_t child = fork();
        if (!child) {
            send_all(w, round);
            _exit(0);
        }
        while (killed < KILLS && w->steps < until && !waitpid(child, &status, WNOHANG))
            usleep(10);
        if (killed < KILLS && status != 0)
            kill(child, SIGKILL);
        waitpid(child, &status, 0);
        killed += WIFSIGNALED(status);
        assert_true(WIFSIGNALED(status) || !status);
    }
    for (uint32_t i = 0; i < KILLED_PROFILES; i++) {
        assert_in_range(w->stored[i], 1, 1 + w->repeats_told[i]);
        repeated += w->stored[i] - 1;
    }
    assert_true(killed > 0);
    assert_true(repeated > 0);
    munmap(w, sizeof *w);
}

/* ---- traces ---- */

TEST_WITH(complete, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));
    struct push_profile p = push_fixture_profile(0, 0, 0, 100);

    assert_false(state_is_complete(s, first, 0));
    send_one(s, first, p);
    assert_false(state_is_complete(s, first, 1000));
    OK(state_set_complete(s, first, 1000, false));
    for (int i = 0; i < 2; i++) {
        assert_true(state_is_complete(s, first, 1000));
        assert_true(state_is_complete(s, first, 999));
        assert_false(state_is_complete(s, first, 1001));
        assert_false(state_is_complete(s, second, 1000));
        reopen(&s, path_of);
    }
    /* It grew although it could not: what is sent of it now may repeat what was sent. */
    assert_int_equal(find(s, first, p), STATE_CHANGED);
    send_one(s, first, p);
    assert_int_equal(find(s, first, p), STATE_SETTLED);
    reopen(&s, path_of);
    assert_int_equal(find(s, first, p), STATE_SETTLED);
    assert_int_equal(find(s, first, push_fixture_profile(0, 1, 0, 5)), STATE_CHANGED);
    assert_true(state_is_complete(s, first, 1000));
    state_close(s);
}

/* A trace without an end grows: what was sent is known, what is new is new, and the window that grew is neither. */
TEST_WITH(growth, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));

    send_one(s, first, push_fixture_profile(0, 0, 0, 100));
    send_one(s, first, push_fixture_profile(0, 1, 0, 40));
    OK(state_set_complete(s, first, 1000, true));
    for (int i = 0; i < 2; i++) {
        assert_true(state_is_complete(s, first, 1000));
        assert_false(state_is_complete(s, first, 2000));
        assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_SETTLED);
        assert_int_equal(find(s, first, push_fixture_profile(0, 1, 0, 70)), STATE_CHANGED);
        assert_int_equal(find(s, first, push_fixture_profile(1, 1, 0, 3)), STATE_NEW);
        assert_int_equal(find(s, first, push_fixture_profile(0, 2, 0, 100)), STATE_NEW);
        reopen(&s, path_of);
    }
    begin(s, first, push_fixture_profile(0, 1, 0, 70));
    answer(s, first, push_fixture_profile(0, 1, 0, 70), false);
    assert_int_equal(find(s, first, push_fixture_profile(0, 1, 0, 70)), STATE_CHANGED);
    send_one(s, first, push_fixture_profile(0, 1, 0, 70));
    reopen(&s, path_of);
    assert_int_equal(find(s, first, push_fixture_profile(0, 1, 0, 70)), STATE_SETTLED);
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_SETTLED);
    state_close(s);
}

/* A newer pysym divides the windows of a trace, half sent, into other chunks. */
TEST_WITH(other_chunks, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));

    /* Of 200 samples 150 were sent; now they are 100 and 100. */
    send_one(s, first, push_fixture_profile(0, 0, 0, 150));
    send_one(s, first, push_fixture_profile(1, 0, 0, 150));
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_CHANGED);
    begin(s, first, push_fixture_profile(0, 0, 0, 100));
    reopen(&s, path_of); /* it was killed here */
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_UNANSWERED);
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 1, 100)), STATE_CHANGED);
    send_one(s, first, push_fixture_profile(0, 0, 0, 100));
    send_one(s, first, push_fixture_profile(0, 0, 1, 100));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_SETTLED);
        assert_int_equal(find(s, first, push_fixture_profile(0, 0, 1, 100)), STATE_SETTLED);
        assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 150)), STATE_CHANGED);
        assert_int_equal(find(s, first, push_fixture_profile(1, 0, 0, 150)), STATE_SETTLED); /* another series */
        reopen(&s, path_of);
    }
    /* Two chunks, of which one was sent, became one: what was not sent is not skipped. */
    send_one(s, first, push_fixture_profile(0, 5, 0, 60));
    assert_int_equal(find(s, first, push_fixture_profile(0, 5, 0, 90)), STATE_CHANGED);
    /* And chunks after one that changed may hold its samples, even if they look as before. */
    send_one(s, first, push_fixture_profile(0, 6, 0, 150));
    send_one(s, first, push_fixture_profile(0, 6, 1, 50));
    begin(s, first, push_fixture_profile(0, 6, 0, 100));
    assert_int_equal(find(s, first, push_fixture_profile(0, 6, 1, 50)), STATE_CHANGED);
    state_close(s);
}

/* ---- other pushes ---- */

TEST_WITH(another_destination, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));

    send_one(s, first, push_fixture_profile(0, 0, 0, 100));
    state_close(s);
    char *before = read_all(path_of);
    open_refused(path_of, "store=pyroscope url=http://localhost:4040 window=60s", ERROR_USAGE,
                 "is the state of a push with \"window=15s\", and this one has \"window=60s\"");
    open_refused(path_of, "store=parca url=http://localhost:7070 window=15s", ERROR_USAGE,
                 "with \"store=pyroscope url=http://localhost:4040\", and this one has \"store=parca url=http://localhost:7070\"");
    open_refused(path_of, DESTINATION " label=a={b}", ERROR_USAGE, "with \"window=15s\", and this one has \"window=15s label=a={b}\"");
    open_refused(path_of, "", ERROR_USAGE, "and this one has \"\"");
    char *after = read_all(path_of);
    assert_string_equal(before, after);
    free(before);
    free(after);
    /* Texts of several lines are one line, and themselves again. */
    OK(state_open(at(f, "lines"), "label=a\nb\x1b", &s));
    state_close(s);
    OK(state_open(path_of, "label=a\nb\x1b", &s));
    state_close(s);
}

TEST_WITH(two_processes, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));
    int status;

    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        struct state *other;
        struct error *err = state_open(path_of, DESTINATION, &other);
        _exit(err && err->code == ERROR_USAGE && strstr(error_text(err), "another pysym push is using it") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    send_one(s, first, push_fixture_profile(0, 0, 0, 100));
    state_close(s);
    s = open_at(path_of);
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 100)), STATE_SETTLED);
    state_close(s);
}

/* Of several that begin together again and again, never two have the file, and what one wrote the next one reads. */
TEST_WITH(many_processes, folder_init, fixture_deinit)
{
    enum { PROCESSES = 6, ROUNDS = 25 };
    struct fixture *f = *state;
    pid_t children[PROCESSES];
    int status;

    at(f, "state");
    fflush(NULL);
    for (uint32_t k = 0; k < PROCESSES; k++) {
        children[k] = fork();
        if (children[k])
            continue;
        for (uint32_t done = 0; done < ROUNDS;) {
            struct state *s;
            struct error *err = state_open(path_of, DESTINATION, &s);
            if (err && err->code != ERROR_USAGE)
                _exit(1);
            error_destroy(err);
            if (err)
                continue;
            for (uint32_t i = 0; i < done; i++)
                if (find(s, first, push_fixture_profile(0, k, i, 1)) != STATE_SETTLED)
                    _exit(2);
            struct push_profile p = push_fixture_profile(0, k, done++, 1);
            if (state_begin(s, first, &p) || state_answer(s, first, &p, true))
                _exit(3);
            state_close(s);
        }
        _exit(0);
    }
    for (int k = 0; k < PROCESSES; k++) {
        assert_int_equal(waitpid(children[k], &status, 0), children[k]);
        assert_int_equal(status, 0);
    }
    struct state *s = open_at(path_of);
    for (uint32_t k = 0; k < PROCESSES; k++)
        for (uint32_t i = 0; i < ROUNDS; i++)
            assert_int_equal(find(s, first, push_fixture_profile(0, k, i, 1)), STATE_SETTLED);
    state_close(s);
}

/* ---- contents from elsewhere ---- */

static void contents_refused(const char *text, enum error_code code, const char *says)
{
    write_all(path_of, text, strlen(text));
    open_refused(path_of, DESTINATION, code, says);
    char *after = read_all(path_of);
    assert_string_equal(after, text);
    free(after);
}

TEST_WITH(contents_refused, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    static const char *const damage[] = {
        "sent 0000000000001111 0000000000000001\n",        "sent 0000000000001111 1\n",
        "sent 0000000000001111 0000000000000001 -1\n",     "sent 0000000000001111 0000000000000001 1 \n",
        "sent 0000000000001111  0000000000000001 1\n",     "sent 000000000000111G 0000000000000001 1\n",
        "sent 00000000000001111 0000000000000001 1\n",     "sold 0000000000001111 0000000000000001 1\n",
        "sent 0000000000001111 0000000000000001 1152921504606846976\n",
        "sent 0000000000001111 0000000000000001 99999999999999999999999\n",
        "complete 0000000000001111\n", "\n", " \n", "sen\n",
    };

    at(f, "state");
    contents_refused("a letter to my aunt", ERROR_FORMAT, "is no state file of pysym push, and is left as it is");
    contents_refused("a letter\nto my aunt\n", ERROR_FORMAT, "is no state file");
    contents_refused("pysym push statement\n", ERROR_FORMAT, "is no state file");
    contents_refused("pysym push state 2\ndestination x\nnews 1\n", ERROR_VERSION, "was written by another version of pysym push");
    contents_refused("pysym push state 12\n", ERROR_VERSION, "was written by another version");
    contents_refused("pysym push state 1\n\n", ERROR_FORMAT, "line 2 is damaged");
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD "%scomplete 0000000000001111 5\n", damage[i]);
        contents_refused(text, ERROR_FORMAT, "line 3 is damaged. Remove that line to go on");
    }
    char *longest = calloc(1, (1 << 17) + 1);
    memset(longest, 'x', 1 << 17);
    memcpy(longest, HEAD, strlen(HEAD));
    contents_refused(longest, ERROR_FORMAT, "line 3 is damaged");
    free(longest);
}

TEST_WITH(places_refused, folder_init, fixture_deinit)
{
    struct fixture *f = *state;

    assert_true(fixture_run(f, "mkdir folder && mkfifo pipe && ln -s nowhere link && touch twice && ln twice name"));
    open_refused(at(f, "folder"), DESTINATION, ERROR_IO, "Is a directory");
    open_refused(at(f, "pipe"), DESTINATION, ERROR_USAGE, "is a pipe or a device, which remembers nothing");
    open_refused(at(f, "link"), DESTINATION, ERROR_PERMISSION, "is a symbolic link");
    open_refused(at(f, "twice"), DESTINATION, ERROR_PERMISSION, "has another name");
    open_refused(at(f, "nowhere/state"), DESTINATION, ERROR_NOT_FOUND, "No such file or directory");
}

/* ---- disks ---- */

/* In a process whose files may not grow beyond that; EFBIG stands for a full disk. */
static void with_room(rlim_t bytes, void (*work)(const char *path))
{
    int status;

    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}))
            _exit(99);
        work(path_of);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status)
        fail_msg("status %#x", status);
}

/* Sends profiles until there is no room, even in a file that is written anew. What is not remembered is not sent. */
static uint32_t fill_up(struct state *s)
{
    uint32_t sent = 0;

    for (int failures = 0; failures < 2;) {
        struct push_profile p = push_fixture_profile(0, sent, 0, 1);
        struct error *err = state_begin(s, first, &p);
        failures = err ? failures + 1 : 0;
        if (err && (err->os_errno != EFBIG || !strstr(error_text(err), "Nothing is sent that could not be remembered there: make room")))
            _exit(1);
        if (err && find(s, first, p) != STATE_NEW)
            _exit(2);
        error_destroy(err);
        if (!err) {
            error_destroy(state_answer(s, first, &p, true));
            sent++;
        }
    }
    return sent;
}

static void check_sent(const struct state *s, uint32_t sent)
{
    for (uint32_t i = 0; i < 100; i++)
        if (find(s, first, push_fixture_profile(0, i, 0, 1)) != (i < sent ? STATE_SETTLED : STATE_NEW))
            _exit(4);
}

static void fill(const char *path)
{
    struct state *s = open_at(path);
    uint32_t sent = fill_up(s);

    if (sent < 5 || sent > 90)
        _exit(3);
    check_sent(s, sent);
    /* There is room again. */
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    struct push_profile next = push_fixture_profile(0, sent, 0, 1);
    if (state_begin(s, first, &next) || state_answer(s, first, &next, true))
        _exit(5);
    reopen(&s, path);
    check_sent(s, sent + 1);
    state_close(s);
}

TEST_WITH(disk_full, folder_init, fixture_deinit)
{
    struct fixture *f = *state;

    /* Whatever event it is that does not fit, and wherever it is cut. */
    for (rlim_t bytes = 800; bytes < 900; bytes += 3) {
        char name[32];
        snprintf(name, sizeof name, "state%u", (unsigned)bytes);
        at(f, name);
        with_room(bytes, fill);
    }
    /* Nothing lies beside them. */
    assert_true(fixture_run(f, "ls | grep -v '^state[0-9]*$' | grep -v others >others; test ! -s others"));
}

TEST_WITH(removed_while_used, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));
    struct push_profile p = push_fixture_profile(0, 1, 0, 1);

    send_one(s, first, push_fixture_profile(0, 0, 0, 1));
    assert_int_equal(unlink(path_of), 0);
    assert_refused(state_begin(s, first, &p), ERROR_IO, "was removed or replaced while it was used");
    /* The next attempt makes it again. */
    send_one(s, first, p);
    reopen(&s, path_of);
    assert_int_equal(find(s, first, p), STATE_SETTLED);
    assert_int_equal(find(s, first, push_fixture_profile(0, 0, 0, 1)), STATE_SETTLED);
    state_close(s);
}

/* ---- size ---- */

TEST_WITH(written_anew, folder_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct state *s = open_at(at(f, "state"));
    struct stat st;
    off_t largest = 0;

    struct push_profile open_one = push_fixture_profile(1, 0, 0, 77);
    begin(s, second, open_one);
    for (uint64_t trace = 1; trace <= 60; trace++) {
        for (uint32_t i = 0; i < 100; i++)
            send_one(s, (struct state_trace_id){trace << 32}, push_fixture_profile(0, i, 0, 1000));
        OK(state_set_complete(s, (struct state_trace_id){trace << 32}, trace, false));
        assert_int_equal(stat(path_of, &st), 0);
        largest = st.st_size > largest ? st.st_size : largest;
    }
    assert_in_range(largest, 60000, 100000); /* it would be 550 KB */
    for (int i = 0; i < 2; i++) {
        for (uint64_t trace = 1; trace <= 60; trace++) {
            assert_true(state_is_complete(s, (struct state_trace_id){trace << 32}, trace));
            assert_false(state_is_complete(s, (struct state_trace_id){trace << 32}, trace + 1));
        }
        assert_int_equal(find(s, second, open_one), STATE_UNANSWERED);
        reopen(&s, path_of);
    }
    assert_int_equal(stat(path_of, &st), 0);
    assert_in_range(st.st_size, 60 * 27, 60 * 64 + 200);
    state_close(s);
}

static void apply(struct ledger *l, enum ledger_kind kind, uint64_t trace, uint64_t key, uint64_t number)
{
    OK(ledger_apply(l, &(struct ledger_event){kind, trace, key, number}));
}

TEST(bounds)
{
    struct ledger l;

    ledger_init(&l, 8, 10);
    /* Of more traces the older half is dropped. */
    for (uint64_t trace = 1; trace <= 8; trace++)
        apply(&l, LEDGER_COMPLETE, trace, 0, 100);
    assert_int_equal(ledger_len_bytes(&l, 1), 100);
    apply(&l, LEDGER_COMPLETE, 9, 0, 100);
    for (uint64_t trace = 1; trace <= 9; trace++)
        assert_int_equal(ledger_len_bytes(&l, trace), trace <= 4 ? 0 : 100);
    /* Of more profiles those of other traces are forgotten, and known to have been sent. */
    for (uint64_t key = 1; key <= 6; key++)
        apply(&l, LEDGER_SETTLED, 20, key, 1);
    for (uint64_t key = 1; key <= 4; key++)
        apply(&l, LEDGER_SETTLED, 21, key, 1);
    assert_int_equal(ledger_find(&l, 20, 0, 1, 1), LEDGER_IS_SETTLED);
    apply(&l, LEDGER_SETTLED, 21, 5, 1);
    assert_int_equal(ledger_find(&l, 20, 0, 1, 1), LEDGER_IS_CHANGED);
    assert_int_equal(ledger_find(&l, 21, 0, 1, 1), LEDGER_IS_SETTLED);
    assert_int_equal(l.profile_count, 5);
    for (uint64_t key = 6; key <= 10; key++)
        apply(&l, LEDGER_SETTLED, 21, key, 1);
    assert_refused(ledger_apply(&l, &(struct ledger_event){LEDGER_SENT, 21, 11, 1}), ERROR_LIMIT, "record with --rotate");
    apply(&l, LEDGER_SENT, 21, 10, 2); /* one that it has */
    apply(&l, LEDGER_COMPLETE, 21, 0, 5);
    assert_int_equal(l.profile_count, 0);
    ledger_deinit(&l);
}
