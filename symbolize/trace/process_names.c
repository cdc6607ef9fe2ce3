/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/process_names.h"

#include <string.h>

#include "formats/trace/program_name.h"

enum {
    TRIES_MAX = 1000, /* samples of the first thread in an epoch: as long as a pex prepares what it runs, it is not there */
    IMAGES_MAX = 16,  /* program images of a pid that are looked at */
    NAME_BYTES_PER_STEP = 16, /* of a name that is compared: the kernel has short ones, a forged trace need not */
    LOOK_WORK = 50,   /* for a name that is looked up, see limits.h */
    LOOKS_MAX = 500,  /* for the master of a worker in an epoch: processes begin, and change their titles, as often as they like */
};

void process_names_init(struct process_names *n, struct limits *limits)
{
    *n = (struct process_names){
        .arena.limits = limits, .identities.arena.limits = limits, .texts.arena.limits = limits, .of_pid.limits = limits, .masters.limits = limits};
}

void process_names_deinit(struct process_names *n)
{
    VEC_DEINIT(&n->known);
    VEC_DEINIT(&n->workers);
    map_deinit(&n->of_pid);
    map_deinit(&n->masters);
    intern_deinit(&n->identities);
    intern_deinit(&n->texts);
    arena_deinit(&n->arena);
    main_module_deinit(&n->main_module);
    buf_deinit(&n->text);
}

/* ---- what is known ---- */

/* Whether stacks may tell more than the record does. A name that says nothing is as good as none. */
static bool wants_name(const struct epoch *e, const struct trace_process *def)
{
    return def->program_kind == TRACE_PROGRAM_UNKNOWN ||
           (def->program_kind == TRACE_PROGRAM_SCRIPT && main_module_says_nothing(epoch_text(e, def->program)));
}

/* What the process runs. */
static enum trace_program_kind program_of(const struct epoch *e, uint32_t process, const char **program)
{
    const struct epoch_process *p = &e->processes.data[process];

    if (p->known && p->known->program && wants_name(e, &p->def)) {
        *program = p->known->program;
        return (enum trace_program_kind)p->known->kind;
    }
    *program = epoch_text(e, p->def.program);
    return (enum trace_program_kind)p->def.program_kind;
}

/* How it was begun, of a worker without a name of its own; NULL: it has one, or may have one. */
static const char *begun_by(const struct epoch *e, uint32_t process)
{
    const char *program;
    enum trace_program_kind kind = program_of(e, process, &program);

    return program_begun_by(kind, program);
}

/* Whether it is called by what it runs, and not by the kernel's name. */
static bool has_own_name(const struct epoch *e, uint32_t process)
{
    const char *program;
    enum trace_program_kind kind = program_of(e, process, &program);

    return program_has_name(kind, program);
}

/* The name of what it runs, else the kernel's. */
static void put_own_name(const struct epoch *e, uint32_t process, struct buf *out)
{
    const char *program;
    enum trace_program_kind kind = program_of(e, process, &program);

    if (!program_put(kind, program, out))
        buf_put_str(out, epoch_text(e, e->processes.data[process].comm));
}

void process_name_put(const struct epoch *e, uint32_t process, struct buf *out)
{
    const struct process_known *known = e->processes.data[process].known;
    const char *how = known && known->works_for ? begun_by(e, process) : NULL;

    if (how)
        program_put_worker(known->works_for, how, out);
    else
        put_own_name(e, process, out);
}

const char *process_name_title(const struct epoch *e, uint32_t process)
{
    const struct epoch_process *p = &e->processes.data[process];
    const char *comm = epoch_text(e, p->comm), *program;

    program_of(e, process, &program);
    return has_own_name(e, process) && program_is_title(comm, epoch_text(e, p->def.exe), program) ? comm : "";
}

void process_name_put_with(const struct epoch *e, uint32_t process, const char *title, struct buf *out)
{
    process_name_put(e, process, out);
    if (!*title)
        return;
    buf_put_str(out, " \"");
    for (; *title; title++)
        buf_put_u8(out, (uint8_t)(*title == '"' ? '\'' : *title)); /* it would look like the end */
    buf_put_u8(out, '"');
}

const char *process_kernel_name(const struct epoch *e, uint32_t process, uint32_t i)
{
    const struct epoch_process *p = &e->processes.data[process];

    if (!i)
        return epoch_text(e, p->comm);
    return p->known && i <= p->known->kernel_name_count ? p->known->kernel_names[i - 1] : NULL;
}

