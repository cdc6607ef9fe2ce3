/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of profiles that a store does not take at once. The store, the state and the clock are this test's: a store
 * answers as `policy` says, and hours pass while nothing is due.
 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "symbolize/push/sender.h"
#include "tests/unit/push_fixture.h"

/* ---- the clock ---- */

static uint64_t clock_now_ns = NS_PER_S;

int clock_gettime(clockid_t id, struct timespec *out)
{
    (void)id;
    *out = (struct timespec){.tv_sec = (time_t)(clock_now_ns / NS_PER_S), .tv_nsec = (long)(clock_now_ns % NS_PER_S)};
    return 0;
}

/* ---- the store ---- */

/* By the number of the profile, which its chunk is. */
static enum store_verdict (*policy)(uint32_t number);

static struct {
    bool busy;
    uint32_t number, most_ms;
} slots[STORE_SLOTS];
static uint32_t tries_of[1 << 12];

static bool holds;                      /* it answers when the request would end */
static uint32_t least_ms, longest_ms;   /* what requests were given */

struct error *store_begin(struct store *s, const struct push_profile *profile, uint32_t slot, uint32_t most_ms)
{
    (void)s;
    assert_false(slots[slot].busy);
    slots[slot].busy = true;
    slots[slot].number = profile->chunk;
    tries_of[profile->chunk]++;
    slots[slot].most_ms = most_ms;
    least_ms = most_ms < least_ms ? most_ms : least_ms;
    longest_ms = most_ms > longest_ms ? most_ms : longest_ms;
    return NULL;
}

struct error *store_next(struct store *s, const int *fds, size_t fd_count, uint64_t until_ns, uint32_t *slot,
                         struct store_answer *answer, bool *came)
{
    (void)s, (void)fds, (void)fd_count;
    clock_now_ns += NS_PER_MS;
    for (*slot = 0; *slot < STORE_SLOTS && !slots[*slot].busy; ++*slot)
        ;
    *came = *slot < STORE_SLOTS;
    if (!*came) {
        clock_now_ns = until_ns > clock_now_ns ? until_ns : clock_now_ns;
        return NULL;
    }
    slots[*slot].busy = false;
    if (holds)
        clock_now_ns += slots[*slot].most_ms * NS_PER_MS;
    *answer = (struct store_answer){.verdict = policy(slots[*slot].number), .reason = "rate"};
    return NULL;
}

void store_stop(struct store *s)
{
    (void)s;
}

/* ---- the state ---- */

static uint32_t state_room = UINT32_MAX;

enum state_of_profile state_find(const struct state *s, struct state_trace_id trace, const struct push_profile *profile)
{
    (void)s, (void)trace, (void)profile;
    return STATE_NEW;
}

struct error *state_begin(struct state *s, struct state_trace_id trace, const struct push_profile *profile)
{
    (void)s, (void)trace;
    return profile->chunk < state_room ? NULL : error_create(ERROR_LIMIT, "too many profiles");
}

struct error *state_answer(struct state *s, struct state_trace_id trace, const struct push_profile *profile, bool settled)
{
    (void)s, (void)trace, (void)profile, (void)settled;
    return NULL;
}

/* ---- a push ---- */

static const struct push_request request = {.store = &store_pyroscope, .url = "http://127.0.0.1:4040", .follow = true};

struct push {
    struct push_log log;
    struct account *account;
    struct sender *sender;
    struct sender_trace trace;
    uint32_t settled_count;
};

static struct error *tick(void *own)
{
    (void)own;
    return NULL;
}

static struct error *settled(void *own, struct sender_trace *trace)
{
    struct push *p = own;

    assert_ptr_equal(trace, &p->trace);
    p->settled_count++;
    return NULL;
}

static void begin_as(struct push *p, const struct push_request *asked)
{
    *p = (struct push){0};
    memset(tries_of, 0, sizeof tries_of);
    least_ms = UINT32_MAX;
    longest_ms = 0;
    OK(account_create(asked, &p->account));
    OK(sender_create(&(struct sender_options){.request = asked, .account = p->account, .log = &p->log, .own = p, .tick = tick,
                                              .settled = settled},
                     &p->sender));
}

static void begin(struct push *p)
{
    begin_as(p, &request);
}

/* Compares what the last lines of the push say is refused. */
static void end(struct push *p, const char *expected)
{
    char *text = NULL;
    size_t len;

    assert_int_equal(p->trace.open_count, 0);
    FILE *f = open_memstream(&text, &len);
    account_print(p->account, f);
    fclose(f);
    char *from = strstr(text, "refused: "), *tried = strstr(text, "tried again");
    if (tried)
        *tried = 0;
    assert_string_equal(from ? from : "", expected);
    free(text);
    sender_destroy(p->sender);
    account_destroy(p->account);
}

