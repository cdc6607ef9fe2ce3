/* SPDX-License-Identifier: Apache-2.0 */
/* A page of text at a time; a line that ends in the next page waits at the front of the buffer. */
#include "capture/host/procfs_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_calls.h"
#include "capture/host/procfs_task.h"

/* Threads that are tried when the first one has exited. */
#define THREADS_TRIED_MAX 64

/* What PROCFS_MAP_QUERY takes and gives. */
struct map_query {
    uint64_t size, flags, address;
    uint64_t start, end, vma_flags, page_size, file_offset, inode;
    uint32_t device_major, device_minor;
    uint32_t name_size, build_id_size;
    uint64_t name_address, build_id_address;
};
_Static_assert(sizeof(struct map_query) == _IOC_SIZE(PROCFS_MAP_QUERY), "as in linux/fs.h");

/* ---- lines ---- */

/* Undoes /proc's escapes (\012 and the like) in place. */
static void unescape(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
}

bool procfs_parse_mapping(const char *line, size_t len_bytes, struct procfs_mapping *out)
{
    static const char deleted[] = " (deleted)";
    char head[128], perm[5];
    int path_at = 0;

    *out = (struct procfs_mapping){0};
    size_t head_len = len_bytes < sizeof head - 1 ? len_bytes : sizeof head - 1;
    memcpy(head, line, head_len);
    head[head_len] = 0;
    if (sscanf(head, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &out->start, &out->end, perm,
               &out->file_offset, &out->device_major, &out->device_minor, &out->inode, &path_at) < 7 ||
        out->end <= out->start || strlen(perm) != 4)
        return false;
    size_t path_len = len_bytes - (size_t)path_at;
    if (path_len >= sizeof out->path + sizeof deleted)
        return false;
    char path[sizeof out->path + sizeof deleted];
    memcpy(path, line + path_at, path_len);
    path[path_len] = 0;
    out->protection = (perm[0] == 'r' ? PROT_READ : 0) | (perm[1] == 'w' ? PROT_WRITE : 0) |
                      (perm[2] == 'x' ? PROT_EXEC : 0);
    out->shared = perm[3] == 's';
    size_t n = strlen(path);
    if (n >= sizeof deleted && !strcmp(path + n - (sizeof deleted - 1), deleted) && out->inode) {
        out->deleted = true;
        path[n - (sizeof deleted - 1)] = 0;
    }
    unescape(path);
    n = strlen(path);
    if (n >= sizeof out->path)
        return false;
    memcpy(out->path, path, n + 1);
    return true;
}

struct query_call {
    bool good;
    struct map_query query;
    uint8_t build_id[20];
};

static void run_query(void *bytes, size_t size, int *fd)
{
    struct query_call *q = bytes;

    (void)size;
    q->query.build_id_address = (uint64_t)(uintptr_t)q->build_id;
    q->good = !ioctl(*fd, PROCFS_MAP_QUERY, &q->query);
}

/*
 * A path of a process in who knows which root names no file, and device and inode do not everywhere: stat() has another
 * device than the mapping on btrfs and overlayfs. Kernels that show such mappings know the build ID, too.
 */
static void ask_build_id(const struct procfs_maps *maps, struct procfs_mapping *m)
{
    struct query_call q = {
        .query = {.size = sizeof q.query, .address = m->start, .build_id_size = sizeof q.build_id}};
    int fd = maps->fd;

    if (!m->inode || !errand_run(maps->pid, run_query, &q, sizeof q, &fd))
        return;
    if (q.good && q.query.start == m->start && q.query.inode == m->inode && q.query.device_major == m->device_major &&
        q.query.device_minor == m->device_minor && q.query.build_id_size <= sizeof m->build_id) {
        m->build_id_len = q.query.build_id_size;
        memcpy(m->build_id, q.build_id, sizeof m->build_id);
    }
}

/* ---- the file ---- */

