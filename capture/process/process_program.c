/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/process/process_program.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"
#include "capture/process/program.h"
#include "capture/process/python_names.h"
#include "formats/trace/program_name.h"

/*
 * Whether an exec has replaced the image that the table describes: then its code is not where it was. The event that says
 * so may be under way.
 */
static bool was_replaced(const struct process *p)
{
    for (size_t i = code_mappings_count(&p->mappings); i--;) {
        const struct code_mapping *m = code_mappings_at(&p->mappings, i);
        if (m->module && m->path[0] == '/')
            return procfs_lacks_mapping((pid_t)p->tgid, m->address, m->address + m->length);
    }
    return false;
}

/* Reads the command line of a process into `arguments`. */
static void read_arguments(struct program_facts *facts, uint32_t pid, char arguments[PROGRAM_ARGUMENTS_MAX])
{
    facts->arguments = arguments;
    facts->len_bytes = procfs_arguments((pid_t)pid, arguments, PROGRAM_ARGUMENTS_MAX);
    facts->cut = facts->len_bytes == PROGRAM_ARGUMENTS_MAX - 1;
}

/* Sets *out to the parent's program if that is multiprocessing's forkserver: it runs the same module, and has forked this one. */
static bool is_child_of_forkserver(const struct process *p, struct program *out)
{
    char arguments[PROGRAM_ARGUMENTS_MAX], *exe = p->parent_tgid ? procfs_exe((pid_t)p->parent_tgid) : NULL;
    struct program_facts facts = {.exe = exe, .is_python = true};

    if (exe)
        read_arguments(&facts, p->parent_tgid, arguments);
    program_find(&facts, out);
    free(exe);
    return out->kind == TRACE_PROGRAM_COMMAND && !strcmp(out->name, "multiprocessing.forkserver");
}

/* By the file of its main module, if that can be read. */
static void find_by_main_file(struct process *p, struct program *out)
{
    struct python_names names = {0};
    bool of_parent = false, found = python_names_main_file(&names, p, &of_parent);

    if (found && of_parent && !is_child_of_forkserver(p, out))
        *out = (struct program){.kind = TRACE_PROGRAM_COMMAND, .name = "multiprocessing.spawn"};
    else if (found && !of_parent)
        program_find_by_main_file(buf_cstr(&names.text), out);
    python_names_deinit(&names);
}

static void set_program(struct process *p, enum trace_program_kind kind, const char *name)
{
    p->program_kind = kind;
    p->program = *name ? strdup(name) : NULL;
}

void process_find_program(struct process *p, bool finally)
{
    char arguments[PROGRAM_ARGUMENTS_MAX], *exe;
    struct program_facts facts = {0};
    struct program found;

    if (p->program_kind != TRACE_PROGRAM_UNRECORDED)
        return;
    exe = p->exe ? NULL : procfs_exe((pid_t)p->tgid);
    facts.exe = p->exe ? p->exe : exe;
    facts.is_python = process_has_python(p);
    bool wanted = program_is_told_by_arguments(&facts);
    if (wanted)
        read_arguments(&facts, p->tgid, arguments);
    bool replaced = was_replaced(p);
    if (replaced) { /* what was read is of another image */
        free(exe);
        exe = NULL;
        facts.exe = p->exe;
        facts.len_bytes = 0;
    }
    if (!p->exe)
        p->exe = exe;
    if (((wanted && !facts.len_bytes) || !facts.exe) && !finally)
        return;
    program_find(&facts, &found);
    if (found.kind == TRACE_PROGRAM_UNKNOWN && process_awaits_python(p) && !finally)
        return;
    if (found.is_hashed && p->before) {
        set_program(p, p->before_kind, p->before);
        return;
    }
    if (found.kind == TRACE_PROGRAM_UNKNOWN && facts.is_python && !replaced)
        find_by_main_file(p, &found);
    set_program(p, found.kind, found.name);
}

bool process_is_python_program(const struct process *p)
{
    return p->python || program_is_python(p->program_kind, p->exe);
}

bool process_awaits_python(const struct process *p)
{
    return p->program_kind == TRACE_PROGRAM_UNRECORDED && !p->python && program_is_python(p->program_kind, p->exe);
}

void process_keep_program(struct process *p, const struct process *old)
{
    bool is_named = old->program && old->program_kind != TRACE_PROGRAM_FILE && !program_begun_by(old->program_kind, old->program);

    const char *name = is_named ? old->program : old->before;

    free(p->before);
    p->before_kind = is_named ? old->program_kind : old->before_kind;
    p->before = name ? strdup(name) : NULL;
}

void process_take_program(struct process *p, struct process *from)
{
    process_forget_program(p);
    p->exe = from->exe;
    p->program_kind = from->program_kind;
    p->program = from->program;
    p->before_kind = from->before_kind;
    p->before = from->before;
    from->exe = from->program = from->before = NULL;
}

void process_forget_program(struct process *p)
{
    free(p->exe);
    free(p->program);
    free(p->before);
    p->exe = p->program = p->before = NULL;
}