static void send_some(struct push *p, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < from + count; i++) {
        const struct push_profile profile = push_fixture_profile(0, 0, i, 10);
        OK(sender_send(p->sender, &p->trace, &profile));
    }
}

/* ---- the tests ---- */

static enum store_verdict fail_first(uint32_t number)
{
    return number ? STORE_ACCEPTED : STORE_FAULT;
}

TEST(a_profile_that_the_store_fails_for_is_tried_five_times)
{
    struct push p;

    policy = fail_first;
    begin(&p);
    send_some(&p, 0, 20);
    OK(sender_finish(p.sender));
    assert_int_equal(tries_of[0], 5);
    end(&p, "refused: 1 profile (10 samples)\n"
            "    server_error 1: it failed five times while the store took others: the store's log says why\n");
}

static uint64_t sick_from_ns, sick_until_ns;
static enum store_verdict sick_verdict;

static enum store_verdict fail_once_then_be_sick(uint32_t number)
{
    if (clock_now_ns >= sick_from_ns)
        return clock_now_ns < sick_until_ns ? sick_verdict : STORE_ACCEPTED;
    return number || tries_of[0] > 1 ? STORE_ACCEPTED : STORE_FAULT;
}

/* The first fails while others are taken; before it is tried again, the store takes nothing for a day. */
static void check_sickness(enum store_verdict verdict)
{
    struct push p;

    policy = fail_once_then_be_sick;
    sick_verdict = verdict;
    sick_from_ns = clock_now_ns + 300 * NS_PER_MS;
    sick_until_ns = clock_now_ns + 86400 * NS_PER_S;
    begin(&p);
    send_some(&p, 0, 20);
    OK(sender_wait(p.sender, -1, sick_from_ns));
    assert_int_equal(p.trace.open_count, 1);
    send_some(&p, 20, 10);
    OK(sender_finish(p.sender));
    assert_true(tries_of[0] > 20);
    end(&p, "");
}

TEST(nothing_is_refused_while_the_store_takes_nothing)
{
    check_sickness(STORE_FAULT);
    check_sickness(STORE_LATER);
    check_sickness(STORE_UNANSWERED);
}

static enum store_verdict put_first_off(uint32_t number)
{
    return number ? STORE_ACCEPTED : STORE_LATER;
}

/* A profile above some limit of a rate is put off for ever. */
TEST(a_profile_that_is_put_off_for_ever_ends_when_others_do_well)
{
    struct push p;

    policy = put_first_off;
    begin(&p);
    for (uint32_t i = 0; i < 1000 && (!i || p.trace.open_count); i++) {
        send_some(&p, i, 1);
        OK(sender_wait(p.sender, -1, clock_now_ns + 90 * NS_PER_S));
    }
    assert_in_range(tries_of[0], 20, 200);
    end(&p, "refused: 1 profile (10 samples)\n    rate 1\n");
}

TEST(what_cannot_be_remembered_is_counted_and_holds_up_nothing)
{
    struct push p;

    policy = put_first_off;
    state_room = 3;
    begin(&p);
    send_some(&p, 1, 3);
    OK(sender_finish(p.sender));
    assert_int_equal(p.settled_count, 1);
    state_room = UINT32_MAX;
    end(&p, "refused: 1 profile (10 samples)\n"
            "    too_many_profiles 1: one trace has more than can be remembered: record with --rotate\n");
}

static enum store_verdict put_off(uint32_t number)
{
    (void)number;
    return STORE_LATER;
}

static void expect_patience(uint64_t retry_for_s, uint32_t first_ms, uint64_t most_s)
{
    const struct push_request impatient = {.store = &store_pyroscope, .url = "http://127.0.0.1:4040", .retry_for_ns = retry_for_s * NS_PER_S};
    const uint64_t begin_ns = clock_now_ns;
    struct push p;

    begin_as(&p, &impatient);
    send_some(&p, 0, 3);
    OK(sender_finish(p.sender));
    OK(sender_drain(p.sender));
    assert_int_equal(sender_ended(p.sender), SENDER_TIRED);
    assert_int_equal(longest_ms, first_ms);
    assert_true(least_ms >= 5000);
    assert_in_range(clock_now_ns - begin_ns, retry_for_s * NS_PER_S, most_s * NS_PER_S);
    sender_destroy(p.sender);
    account_destroy(p.account);
}

TEST(a_request_ends_when_retrying_does)
{
    struct push p;

    policy = put_off;
    expect_patience(20, 20000, 26);
    expect_patience(0, 5000, 6);
    holds = true;
    expect_patience(20, 20000, 3 * 20 + 1); /* three that began together, and that this store answers one after the other */
    expect_patience(0, 5000, 3 * 5 + 1);
    holds = false;
    /* With --follow it is the request's own. */
    policy = fail_first;
    begin(&p);
    send_some(&p, 1, 3);
    OK(sender_finish(p.sender));
    assert_int_equal(least_ms, UINT32_MAX);
    end(&p, "");
}