/* Reads one more piece behind what is left of the text. */
static struct error *fill(struct procfs_maps *m, const char *path)
{
    memmove(m->text, m->text + m->at, m->len_bytes - m->at);
    m->len_bytes -= m->at;
    m->at = 0;
    ssize_t n = procfs_call_read(m->pid, m->fd, m->text + m->len_bytes, sizeof m->text - m->len_bytes);
    if (n < 0)
        return error_file(errno, path, "cannot be read");
    m->ended = !n;
    if (n && m->may_read && !m->may_read(m->ctx, (size_t)n))
        m->cut = true;
    m->len_bytes += (size_t)n;
    return NULL;
}

static struct error *open_one(struct procfs_maps *m, const char *path)
{
    m->at = m->len_bytes = 0;
    m->ended = m->skips = false;
    m->fd = procfs_call_open(m->pid, path);
    if (m->fd < 0)
        return error_file(errno, path, "cannot be opened");
    struct error *err = fill(m, path);
    if (err)
        procfs_maps_close(m);
    return err;
}

/* The first thread may have exited while others run: they still show the memory. */
static struct error *open_of_thread(struct procfs_maps *m)
{
    struct procfs_pids threads;
    size_t tried = 0;
    char path[64];

    procfs_maps_close(m);
    TRY(procfs_threads(m->pid, &threads));
    for (size_t i = 0; i < threads.list.count && tried < THREADS_TRIED_MAX && !m->len_bytes; i++) {
        if (threads.list.data[i] == m->pid)
            continue;
        tried++;
        procfs_maps_close(m);
        snprintf(path, sizeof path, "/proc/%d/task/%d/maps", m->pid, threads.list.data[i]);
        error_destroy(open_one(m, path));
    }
    VEC_DEINIT(&threads.list);
    m->ended = !m->len_bytes;
    return NULL;
}

struct error *procfs_maps_open(pid_t pid, struct procfs_maps *out)
{
    char path[64];

    out->pid = pid;
    out->fd = -1;
    out->cut = out->late = false;
    out->may_read = NULL;
    out->ctx = NULL;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    TRY(open_one(out, path));
    if (out->ended)
        TRY(open_of_thread(out));
    out->asks_build_ids = procfs_root_is_closed(pid);
    return NULL;
}

void procfs_maps_close(struct procfs_maps *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
}

/* Takes the next whole line out of the text. NULL at the end. */
static const char *next_line(struct procfs_maps *m, size_t *len_bytes)
{
    for (;;) {
        const char *line = m->text + m->at;
        size_t left = m->len_bytes - m->at;
        const char *end = memchr(line, '\n', left);
        if (m->skips && left) { /* the rest of a line that was too long */
            m->at += end ? (size_t)(end - line) + 1 : left;
            m->skips = !end;
            continue;
        }
        if (end || (m->ended && left)) {
            *len_bytes = end ? (size_t)(end - line) : left;
            m->at += *len_bytes + (end != NULL);
            return line;
        }
        if (m->ended || m->cut || m->fd < 0)
            return NULL;
        if (left == sizeof m->text) { /* a path full of escapes: no file is found by it */
            m->at = m->len_bytes;
            m->skips = true;
        }
        struct error *err = fill(m, "maps");
        if (err) { /* the process has ended */
            m->late = err->os_errno == EBUSY;
            error_destroy(err);
            m->ended = true;
        }
    }
}

/* Most mappings are of data, and need not be parsed: whether the third letter behind the first space is an x. */
static bool is_executable(const char *line, size_t len_bytes)
{
    const char *space = memchr(line, ' ', len_bytes);

    return space && line + len_bytes - space > 3 && space[3] == 'x';
}

bool procfs_maps_next(struct procfs_maps *m, struct procfs_mapping *out)
{
    size_t len;

    for (const char *line; !m->cut && (line = next_line(m, &len));) {
        if (!is_executable(line, len) || !procfs_parse_mapping(line, len, out))
            continue;
        if (m->asks_build_ids)
            ask_build_id(m, out);
        return true;
    }
    return false;
}