/* ---- keeping it ---- */

static const char *keep(struct process_names *n, const char *text)
{
    uint32_t id = intern_id(&n->texts, text, (uint32_t)strlen(text) + 1, NULL);

    return id == INTERN_NONE ? NULL : (const char *)intern_get(&n->texts, id)->data;
}

/* What is known of a process, to be added to; NULL: out of memory. */
static struct process_known *known_of(struct process_names *n, struct epoch *e, uint32_t process, uint32_t file)
{
    const struct process_identity identity = epoch_process_identity(e, process, file);
    bool added;

    uint32_t id = intern_id(&n->identities, &identity, sizeof identity, &added);
    if (id == INTERN_NONE)
        return NULL;
    if (added) {
        struct process_known *made = arena_calloc(&n->arena, 1, sizeof *made);
        if (!made || !VEC_EXTEND_ZERO(&n->known, (size_t)id + 1))
            return NULL;
        n->known.data[id] = made;
    }
    e->processes.data[process].known = n->known.data[id];
    return n->known.data[id];
}

static bool renamed(struct epoch *e, uint32_t process)
{
    return VEC_PUSH(&e->renamed, process);
}

/* Keeps another of the kernel's names of a process. */
static bool add_kernel_name(struct process_names *n, struct process_known *known, const char *name)
{
    for (uint32_t i = 0; i < known->kernel_name_count; i++) {
        if (!strcmp(known->kernel_names[i], name))
            return true;
    }
    if (known->kernel_name_count == PROCESS_KERNEL_NAMES_MAX)
        return true;
    const char *kept = keep(n, name);
    if (kept)
        known->kernel_names[known->kernel_name_count++] = kept;
    return kept;
}

/* ---- workers ---- */

/* The parent, if it was there when the process began; 0: it is not known. */
static uint32_t parent_of(const struct process_names *n, const struct epoch *e, uint32_t process)
{
    const struct trace_process *def = &e->processes.data[process].def;
    const uint64_t *newest = def->parent_tgid && def->parent_tgid != def->tgid ? map_get(&n->of_pid, def->parent_tgid) : NULL;
    uint32_t at = newest ? (uint32_t)*newest : 0;

    for (int i = 0; at && i < IMAGES_MAX; i++, at = e->processes.data[at].same_pid) {
        if (e->processes.data[at].def.start_boottime_ns <= def->start_boottime_ns)
            return at;
    }
    return 0;
}

/* A worker does not work for a shell, or what else is no Python and starts one with -c. */
static bool is_python(const struct epoch *e, uint32_t process)
{
    const struct trace_process *def = &e->processes.data[process].def;
    const char *program;

    return def->python_version || program_is_python(program_of(e, process, &program), epoch_text(e, def->exe));
}

/* The program that a worker works for; 0: it is not known. */
static uint32_t master_of(const struct process_names *n, const struct epoch *e, uint32_t worker)
{
    uint32_t at = parent_of(n, e, worker);

    for (int i = 0; at && i < PROGRAM_PARENTS_MAX; i++, at = parent_of(n, e, at)) {
        if (!begun_by(e, at))
            return is_python(e, at) ? at : 0;
    }
    return 0;
}

/* Names a worker after its master. Sets *finally: the master's name will not be another one. */
static struct error *find_master(struct process_names *n, struct epoch *e, uint32_t worker, uint32_t file, bool *finally)
{
    uint32_t master = master_of(n, e, worker);

    *finally = false;
    if (!limits_work(e->limits, LOOK_WORK))
        return error_no_memory();
    if (!master)
        return NULL;
    *finally = has_own_name(e, master);
    buf_clear(&n->text);
    put_own_name(e, master, &n->text);
    struct process_known *known = n->text.bad ? NULL : known_of(n, e, worker, file);
    const char *name = known ? keep(n, buf_cstr(&n->text)) : NULL;
    if (!name)
        return error_no_memory();
    if (known->works_for == name || !*name)
        return NULL;
    known->works_for = name;
    return renamed(e, worker) ? NULL : error_no_memory();
}

/* Names the workers anew, if the process is one that workers, or those that began them, have for a parent. */
static struct error *name_workers(struct process_names *n, struct epoch *e, uint32_t master, uint32_t file)
{
    if (!map_get(&n->masters, e->processes.data[master].def.tgid))
        return NULL;
    for (size_t i = 0; i < n->workers.count;) {
        struct process_worker *w = &n->workers.data[i];
        bool finally;
        TRY(find_master(n, e, w->process, file, &finally));
        if (finally || ++w->looks >= LOOKS_MAX)
            *w = n->workers.data[--n->workers.count];
        else
            i++;
    }
    return NULL;
}

