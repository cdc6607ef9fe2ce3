/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender's end of the processes of trace_processes.c. A message is gathered until it is complete, so a process that stops
 * in the middle of one holds up nobody; memory for it grows with what came, not with what its head announces.
 */
#include "symbolize/push/converter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/helper_process.h"
#include "symbolize/push/message.h"
#include "symbolize/push/trace_processes.h"

enum {
    CHUNK_BYTES = 1 << 16,
    PIPE_BYTES = 1 << 20, /* asked for, so that the next profiles are made while one is sent */
    KEPT_BYTES = 1 << 20, /* of memory for messages, from one to the next */
    PROFILES_MAX = 1 << 22, /* of a trace: more than any state remembers */
    OTHERS_MAX = 1 << 16, /* messages between two profiles */
};
/* A process that says nothing for so long hangs. The first pass over a large trace takes minutes. */
#define SILENCE_NS (30 * 60 * NS_PER_S)
/* Between two questions, at most: longer than that nobody was asking. */
#define ASKED_NS (2 * NS_PER_S)

struct converter {
    struct converters *all;
    uint32_t number;   /* of `all` */
    int pipe;          /* of the current trace; -1: there is none */
    bool expects_answer, answered;
    struct trace_answer answer; /* that came while another was waited for */
    struct buf bytes;  /* of the message that is being read */
    bool taken;        /* it was returned: the next one begins */
    uint32_t profile_count, other_count; /* of the trace; since the last profile */
    uint64_t asked_ns, silence_ns; /* CLOCK_MONOTONIC of the last question; how long none was answered */
    struct profile_label labels[PROFILE_LABELS_MAX];
    char text[160];    /* for CONVERTER_FAILED */
};

struct converters {
    pid_t first;
    int control;
    uint32_t count;
    struct converter list[];
};

struct error *converters_create(uint32_t count, converter_run *run, void *own, struct converters **out)
{
    int ends[2];

    *out = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return error_os(errno, "the processes that read traces cannot be started");
    struct converters *all = calloc(1, sizeof *all + count * sizeof *all->list);
    pid_t pid = all ? fork() : -1;
    if (!pid) {
        close(ends[0]);
        trace_processes_serve(ends[1], run, own);
    }
    int why = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        free(all);
        return all ? error_os(why, "the process that reads traces cannot be started") : error_no_memory();
    }
    *all = (struct converters){.first = pid, .control = ends[0], .count = count};
    for (uint32_t i = 0; i < count; i++)
        all->list[i] = (struct converter){.all = all, .number = i, .pipe = -1};
    *out = all;
    return NULL;
}

void converters_destroy(struct converters *all)
{
    if (!all)
        return;
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->list[i].pipe >= 0)
            close(all->list[i].pipe);
        buf_deinit(&all->list[i].bytes);
    }
    close(all->control);
    helper_wait(all->first);
    free(all);
}

struct converter *converters_idle(struct converters *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        if (!all->list[i].expects_answer)
            return &all->list[i];
    }
    return NULL;
}

struct error *converters_end(struct converters *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        TRY(converter_end(&all->list[i]));
    return NULL;
}

static struct error *first_is_gone(void)
{
    return error_create(ERROR_IO, "the process that starts others to read traces is gone: start pysym push again");
}

/* ---- orders ---- */

static struct error *send_order(const struct converter *c, const struct trace_order *order, const int fds[TRACE_ORDER_FDS])
{
    union {
        char bytes[CMSG_SPACE(TRACE_ORDER_FDS * sizeof(int))];
        struct cmsghdr align;
    } rights = {0};
    struct iovec data = {(void *)order, sizeof *order};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};

    if (fds) {
        m.msg_control = &rights;
        m.msg_controllen = sizeof rights;
        struct cmsghdr *head = CMSG_FIRSTHDR(&m);
        *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                                 .cmsg_len = CMSG_LEN(TRACE_ORDER_FDS * sizeof *fds)};
        memcpy(CMSG_DATA(head), fds, TRACE_ORDER_FDS * sizeof *fds);
    }
    ssize_t n;
    do
        n = sendmsg(c->all->control, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? first_is_gone() : NULL;
}

struct error *converter_begin(struct converter *c, const struct converter_trace *trace, enum converter_task task)
{
    struct trace_order order = {.kind = TRACE_ORDER_BEGIN, .task = task, .number = c->number};
    int ends[2];

    snprintf(order.path, sizeof order.path, "%s", trace->path);
    if (pipe2(ends, O_CLOEXEC))
        return error_os(errno, "a pipe to the process that reads traces cannot be made");
    fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    struct error *err = send_order(c, &order, (const int[TRACE_ORDER_FDS]){trace->fd, ends[1]});
    close(ends[1]);
    if (err) {
        close(ends[0]);
        return err;
    }
    c->pipe = ends[0];
    c->expects_answer = true;
    c->answered = false;
    c->silence_ns = 0;
    c->asked_ns = now_ns();
    buf_clear(&c->bytes);
    c->taken = false;
    c->profile_count = c->other_count = 0;
    return NULL;
}

/* Takes the next answer, whose ever it is. */
static struct error *take_answer(struct converters *all)
{
    struct trace_answer a;
    ssize_t n;

    do
        n = recv(all->control, &a, sizeof a, 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof a || a.number >= all->count)
        return first_is_gone();
    all->list[a.number].answer = a;
    all->list[a.number].answered = true;
    return NULL;
}

/* Ends the process if it is still there, and stores how it ended. */
static struct error *end_process(struct converter *c, struct trace_answer *out)
{
    const struct trace_order order = {.kind = TRACE_ORDER_END, .number = c->number};

