/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks. A helper and its place are free again when it has answered, or its socket has closed, which is when it has gone. */
#include "capture/host/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/host/messages.h"
#include "capture/host/procfs_task.h"
#include "formats/base/clock.h"
#include "formats/base/helper_process.h"

/* One that is late may come back, as where its process only waited for a CPU. After a while it is held up, and killed. */
enum helper_state { HELPER_NONE, HELPER_IDLE, HELPER_BUSY, HELPER_LATE, HELPER_HELD_UP };
struct helper {
    enum helper_state state;
    int socket;
    pid_t self;    /* its own process */
    pid_t pid;     /* for whom it works */
    uint32_t user; /* whose that is; of one that is held up */
    uint64_t since_ns; /* when it was late */
};

/* Processes that were late, by what is known of them; `list` has those that are remembered, the last ones. */
#define LATE_MAX 8
struct late {
    pid_t pid;
    char comm[17];
    uint64_t count; /* of calls */
};
struct lates {
    uint64_t processes; /* how many, of those in `list` and others */
    uint32_t count;
    struct late list[LATE_MAX];
};

/* Bans that are remembered. */
#define BANS 32

/* A process has its errands once. */
static struct {
    atomic_bool begun;
    pthread_t owner;
    pthread_mutex_t lock; /* of all that follows, but of the allowance */
    int server_socket;
    pid_t server;
    struct errand_place *places;
    struct helper helpers[ERRAND_HELPERS];
    struct {
        pid_t pid;
        uint64_t until_ns;
    } bans[BANS];
    uint32_t next_ban;
    struct lates lates;
    /* of the owner */
    uint64_t allowance_ns, allowed_ns; /* of waiting in vain, and when it was last topped up */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .server_socket = -1};

/* ---- who asks; under the lock ---- */

static void forget(struct helper *h)
{
    close(h->socket);
    h->state = HELPER_NONE;
}

static pid_t process_of(pid_t pid)
{
    return pid < 0 ? -pid : pid;
}

static uint32_t user_of(pid_t pid)
{
    char path[32], text[1024];
    struct procfs_uids uids;

    snprintf(path, sizeof path, "/proc/%d/status", process_of(pid));
    return procfs_read_at(AT_FDCWD, path, text, sizeof text) && procfs_parse_uids(text, &uids) ? uids.effective : UINT32_MAX;
}

static void remember(pid_t pid)
{
    struct lates *l = &state.lates;
    struct late late = {.pid = pid};
    struct procfs_stat stat;
    uint32_t at = 0;

    if (procfs_stat(pid, 0, &stat))
        memcpy(late.comm, stat.comm, sizeof late.comm);
    while (at < l->count && (l->list[at].pid != pid || strcmp(l->list[at].comm, late.comm)))
        at++;
    if (at == l->count) {
        l->processes++;
        if (l->count == LATE_MAX)
            memmove(l->list, l->list + 1, --l->count * sizeof *l->list);
        at = l->count++;
        l->list[at] = late;
    }
    l->list[at].count++;
}

static void kill_helper(struct helper *h)
{
    const struct errand_order o = {.kind = ERRAND_ORDER_KILL, .helper = (uint32_t)(h - state.helpers)};

    h->state = HELPER_HELD_UP;
    h->user = user_of(h->pid);
    errand_order_send(state.server_socket, &o, -1);
    remember(process_of(h->pid));
}

/* What has become of those that were late. */
static void collect(uint64_t time_ns)
{
    for (uint32_t i = 0; i < ERRAND_HELPERS; i++) {
        struct helper *h = &state.helpers[i];
        struct pollfd fd = {.fd = h->socket, .events = h->state == HELPER_LATE ? POLLIN : 0};
        struct errand_order o;
        int made;
        if (h->state != HELPER_LATE && h->state != HELPER_HELD_UP)
            continue;
        if (poll(&fd, 1, 0) > 0) {
            if (h->state == HELPER_LATE && errand_order_receive(h->socket, &o, &made)) {
                h->state = HELPER_IDLE;
                if (made >= 0)
                    close(made);
            } else {
                forget(h);
            }
        } else if (h->state == HELPER_LATE && time_ns - h->since_ns >= ERRAND_HELD_UP_NS) {
            kill_helper(h);
        }
    }
}

