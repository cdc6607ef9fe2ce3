/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapping's key is looked up first. It has no time of change, so what it leads to is compared with the file: one that is
 * held open cannot become another, and has to be unchanged; of others the keys are looked up.
 */
#include "capture/binary/modules.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/binary/inspection.h"
#include "capture/binary/module_key.h"
#include "capture/host/privileges.h"
#include "capture/host/procfs_calls.h"
#include "capture/host/target_memory.h"
#include "formats/base/clock.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

/* So long a file that could not be opened is not tried again. */
#define AGAIN_NS NS_PER_S
/*
 * How long an inspection is waited for, and in how much of the time: a burst of WAIT_ALL_NS, and one part of WAIT_PART.
 * Waiting keeps things simple (a process is sampled from its first tick on, its mappings are written once), and samples
 * gather meanwhile; what takes longer is a hostile file, or a slow disk.
 */
#define WAIT_ONE_NS (20 * NS_PER_MS)
#define WAIT_ALL_NS (400 * NS_PER_MS)
#define WAIT_PART 10

/* So long a file stays open for a table to be made from it, and while others map it. A file system with open files cannot be unmounted. */
#define LOOSE_NS (5 * NS_PER_S)

struct loose_file {
    uint32_t module;
    uint64_t until_ns;
};

struct modules {
    VEC(struct module *) list;
    /* Keys of all kinds in one table (module_key.h, and 'v': a vdso's bytes); the id leads to an index in `of_key`. */
    struct intern keys;
    VEC(uint32_t) of_key;
    bool hold_all;      /* ELF files are held open, for an archive */
    uint32_t hold_left; /* files that may still be held open */
    VEC(struct loose_file) loose; /* open, and to be closed unless somebody needs them; oldest first */
    struct worker *worker;
    uint32_t pending;     /* modules that are */
    VEC(uint32_t) known;  /* indexes of modules that no longer are, for modules_next_known() */
    uint64_t waited_ns, waited_at_ns; /* how long inspections were waited for, less what has been forgotten since */
};

static void module_destroy(struct module *m)
{
    if (!m)
        return;
    if (m->held_fd >= 0)
        close(m->held_fd);
    elf_identity_deinit(&m->identity);
    py_image_deinit(&m->python);
    free(m->path);
    free(m->image);
    free(m);
}

void modules_destroy(struct modules *m)
{
    if (!m)
        return;
    worker_destroy(m->worker);
    for (size_t i = 0; i < m->list.count; i++)
        module_destroy(m->list.data[i]);
    VEC_DEINIT(&m->list);
    VEC_DEINIT(&m->of_key);
    VEC_DEINIT(&m->known);
    VEC_DEINIT(&m->loose);
    intern_deinit(&m->keys);
    free(m);
}

/* Files that may be held open, with room for what pycap opens besides. */
static uint32_t files_to_hold(rlim_t limit)
{
    enum { HOLD_MAX = 8192, OTHERS = 512 };

    if (limit >= HOLD_MAX + OTHERS)
        return HOLD_MAX;
    return limit > OTHERS ? (uint32_t)limit - OTHERS : 0;
}

struct error *modules_create(struct modules **out)
{
    struct rlimit limit;

    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory();
    if (!getrlimit(RLIMIT_NOFILE, &limit))
        (*out)->hold_left = files_to_hold(limit.rlim_cur);
    struct error *err = worker_create(privileges_drop_to_read, &(*out)->worker);
    if (err) {
        free(*out);
        *out = NULL;
    }
    return err;
}

void modules_hold(struct modules *m, bool all)
{
    struct rlimit limit;

    m->hold_all = all;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    uint32_t before = files_to_hold(limit.rlim_cur);
    limit.rlim_cur = limit.rlim_max;
    if (!setrlimit(RLIMIT_NOFILE, &limit))
        m->hold_left += files_to_hold(limit.rlim_cur) - before;
}