    *out = (struct trace_answer){0};
    if (c->pipe >= 0)
        close(c->pipe);
    c->pipe = -1;
    if (!c->expects_answer)
        return NULL;
    TRY(send_order(c, &order, NULL));
    while (!c->answered)
        TRY(take_answer(c->all));
    c->expects_answer = false;
    *out = c->answer;
    return NULL;
}

struct error *converter_end(struct converter *c)
{
    struct trace_answer answer;

    return end_process(c, &answer);
}

/* ---- messages ---- */

static struct error *fail(struct converter *c, struct converter_message *out)
{
    *out = (struct converter_message){.event = CONVERTER_FAILED, .text = c->text};
    return converter_end(c);
}

/* The pipe ended without a last message. */
static struct error *explain_end(struct converter *c, struct converter_message *out)
{
    struct trace_answer a;

    TRY(end_process(c, &a));
    *out = (struct converter_message){.event = CONVERTER_FAILED, .text = c->text};
    out->killed = a.fork_errno || (WIFSIGNALED(a.status) && WTERMSIG(a.status) == SIGKILL);
    if (a.fork_errno)
        snprintf(c->text, sizeof c->text, "no process can be started to read it: %s", strerror(a.fork_errno));
    else if (WIFSIGNALED(a.status))
        snprintf(c->text, sizeof c->text, "the process that read it was ended by SIG%s%s",
                 sigabbrev_np(WTERMSIG(a.status)) ? sigabbrev_np(WTERMSIG(a.status)) : "?",
                 WTERMSIG(a.status) == SIGKILL ? ", as the kernel does when memory runs out" : "");
    else
        snprintf(c->text, sizeof c->text, "the process that read it ended with status %d, and did not say why",
                 WEXITSTATUS(a.status));
    return NULL;
}

/* How many bytes the message has, as far as that is known. */
static struct error *message_len(const struct converter *c, struct message_head *head, size_t *len_bytes)
{
    *len_bytes = MESSAGE_HEAD_BYTES;
    if (c->bytes.len_bytes < MESSAGE_HEAD_BYTES)
        return NULL;
    TRY(message_read_head(c->bytes.data, head));
    *len_bytes += head->len_bytes;
    return NULL;
}

/* Reads what is there, and no more than is wanted. *ended: the pipe's other end is closed. */
static struct error *read_bytes(struct converter *c, size_t want, bool *ended)
{
    size_t room = want < CHUNK_BYTES ? want : CHUNK_BYTES;
    uint8_t *to = buf_reserve(&c->bytes, room);

    if (!to)
        return error_no_memory();
    ssize_t n = read(c->pipe, to, room);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return error_os(errno, "the process that reads traces cannot be understood");
    *ended = !n;
    c->bytes.len_bytes += n > 0 ? (size_t)n : 0;
    c->silence_ns = n > 0 ? 0 : c->silence_ns;
    return NULL;
}

/* A message that is not one: its process has gone wrong, or was taken over. */
static struct error *refuse(struct converter *c, struct error *why, struct converter_message *out)
{
    snprintf(c->text, sizeof c->text, "the process that read it went wrong: %s", error_text(why));
    error_destroy(why);
    return fail(c, out);
}

/* A trace that has taken its process over could keep the sender busy for ever. */
static struct error *count_message(struct converter *c, enum converter_event event)
{
    bool is_profile = event == CONVERTER_PROFILE;

    c->profile_count += is_profile;
    c->other_count = is_profile ? 0 : c->other_count + 1;
    return c->profile_count <= PROFILES_MAX && c->other_count <= OTHERS_MAX ? NULL
                                                                            : error_create(ERROR_LIMIT, "it says more than any trace has");
}

static struct error *take_message(struct converter *c, struct message_head head, struct converter_message *out)
{
    struct error *err = message_read(head, c->bytes.data + MESSAGE_HEAD_BYTES, c->labels, out);

    c->taken = true;
    if (!err)
        err = count_message(c, head.event);
    if (err)
        return refuse(c, err, out);
    return out->event == CONVERTER_END || out->event == CONVERTER_FAILED ? converter_end(c) : NULL;
}

static bool is_readable(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

/* Nothing is there. Counts how long that has been so while somebody asked. */
static struct error *note_silence(struct converter *c, struct converter_message *out, bool *came)
{
    uint64_t now = now_ns(), waited_ns = now - c->asked_ns;

    c->asked_ns = now;
    c->silence_ns += waited_ns < ASKED_NS ? waited_ns : ASKED_NS;
    *came = c->silence_ns > SILENCE_NS;
    if (!*came)
        return NULL;
    snprintf(c->text, sizeof c->text, "the process that read it said nothing for half an hour");
    return fail(c, out);
}

int converter_fd(const struct converter *c)
{
    return c->pipe;
}

struct error *converter_next(struct converter *c, struct converter_message *out, bool *came)
{
    struct message_head head = {0};
    bool ended = false;
    size_t len;

    if (c->taken) {
        if (c->bytes.cap_bytes > KEPT_BYTES)
            buf_deinit(&c->bytes);
        buf_clear(&c->bytes);
        c->taken = false;
    }
    for (;;) {
        struct error *err = message_len(c, &head, &len);
        *came = true;
        if (err)
            return refuse(c, err, out);
        if (c->bytes.len_bytes == len)
            return take_message(c, head, out);
        if (!is_readable(c->pipe))
            return note_silence(c, out, came);
        TRY(read_bytes(c, len - c->bytes.len_bytes, &ended));
        if (ended)
            return explain_end(c, out);
    }
}