/* Makes room for a later one. */
static void kill_oldest(void)
{
    struct helper *oldest = NULL;

    for (uint32_t i = 0; i < ERRAND_HELPERS; i++) {
        struct helper *h = &state.helpers[i];
        if (h->state == HELPER_LATE && (!oldest || h->since_ns < oldest->since_ns))
            oldest = h;
    }
    if (oldest)
        kill_helper(oldest);
}

/* Of few processes a call hangs for ever, so the user is rarely asked for. */
static bool is_banned(pid_t pid, uint64_t time_ns)
{
    uint32_t held_up = 0, of_user = 0;

    for (uint32_t i = 0; i < BANS; i++) {
        if (pid && state.bans[i].pid == pid && state.bans[i].until_ns > time_ns)
            return true;
    }
    for (uint32_t i = 0; i < ERRAND_HELPERS; i++) {
        if (pid && state.helpers[i].state >= HELPER_LATE && state.helpers[i].pid == pid)
            return true;
        held_up += state.helpers[i].state == HELPER_HELD_UP;
    }
    uint32_t user = held_up < ERRAND_HELD_UP_OF_USER ? 0 : user_of(pid);
    for (uint32_t i = 0; i < ERRAND_HELPERS && held_up >= ERRAND_HELD_UP_OF_USER; i++)
        of_user += state.helpers[i].state == HELPER_HELD_UP && state.helpers[i].user == user;
    return of_user >= ERRAND_HELD_UP_OF_USER;
}

static bool start(uint32_t number)
{
    struct errand_order o = {.kind = ERRAND_ORDER_START, .helper = number};
    struct helper *h = &state.helpers[number];

    bool started = errand_order_send(state.server_socket, &o, -1) && errand_order_receive(state.server_socket, &o, &h->socket);
    h->socket = started ? helper_descriptor(h->socket) : -1;
    if (h->socket < 0)
        return false;
    h->self = (pid_t)o.size;
    h->state = HELPER_IDLE;
    return true;
}

/* A helper that has nothing to do; a new one, if there is none. NULL: there are too many. */
static struct helper *take_helper(pid_t pid)
{
    uint32_t found = ERRAND_HELPERS;

    for (uint32_t i = 0; i < ERRAND_HELPERS; i++) {
        if (state.helpers[i].state == HELPER_IDLE || (state.helpers[i].state == HELPER_NONE && found == ERRAND_HELPERS))
            found = i;
        if (state.helpers[i].state == HELPER_IDLE)
            break;
    }
    if (found == ERRAND_HELPERS)
        kill_oldest();
    if (found == ERRAND_HELPERS || (state.helpers[found].state == HELPER_NONE && !start(found)))
        return NULL;
    state.helpers[found].state = HELPER_BUSY;
    state.helpers[found].pid = pid;
    return &state.helpers[found];
}

static void give_up(struct helper *h, uint64_t time_ns)
{
    h->state = HELPER_LATE;
    h->since_ns = time_ns;
    state.bans[state.next_ban].pid = h->pid;
    state.bans[state.next_ban].until_ns = time_ns + ERRAND_BAN_NS;
    state.next_ban = (state.next_ban + 1) % BANS;
}

/* ---- waiting ---- */

static bool is_owner(void)
{
    return pthread_equal(state.owner, pthread_self());
}

/* How long may be waited for the next errand. */
static uint64_t patience_ns(uint64_t time_ns)
{
    state.allowance_ns += (time_ns - state.allowed_ns) / ERRAND_WAITS_SHARE;
    state.allowed_ns = time_ns;
    if (state.allowance_ns > ERRAND_WAITS_MAX_NS)
        state.allowance_ns = ERRAND_WAITS_MAX_NS;
    if (state.allowance_ns < ERRAND_WAIT_LEAST_NS)
        return ERRAND_WAIT_LEAST_NS;
    return state.allowance_ns < ERRAND_WAIT_NS ? state.allowance_ns : ERRAND_WAIT_NS;
}