bool modules_keep_file(struct modules *m, struct module *module, int fd)
{
    if (module->held_fd >= 0 || !m->hold_left)
        return false;
    m->hold_left--;
    module->held_fd = fd;
    return true;
}

/*
 * Holds the file open, as a table may be made from it soon and the process that mapped it may be gone by then. For long if
 * it is to be archived, or if its device has a number from the kernel's pool (overlayfs, FUSE, tmpfs, btrfs): once
 * nothing of such a file system is open, its number may become another's.
 */
static void hold(struct modules *m, struct module *module, struct inspection *i)
{
    bool pooled = major(i->st.st_dev) == 0;

    if (i->fd >= 0 && (module->kind == TRACE_MODULE_ELF || pooled) && modules_keep_file(m, module, i->fd)) {
        i->fd = -1;
        module->needs_file = m->hold_all || pooled;
        if (!module->needs_file && !VEC_PUSH(&m->loose, ((struct loose_file){module->index, now_ns() + LOOSE_NS})))
            module->needs_file = true;
    }
    module->unkeyed = pooled && module->held_fd < 0;
}

uint32_t modules_count(const struct modules *m)
{
    return (uint32_t)m->list.count;
}

struct module *modules_get(const struct modules *m, uint32_t index)
{
    return m->list.data[index];
}

static struct module *find_bytes(const struct modules *m, const void *key, uint32_t len)
{
    uint32_t id = len ? intern_find(&m->keys, key, len) : INTERN_NONE;

    if (id == INTERN_NONE)
        return NULL;
    struct module *module = m->list.data[m->of_key.data[id]];
    return module->unkeyed ? NULL : module;
}

static struct module *find_key(const struct modules *m, const struct module_key *key)
{
    return find_bytes(m, key->bytes, key->len_bytes);
}

static struct error *add_bytes(struct modules *m, const void *key, uint32_t len, const struct module *module)
{
    bool added;

    if (!len)
        return NULL;
    uint32_t id = intern_id(&m->keys, key, len, &added);

    if (id == INTERN_NONE)
        return error_no_memory();
    if (!added)
        m->of_key.data[id] = module->index;
    else if (!VEC_PUSH(&m->of_key, module->index))
        return error_no_memory();
    return NULL;
}

static struct error *add_key(struct modules *m, const struct module_key *key, const struct module *module)
{
    return add_bytes(m, key->bytes, key->len_bytes, module);
}

static struct error *add_module(struct modules *m, const char *path, struct module **out)
{
    struct module *module = calloc(1, sizeof *module);

    if (!module)
        return error_no_memory();
    module->index = module->file = (uint32_t)m->list.count;
    module->held_fd = -1;
    module->path = strdup(path);
    if (!module->path || !VEC_PUSH(&m->list, module)) {
        module_destroy(module);
        return error_no_memory();
    }
    *out = module;
    return NULL;
}

static struct error *take_vdso(struct module *module, const uint8_t *image, const struct code_mapping *mapping)
{
    module->kind = TRACE_MODULE_VDSO;
    module->image = malloc(mapping->length);
    if (!module->image)
        return error_no_memory();
    memcpy(module->image, image, mapping->length);
    module->image_len_bytes = mapping->length;
    module->image_address = mapping->address;
    struct error *err = elf_identity_read_memory(module->image, mapping->length, "[vdso]", &module->identity);
    if (err && err->code == ERROR_NO_MEMORY)
        return err;
    error_destroy(err);
    return NULL;
}

/* The vdso is the same for all processes of one kind (64-bit, 32-bit): known by its contents. */
static struct error *find_vdso(struct modules *m, pid_t pid, const struct code_mapping *mapping, struct module **out)
{
    uint64_t len = mapping->length;

    if (!len || len > 1 << 20)
        return NULL;
    uint8_t *key = malloc(len + 1), *image = key + 1;
    if (!key)
        return error_no_memory();
    key[0] = 'v';
    if (!target_read(pid, mapping->address, image, len)) {
        free(key);
        return NULL;
    }
    struct module *module = find_bytes(m, key, (uint32_t)len + 1);
    struct error *err = NULL;
    if (!module) {
        err = add_module(m, "[vdso]", &module);
        if (!err)
            err = add_bytes(m, key, (uint32_t)len + 1, module);
        if (!err)
            err = take_vdso(module, image, mapping);
    }
    free(key);
    *out = err ? NULL : module;
    return err;
}

