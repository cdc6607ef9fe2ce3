/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a recording session, shared by its parts. session_setup.c creates it,
 * session.c runs the main loop, advice.c answers mistakes, session_wait.c computes how long to sleep, session_drain.c
 * records what has arrived, session_files.c begins and ends files, session_budget.c limits
 * what recording costs, report.c writes the status line and the summary.
 */
#ifndef CAPTURE_SESSION_SESSION_PARTS_H
#define CAPTURE_SESSION_SESSION_PARTS_H

#include "capture/session/budget.h"
#include "capture/archive/bundle.h"
#include "capture/session/census.h"
#include "capture/trace/codes.h"
#include "capture/session/command.h"
#include "capture/session/command_note.h"
#include "capture/session/growth.h"
#include "capture/output/note_file.h"
#include "capture/output/outputs.h"
#include "capture/output/service_manager.h"
#include "capture/host/host.h"
#include "capture/host/kallsyms.h"
#include "capture/trace/late_unwind.h"
#include "capture/binary/modules.h"
#include "capture/proc/proc_sampler.h"
#include "capture/process/processes.h"
#include "capture/session/queue.h"
#include "capture/session/session_options.h"
#include "capture/trace/trace_builder.h"
#include "capture/sampler/sampler.h"
#include "capture/sampler/sampler_start.h"
#include "capture/sampler/table_maker.h"
#include "capture/session/settings.h"
#include "capture/session/sleepers.h"
#include "capture/session/task_looks.h"
#include "capture/session/waits.h"
#include "capture/sampler/sideband.h"
#include "capture/binary/tables.h"
#include "capture/when/watch.h"
#include "formats/base/clock.h"

/* An event that is older than this has reached its buffer, whichever CPU it comes from. */
#define EVENT_DELAY_NS (1 * NS_PER_MS)
/* Blocks are written at least this often, so kill -9 loses at most this much. */
#define FLUSH_NS NS_PER_S
/* How often the status line is updated. */
#define STATUS_NS (NS_PER_S / 2)

/* There are two sources of samples: `sampler` with `sideband`, or `proc`. A session has one of them. */
struct session {
    const struct session_options *o;
    struct host host;
    struct modules *modules;
    struct table_maker *table_maker;
    struct sampler_start *sampler_start; /* while the sampler is being opened */
    struct sampler *sampler;
    struct tables *tables;
    struct late_unwind *late_unwind;
    struct sideband *sideband;
    struct proc_sampler *proc;
    struct processes *processes;
    struct codes *codes;
    struct kallsyms *kallsyms;
    struct source_table *sources;
    struct trace_writer *writer;
    struct trace_builder *builder;
    struct queue *queue;
    struct waits *waits;   /* of threads that are off the CPU now */
    struct sleepers *sleepers; /* NULL: waits are not recorded */
    struct census *census; /* NULL: the recording does not end when each thread has a stack */
    struct task_looks *tasks;  /* NULL: asyncio tasks are not looked at */
    uint64_t tasks_shown_ns;   /* when all that they had waited was last written for a reader */
    struct when_watch *when;   /* NULL: there are no conditions */
    struct growth *growth; /* NULL: memory growth is not recorded */
    uint32_t growth_event; /* its index; EVENT_NONE */
    struct bundle *bundle; /* NULL: no archive */
    struct command command;
    uint32_t command_tgid; /* its process */
    struct command_context context; /* pycap's own, as it was started */
    struct note_file *note_file; /* NULL: there is no command, or the file could not be made */
    struct command_note note;    /* empty until the recording ends */
    struct outputs *outputs;
    struct flight *flight; /* NULL: not --on-demand */
    struct service_manager *manager; /* NULL: nobody is to be told */
    struct budget budget;
    struct event_list events; /* what is sampled, at the current rates; the proc backend replaces cpu-clock */
    struct sampler_ticks *ticks, *file_ticks; /* by event, then CPU: now, and when the file was begun */
    uint64_t *settled; /* by event, then CPU: ticks that the files before have seen */
    bool ticks_read;   /* `ticks` are of the account that is written */
    uint64_t *idle_ns; /* of each CPU when the file was begun */
    uint64_t file_start_ns;
    uint64_t file_lost, bytes_before; /* lost samples and bytes of the previous files */
    uint64_t unwritten, last_written; /* samples that are not in the last file, because it could not be written; that are in it */
    bool write_failed;  /* that file has no more than what was written before */
    uint64_t skipped[WIRE_EVENT_MAX]; /* skipped ticks of each event, in the previous files */
    uint32_t file_count;
    bool rotates, rotate_now;
    bool event_signalled; /* SIGUSR1 came, with --on-demand */
    const int *cpus;
    uint32_t cpu_count;
    int signal_fd, command_fd;
    bool reader_gone;      /* that of the pipe, which ended the recording */
    bool held;             /* nothing is written, because the reader of the pipe has stopped */
    uint64_t room_ns;      /* when it was last asked how much room there is */
    uint64_t begun_ns; /* when the session was set up; it records from start_ns on */
    uint64_t start_ns, flushed_ns, status_ns;
    uint64_t end_ns;   /* when sampling was disabled; 0: it goes on */
    uint64_t held_bytes;   /* resident memory when last measured, with --max-memory */
    uint64_t status_file_ns; /* when the file of --status was last written */
    bool status_file_failed; /* and that is told */
    uint64_t drained_bytes, drained_most_bytes; /* from the sampler's buffer: now, and the most since that file was written */
    uint64_t forgotten_ns; /* when the caches were last emptied to save memory */
    uint32_t news_waiting; /* side-band events in the queue that matter */
    uint64_t news_ns;      /* when the last of these, or a new code object, came */
    uint64_t deaf_ns, deaf_until_ns; /* for how long, and until when, side-band events do not wake us (session_wait.c) */
    bool others_drained;   /* the last drains brought side-band events that do not matter */
    bool stop;
    bool told; /* the error that ended it was said, before the summary */
    enum trace_end_reason reason;
    uint64_t losses[LOSS_LIMIT];
    uint64_t event_losses[WIRE_EVENT_MAX][LOSS_LIMIT]; /* the part of `losses` that belongs to a single event */
    struct settings settings;
    char *missing; /* names of the capabilities that pycap lacks; NULL: it lacks none */
};

/* Whether the output is a pipe or a device. */
static inline bool session_has_reader(const struct session *s)
{
    return s->outputs && outputs_is_stream(s->outputs);
}

#endif