/* Whether the helper has a CPU or waits for one: then nobody holds it up. */
static bool is_running(const struct helper *h)
{
    struct procfs_stat stat;

    return procfs_stat(h->self, 0, &stat) && stat.state == 'R';
}

/*
 * Whether the helper has answered, or ended, in time. The time is counted in steps that begin anew whenever this thread runs:
 * while the machine, or this thread, stood still the other one could not run either. Where only the other one has no CPU, as
 * when that of a virtual machine stands still, its errand has not begun.
 */
static bool wait_for(const struct helper *h, const struct errand_place *place, uint64_t wait_ns, uint64_t began_ns)
{
    bool hurries = is_owner() && wait_ns != ERRAND_WAIT_LONG_NS;
    if (is_owner())
        wait_ns = ERRAND_WAIT_FILE_NS;
    uint64_t left_ns = hurries ? patience_ns(began_ns) : wait_ns, begin_ns = wait_ns, more_ns = left_ns * ERRAND_RUNNING_FACTOR;

    if (hurries)
        begin_ns = state.allowance_ns > left_ns ? state.allowance_ns - left_ns : 0;
    while (left_ns) {
        uint64_t step_ns = left_ns < ERRAND_STEP_NS ? left_ns : ERRAND_STEP_NS;
        const struct timespec step = timespec_of_ns(step_ns);
        struct pollfd fd = {.fd = h->socket, .events = POLLIN};
        int n = ppoll(&fd, 1, &step, NULL);
        if (n > 0)
            return true;
        if (n < 0) /* EINTR */
            continue;
        if (!atomic_load(&place->begun) && begin_ns >= step_ns)
            begin_ns -= step_ns;
        else if (more_ns >= step_ns && is_running(h))
            more_ns -= step_ns;
        else
            left_ns -= step_ns;
    }
    uint64_t waited_ns = now_ns() - began_ns;
    if (hurries)
        state.allowance_ns -= waited_ns < state.allowance_ns ? waited_ns : state.allowance_ns;
    return false;
}

/* Has a helper run it; false with errno. */
static bool run_beside(struct helper *h, uint64_t wait_ns, errand_fn run, void *bytes, size_t size, int *fd)
{
    struct errand_order o = {.kind = ERRAND_ORDER_RUN, .run = run, .size = size};
    struct errand_place *place = &state.places[h - state.helpers];
    uint64_t time_ns = now_ns();
    int made;

    atomic_store(&place->begun, false);
    memcpy(place->bytes, bytes, size);
    bool answered = errand_order_send(h->socket, &o, fd ? *fd : -1) ? wait_for(h, place, wait_ns, time_ns) : true;
    bool done = answered && errand_order_receive(h->socket, &o, &made);
    if (done) {
        memcpy(bytes, place->bytes, size);
        if (made >= 0 && fd)
            *fd = made;
        else if (made >= 0)
            close(made);
    }
    pthread_mutex_lock(&state.lock);
    if (done)
        h->state = HELPER_IDLE;
    else if (answered)
        forget(h);
    else
        give_up(h, now_ns());
    pthread_mutex_unlock(&state.lock);
    errno = done ? 0 : answered ? EIO : EBUSY;
    return done;
}

bool errand_is_beside(void)
{
    return atomic_load(&state.begun);
}

static bool run_for(uint64_t wait_ns, pid_t pid, errand_fn run, void *bytes, size_t size, int *fd)
{
    if (!errand_is_beside()) {
        int none = -1;
        run(bytes, size, fd ? fd : &none);
        return true;
    }
    if (size > ERRAND_BYTES) {
        errno = E2BIG;
        return false;
    }
    pthread_mutex_lock(&state.lock);
    uint64_t time_ns = now_ns();
    collect(time_ns);
    struct helper *h = is_banned(pid, time_ns) ? NULL : take_helper(pid);
    pthread_mutex_unlock(&state.lock);
    if (h)
        return run_beside(h, wait_ns, run, bytes, size, fd);
    errno = EBUSY;
    return false;
}

