/* SPDX-License-Identifier: Apache-2.0 */
/* The root and the working directory are opened once for all names, and compared with those that the process had. */
#include "capture/trace/source_look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/own_file.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"
#include "capture/host/root.h"
#include "formats/base/clock.h"
#include "formats/base/open_regular.h"

/* Of a user in more groups only these are looked at. */
enum { GROUPS_MAX = 64 };

/* Where names are looked up, and on whose behalf. Descriptors are O_PATH; -1: not known. */
struct place {
    int root, folder;
    struct open_user user;
    uint32_t groups[GROUPS_MAX];
};

/* The groups of a process, as far as there is room. */
static size_t groups_of(pid_t pid, uint32_t groups[GROUPS_MAX])
{
    char path[64], *text;
    size_t count = 0;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    struct error *err = procfs_read(path, &text, NULL);
    if (!err) {
        count = procfs_parse_groups(text, groups, GROUPS_MAX);
        free(text);
    }
    error_destroy(err);
    return count;
}

/* The root that the process has, or had; not of one that has gone to another since. */
static int open_root(const struct source_asker *asker)
{
    struct root_identity now;

    if (root_identify(asker->pid, &now))
        return root_is(&now, &asker->root) ? root_folder(asker->pid) : -1;
    return root_identify(getpid(), &now) && root_is(&now, &asker->root) ? root_folder(0) : -1;
}

/* The working directory, if it is still the one in which the process began. */
static int open_folder(const struct source_asker *asker)
{
    char path[64], *now = asker->folder ? procfs_folder(asker->pid) : NULL;
    bool same = now && !strcmp(now, asker->folder);

    free(now);
    snprintf(path, sizeof path, "/proc/%d/cwd", asker->pid);
    return same ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* A process that changed its user has the rights of everybody. */
static void place_open(struct place *p, const struct source_asker *asker)
{
    uint32_t now;

    p->user = (struct open_user){.user = asker->user == OWN_FILE_NO_USER ? OPEN_NO_USER : asker->user, .groups = p->groups};
    if (own_file_user(asker->pid, &now)) {
        if (now != asker->user)
            p->user.user = OPEN_NO_USER;
        else
            p->user.group_count = groups_of(asker->pid, p->groups);
    }
    p->root = open_root(asker);
    p->folder = p->root >= 0 ? open_folder(asker) : -1;
}

static void place_close(struct place *p)
{
    if (p->folder >= 0)
        close(p->folder);
    if (p->root >= 0)
        close(p->root);
}

/* Whether a part of the path leads up. */
static bool goes_up(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && part[1] == '.' && (!part[2] || part[2] == '/'))
            return true;
    }
    return false;
}

/* In the working directory links and ".." are not followed: they would lead somewhere else from there than from the root. */
static int find(const struct place *p, const char *name)
{
    if (name[0] == '/' && p->root >= 0)
        return open_path_of(p->root, name, OPEN_FOLLOW, &p->user);
    if (name[0] != '/' && p->folder >= 0 && !goes_up(name))
        return open_path_of(p->folder, name, OPEN_NO_LINKS, &p->user);
    errno = EACCES;
    return -1;
}

static struct source_fact look_at(const struct place *p, const char *name)
{
    struct source_fact fact = {.state = TRACE_SOURCE_UNKNOWN};
    struct stat st;
    int fd = find(p, name);

    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            fact.state = TRACE_SOURCE_NONE;
        return fact;
    }
    if (!fstat(fd, &st)) {
        fact.state = TRACE_SOURCE_NONE;
        if (S_ISREG(st.st_mode))
            fact = (struct source_fact){TRACE_SOURCE_FILE, (uint64_t)st.st_size, (int64_t)timespec_ns(st.st_mtim)};
    }
    close(fd);
    return fact;
}

/* Questions and answers as an errand has them. */
struct look_call {
    struct source_asker asker; /* but its folder */
    bool has_folder;
    uint32_t count;
    struct source_fact facts[SOURCE_LOOK_NAMES];
    char text[]; /* the folder, and names, each with its NUL */
};

static void run_looks(void *bytes, size_t size, int *fd)
{
    struct look_call *c = bytes;
    const char *name = c->text;
    struct place place;

    (void)size, (void)fd;
    c->asker.folder = c->has_folder ? c->text : NULL;
    place_open(&place, &c->asker);
    for (uint32_t i = 0; i < c->count; i++) {
        name += strlen(name) + 1;
        c->facts[i] = look_at(&place, name);
    }
    place_close(&place);
}

static char *put_text(char *at, const char *text)
{
    return stpcpy(at, text) + 1;
}

/* Where it is late nothing is known of the files. */
static void run(struct worker_job *job, const atomic_bool *stop)
{
    struct source_look *l = source_look_of_job(job);
    const char *folder = l->asker.folder ? l->asker.folder : "";
    size_t size = sizeof(struct look_call) + strlen(folder) + 1;

    for (uint32_t i = 0; i < l->count; i++)
        size += strlen(l->questions[i].name) + 1;
    struct look_call *c = atomic_load(stop) ? NULL : calloc(1, size);
    if (!c)
        return;
    c->asker = l->asker;
    c->has_folder = l->asker.folder;
    c->count = l->count;
    char *at = put_text(c->text, folder);
    for (uint32_t i = 0; i < l->count; i++)
        at = put_text(at, l->questions[i].name);
    if (errand_run_long(-l->asker.pid, run_looks, c, size, NULL)) {
        for (uint32_t i = 0; i < l->count; i++)
            l->questions[i].fact = c->facts[i];
    }
    free(c);
}

struct source_look *source_look_of_job(struct worker_job *job)
{
    return (struct source_look *)job;
}

static void destroy(struct worker_job *job)
{
    source_look_destroy(source_look_of_job(job));
}

struct source_look *source_look_create(const struct source_asker *asker, uint64_t epoch, bool again)
{
    struct source_look *l = calloc(1, sizeof *l);
    char *folder = asker->folder ? strdup(asker->folder) : NULL;

    if (!l || (asker->folder && !folder)) {
        free(l);
        free(folder);
        return NULL;
    }
    l->job = (struct worker_job){.process = asker->life, .owner = asker->owner, .run = run, .destroy = destroy};
    l->asker = *asker;
    l->asker.folder = folder;
    l->epoch = epoch;
    l->again = again;
    return l;
}

bool source_look_add(struct source_look *l, uint32_t id, const char *name)
{
    char *copy = strdup(name);

    if (!copy)
        return false;
    l->questions[l->count++] = (struct source_question){.id = id, .name = copy};
    l->job.number = l->count;
    return true;
}

void source_look_destroy(struct source_look *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->count; i++)
        free(l->questions[i].name);
    free((char *)l->asker.folder);
    free(l);
}
