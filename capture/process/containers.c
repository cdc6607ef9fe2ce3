/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at every line of /proc/PID/cgroup: on a host with older hierarchies (cgroup v1) these may hold the containers. */
#include "capture/process/containers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/host/host.h"
#include "capture/host/procfs.h"
#include "formats/base/buf.h"
#include "formats/trace/container.h"

/* How many containers a message lists. */
#define LISTED_MAX 8

void containers_deinit(struct containers *c)
{
    for (size_t i = 0; i < c->ids.count; i++)
        free(c->ids.data[i]);
    VEC_DEINIT(&c->ids);
}

/* Where a walk through the containers of a /proc/PID/cgroup is. "4:memory:/docker/ID" is a line. */
struct place {
    const char *line;      /* the next one */
    const char *path, *at; /* of the line before, for container_outwards(); NULL at first */
};

/* The next container, and the length of its ID; NULL at the end. */
static const char *next_container(struct place *p, size_t *len)
{
    for (;;) {
        const char *found = p->path ? container_outwards(p->path, &p->at, len) : NULL;
        if (found || !*p->line)
            return found;
        const char *end = p->line + strcspn(p->line, "\n"), *colon = memchr(p->line, ':', (size_t)(end - p->line));
        colon = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
        p->path = colon ? colon + 1 : end;
        p->at = end;
        p->line = end + (*end == '\n');
    }
}

bool containers_holds(const char *id, const char *cgroups)
{
    struct place p = {.line = cgroups};
    size_t len, wanted = strlen(id);
    const char *text;

    while ((text = next_container(&p, &len)) && (len != wanted || memcmp(text, id, len)))
        ;
    return text;
}

static bool is_known(const struct containers *c, const char *text, size_t len)
{
    for (size_t i = 0; i < c->ids.count; i++) {
        if (strlen(c->ids.data[i]) == len && !memcmp(c->ids.data[i], text, len))
            return true;
    }
    return false;
}

struct error *containers_add(struct containers *c, const char *cgroups)
{
    struct place p = {.line = cgroups};
    struct error *err = NULL;
    const char *text;

    for (size_t len; !err && (text = next_container(&p, &len));) {
        if (is_known(c, text, len))
            continue;
        char *id = strndup(text, len);
        if (!id || !VEC_PUSH(&c->ids, id)) {
            free(id);
            err = error_no_memory();
        }
    }
    return err;
}

struct error *containers_read(struct containers *c)
{
    struct procfs_pids all;
    struct error *err = NULL;

    c->apart = host_is_pid_namespace_own();
    TRY(procfs_pids(&all));
    for (size_t i = 0; !err && i < all.list.count; i++) {
        char *cgroups = procfs_cgroups(all.list.data[i]);
        if (cgroups) /* else it has ended */
            err = containers_add(c, cgroups);
        free(cgroups);
    }
    VEC_DEINIT(&all.list);
    return err;
}

/* ---- which one is meant ---- */

static bool is_meant(const char *id, const char *given)
{
    return !given || container_begins(id, strlen(id), given);
}

/* Appends those that begin so; all of them for NULL. */
static void list_them(const struct containers *c, const char *given, struct buf *out)
{
    char name[CONTAINER_NAME_MAX];
    size_t count = 0, listed = 0;

    for (size_t i = 0; i < c->ids.count; i++)
        count += is_meant(c->ids.data[i], given);
    for (size_t i = 0; i < c->ids.count && listed < LISTED_MAX; i++) {
        if (!is_meant(c->ids.data[i], given))
            continue;
        container_shorten(c->ids.data[i], strlen(c->ids.data[i]), name);
        buf_printf(out, "%s%s", listed++ ? ", " : "", name);
    }
    if (count > listed)
        buf_printf(out, " and %zu more", count - listed);
}

static struct error *none_begins(const struct containers *c, const char *given)
{
    struct buf list = {0};

    if (c->apart)
        return error_create(ERROR_NOT_FOUND, "no container '%s' is seen from here: pycap runs in a pid namespace of its own (a "
                            "container?); run it on the host, or in a container with the host's pid namespace (--pid=host)", given);
    list_them(c, NULL, &list);
    struct error *err = error_create(ERROR_NOT_FOUND, "no process of this host is in a container '%s': give its ID or how that begins, as "
                                     "docker ps or crictl ps shows it (the kernel does not know its name)%s%s", given,
                                     c->ids.count ? "; those here: " : "; none is in any container", buf_cstr(&list));
    buf_deinit(&list);
    return err;
}

struct error *containers_choose(const struct containers *c, const char *given, const char **id)
{
    size_t found = 0, behind = strlen(given);
    const char *text = given;

    container_skip_engine(&text, &behind);
    if (!behind)
        return error_create(ERROR_USAGE, "--container wants the ID of a container, or how it begins, not '%s'", given);
    for (size_t i = 0; i < c->ids.count; i++) {
        size_t len = strlen(c->ids.data[i]);
        if (!container_begins(c->ids.data[i], len, given))
            continue;
        *id = c->ids.data[i];
        if (container_is(c->ids.data[i], len, given))
            return NULL;
        found++;
    }
    if (!found)
        return none_begins(c, given);
    if (found == 1)
        return NULL;
    struct buf list = {0};
    list_them(c, given, &list);
    struct error *err = error_create(ERROR_USAGE, "%zu containers begin with '%s': %s; give more of the ID", found, given, buf_cstr(&list));
    buf_deinit(&list);
    return err;
}
