/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store is taken for sick when it puts off or does not answer, or when it fails for two profiles in a row. Then one profile
 * is sent at a time, each time another one. The first sound answer proves that it is well, and was well for all profiles that
 * failed before: their next failures count, until the store is taken for sick again.
 */
#include "symbolize/push/sender.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "formats/base/clock.h"
#include "symbolize/push/stop.h"

enum {
    JOBS_MAX = 2 * STORE_SLOTS,
    JOBS_BYTES_MAX = 32 << 20,
    FAULTS_MAX = 5,  /* tries of a profile that the store fails for */
    OTHERS_MAX = 20, /* of one that it puts off or does not answer: the last ones are a minute apart */
};
#define BACKOFF_LEAST_NS NS_PER_S
#define BACKOFF_MOST_NS (60 * NS_PER_S)
#define RETRY_AFTER_MOST_NS (10 * 60 * NS_PER_S)
#define TICK_NS NS_PER_S
/* What a request has at least when --retry-for is nearly over: a store may take some seconds. */
#define REQUEST_LEAST_NS (5 * NS_PER_S)

/* A profile on its way. */
struct job {
    struct buf bytes; /* what `profile` points into */
    struct push_profile profile;
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct sender_trace *trace;
    bool in_flight;
    bool failing; /* its last answer was not sound */
    bool proven;  /* the store has taken others since it first failed */
    bool repeated; /* it may have been stored before */
    uint32_t faults, others; /* failures that count: as many as the limits above say are its last */
    uint64_t tried_ns, due_ns, backoff_ns;
};

struct sender {
    struct sender_options options;
    struct job *jobs[JOBS_MAX]; /* the first job_count */
    size_t job_count, job_bytes;
    struct job *by_slot[STORE_SLOTS];
    size_t in_flight;
    enum sender_end end;
    bool sick, told_denied;
    const struct job *probe;     /* that is sent, or was sent last, while the store is sick */
    uint64_t pause_ns, resume_ns; /* while it is sick: between probes, and when the next is due */
    uint64_t trouble_ns;         /* since when no answer is sound; 0: the last one was */
    uint64_t sound_ns;           /* when that came */
};

struct error *sender_create(const struct sender_options *options, struct sender **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory();
    (*out)->options = *options;
    return NULL;
}

static void destroy_job(struct job *j)
{
    buf_deinit(&j->bytes);
    free(j);
}

void sender_destroy(struct sender *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->job_count; i++)
        destroy_job(s->jobs[i]);
    free(s);
}

enum sender_end sender_ended(const struct sender *s)
{
    return stop_requested() ? SENDER_STOPPED : s->end;
}

/* ---- jobs ---- */

static struct error *add_job(struct sender *s, struct sender_trace *trace, const struct push_profile *p, bool repeated)
{
    struct job *j = calloc(1, sizeof *j);

    if (!j)
        return error_no_memory();
    *j = (struct job){.trace = trace, .repeated = repeated};
    profile_put(p, &j->bytes);
    struct error *err = j->bytes.bad ? error_no_memory() : profile_read(j->bytes.data, j->bytes.len_bytes, j->labels, &j->profile);
    if (err) {
        destroy_job(j);
        return err;
    }
    s->jobs[s->job_count++] = j;
    s->job_bytes += p->len_bytes;
    trace->open_count++;
    return NULL;
}

/* The profile has its answer. */
static struct error *drop_job(struct sender *s, struct job *j)
{
    struct sender_trace *trace = j->trace;
    size_t at = 0;

    while (s->jobs[at] != j)
        at++;
    s->job_bytes -= j->profile.len_bytes;
    s->job_count--;
    memmove(&s->jobs[at], &s->jobs[at + 1], (s->job_count - at) * sizeof *s->jobs);
    destroy_job(j);
    return --trace->open_count ? NULL : s->options.settled(s->options.own, trace);
}

/* ---- time ---- */

