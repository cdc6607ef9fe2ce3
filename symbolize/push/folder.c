/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders are read anew each second, which survives that they vanish and come back, and costs 0.1 ms with a hundred files: a
 * file is opened only when its inode, length or times have changed. The first bytes of a trace say which it is; by them one
 * that was moved is recognized.
 */
#define XXH_INLINE_ALL
#include "symbolize/push/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/base/map.h"
#include "formats/base/open_regular.h"
#include "formats/base/vec.h"
#include "formats/trace/block.h"
#include "symbolize/push/trace_name.h"

/* How long a trace has not grown when its END record is looked for, and how often folders are read. */
#define LOOK_NS (1500 * NS_PER_MS)
#define INTERVAL_NS NS_PER_S
#define PUT_OFF_NS (10 * NS_PER_S)
enum { PUT_OFF_MAX = 5 };
enum { LOOKS_SHARE = 100 /* a hundredth of the time at most goes into looking */, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

enum entry_kind {
    ENTRY_OTHER,      /* no trace, or not yet */
    ENTRY_UNREADABLE,
    ENTRY_WAITING,
    ENTRY_TAKEN,      /* the caller works on it: it stays, whatever happens to its file */
    ENTRY_DONE,
};

struct entry {
    struct folder_trace trace; /* first: callers get a pointer to it */
    enum entry_kind kind;
    struct stat st;            /* when it was last looked at */
    uint64_t changed_ns;       /* CLOCK_MONOTONIC: when a change was noticed; at first when it was found */
    bool has_grown;            /* since it was found */
    uint64_t endless_len;      /* it has no END record at this length; 0: not known */
    uint64_t name_time_ns, series; /* trace_name_time() */
    uint32_t put_off_count;
    uint64_t put_off_ns;       /* CLOCK_MONOTONIC: until then; 0: it was not */
    uint32_t seen;             /* number of the look that found it */
};

/* Of the command line. */
struct place {
    const char *path;
    int told_errno; /* that was told last; 0: it could be read */
    bool is_file;   /* it was one, when it was there */
    bool readable;  /* it was known at the last look what is there */
};

struct folder {
    struct folder_events events;
    bool follow, told_full;
    VEC(struct place) places;
    VEC(struct entry *) entries; /* in the order of their time */
    struct map by_path;          /* hash of the path -> struct entry * */
    struct map newest;           /* by series: the latest name_time_ns */
    struct map here;             /* IDs of the traces that the last look found */
    size_t next;
    uint32_t look;               /* number of the last look, from 1 */
    uint64_t due_ns;
};

struct error *folder_create(const struct option_texts *inputs, const struct folder_events *events, bool follow, struct folder **out)
{
    struct folder *f = calloc(1, sizeof *f);

    *out = f;
    if (!f)
        return error_no_memory();
    f->events = *events;
    f->follow = follow;
    for (size_t i = 0; i < inputs->count; i++) {
        if (!VEC_PUSH(&f->places, (struct place){.path = inputs->data[i]})) {
            folder_destroy(f);
            *out = NULL;
            return error_no_memory();
        }
    }
    return NULL;
}

static void destroy_entry(struct entry *e)
{
    free(e->trace.path);
    free(e);
}

void folder_destroy(struct folder *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->entries.count; i++)
        destroy_entry(f->entries.data[i]);
    VEC_DEINIT(&f->entries);
    VEC_DEINIT(&f->places);
    map_deinit(&f->by_path);
    map_deinit(&f->newest);
    map_deinit(&f->here);
    free(f);
}

/* ---- one file ---- */

static bool is_trace(const struct entry *e)
{
    return e->kind == ENTRY_WAITING || e->kind == ENTRY_TAKEN || e->kind == ENTRY_DONE;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return is_same_file(a, b) && a->st_size == b->st_size && timespec_ns(a->st_mtim) == timespec_ns(b->st_mtim) &&
           timespec_ns(a->st_ctim) == timespec_ns(b->st_ctim);
}

