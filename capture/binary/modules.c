/* SPDX-License-Identifier: Apache-2.0 */
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
    if (!m->hold_left || module->kind != MODULE_ELF)
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
    module->kind = module->identity.is_elf ? MODULE_ELF : MODULE_OTHER;
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
static struct error *find_vdso(struct modules *m, const struct module_mapping *mapping, struct module **out)
{
    if (!mapping->length || mapping->length > 1 << 20)
        return NULL;
    uint8_t *image = malloc(mapping->length);
    if (!image)
        return error_no_memory();
    if (!target_read(mapping->pid, mapping->address, image, mapping->length)) {
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
    module->kind = MODULE_VDSO;
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

struct error *modules_find(struct modules *m, const struct module_mapping *mapping, struct module **out)
{
    struct module *module = NULL;
    char key[1 + ELF_BUILD_ID_MAX + PATH_MAX];
    uint32_t key_len = 0;
    int file_key_len = 0;
    char file_key[160];
    struct stat st;

    *out = NULL;
    if (!strcmp(mapping->path, "[vdso]"))
        return find_vdso(m, mapping, out);
    /* Shared memory without a file calls itself /dev/zero. */
    if (mapping->path[0] != '/' || !strncmp(mapping->path, "//anon", 6) || !strncmp(mapping->path, "/dev/zero", 9))
        return NULL;

    if (mapping->file.build_id_len) {
        /* With the path, for a copy elsewhere has another place to be found at. Hosts map thousands a second: no text. */
        size_t path_len = strnlen(mapping->path, PATH_MAX);
        key[0] = 'b';
        memcpy(key + 1, mapping->file.build_id, mapping->file.build_id_len);
        memcpy(key + 1 + mapping->file.build_id_len, mapping->path, path_len);
        key_len = 1 + mapping->file.build_id_len + (uint32_t)path_len;
        module = find_key(m, key, key_len);
        if (module && !module->unreadable) {
            *out = module;
            return NULL;
        }
    }
    int fd = procfs_open_mapping(mapping->pid, mapping->address, mapping->address + mapping->length, mapping->path,
                                 &mapping->file);
    if (module) {
        /* The process that mapped it first is closed to us, or sees other files. This one may not. */
        if (fd < 0 || !procfs_is_file(fd, mapping->path, &mapping->file)) {
            if (fd >= 0)
                close(fd);
            *out = module;
            return NULL;
        }
        module = NULL;
    }
    if (fd >= 0 && !fstat(fd, &st)) {
        file_key_len = snprintf(file_key, sizeof file_key, "f%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%lx",
                                (uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                                (uint64_t)st.st_ctim.tv_sec, (unsigned long)st.st_ctim.tv_nsec);
        module = find_key(m, file_key, (uint32_t)file_key_len);
    }
    struct error *err = NULL;
    if (!module && (fd >= 0 || mapping->file.build_id_len)) {
        err = add_module(m, mapping->path, &module);
        if (!err)
            module->pid = mapping->pid;
        if (!err && fd >= 0)
            err = inspect(module, fd);
        if (!err && fd >= 0 && mapping->file.build_id_len && module->identity.build_id_len &&
            (module->identity.build_id_len != mapping->file.build_id_len ||
             memcmp(module->identity.build_id, mapping->file.build_id, mapping->file.build_id_len))) {
            /* The file at that path was replaced since: what it says of its inside is not true of this mapping. */
            elf_identity_deinit(&module->identity);
            py_image_deinit(&module->python);
            module->is_glibc = false;
            file_key_len = 0;
            close(fd);
            fd = -1;
        }
        if (!err && fd < 0) {
            module->unreadable = true;
            module->identity.id_kind = ELF_ID_BUILD_ID;
            module->identity.build_id_len = mapping->file.build_id_len;
            memcpy(module->identity.build_id, mapping->file.build_id, mapping->file.build_id_len);
        }
        if (!err && fd >= 0)
            hold(m, module, fd);
        if (!err && file_key_len)
            err = add_key(m, file_key, (uint32_t)file_key_len, module);
    }
    if (!err && module && key_len)
        err = add_key(m, key, key_len, module);
    if (fd >= 0)
        close(fd);
    *out = module;
    return err;
}