/* Whether the file is the one that the kernel named with the mapping; where it named none, it is believed. */
static bool has_build_id(const struct module *module, const struct code_mapping *mapping)
{
    const struct elf_identity *id = &module->identity;

    return !mapping->build_id_len || !id->build_id_len ||
           (id->build_id_len == mapping->build_id_len && !memcmp(id->build_id, mapping->build_id, mapping->build_id_len));
}

/* Nothing is known of the file but what the mapping says: it cannot be opened, or was replaced since. */
static void forget_inside(struct module *module, const struct code_mapping *mapping)
{
    elf_identity_deinit(&module->identity);
    py_image_deinit(&module->python);
    module->python = (struct py_image){0};
    module->kind = TRACE_MODULE_ELF;
    module->is_glibc = false;
    module->unreadable = true;
    module->file = module->index;
    module->identity.id_kind = mapping->build_id_len ? ELF_ID_BUILD_ID : ELF_ID_NONE;
    module->identity.build_id_len = mapping->build_id_len;
    memcpy(module->identity.build_id, mapping->build_id, mapping->build_id_len);
}

/* The same file under another path needs no second look. */
static struct error *copy_inside(struct module *to, const struct module *from)
{
    elf_identity_deinit(&to->identity);
    py_image_deinit(&to->python);
    to->kind = from->kind;
    to->file = from->file;
    to->is_glibc = from->is_glibc;
    to->unreadable = false;
    to->device = from->device;
    to->inode = from->inode;
    to->size = from->size;
    to->changed = from->changed;
    TRY(elf_identity_copy(&from->identity, &to->identity));
    return py_image_copy(&from->python, &to->python);
}

/* ---- keys of files ---- */

struct file_keys {
    struct module_key file, inode;
};

static void take_statx(const struct statx *sx, struct stat *st)
{
    *st = (struct stat){
        .st_dev = makedev(sx->stx_dev_major, sx->stx_dev_minor),
        .st_ino = sx->stx_ino,
        .st_size = (off_t)sx->stx_size,
        .st_ctim = {.tv_sec = sx->stx_ctime.tv_sec, .tv_nsec = sx->stx_ctime.tv_nsec},
    };
}

/* Asks about an open file without waiting for its file system, be that in user space or far away. */
static bool ask(int fd, struct stat *st)
{
    struct statx sx;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &sx))
        return false;
    take_statx(&sx, st);
    return true;
}

