/* SPDX-License-Identifier: Apache-2.0 */
/* Modules are found by keys of two kinds: build ID and path, or the file itself. */
#include "capture/binary/modules.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/target_memory.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/elf/dynamic.h"

struct modules {
    VEC(struct module *) list;
    /* Keys of several kinds in one table ('b' build ID and path, 'f' file); the id leads to an index in `of_key`. */
    struct intern keys;
    VEC(uint32_t) of_key;
    uint32_t hold_left; /* files that may still be held open */
};

struct error *modules_create(struct modules **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : error_no_memory();
}

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

/* Leaves room for what pycap opens besides. */
void modules_hold(struct modules *m)
{
    enum { HOLD_MAX = 8192, OTHERS = 512 };
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    m->hold_left = limit.rlim_cur < HOLD_MAX + OTHERS ? (uint32_t)limit.rlim_cur : HOLD_MAX + OTHERS;
    m->hold_left = m->hold_left > OTHERS ? m->hold_left - OTHERS : 0;
}

static void hold(struct modules *m, struct module *module, int fd)
{
    if (!m->hold_left || module->kind != TRACE_MODULE_ELF)
        return;
    int held = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (held < 0)
        return;
    module->held_fd = held;
    m->hold_left--;
}

uint32_t modules_count(const struct modules *m)
{
    return (uint32_t)m->list.count;
}

struct module *modules_get(const struct modules *m, uint32_t index)
{
    return m->list.data[index];
}

static struct module *find_key(const struct modules *m, const void *key, uint32_t len)
{
    uint32_t id = intern_find(&m->keys, key, len);

    return id == INTERN_NONE ? NULL : m->list.data[m->of_key.data[id]];
}

static struct error *add_key(struct modules *m, const void *key, uint32_t len, const struct module *module)
{
    bool added;
    uint32_t id = intern_id(&m->keys, key, len, &added);

    if (id == INTERN_NONE)
        return error_no_memory();
    if (!added)
        m->of_key.data[id] = module->index;
    else if (!VEC_PUSH(&m->of_key, module->index))
        return error_no_memory();
    return NULL;
}

static struct error *add_module(struct modules *m, const char *path, struct module **out)
{
    struct module *module = calloc(1, sizeof *module);

    if (!module)
        return error_no_memory();
    module->index = (uint32_t)m->list.count;
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

    struct error *err = elf_file_open(fd, module->path, &f);
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

/* The vdso is the same for all processes of one kind (64-bit, 32-bit): known by its contents. */
static struct error *find_vdso(struct modules *m, pid_t pid, const struct code_mapping *mapping, struct module **out)
{
    if (!mapping->length || mapping->length > 1 << 20)
        return NULL;
    uint8_t *image = malloc(mapping->length);
    if (!image)
        return error_no_memory();
    if (!target_read(pid, mapping->address, image, mapping->length)) {
        free(image);
        return NULL;
    }
    struct module *module = find_key(m, image, (uint32_t)mapping->length);
    if (module) {
        free(image);
        *out = module;
        return NULL;
    }
    struct error *err = add_module(m, "[vdso]", &module);
    if (!err)
        err = add_key(m, image, (uint32_t)mapping->length, module);
    if (err) {
        free(image);
        return err;
    }
    module->kind = TRACE_MODULE_VDSO;
    module->image = image;
    module->image_len_bytes = mapping->length;
    module->image_address = mapping->address;
    err = elf_identity_read_memory(image, mapping->length, "[vdso]", &module->identity);
    if (err && err->code == ERROR_NO_MEMORY)
        return err;
    error_destroy(err);
    *out = module;
    return NULL;
}

/* A key of the table, with its kind in front. */
struct module_key {
    uint32_t len_bytes; /* 0: none can be made */
    char text[1 + ELF_BUILD_ID_MAX + PATH_MAX];
};

/* With the path, for a copy elsewhere has another place to be found at. Hosts map thousands a second: no text. */
static void key_by_build_id(const struct code_mapping *mapping, struct module_key *key)
{
    uint32_t id_len = mapping->build_id_len;
    size_t path_len = strnlen(mapping->path, PATH_MAX);

    key->len_bytes = 0;
    if (!id_len)
        return;
    key->text[0] = 'b';
    memcpy(key->text + 1, mapping->build_id, id_len);
    memcpy(key->text + 1 + id_len, mapping->path, path_len);
    key->len_bytes = 1 + id_len + (uint32_t)path_len;
}

static void key_by_file(int fd, struct module_key *key)
{
    struct stat st;

    key->len_bytes = 0;
    if (fd >= 0 && !fstat(fd, &st))
        key->len_bytes = (uint32_t)snprintf(key->text, sizeof key->text, "f%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%lx",
                                            (uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                                            (uint64_t)st.st_ctim.tv_sec, (unsigned long)st.st_ctim.tv_nsec);
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

/* A module that is new, from its file if that can be opened (`fd`, else -1) and still is the file that was mapped. */
static struct error *make_module(struct modules *m, pid_t pid, const struct code_mapping *mapping, int fd,
                                 const struct module_key *file_key, struct module **out)
{
    struct module *module;

    TRY(add_module(m, mapping->path, &module));
    *out = module;
    module->pid = pid;
    if (fd >= 0)
        TRY(inspect(module, fd));
    if (fd < 0 || !has_build_id(module, mapping)) {
        forget_inside(module, mapping);
        return NULL;
    }
    hold(m, module, fd);
    return file_key->len_bytes ? add_key(m, file_key->text, file_key->len_bytes, module) : NULL;
}

/* Looks at the file behind a mapping. `known` has the mapping's build ID and path, but its file could not be opened. */
static struct error *find_by_file(struct modules *m, pid_t pid, const struct code_mapping *mapping, int fd,
                                  struct module *known, struct module **out)
{
    const struct procfs_file file = code_mapping_file(mapping);
    struct module_key file_key;

    *out = known;
    /* The process that mapped it first is closed to us, or sees other files. This one may be open. */
    if (known && (fd < 0 || !procfs_is_file(fd, mapping->path, &file)))
        return NULL;
    key_by_file(fd, &file_key);
    *out = file_key.len_bytes ? find_key(m, file_key.text, file_key.len_bytes) : NULL;
    if (*out || (fd < 0 && !mapping->build_id_len))
        return NULL;
    return make_module(m, pid, mapping, fd, &file_key, out);
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

    *out = NULL;
    if (!strcmp(mapping->path, "[vdso]"))
        return find_vdso(m, pid, mapping, out);
    if (!has_file(mapping->path))
        return NULL;
    key_by_build_id(mapping, &key);
    struct module *known = key.len_bytes ? find_key(m, key.text, key.len_bytes) : NULL;
    if (known && !known->unreadable) {
        *out = known;
        return NULL;
    }
    int fd = procfs_open_mapping(pid, mapping->address, mapping->address + mapping->length, mapping->path, &file);
    struct error *err = find_by_file(m, pid, mapping, fd, known, out);
    if (fd >= 0)
        close(fd);
    if (!err && *out && *out != known && key.len_bytes)
        err = add_key(m, key.text, key.len_bytes, *out);
    return err;
}