/* Reads what a trace is known by; false: it is no trace, or not yet. */
static bool identify(int fd, struct state_trace_id *id)
{
    uint8_t bytes[TRACE_FILE_HEADER_BYTES + TRACE_BLOCK_HEADER_BYTES];

    if (pread(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes || memcmp(bytes, TRACE_FILE_MAGIC, TRACE_MAGIC_BYTES))
        return false;
    id->number = XXH3_64bits(bytes, sizeof bytes);
    return true;
}

/* The file has changed, or is new. `fd` is borrowed; -1: it cannot be opened, and errno says why. */
static void examine(struct folder *f, struct entry *e, int fd, const struct stat *st)
{
    const struct folder_trace before = e->trace;
    bool waited = e->kind == ENTRY_WAITING, was_trace = waited || e->kind == ENTRY_DONE;

    if (fd < 0) {
        if (e->kind != ENTRY_UNREADABLE && errno != ENOENT)
            f->events.unreadable(f->events.own, error_file(errno, e->trace.path, "cannot be read"));
        e->kind = ENTRY_UNREADABLE;
    } else {
        e->kind = identify(fd, &e->trace.id) ? ENTRY_WAITING : ENTRY_OTHER;
    }
    e->has_grown = was_trace && e->kind == ENTRY_WAITING && e->trace.id.number == before.id.number;
    if (waited && !e->has_grown)
        f->events.gone(f->events.own, &before);
    if (e->trace.id.number != before.id.number)
        e->trace.counted_bytes = 0;
    e->st = *st;
    e->changed_ns = now_ns();
    e->endless_len = 0;
    e->trace.len_bytes = (uint64_t)st->st_size;
    e->trace.time_ns = e->name_time_ns ? e->name_time_ns : timespec_ns(st->st_mtim);
}

static struct error *add_entry(struct folder *f, const char *path, uint64_t key, struct entry **out)
{
    struct entry *e = calloc(1, sizeof *e);

    *out = NULL;
    if (!e || !(e->trace.path = strdup(path)) || !VEC_RESERVE(&f->entries, f->entries.count + 1) ||
        !map_set(&f->by_path, key, (uintptr_t)e)) {
        if (e)
            destroy_entry(e);
        return error_no_memory();
    }
    e->name_time_ns = trace_name_time(path, &e->series);
    f->entries.data[f->entries.count++] = *out = e;
    return NULL;
}

/* NULL in *out: there is no room for more. */
static struct error *find_entry(struct folder *f, const char *path, struct entry **out)
{
    uint64_t key = XXH3_64bits(path, strlen(path));
    const uint64_t *known = map_get(&f->by_path, key);

    *out = known ? (struct entry *)(uintptr_t)*known : NULL;
    if (known)
        return NULL;
    if (f->entries.count < FOLDER_TRACES_MAX)
        return add_entry(f, path, key, out);
    if (!f->told_full)
        f->events.unreadable(f->events.own, error_path(ERROR_LIMIT, path, "is not read, nor are more files: there are %d already", FOLDER_TRACES_MAX));
    f->told_full = true;
    return NULL;
}

/* A file of the folder `at`, or (AT_FDCWD) of the command line, where links are followed. `st`: what is there. */
static struct error *look_at_file(struct folder *f, int at, const char *name, const char *path, const struct stat *st)
{
    struct entry *e;

    TRY(find_entry(f, path, &e));
    if (!e)
        return NULL;
    e->seen = f->look;
    if (e->kind == ENTRY_TAKEN || is_unchanged(&e->st, st))
        return NULL;
    int fd = at == AT_FDCWD ? open(name, OPEN_FLAGS) : open_regular(at, name, OPEN_NO_LINKS);
    struct stat opened = *st;
    if (fd >= 0 && (fstat(fd, &opened) || !S_ISREG(opened.st_mode))) {
        close(fd);
        fd = -1;
        errno = ENOENT; /* it is being replaced: the next look will show what it is */
    }
    examine(f, e, fd, &opened);
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* ---- places ---- */

/* `why`: errno; also EINVAL, it is no regular file and no folder, and ENOEXEC, it is no trace. */
static struct error *error_of_place(const struct place *p, int why)
{
    if (why == EINVAL)
        return error_path(ERROR_FORMAT, p->path, "is no regular file and no folder");
    if (why == ENOEXEC)
        return error_path(ERROR_FORMAT, p->path, "is no trace of pycap");
    return error_file(why, p->path, "cannot be read");
}

static void tell_place(struct folder *f, struct place *p, int why)
{
    p->readable = !why;
    if (why && why != p->told_errno)
        f->events.unreadable(f->events.own, error_of_place(p, why));
    p->told_errno = why;
}

static struct error *look_at_folder(struct folder *f, struct place *p)
{
    DIR *folder = opendir(p->path);
    struct error *err = NULL;
    const struct dirent *entry;
    char path[PATH_MAX];
    struct stat st;

    tell_place(f, p, folder ? 0 : errno);
    if (!folder)
        return NULL;
    const char *slash = p->path[strlen(p->path) - 1] == '/' ? "" : "/";
    while (!err && (entry = readdir(folder))) {
        if ((entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) ||
            snprintf(path, sizeof path, "%s%s%s", p->path, slash, entry->d_name) >= (int)sizeof path)
            continue;
        if (!fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
            err = look_at_file(f, dirfd(folder), entry->d_name, path, &st);
    }
    closedir(folder);
    return err;
}

/* A file that is named has to be a trace; with --follow it may become one. */
static bool is_no_trace(const struct folder *f, const struct place *p)
{
    const uint64_t *known = map_get(&f->by_path, XXH3_64bits(p->path, strlen(p->path)));

    return !f->follow && known && ((const struct entry *)(uintptr_t)*known)->kind == ENTRY_OTHER;
}

static struct error *look_at_place(struct folder *f, struct place *p)
{
    struct stat st;

    if (stat(p->path, &st)) {
        /* A file that was there is gone then; a folder may come back with all that it had. */
        p->readable = p->is_file && errno == ENOENT;
        if (!p->readable)
            tell_place(f, p, errno);
        return NULL;
    }
    if (S_ISDIR(st.st_mode))
        return look_at_folder(f, p);
    p->is_file = S_ISREG(st.st_mode);
    if (p->is_file)
        TRY(look_at_file(f, AT_FDCWD, p->path, p->path, &st));
    tell_place(f, p, !p->is_file ? EINVAL : is_no_trace(f, p) ? ENOEXEC : 0);
    return NULL;
}

/* ---- all of them ---- */

/* Whether its place could be read: else nothing is known about the file. */
static bool place_is_readable(const struct folder *f, const struct entry *e)
{
    for (size_t i = 0; i < f->places.count; i++) {
        size_t len = strlen(f->places.data[i].path);
        if (!f->places.data[i].readable && !strncmp(e->trace.path, f->places.data[i].path, len))
            return false;
    }
    return true;
}

/* Notes which traces are there, under whatever names. */
static struct error *find_here(struct folder *f)
{
    map_clear(&f->here);
    for (size_t i = 0; i < f->entries.count; i++) {
        const struct entry *e = f->entries.data[i];
        if (e->seen == f->look && is_trace(e) && !map_set(&f->here, e->trace.id.number, 1))
            return error_no_memory();
    }
    return NULL;
}

static bool has_vanished(const struct folder *f, const struct entry *e)
{
    return e->seen != f->look && e->kind != ENTRY_TAKEN && place_is_readable(f, e);
}

static struct error *remove_vanished(struct folder *f)
{
    size_t left = 0;

    TRY(find_here(f));
    for (size_t i = 0; i < f->entries.count; i++) {
        const struct entry *e = f->entries.data[i];
        if (e->kind == ENTRY_WAITING && has_vanished(f, e) && !map_get(&f->here, e->trace.id.number))
            f->events.gone(f->events.own, &e->trace);
    }
    for (size_t i = 0; i < f->entries.count; i++) {
        struct entry *e = f->entries.data[i];
        if (!has_vanished(f, e)) {
            f->entries.data[left++] = e;
            continue;
        }
        map_remove(&f->by_path, XXH3_64bits(e->trace.path, strlen(e->trace.path)));
        destroy_entry(e);
    }
    f->entries.count = left;
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

    if (x->trace.time_ns != y->trace.time_ns)
        return x->trace.time_ns < y->trace.time_ns ? -1 : 1;
    return strcmp(x->trace.path, y->trace.path);
}

static struct error *find_newest(struct folder *f)
{
    map_clear(&f->newest);
    for (size_t i = 0; i < f->entries.count; i++) {
        const struct entry *e = f->entries.data[i];
        const uint64_t *known = map_get(&f->newest, e->series);
        if (is_trace(e) && (!known || *known < e->name_time_ns) && !map_set(&f->newest, e->series, e->name_time_ns))
            return error_no_memory();
    }
    return NULL;
}

struct error *folder_look(struct folder *f)
{
    uint64_t begun_ns = now_ns();

    if (begun_ns < f->due_ns)
        return NULL;
    f->look++;
    for (size_t i = 0; i < f->places.count; i++)
        TRY(look_at_place(f, &f->places.data[i]));
    TRY(remove_vanished(f));
    if (f->entries.count)
        qsort(f->entries.data, f->entries.count, sizeof *f->entries.data, compare);
    TRY(find_newest(f));
    f->next = 0;
    uint64_t ended_ns = now_ns(), pause_ns = (ended_ns - begun_ns) * LOOKS_SHARE;
    f->due_ns = ended_ns + (pause_ns > INTERVAL_NS ? pause_ns : INTERVAL_NS);
    return NULL;
}

void folder_look_at_once(struct folder *f)
{
    f->due_ns = 0;
}

/* How long it has not grown. What was not seen growing is believed its own time. */
static uint64_t quiet_ns(const struct entry *e)
{
    uint64_t seen_ns = now_ns() - e->changed_ns, real_ns = clock_ns(CLOCK_REALTIME), written_ns = timespec_ns(e->st.st_mtim);

    return e->has_grown || written_ns > real_ns || real_ns - written_ns < seen_ns ? seen_ns : real_ns - written_ns;
}

static bool has_newer(const struct folder *f, const struct entry *e)
{
    const uint64_t *newest = map_get(&f->newest, e->series);

    return e->name_time_ns && newest && *newest > e->name_time_ns;
}

static enum folder_answer judge(const struct folder *f, const struct entry *e)
{
    if (e->kind != ENTRY_WAITING || now_ns() < e->put_off_ns)
        return FOLDER_NOTHING;
    uint64_t quiet = quiet_ns(e);
    if (has_newer(f, e) || quiet >= FOLDER_QUIET_NS)
        return FOLDER_COMPLETE;
    return e->endless_len != e->trace.len_bytes && (!f->follow || quiet >= LOOK_NS) ? FOLDER_LOOK : FOLDER_NOTHING;
}

enum folder_answer folder_next(struct folder *f, struct folder_trace **out)
{
    *out = NULL;
    while (f->next < f->entries.count) {
        struct entry *e = f->entries.data[f->next++];
        enum folder_answer answer = judge(f, e);
        if (answer == FOLDER_NOTHING)
            continue;
        e->kind = ENTRY_TAKEN;
        *out = &e->trace;
        return answer;
    }
    return FOLDER_NOTHING;
}

void folder_has_no_end(struct folder_trace *trace)
{
    struct entry *e = (struct entry *)trace;

    e->endless_len = trace->len_bytes;
    e->kind = ENTRY_WAITING;
}

void folder_put_back(struct folder_trace *trace)
{
    ((struct entry *)trace)->kind = ENTRY_WAITING;
}

bool folder_put_off(struct folder_trace *trace)
{
    struct entry *e = (struct entry *)trace;

    if (e->put_off_count == PUT_OFF_MAX)
        return false;
    e->put_off_ns = now_ns() + (PUT_OFF_NS << e->put_off_count++);
    e->kind = ENTRY_WAITING;
    return true;
}

void folder_done(struct folder_trace *trace)
{
    ((struct entry *)trace)->kind = ENTRY_DONE;
}

struct error *folder_open(struct folder_trace *trace, int *out)
{
    struct entry *e = (struct entry *)trace;
    struct state_trace_id id;
    struct stat st;

    *out = -1;
    int fd = open(trace->path, OPEN_FLAGS);
    if (fd < 0)
        return error_file(errno, trace->path, "cannot be opened");
    if (fstat(fd, &st) || !is_same_file(&st, &e->st) || !identify(fd, &id) || id.number != trace->id.number) {
        close(fd);
        return error_path(ERROR_NOT_FOUND, trace->path, "is another file now");
    }
    trace->len_bytes = (uint64_t)st.st_size;
    *out = fd;
    return NULL;
}

uint64_t folder_waiting(const struct folder *f, uint64_t *oldest_ns)
{
    uint64_t count = 0;

    *oldest_ns = 0;
    for (size_t i = 0; i < f->entries.count; i++) {
        const struct entry *e = f->entries.data[i];
        if (e->kind != ENTRY_WAITING && e->kind != ENTRY_TAKEN)
            continue;
        count++;
        uint64_t written_ns = timespec_ns(e->st.st_mtim);
        if ((e->kind == ENTRY_TAKEN || judge(f, e) == FOLDER_COMPLETE) && (!*oldest_ns || written_ns < *oldest_ns))
            *oldest_ns = written_ns;
    }
    return count;
}