/* Some of it by chance, so that hosts that failed together do not come back together. */
static uint64_t jitter(uint64_t ns)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = (uint32_t)now_ns();
    return ns / 2 + ns / 2 * (random % 1024) / 1024;
}

static uint64_t doubled(uint64_t backoff_ns)
{
    uint64_t twice = backoff_ns ? backoff_ns * 2 : BACKOFF_LEAST_NS;

    return twice < BACKOFF_MOST_NS ? twice : BACKOFF_MOST_NS;
}

static uint64_t due_after(const struct store_answer *a, uint64_t backoff_ns)
{
    uint64_t wait = jitter(backoff_ns), asked = a->retry_after_ns;

    asked = asked < RETRY_AFTER_MOST_NS ? asked : RETRY_AFTER_MOST_NS;
    return now_ns() + (asked > wait ? asked : wait);
}

/* ---- what is told ---- */

static void tell_profile(struct sender *s, const struct push_profile *p, const char *what)
{
    time_t seconds = (time_t)(p->window_begin_ns / NS_PER_S);
    struct buf labels = {0};
    struct tm tm;
    char time[32];

    gmtime_r(&seconds, &tm);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &tm);
    for (uint32_t i = 0; i < p->label_count; i++)
        buf_printf(&labels, "%s%s=\"%s\"", i ? "," : "", p->labels[i].name, p->labels[i].value);
    push_log_say(s->options.log, PUSH_LOG_NOTICE, "%s %s {%s}: %" PRIu64 " sample%s, %zu bytes", what, time, buf_cstr(&labels),
                 p->samples, p->samples == 1 ? "" : "s", p->len_bytes);
    buf_deinit(&labels);
}

static void tell_refused(struct sender *s, const struct push_profile *p, const struct store_answer *a)
{
    push_log_say(s->options.log, PUSH_LOG_REFUSED, "%s refused a profile of %" PRIu64 " sample%s (%s)%s%s",
                 s->options.request->store->title, p->samples, p->samples == 1 ? "" : "s", a->reason, *a->text ? ": " : "", a->text);
}

/* What to look at when a store cannot be reached, or takes nothing. */
static const char *advice_on(const struct store_answer *a)
{
    if (!strcmp(a->reason, "tls"))
        return " (if the store has no TLS, its URL begins with http://; --cacert names an authority of your own)";
    if (a->status == 401)
        return "it wants to know who asks: check --token-file, --user or PYSYM_TOKEN";
    return a->status ? "check the URL, the token and the tenant" : "";
}

static void tell_trouble(struct sender *s, const struct store_answer *a)
{
    char status[32] = "does not answer";

    if (a->status)
        snprintf(status, sizeof status, "answers %d", a->status);
    push_log_say(s->options.log, PUSH_LOG_STORE, "%s %s (%s)%s%s%s; trying again", s->options.request->store->title, status, a->reason,
                 *a->text ? ": " : "", a->text, a->status ? "" : advice_on(a));
}

static void tell_denied(struct sender *s, const struct store_answer *a)
{
    bool follow = s->options.request->follow;

    if (!s->told_denied)
        push_log_say(s->options.log, PUSH_LOG_NOTICE, "%s takes nothing from here, it answers %d (%s)%s%s: %s%s",
                     s->options.request->store->title, a->status, a->reason, *a->text ? ": " : "", a->text, advice_on(a),
                     follow ? "; trying again each minute" : "");
    s->told_denied = true;
    if (!follow && s->end == SENDER_GOES_ON)
        s->end = SENDER_DENIED;
}

/* ---- answers ---- */

/* Writes an answer down. If that fails, it is known for this process, and another may send the profile again. */
static void remember(struct sender *s, const struct job *j, bool settled)
{
    struct error *err = state_answer(s->options.state, j->trace->id, &j->profile, settled);

    if (err)
        push_log_say(s->options.log, PUSH_LOG_STATE, "%s", error_text(err));
    error_destroy(err);
}