static struct error *add_worker(struct process_names *n, struct epoch *e, uint32_t worker, uint32_t file)
{
    if (!begun_by(e, worker))
        return NULL;
    const struct process_worker made = {.process = worker};
    bool finally;

    TRY(find_master(n, e, worker, file, &finally));
    if (finally)
        return NULL;
    return VEC_PUSH(&n->workers, made) && map_set(&n->masters, e->processes.data[worker].def.parent_tgid, 1) ? NULL : error_no_memory();
}

/* ---- what stacks tell ---- */

static void want_no_more(struct process_names *n, struct epoch_process *p)
{
    p->name_tries = 0;
    n->wanting--;
}

static struct error *set_program(struct process_names *n, struct epoch *e, uint32_t process, uint32_t file)
{
    struct process_known *known = known_of(n, e, process, file);
    const char *program = known ? keep(n, n->main_module.program) : NULL;

    if (!program)
        return error_no_memory();
    known->kind = n->main_module.kind;
    known->program = program;
    if (!renamed(e, process))
        return error_no_memory();
    TRY(add_worker(n, e, process, file));
    return name_workers(n, e, process, file);
}

struct error *process_names_look(struct process_names *n, struct epoch *e, const struct trace_sample *sample, uint32_t file)
{
    const struct trace_thread *thread = &e->threads.data[sample->thread].def;
    struct epoch_process *p = &e->processes.data[thread->process];
    bool found;

    if (!p->name_tries || thread->tid != p->def.tgid || sample->tuple >= e->tuples.count)
        return NULL;
    const struct trace_tuple *tuple = &e->tuples.data[sample->tuple];
    if (!tuple->python_stack || tuple->python_end != LOSS_complete)
        return NULL;
    TRY(main_module_find(&n->main_module, e, tuple->python_stack, &found));
    if (found)
        want_no_more(n, p);
    else if (!--p->name_tries)
        n->wanting--;
    return found ? set_program(n, e, thread->process, file) : NULL;
}

/* ---- records ---- */

static struct error *define(struct process_names *n, struct epoch *e, uint32_t file)
{
    uint32_t process = (uint32_t)e->processes.count - 1;
    struct epoch_process *p = &e->processes.data[process];
    const struct process_identity identity = epoch_process_identity(e, process, file);
    uint32_t known = n->identities.count ? intern_find(&n->identities, &identity, sizeof identity) : INTERN_NONE;
    const uint64_t *before = map_get(&n->of_pid, p->def.tgid);

    if (known != INTERN_NONE)
        p->known = n->known.data[known];
    p->same_pid = before ? (uint32_t)*before : 0;
    if (!map_set(&n->of_pid, p->def.tgid, process))
        return error_no_memory();
    if (wants_name(e, &p->def) && !(p->known && p->known->program)) {
        p->name_tries = TRIES_MAX;
        n->wanting++;
    }
    TRY(add_worker(n, e, process, file));
    return name_workers(n, e, process, file);
}

/* A process that is called by the kernel's name has another name now; all may be chosen by each of them. */
static struct error *change_kernel_name(struct process_names *n, struct epoch *e, uint32_t process, uint32_t file)
{
    const struct epoch_process *p = &e->processes.data[process];
    struct process_known *known = known_of(n, e, process, file);

    if (!known || !limits_work(e->limits, strlen(epoch_text(e, p->comm)) / NAME_BYTES_PER_STEP) ||
        !add_kernel_name(n, known, epoch_text(e, p->def.comm)) || !add_kernel_name(n, known, epoch_text(e, p->comm)))
        return error_no_memory();
    return has_own_name(e, process) ? NULL : name_workers(n, e, process, file);
}

void process_names_end_epoch(struct process_names *n)
{
    map_clear(&n->of_pid);
    map_clear(&n->masters);
    n->workers.count = n->wanting = 0;
}

struct error *process_names_record(struct process_names *n, struct epoch *e, const struct trace_record *rec, uint32_t file)
{
    switch (rec->type) {
    case TRACE_epoch:
        process_names_end_epoch(n);
        return NULL;
    case TRACE_process:
        return define(n, e, file);
    case TRACE_process_name:
        return change_kernel_name(n, e, rec->process_name.process, file);
    default:
        return NULL;
    }
}
