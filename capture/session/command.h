/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that is started to be sampled: forked first, held until everything is
 * set up, then let go. It keeps its input, output and exit status.
 */
#ifndef CAPTURE_SESSION_COMMAND_H
#define CAPTURE_SESSION_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"

struct command {
    pid_t pid;
    int go_fd;    /* written to let it go */
    int error_fd; /* the errno of a failed exec comes here */
    uint64_t started_ns; /* CLOCK_MONOTONIC; when it was let go */
    bool exited;
    /* Once it has exited: */
    int status;       /* of wait4() */
    uint64_t wall_ns; /* since it was let go */
    uint64_t cpu_ns;  /* user and system time, with that of descendants that were waited for */
};

/* What the program found when it was started, and changes for itself: signals that are blocked or ignored, its priority. */
#define COMMAND_SIGNALS 5
struct command_context {
    sigset_t mask;
    struct sigaction actions[COMMAND_SIGNALS]; /* of those that this program handles otherwise */
    int nice;
};
void command_context_save(struct command_context *s);

/* The command runs as it was saved: what nohup and nice set up for this program holds for the command. */
struct error *command_fork(char *const argv[], const struct command_context *context, struct command *c);
/* Lets it go, at `time_ns` (CLOCK_MONOTONIC); an error when it cannot be executed. */
struct error *command_go(struct command *c, const char *name, uint64_t time_ns);
/* True when it has ended; does not wait. The first time that it has, `time_ns` is noted as its end. */
bool command_poll(struct command *c, uint64_t time_ns);
/* What a shell would give: exit status, or 128 + signal. */
int command_exit_code(const struct command *c);
/* Closes what is open. One that was never let go ends by that and is waited for; one that runs goes on. */
void command_deinit(struct command *c);

#endif
