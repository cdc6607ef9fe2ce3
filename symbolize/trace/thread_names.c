/* SPDX-License-Identifier: Apache-2.0 */
/* A thread has the kernel's name of the one that began it until somebody gives it another, and so has a process that of its parent. */
#include "symbolize/trace/thread_names.h"

#include <string.h>

#include "formats/trace/program_name.h"

static bool is_first(const struct epoch *e, uint32_t thread)
{
    const struct epoch_thread *t = &e->threads.data[thread];

    return t->def.tid == e->processes.data[t->def.process].def.tgid;
}

bool thread_is_main(const struct epoch *e, uint32_t thread)
{
    const struct epoch_process *p = &e->processes.data[e->threads.data[thread].def.process];

    return (p->def.python_version || p->interpreter) && is_first(e, thread) && p->def.program_kind != TRACE_PROGRAM_UNRECORDED;
}

const char *thread_name_of(const struct epoch *e, uint32_t thread)
{
    const struct epoch_thread *t = &e->threads.data[thread];

    if (!t->python_name && thread_is_main(e, thread))
        return "MainThread";
    return epoch_text(e, t->python_name ? t->python_name : t->name);
}

bool thread_is_nameless(const struct epoch *e, uint32_t thread)
{
    const struct epoch_thread *t = &e->threads.data[thread];
    const struct epoch_process *p = &e->processes.data[t->def.process];
    const char *comm = epoch_text(e, t->name);

    if (is_first(e, thread) || t->python_name || p->def.program_kind == TRACE_PROGRAM_UNRECORDED)
        return false;
    /* The process may have another name by now, or have had one when the thread was begun: a title. */
    return !strcmp(comm, epoch_text(e, p->comm)) || !strcmp(comm, epoch_text(e, p->def.comm)) ||
           program_is_exec_name(comm, epoch_text(e, p->def.exe)) || program_is_exec_name(comm, epoch_text(e, p->def.program)) ||
           program_is_interpreter(comm);
}
