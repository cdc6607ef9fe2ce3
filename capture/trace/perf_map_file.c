/* SPDX-License-Identifier: Apache-2.0 */
/* Opens /tmp/perf-PID.map in the root of its process; after its end, through another process that has the same root. */
#include "capture/trace/perf_map_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/binary/modules.h"
#include "capture/host/own_file.h"
#include "formats/base/clock.h"

/* File systems take time stamps from the last timer tick, so a stamp may be this much too early. */
#define STAMP_NS UINT64_C(100000000)
/* How long to wait before looking again for a file that does not exist. */
#define WAIT_MIN_MS 20
#define WAIT_MAX_MS 60000
/* File descriptors to leave for other uses, and the highest descriptor under which a file is held. */
#define FDS_LEFT 256
#define FDS_MAX 16384
/* Such tables take a fifth of their size in the trace; this is less than that part of it. */
#define COMPRESSES_TO 8

static bool know_by(struct perf_map_file *m, pid_t pid)
{
    m->known = root_identify(pid, &m->root) && own_file_user(pid, &m->user);
    return m->known;
}

void perf_map_file_remember_root(struct perf_map_file *m, const struct process *p)
{
    if (m->known && m->exec_generation == p->exec_generation)
        return;
    m->exec_generation = p->exec_generation;
    /* A process that ended before this most likely had the root and user of its parent. */
    if (!know_by(m, (pid_t)p->tgid) && p->parent_tgid)
        know_by(m, (pid_t)p->parent_tgid);
}

static uint32_t own_pid(const struct process *p)
{
    return p->ns_tgid ? p->ns_tgid : p->tgid;
}

/* Rejects a file that an earlier process with this pid left behind, and a file that is another user's. */
static bool is_its_own(const struct perf_map_file *m, const struct process *p, const struct stat *st)
{
    return own_file_is_of(st, m->user) &&
           timespec_ns(st->st_mtim) + STAMP_NS >= clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + p->start_boottime_ns;
}

static void name_of(const struct process *p, char name[32])
{
    snprintf(name, 32, "perf-%u.map", own_pid(p));
}

/* A process that changed its user has no file from then on. */
static int open_own(struct perf_map_file *m, const struct process *p)
{
    uint32_t user;
    char name[32];

    if (!m->known || !own_file_user((pid_t)p->tgid, &user))
        return -1;
    if (user != m->user)
        m->user = OWN_FILE_NO_USER;
    if (m->user == OWN_FILE_NO_USER)
        return -1;
    name_of(p, name);
    return own_file_open((pid_t)p->tgid, name, m->user);
}

void perf_map_file_init(struct perf_map_file *m)
{
    *m = (struct perf_map_file){.fd = -1};
}

void perf_map_file_deinit(struct perf_map_file *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
}

/* Keeps the descriptor instead of the one that was held, or closes it when too many are open. */
static void keep(struct perf_map_file *m, int fd)
{
    struct rlimit limit;
    bool room = !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + FDS_LEFT < limit.rlim_cur && fd < FDS_MAX;

    perf_map_file_deinit(m);
    if (room)
        m->fd = fd;
    else
        close(fd);
}

void perf_map_file_hold(struct perf_map_file *m, const struct process *p)
{
    struct stat st;

    if (!m->epoch || m->fd >= 0 || p->ended_ns)
        return;
    uint64_t time_ns = now_ns();
    if (time_ns < m->try_ns)
        return;
    int fd = open_own(m, p);
    if (fd >= 0 && !fstat(fd, &st) && is_its_own(m, p, &st)) {
        keep(m, fd);
        return;
    }
    if (fd >= 0)
        close(fd);
    /* Most programs that generate code write no file, so look less and less often. */
    m->wait_ms = !m->wait_ms ? WAIT_MIN_MS : m->wait_ms < WAIT_MAX_MS ? 2 * m->wait_ms : WAIT_MAX_MS;
    m->try_ns = time_ns + m->wait_ms * NS_PER_MS;
}

uint32_t perf_map_file_module(struct perf_map_file *m, const struct process *p, struct trace_writer *w, uint64_t epoch)
{
    uint8_t identity[24];
    char path[64];

    if (m->epoch == epoch) {
        perf_map_file_hold(m, p);
        return m->module;
    }
    perf_map_file_remember_root(m, p);
    for (int i = 0; i < 8; i++) {
        identity[i] = (uint8_t)((uint64_t)p->tgid >> 8 * i);
        identity[8 + i] = (uint8_t)(p->start_boottime_ns >> 8 * i);
        identity[16 + i] = (uint8_t)(p->exec_generation >> 8 * i);
    }
    snprintf(path, sizeof path, "/tmp/perf-%u.map", own_pid(p));
    struct trace_module record = {
        .kind = TRACE_MODULE_ANONYMOUS,
        .id_kind = TRACE_ID_PROCESS,
        .build_id = {identity, sizeof identity},
        .path = trace_writer_cstr(w, path),
    };
    trace_writer_put(w, TRACE_module, &record);
    m->epoch = epoch;
    m->module = record.id;
    perf_map_file_hold(m, p);
    return m->module;
}