static bool is_unchanged(const struct module *module, const struct stat *st)
{
    return module->size == (uint64_t)st->st_size && module->changed.tv_sec == st->st_ctim.tv_sec &&
           module->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/*
 * Whether the module's file is held open, so that its inode can be no other file's, and has not changed. Only where the
 * mapping has the file's device: that of a mapping on btrfs stands for several file systems.
 */
static bool is_held_unchanged(const struct module *module, const struct code_mapping *mapping)
{
    struct stat st;

    return module->held_fd >= 0 && module->inode == mapping->inode &&
           module->device == makedev(mapping->device_major, mapping->device_minor) && ask(module->held_fd, &st) && is_unchanged(module, &st);
}

/*
 * The keys of the file behind a mapping, without opening it. False where the mapping is gone, another one is in its place, or
 * map_files is not permitted.
 */
static bool see_file(pid_t pid, const struct code_mapping *mapping, struct file_keys *keys)
{
    struct procfs_file file = code_mapping_file(mapping);
    struct statx sx;
    struct stat st;
    char name[96];

    snprintf(name, sizeof name, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->address,
             mapping->address + mapping->length);
    if (procfs_call_statx(pid, name, &sx))
        return false;
    take_statx(&sx, &st);
    if (!procfs_may_be_file(&st, &file))
        return false;
    module_key_of_file(&st, mapping->path, &keys->file);
    module_key_of_inode(&st, &keys->inode);
    return true;
}

/* Whether the file, which no mapping shows, lies where it did and was written in place since it was inspected. */
static bool was_changed(pid_t pid, const struct module *module)
{
    struct stat st;

    return !procfs_call_lstat(pid, module->path, &st) && st.st_dev == module->device && st.st_ino == module->inode &&
           !is_unchanged(module, &st);
}

static struct error *add_file_keys(struct modules *m, const struct file_keys *keys, const struct module *module)
{
    TRY(add_key(m, &keys->file, module));
    return find_key(m, &keys->inode) ? NULL : add_key(m, &keys->inode, module);
}

/* ---- inspections ---- */

static struct error *take_answer(struct modules *m, struct module *module, struct inspection *i)
{
    struct file_keys keys;

    if (i->fd < 0)
        return NULL;
    elf_identity_deinit(&module->identity);
    module->identity = i->identity;
    module->python = i->python;
    module->is_glibc = i->is_glibc;
    i->identity = (struct elf_identity){0};
    i->python = (struct py_image){0};
    module->kind = module->identity.is_elf ? TRACE_MODULE_ELF : TRACE_MODULE_OTHER;
    module->unreadable = false;
    module->device = i->st.st_dev;
    module->inode = i->st.st_ino;
    module->size = (uint64_t)i->st.st_size;
    module->changed = i->st.st_ctim;
    if (!has_build_id(module, &i->mapping)) {
        forget_inside(module, &i->mapping);
        return NULL;
    }
    module_key_of_file(&i->st, i->mapping.path, &keys.file);
    module_key_of_inode(&i->st, &keys.inode);
    const struct module *same = find_key(m, &keys.inode);
    if (same && !same->unreadable)
        module->file = same->file;
    hold(m, module, i);
    return module->unkeyed ? NULL : add_file_keys(m, &keys, module);
}

static struct error *take_answers(struct modules *m)
{
    struct error *err = NULL;

    for (struct worker_job *job; !err && (job = worker_take(m->worker));) {
        struct module *module = modules_get(m, job->number);
        module->pending = false;
        m->pending--;
        err = take_answer(m, module, inspection_of_job(job));
        if (!VEC_PUSH(&m->known, module->index) && !err)
            err = error_no_memory();
        job->destroy(job);
    }
    return err;
}

/* Waits for a module that is pending, if much was not waited lately: most files are inspected in a tenth of a ms. */
static struct error *wait_a_little(struct modules *m, const struct module *module, uint64_t now)
{
    uint64_t flown = (now - m->waited_at_ns) / WAIT_PART, began = now;

    m->waited_ns -= flown < m->waited_ns ? flown : m->waited_ns;
    m->waited_at_ns = now;
    uint64_t left = m->waited_ns < WAIT_ALL_NS ? WAIT_ALL_NS - m->waited_ns : 0;
    uint64_t until = now + (left < WAIT_ONE_NS ? left : WAIT_ONE_NS);
    while (module->pending && worker_wait(m->worker, until))
        TRY(take_answers(m));
    m->waited_ns += now_ns() - began;
    return NULL;
}

static struct error *inspect(struct modules *m, struct module *module, const struct module_asker *asker,
                             const struct code_mapping *mapping)
{
    struct inspection *i = inspection_create(module->index, asker, mapping);

    if (!i)
        return error_no_memory();
    forget_inside(module, mapping);
    if (!worker_add(m->worker, &i->job)) {
        if (asker->quotas)
            quota_refuse(asker->quotas, asker->slot, QUOTA_modules, 1);
        return NULL;
    }
    module->pending = true;
    m->pending++;
    return wait_a_little(m, module, now_ns());
}

int modules_fd(const struct modules *m)
{
    return worker_fd(m->worker);
}

struct module *modules_next_known(struct modules *m)
{
    error_destroy(take_answers(m));
    return m->known.count ? modules_get(m, m->known.data[--m->known.count]) : NULL;
}

void modules_settle(struct modules *m, uint64_t until_ns)
{
    while (m->pending && worker_wait(m->worker, until_ns))
        error_destroy(take_answers(m));
}

static void close_loose(struct modules *m, uint64_t time_ns)
{
    size_t old = 0;

    while (old < m->loose.count && m->loose.data[old].until_ns <= time_ns) {
        struct module *module = modules_get(m, m->loose.data[old++].module);
        if (module->needs_file || module->held_fd < 0)
            continue;
        if (module->used_ns + LOOSE_NS > time_ns &&
            VEC_PUSH(&m->loose, ((struct loose_file){module->index, module->used_ns + LOOSE_NS})))
            continue;
        close(module->held_fd);
        module->held_fd = -1;
        m->hold_left++;
    }
    m->loose.count -= old;
    if (old)
        memmove(m->loose.data, m->loose.data + old, m->loose.count * sizeof *m->loose.data);
}

void modules_tend(struct modules *m, uint64_t time_ns)
{
    uint32_t number;

    close_loose(m, time_ns);
    if (!worker_give_up(m->worker, time_ns, &number))
        return;
    modules_get(m, number)->pending = false;
    m->pending--;
}

/* ---- finding ---- */

/* Shared memory without a file calls itself /dev/zero. */
static bool has_file(const char *path)
{
    return path[0] == '/' && strncmp(path, "//anon", 6) && strncmp(path, "/dev/zero", 9);
}

/* A file that was not met under this path, has changed, or could not be opened before (`known`, else NULL). */
static struct error *find_new(struct modules *m, const struct module_asker *asker, const struct code_mapping *mapping,
                              struct module *known, const struct file_keys *seen, struct module **out)
{
    const struct module *same = seen ? find_key(m, &seen->inode) : NULL;

    *out = known;
    if (asker->quotas && !quota_take(asker->quotas, asker->slot, QUOTA_modules, 1, now_ns()))
        return NULL;
    if (!known || !known->unreadable)
        TRY(add_module(m, mapping->path, out));
    (*out)->pid = asker->pid;
    if (!same || same->unreadable || !has_build_id(same, mapping))
        return inspect(m, *out, asker, mapping);
    TRY(copy_inside(*out, same));
    return add_file_keys(m, seen, *out);
}

/* Whether it is too soon to try again to open a file that could not be opened. */
static bool was_tried(const struct module *module, const struct module_asker *asker, uint64_t now)
{
    return module->checked_for == asker->life && now < module->checked_ns + AGAIN_NS;
}

struct error *modules_find(struct modules *m, const struct module_asker *asker, const struct code_mapping *mapping,
                           struct module **out)
{
    struct module_key key;
    struct file_keys keys;
    uint64_t now = now_ns();

    *out = NULL;
    if (!strcmp(mapping->path, "[vdso]"))
        return find_vdso(m, asker->pid, mapping, out);
    if (!has_file(mapping->path))
        return NULL;
    module_key_of_mapping(mapping, &key);
    struct module *known = find_key(m, &key);
    if (known && (known->pending || (known->unreadable ? was_tried(known, asker, now) : is_held_unchanged(known, mapping)))) {
        known->used_ns = now;
        *out = known;
        return NULL;
    }
    const struct file_keys *seen = see_file(asker->pid, mapping, &keys) ? &keys : NULL;
    struct module *found = seen ? find_key(m, &seen->file) : known;
    if (!seen && known && !known->unreadable && was_changed(asker->pid, known))
        found = NULL;
    if (found && !found->unreadable && has_build_id(found, mapping))
        *out = found;
    else
        TRY(find_new(m, asker, mapping, known, seen, out));
    if (!*out)
        return NULL;
    (*out)->checked_ns = now;
    (*out)->checked_for = asker->life;
    return *out == known || (*out)->unkeyed ? NULL : add_key(m, &key, *out);
}