bool errand_run(pid_t pid, errand_fn run, void *bytes, size_t size, int *fd)
{
    return run_for(ERRAND_WAIT_SHORT_NS, pid, run, bytes, size, fd);
}

bool errand_run_long(pid_t pid, errand_fn run, void *bytes, size_t size, int *fd)
{
    return run_for(ERRAND_WAIT_LONG_NS, pid, run, bytes, size, fd);
}

uint64_t errand_cpu_ns(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; state.places && i < ERRAND_HELPERS; i++)
        sum += atomic_load(&state.places[i].cpu_ns);
    return sum;
}

static bool any_late(void)
{
    bool any = false;

    pthread_mutex_lock(&state.lock);
    collect(now_ns());
    for (uint32_t i = 0; i < ERRAND_HELPERS; i++)
        any |= state.helpers[i].state == HELPER_LATE;
    pthread_mutex_unlock(&state.lock);
    return any;
}

void errand_settle(void)
{
    /* The last look is behind the limit of who became late just now. */
    uint64_t until_ns = now_ns() + ERRAND_HELD_UP_NS + ERRAND_STEP_NS;

    while (errand_is_beside() && any_late() && now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = ERRAND_STEP_NS}, NULL);
}

uint64_t errand_late_processes(void)
{
    pthread_mutex_lock(&state.lock);
    if (errand_is_beside())
        collect(now_ns());
    uint64_t count = state.lates.processes;
    pthread_mutex_unlock(&state.lock);
    return count;
}

void errand_print_late(FILE *out)
{
    pthread_mutex_lock(&state.lock);
    const struct lates l = state.lates;
    pthread_mutex_unlock(&state.lock);
    if (l.processes)
        messages_write(out, "Processes that held up who read them, and how often they were left out:\n");
    for (uint32_t i = 0; i < l.count; i++)
        messages_write(out, "  %8d  %-16s %8" PRIu64 "\n", l.list[i].pid, l.list[i].comm, l.list[i].count);
    if (l.processes > l.count)
        messages_write(out, "  and %" PRIu64 " more\n", l.processes - l.count);
}

/* ---- start and end ---- */

struct error *errand_begin(void (*begin)(void), bool confine)
{
    int ends[2];

    if (errand_is_beside())
        return NULL;
    if (!state.places)
        state.places = mmap(NULL, sizeof(struct errand_place) * ERRAND_HELPERS, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (state.places == MAP_FAILED) {
        state.places = NULL;
        return error_os(errno, "memory for reading other processes cannot be had");
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return error_os(errno, "a socket to the process that reads others cannot be made");
    for (int i = 0; i < 2; i++)
        ends[i] = helper_descriptor(ends[i]);
    state.server = fork();
    if (!state.server)
        errand_serve(ends[1], state.places, begin, confine);
    int why = errno;
    close(ends[1]);
    state.server_socket = ends[0];
    if (state.server < 0) {
        close(ends[0]);
        return error_os(why, "the process that reads others cannot be started");
    }
    state.owner = pthread_self();
    state.allowance_ns = ERRAND_WAITS_MAX_NS;
    state.allowed_ns = now_ns();
    atomic_store(&state.begun, true);
    return NULL;
}

void errand_end(void)
{
    if (!errand_is_beside())
        return;
    atomic_store(&state.begun, false);
    pthread_mutex_lock(&state.lock);
    for (uint32_t i = 0; i < ERRAND_HELPERS; i++) {
        if (state.helpers[i].state != HELPER_NONE && state.helpers[i].state != HELPER_BUSY)
            forget(&state.helpers[i]);
    }
    close(state.server_socket);
    state.server_socket = -1;
    pthread_mutex_unlock(&state.lock);
    helper_wait(state.server);
}
