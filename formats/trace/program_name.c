/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/trace/program_name.h"

#include <string.h>

#include "formats/base/path.h"

#define HASH_DIGITS 32 /* of the shortest one, which is an MD5 */

/*
 * What starts workers, by the name of its module: capture/process/program.c knows those of -c by the text behind it. A name
 * that ends like another one comes first.
 */
static const struct {
    const char *program, *begun_by;
} helpers[] = {
    {"multiprocessing.spawn", "spawn"},
    {"multiprocessing.forkserver", "forkserver"},
    {"multiprocessing.resource_tracker", "resource_tracker"},
    {"multiprocessing.semaphore_tracker", "semaphore_tracker"},
    {"joblib.externals.loky.backend.popen_loky_posix", "loky"},
    {"loky.backend.popen_loky_posix", "loky"},
    {"joblib.externals.loky.backend.resource_tracker", "resource_tracker"},
    {"loky.backend.resource_tracker", "resource_tracker"},
    {"execnet", "execnet"},
};

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

bool program_is_interpreter(const char *base)
{
    static const char *const ends[] = {"", "-dbg", "-debug", "_d", "-intel64"};

    if (!starts_with(base, "python"))
        return false;
    base += strlen("python");
    base += strspn(base, "0123456789.");
    base += strspn(base, "dmtu"); /* flags of the ABI */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!strcmp(base, ends[i]))
            return true;
    }
    return false;
}

const char *program_begun_by(enum trace_program_kind kind, const char *program)
{
    if (kind != TRACE_PROGRAM_COMMAND && kind != TRACE_PROGRAM_MODULE)
        return NULL;
    if (kind == TRACE_PROGRAM_COMMAND && (!program || !*program))
        return "-c";
    for (size_t i = 0; program && i < sizeof helpers / sizeof *helpers; i++) {
        if (!strcmp(program, helpers[i].program))
            return helpers[i].begun_by;
    }
    return NULL;
}

bool program_has_name(enum trace_program_kind kind, const char *program)
{
    switch (kind) {
    case TRACE_PROGRAM_FILE:
    case TRACE_PROGRAM_SCRIPT:
    case TRACE_PROGRAM_MODULE:
        return program && *program;
    case TRACE_PROGRAM_COMMAND:
        return true;
    default:
        return false;
    }
}

bool program_put(enum trace_program_kind kind, const char *program, struct buf *out)
{
    if (!program_has_name(kind, program))
        return false;
    if (kind == TRACE_PROGRAM_MODULE && !program_begun_by(kind, program)) /* a helper is called the same, however it is begun */
        buf_put_str(out, "-m ");
    buf_put_str(out, program && *program ? program : "-c");
    return true;
}

void program_put_worker(const char *name, const char *begun_by, struct buf *out)
{
    buf_put_str(out, name);
    buf_put_str(out, " (");
    buf_put_str(out, begun_by);
    buf_put_str(out, ")");
}

/* Is `path` the file of a module: a/b.py of a.b? */
static bool is_file_of(const char *path, const char *module)
{
    size_t len = strlen(module), end = len + strlen(".py"), path_len = strlen(path);

    if (path_len <= end || path[path_len - end - 1] != '/' || strcmp(path + path_len - strlen(".py"), ".py"))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (path[path_len - end + i] != (module[i] == '.' ? '/' : module[i]))
            return false;
    }
    return true;
}

const char *program_helper_of_file(const char *path)
{
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        if (is_file_of(path, helpers[i].program))
            return helpers[i].program;
    }
    return NULL;
}

bool program_is_python(enum trace_program_kind kind, const char *exe)
{
    return kind == TRACE_PROGRAM_SCRIPT || kind == TRACE_PROGRAM_MODULE || kind == TRACE_PROGRAM_COMMAND ||
           (exe && program_is_interpreter(path_base(exe)));
}

bool program_is_exec_name(const char *comm, const char *path)
{
    const char *base = path ? path_base(path) : NULL;
    size_t len = strlen(comm);

    return len && base && !strncmp(comm, base, len) && (!base[len] || len == PROGRAM_COMM_MAX || !strcmp(base + len, " (deleted)"));
}

bool program_is_hash(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef");

    return digits >= HASH_DIGITS && (!name[digits] || name[digits] == '/');
}

bool program_is_comm(const char *text, const char *comm)
{
    return !strncmp(text, comm, PROGRAM_COMM_MAX);
}

bool program_is_title(const char *comm, const char *exe, const char *program)
{
    return *comm && !program_is_interpreter(comm) && !program_is_exec_name(comm, exe) && !program_is_exec_name(comm, program);
}