static struct error *take_sound(struct sender *s, struct job *j, const struct store_answer *a)
{
    if (s->sick)
        push_log_say(s->options.log, PUSH_LOG_STORE, "%s answers again", s->options.request->store->title);
    s->sick = s->told_denied = false;
    s->pause_ns = s->trouble_ns = 0;
    s->sound_ns = now_ns();
    for (size_t i = 0; i < s->job_count; i++)
        s->jobs[i]->proven |= s->jobs[i]->failing && s->jobs[i] != j;
    remember(s, j, true);
    if (a->verdict == STORE_ACCEPTED) {
        account_accepted(s->options.account, &j->profile, j->repeated);
        if (s->options.request->verbose)
            tell_profile(s, &j->profile, j->repeated ? "sent again" : "sent");
    } else {
        account_refused(s->options.account, &j->profile, a->reason);
        tell_refused(s, &j->profile, a);
    }
    return drop_job(s, j);
}

/* Does the store fail for others, too, as far as is known? */
static bool others_fail(const struct sender *s, const struct job *j)
{
    for (size_t i = 0; i < s->job_count; i++) {
        if (s->jobs[i] != j && s->jobs[i]->failing && !s->jobs[i]->proven)
            return true;
    }
    return false;
}

static void be_sick(struct sender *s, const struct job *j, const struct store_answer *a)
{
    if (!s->sick || s->probe == j)
        s->pause_ns = a->verdict == STORE_DENIED ? BACKOFF_MOST_NS : doubled(s->pause_ns);
    uint64_t due_ns = due_after(a, s->pause_ns);
    if (!s->sick || due_ns > s->resume_ns)
        s->resume_ns = due_ns;
    s->sick = true;
    for (size_t i = 0; i < s->job_count; i++)
        s->jobs[i]->proven &= s->jobs[i] == j;
}

/* It ends without having been accepted. */
static struct error *give_up(struct sender *s, struct job *j, const char *reason)
{
    const struct store_answer last = {.reason = reason};

    remember(s, j, true);
    account_refused(s->options.account, &j->profile, reason);
    tell_refused(s, &j->profile, &last);
    return drop_job(s, j);
}

/*
 * Counts a failure, if the store is known to take others. True: it was the last. Where the store asks for time or does not
 * answer, it has to have taken another one since the failure before.
 */
static bool count_failure(struct sender *s, struct job *j, const struct store_answer *a)
{
    bool fault = a->verdict == STORE_FAULT;
    uint32_t *count = fault ? &j->faults : &j->others;

    if (fault && others_fail(s, j))
        j->proven = false;
    *count += !j->failing || j->proven;
    j->failing = true;
    bool last = j->proven && *count >= (fault ? FAULTS_MAX : OTHERS_MAX) && a->verdict != STORE_DENIED;
    j->proven &= fault;
    return last;
}

static struct error *take_failure(struct sender *s, struct job *j, const struct store_answer *a)
{
    account_retried(s->options.account, a->reason);
    if (a->verdict == STORE_LATER || a->verdict == STORE_DENIED)
        remember(s, j, false);
    else
        j->repeated = true;
    if (count_failure(s, j, a))
        return give_up(s, j, a->verdict == STORE_FAULT ? "server_error" : a->reason);
    j->backoff_ns = doubled(j->backoff_ns);
    j->due_ns = due_after(a, j->backoff_ns);
    if (!s->trouble_ns)
        s->trouble_ns = j->tried_ns > s->sound_ns ? j->tried_ns : s->sound_ns;
    if (sender_ended(s) == SENDER_STOPPED)
        return NULL;
    if (a->verdict != STORE_FAULT || others_fail(s, j))
        be_sick(s, j, a);
    if (a->verdict == STORE_DENIED)
        tell_denied(s, a);
    else
        tell_trouble(s, a);
    return NULL;
}