/* For a process that has ended: opens the file through another process that has the same root. */
static int open_elsewhere(const struct perf_map_file *m, const struct process *p, struct processes *all)
{
    struct root_identity root;
    uint32_t cursor = 0;
    char name[32];
    int fd = -1;

    name_of(p, name);
    if (root_identify(getpid(), &root) && root_is(&root, &m->root))
        return own_file_open(0, name, m->user);
    for (const struct process *other; fd < 0 && (other = processes_next(all, &cursor));) {
        pid_t pid = (pid_t)other->tgid;
        if (other != p && !other->ended_ns && root_identify(pid, &root) && root_is(&root, &m->root))
            fd = own_file_open(pid, name, m->user);
    }
    return fd;
}

/* Reads whole lines from the start of the file, at most `want` bytes. Returns how many bytes they have. */
static uint64_t read_lines(int fd, uint8_t *text, uint64_t want)
{
    uint64_t have = 0;

    while (have < want) {
        ssize_t n = pread(fd, text + have, want - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (uint64_t)n;
    }
    /* Cut an incomplete last line, which is still being written. */
    while (have && text[have - 1] != '\n')
        have--;
    return have;
}

/* Whether the process's quota has room for what the text takes in the file beyond what has been taken already. */
static bool take_stored(const struct process *p, struct quotas *quotas, struct trace_writer *w, const uint8_t *text,
                        uint64_t len_bytes, uint64_t taken, uint64_t time_ns)
{
    uint64_t stored = trace_writer_stored_bytes(w, text, len_bytes);

    return stored <= taken || quota_take(quotas, p->slot, QUOTA_perf_map_bytes, stored - taken, time_ns);
}

/* Writes the file's text, unless the process's quota refuses; `*written` says so. */
static struct error *put_text(const struct process *p, struct quotas *quotas, struct trace_writer *w,
                              struct trace_perf_map *record, int fd, bool *written)
{
    uint64_t size = record->file_size, want = size < PERF_MAP_MAX_BYTES ? size : PERF_MAP_MAX_BYTES;
    /* Asked for before anything is read, because reading costs time, too. */
    uint64_t taken = want / COMPRESSES_TO;

    *written = false;
    if (!quota_take(quotas, p->slot, QUOTA_perf_map_bytes, taken, record->time_ns))
        return NULL;
    uint8_t *text = malloc(want);
    if (!text)
        return error_no_memory();
    record->text = (struct trace_bytes){text, read_lines(fd, text, want)};
    *written = take_stored(p, quotas, w, text, record->text.len_bytes, taken, record->time_ns);
    if (*written && record->text.len_bytes)
        trace_writer_put(w, TRACE_perf_map, record);
    free(text);
    return NULL;
}

struct error *perf_map_file_write(struct perf_map_file *m, const struct process *p, struct processes *all,
                                  struct trace_writer *w, uint64_t epoch, uint64_t time_ns, bool *cut)
{
    struct error *err = NULL;
    struct stat st;

    *cut = false;
    if (!m->known)
        return NULL;
    int fd = p->ended_ns ? -1 : open_own(m, p);
    if (fd < 0)
        fd = m->fd;
    if (fd < 0)
        fd = open_elsewhere(m, p, all);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st))
        st = (struct stat){.st_uid = UINT32_MAX};
    if (st.st_size > 0 && is_its_own(m, p, &st) &&
        ((uint64_t)st.st_size != m->written_size || timespec_ns(st.st_mtim) != m->written_mtime_ns)) {
        struct trace_perf_map record = {
            .module = perf_map_file_module(m, p, w, epoch), .time_ns = time_ns, .file_size = (uint64_t)st.st_size};
        bool written;
        err = put_text(p, all->quotas, w, &record, fd, &written);
        *cut = written && (record.file_size > PERF_MAP_MAX_BYTES || trace_writer_epoch_full(w));
        if (written && !trace_writer_epoch_full(w)) { /* else it is tried again */
            m->written_size = record.file_size;
            m->written_mtime_ns = timespec_ns(st.st_mtim);
        }
    }
    if (fd != m->fd && is_its_own(m, p, &st))
        keep(m, fd); /* the newest one, should there have been others */
    else if (fd != m->fd)
        close(fd);
    return err;
}
