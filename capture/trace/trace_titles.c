/* SPDX-License-Identifier: Apache-2.0 */
/* A process that changes its title all the time has it read once in a second, and in the end. */
#include "capture/trace/trace_titles.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"
#include "formats/base/clock.h"

#define AGAIN_NS NS_PER_S

/* Whether it has changed. */
static bool read_cmdline(struct process_note *n)
{
    char *now = n->process->ended_ns ? NULL : procfs_cmdline((pid_t)n->process->tgid);

    if (!now || (n->cmdline && !strcmp(now, n->cmdline))) {
        free(now);
        return false;
    }
    free(n->cmdline);
    n->cmdline = now;
    return true;
}

const char *trace_titles_cmdline(struct process_note *n)
{
    read_cmdline(n);
    return n->cmdline;
}

static void put_title(struct trace_builder *b, const struct process_note *n, const char *cmdline, uint64_t time_ns)
{
    struct trace_process_name record = {
        .process = n->record.id,
        .time_ns = time_ns,
        .comm = trace_writer_cstr(b->o.writer, n->process->comm),
        .cmdline = trace_writer_cstr(b->o.writer, cmdline),
    };

    trace_writer_put(b->o.writer, TRACE_process_name, &record);
}

/* What it may make of its command line is counted with what else defines it. NULL: nothing new, or it may not. */
static const char *new_cmdline(struct trace_builder *b, struct process_note *n, uint64_t time_ns)
{
    struct quotas *quotas = b->o.processes->quotas;

    n->title_stale = false;
    n->title_read_ns = time_ns;
    if (!quota_take(quotas, n->process->slot, QUOTA_definition_bytes, 1, time_ns) || !read_cmdline(n))
        return NULL;
    quota_owe(quotas, n->process->slot, QUOTA_definition_bytes, strlen(n->cmdline), time_ns);
    return n->cmdline;
}

void trace_titles_renamed(struct trace_builder *b, struct process_note *n, uint64_t time_ns)
{
    uint64_t now = now_ns();
    bool wanted = b->o.cmdline && n->process->selected, soon = n->title_read_ns && now - n->title_read_ns < AGAIN_NS;
    const char *cmdline = wanted && !soon ? new_cmdline(b, n, now) : NULL;

    n->title_stale = wanted && !cmdline; /* it may follow its name */
    put_title(b, n, cmdline, time_ns);
}

void trace_titles_read(struct trace_builder *b, uint64_t time_ns, bool all)
{
    for (size_t i = 0; b->o.cmdline && i < b->notes.processes.count; i++) {
        struct process_note *n = b->notes.processes.data[i];
        if (!n || n->record.epoch != b->epoch || n->process->ended_ns || !n->process->selected ||
            !(all || (n->title_stale && time_ns - n->title_read_ns >= AGAIN_NS)))
            continue;
        const char *cmdline = new_cmdline(b, n, time_ns);
        if (cmdline)
            put_title(b, n, cmdline, time_ns);
    }
}