static struct error *take_answer(struct sender *s, struct job *j, const struct store_answer *a)
{
    bool sound = a->verdict == STORE_ACCEPTED || a->verdict == STORE_REFUSED;

    account_answered(s->options.account, sound);
    return sound ? take_sound(s, j, a) : take_failure(s, j, a);
}

/* ---- requests ---- */

/* Takes `err`. There is no room in memory to remember it: the trace has more profiles than any should. */
static struct error *leave_out(struct sender *s, struct job *j, struct error *err)
{
    push_log_say(s->options.log, PUSH_LOG_REFUSED, "a profile is left out: %s", error_text(err));
    error_destroy(err);
    account_refused(s->options.account, &j->profile, "too_many_profiles");
    return drop_job(s, j);
}

/* Takes `err`. A state file that cannot be written is like a store that is not there: nothing is sent that could not be remembered. */
static struct error *wait_for_state(struct sender *s, const struct job *j, struct error *err)
{
    static const struct store_answer unwritten = {.verdict = STORE_LATER, .reason = "state_file"};

    push_log_say(s->options.log, PUSH_LOG_STATE, "%s; nothing is sent until it can be", error_text(err));
    error_destroy(err);
    account_retried(s->options.account, unwritten.reason);
    s->trouble_ns = s->trouble_ns ? s->trouble_ns : now_ns();
    be_sick(s, j, &unwritten);
    return NULL;
}

/* Since when nothing was accepted or refused, as far as a request waits for that. */
static uint64_t waiting_since(const struct sender *s)
{
    uint64_t since_ns = now_ns();

    if (s->trouble_ns)
        return s->trouble_ns;
    for (size_t i = 0; i < STORE_SLOTS; i++) {
        if (s->by_slot[i] && s->by_slot[i]->tried_ns < since_ns)
            since_ns = s->by_slot[i]->tried_ns;
    }
    return since_ns > s->sound_ns ? since_ns : s->sound_ns;
}

/* How long a request that begins now may take, in milliseconds. */
static uint32_t patience_ms(const struct sender *s)
{
    const struct push_request *r = s->options.request;
    uint64_t waited_ns = now_ns() - waiting_since(s), left_ns = waited_ns < r->retry_for_ns ? r->retry_for_ns - waited_ns : 0;

    left_ns = left_ns > REQUEST_LEAST_NS ? left_ns : REQUEST_LEAST_NS;
    return r->follow || left_ns / NS_PER_MS > UINT32_MAX ? UINT32_MAX : (uint32_t)(left_ns / NS_PER_MS);
}

static struct error *begin_request(struct sender *s, struct job *j)
{
    struct error *err = state_begin(s->options.state, j->trace->id, &j->profile);
    uint32_t slot = 0;

    j->tried_ns = now_ns();
    if (err)
        return err->code == ERROR_LIMIT ? leave_out(s, j, err) : wait_for_state(s, j, err);
    while (s->by_slot[slot])
        slot++;
    TRY(store_begin(s->options.store, &j->profile, slot, patience_ms(s)));
    s->by_slot[slot] = j;
    j->in_flight = true;
    s->in_flight++;
    return NULL;
}

/* The one that was tried longest ago. */
static struct job *next_probe(const struct sender *s)
{
    struct job *found = NULL;

    for (size_t i = 0; i < s->job_count; i++) {
        if (!found || s->jobs[i]->tried_ns < found->tried_ns)
            found = s->jobs[i];
    }
    return found;
}

static struct error *begin_requests(struct sender *s)
{
    uint64_t now = now_ns();

    if (sender_ended(s) != SENDER_GOES_ON || !s->job_count)
        return NULL;
    if (s->sick) {
        struct job *probe = next_probe(s);
        if (s->in_flight || now < s->resume_ns)
            return NULL;
        s->probe = probe;
        return begin_request(s, probe);
    }
    for (size_t i = 0; i < s->job_count && s->in_flight < STORE_SLOTS && !s->sick; i++) {
        if (!s->jobs[i]->in_flight && s->jobs[i]->due_ns <= now)
            TRY(begin_request(s, s->jobs[i]));
    }
    return NULL;
}

