/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapping's key is looked up first, which takes no system call. It has no time of change: so once in a while, and when
 * the key is new, the file is opened and its own key decides.
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

#include "capture/binary/module_key.h"
#include "capture/host/target_memory.h"
#include "formats/base/clock.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/elf/dynamic.h"

/* A file that is written in place keeps its inode. So long may it be taken for what it was. */
#define CHECK_NS NS_PER_S

struct modules {
    VEC(struct module *) list;
    /* Keys of all kinds in one table (module_key.h, and 'v': a vdso's bytes); the id leads to an index in `of_key`. */
    struct intern keys;
    VEC(uint32_t) of_key;
    bool hold_all;      /* ELF files are held open, for an archive */
    uint32_t hold_left; /* files that may still be held open */
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
    for (size_t i = 0; i < m->list.count; i++)
        module_destroy(m->list.data[i]);
    VEC_DEINIT(&m->list);
    VEC_DEINIT(&m->of_key);
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
    return NULL;
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

/*
 * Holds the file open if it is to be archived, or if its device has a number from the kernel's pool (overlayfs, FUSE,
 * tmpfs, btrfs): once nothing of such a file system is open, its number may become another's.
 */
static void hold(struct modules *m, struct module *module, int fd, const struct stat *st)
{
    bool pooled = major(st->st_dev) == 0;

    if ((m->hold_all && module->kind == TRACE_MODULE_ELF) || pooled) {
        module->held_fd = m->hold_left ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
        m->hold_left -= module->held_fd >= 0;
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

    return id == INTERN_NONE ? NULL : m->list.data[m->of_key.data[id]];
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

/* A file that breaks its own format is a module like any other, only that nothing is known of its inside. */
static struct error *inspect(struct module *module, int fd)
{
    struct elf_dynamic dynamic;
    struct elf_file f;
    Elf64_Sym sym;

    struct error *err = elf_file_open(fd, module->path, NULL, &f);
    if (!err)
        err = elf_identity_of(&f, &module->identity);
    module->kind = module->identity.is_elf ? TRACE_MODULE_ELF : TRACE_MODULE_OTHER;
    if (module->identity.is_elf && (!err || err->code != ERROR_NO_MEMORY)) {
        error_destroy(err);
        err = py_image_of(&f, &module->python);
        elf_dynamic_read(&f, &dynamic);
        module->is_glibc = elf_find_exported(&f, &dynamic, "gnu_get_libc_version", &sym);
    }
    elf_file_close(&f);
    if (err && err->code == ERROR_NO_MEMORY)
        return err;
    error_destroy(err);
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
    module->is_glibc = false;
    module->unreadable = true;
    module->identity.id_kind = ELF_ID_BUILD_ID;
    module->identity.build_id_len = mapping->build_id_len;
    memcpy(module->identity.build_id, mapping->build_id, mapping->build_id_len);
}

/* The same file under another path needs no second look. */
static struct error *copy_inside(struct module *to, const struct module *from)
{
    to->kind = from->kind;
    to->file = from->file;
    to->is_glibc = from->is_glibc;
    TRY(elf_identity_copy(&from->identity, &to->identity));
    return py_image_copy(&from->python, &to->python);
}

/* The keys of an open file. */
struct file_keys {
    struct stat st;
    struct module_key file, inode;
};

static bool read_keys(int fd, const char *path, struct file_keys *keys)
{
    if (fd < 0 || fstat(fd, &keys->st))
        return false;
    module_key_of_file(&keys->st, path, &keys->file);
    module_key_of_inode(&keys->st, &keys->inode);
    return true;
}

/* A module that is new, from its file if that can be opened (`fd`, else -1) and still is the file that was mapped. */
static struct error *make_module(struct modules *m, pid_t pid, const struct code_mapping *mapping, int fd,
                                 const struct file_keys *keys, struct module **out)
{
    struct module *module, *same;

    TRY(add_module(m, mapping->path, &module));
    *out = module;
    module->pid = pid;
    if (fd < 0) {
        forget_inside(module, mapping);
        return NULL;
    }
    same = find_key(m, &keys->inode);
    TRY(same ? copy_inside(module, same) : inspect(module, fd));
    if (!has_build_id(module, mapping)) {
        module->file = module->index;
        forget_inside(module, mapping);
        return NULL;
    }
    hold(m, module, fd, &keys->st);
    if (module->unkeyed)
        return NULL;
    if (!same)
        TRY(add_key(m, &keys->inode, module));
    return add_key(m, &keys->file, module);
}

/* Looks at the file behind a mapping. `known` has the mapping's key, but has to be looked at again; or NULL. */
static struct error *find_by_file(struct modules *m, pid_t pid, const struct code_mapping *mapping, int fd,
                                  struct module *known, struct module **out)
{
    const struct procfs_file file = code_mapping_file(mapping);
    struct file_keys keys;

    *out = known;
    if (!read_keys(fd, mapping->path, &keys))
        return known || !(mapping->build_id_len || mapping->inode) ? NULL : make_module(m, pid, mapping, -1, NULL, out);
    /* The process that mapped it first is closed to us, or sees other files. This one may be open. */
    if (known && known->unreadable && !procfs_is_file(fd, mapping->path, &file))
        return NULL;
    struct module *found = find_key(m, &keys.file);
    if (found && has_build_id(found, mapping))
        *out = found;
    else
        TRY(make_module(m, pid, mapping, fd, &keys, out));
    return NULL;
}

/* Shared memory without a file calls itself /dev/zero. */
static bool has_file(const char *path)
{
    return path[0] == '/' && strncmp(path, "//anon", 6) && strncmp(path, "/dev/zero", 9);
}

struct error *modules_find(struct modules *m, pid_t pid, const struct code_mapping *mapping, struct module **out)
{
    const struct procfs_file file = code_mapping_file(mapping);
    struct module_key key;
    uint64_t now = now_ns();

    *out = NULL;
    if (!strcmp(mapping->path, "[vdso]"))
        return find_vdso(m, pid, mapping, out);
    if (!has_file(mapping->path))
        return NULL;
    module_key_of_mapping(mapping, &key);
    struct module *known = find_key(m, &key);
    if (known && !known->unreadable && now < known->checked_ns + CHECK_NS) {
        *out = known;
        return NULL;
    }
    int fd = procfs_open_mapping(pid, mapping->address, mapping->address + mapping->length, mapping->path, &file);
    struct error *err = find_by_file(m, pid, mapping, fd, known, out);
    if (fd >= 0)
        close(fd);
    if (err || !*out)
        return err;
    (*out)->checked_ns = now;
    return *out == known || (*out)->unkeyed ? NULL : add_key(m, &key, *out);
}
