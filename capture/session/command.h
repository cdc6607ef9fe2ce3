/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command to be sampled. It is forked first, waits until everything is set up,
 * and then calls exec. It keeps its input, output and exit status.
 */
#ifndef CAPTURE_SESSION_COMMAND_H
#define CAPTURE_SESSION_COMMAND_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "formats/base/err.h"

struct command {
    pid_t pid;
    int go_fd;    /* a byte written here lets the child call exec */
    int error_fd; /* the child writes the errno of a failed exec here */
    uint64_t started_ns; /* CLOCK_MONOTONIC; when it was allowed to call exec */
    bool exited;
    /* Once it has exited: */
    int status;       /* as wait4() reports it */
    uint64_t wall_ns; /* from started_ns to its end */
    uint64_t cpu_ns;  /* user and system time, including descendants that were waited for */
};

/*
 * The signal mask, signal actions, priority and limit of open files that pycap was started with. pycap changes them, the command gets them.
 */
#define COMMAND_SIGNALS 7
struct command_context {
    sigset_t mask;
    struct sigaction actions[COMMAND_SIGNALS]; /* for the signals that pycap handles in its own way */
    int nice, policy; /* of sched_setscheduler(2) */
    struct sched_param priority;
    struct rlimit files;
    int error_fd; /* the command's standard error; 0: pycap's own. Set by the caller */
};
void command_context_save(struct command_context *s);

/* Forks the command; it gets the saved context, so that nohup and nice before pycap have effect on the command. */
struct error *command_fork(char *const argv[], const struct command_context *context, struct command *c);
/* Lets the child call exec, at `time_ns` (CLOCK_MONOTONIC). Returns an error, with `name`, when exec fails. */
struct error *command_go(struct command *c, const char *name, uint64_t time_ns);
/* Returns true when the command has ended, and leaves it as a zombie; does not block. */
bool command_has_ended(const struct command *c);
/*
 * Returns true when the command has ended; does not block. The first time, it takes `time_ns` as the time of its end.
 */
bool command_poll(struct command *c, uint64_t time_ns);
/* The exit code that a shell would report: the exit status, or 128 + signal. */
int command_exit_code(const struct command *c);
/* Closes the pipes. A child that still waits to call exec exits and is reaped; a command that runs goes on. */
void command_deinit(struct command *c);

#endif