/* When a request is to begin, if that is before until_ns. */
static uint64_t next_due(const struct sender *s, uint64_t until_ns)
{
    if (s->sick && !s->in_flight && s->job_count && s->resume_ns < until_ns)
        return s->resume_ns;
    for (size_t i = 0; i < s->job_count && !s->sick; i++) {
        if (!s->jobs[i]->in_flight && s->in_flight < STORE_SLOTS && s->jobs[i]->due_ns < until_ns)
            until_ns = s->jobs[i]->due_ns;
    }
    return until_ns;
}

/* Takes an answer, if one comes until then; *readable: `fd` can be read. */
static struct error *take_one(struct sender *s, int fd, uint64_t until_ns, bool *came)
{
    const int fds[] = {stop_fd(), fd};
    struct store_answer answer;
    uint32_t slot;

    TRY(store_next(s->options.store, fds, sender_ended(s) == SENDER_STOPPED ? 0 : fd < 0 ? 1 : 2, until_ns, &slot, &answer, came));
    if (!*came)
        return NULL;
    struct job *j = s->by_slot[slot];
    s->by_slot[slot] = NULL;
    s->in_flight--;
    j->in_flight = false;
    return take_answer(s, j, &answer);
}

/* Without --follow, trying ends. */
static void grow_tired(struct sender *s)
{
    const struct push_request *r = s->options.request;

    if (!r->follow && s->end == SENDER_GOES_ON && s->trouble_ns && now_ns() - s->trouble_ns >= r->retry_for_ns)
        s->end = SENDER_TIRED;
}

static bool is_readable(int fd)
{
    return fd >= 0 && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

/* One step: begins what is due, and waits for what comes next, a second at most. */
static struct error *step(struct sender *s, int fd, uint64_t until_ns, bool *came)
{
    uint64_t tick_ns = now_ns() + TICK_NS;

    TRY(begin_requests(s));
    TRY(take_one(s, fd, next_due(s, until_ns < tick_ns ? until_ns : tick_ns), came));
    grow_tired(s);
    return s->options.tick(s->options.own);
}

struct error *sender_wait(struct sender *s, int fd, uint64_t until_ns)
{
    bool came;

    do
        TRY(step(s, fd, until_ns, &came));
    while (now_ns() < until_ns && sender_ended(s) == SENDER_GOES_ON && !is_readable(fd));
    return NULL;
}

struct error *sender_finish(struct sender *s)
{
    bool came;

    while (s->job_count && sender_ended(s) == SENDER_GOES_ON)
        TRY(step(s, -1, UINT64_MAX, &came));
    return NULL;
}

struct error *sender_drain(struct sender *s)
{
    bool came;

    while (s->in_flight)
        TRY(take_one(s, -1, now_ns() + TICK_NS, &came));
    return NULL;
}

struct error *sender_send(struct sender *s, struct sender_trace *trace, const struct push_profile *profile)
{
    enum state_of_profile known = state_find(s->options.state, trace->id, profile);
    bool came;

    if (known == STATE_SETTLED)
        return NULL;
    while (s->job_count == JOBS_MAX || (s->job_count && s->job_bytes + profile->len_bytes > JOBS_BYTES_MAX)) {
        TRY(step(s, -1, UINT64_MAX, &came));
        if (sender_ended(s) != SENDER_GOES_ON)
            return NULL;
    }
    if (known != STATE_NEW)
        push_log_say(s->options.log, PUSH_LOG_REPEATED, "a profile is sent again: %s",
                     known == STATE_CHANGED ? "its trace has grown since" : "an earlier run sent it, and saw no answer");
    TRY(add_job(s, trace, profile, known != STATE_NEW));
    return begin_requests(s);
}
