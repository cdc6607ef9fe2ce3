/* SPDX-License-Identifier: Apache-2.0 */
/* A file that breaks its own format is a file like any other, only that nothing is known of its inside. */
#include "capture/binary/inspection.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "formats/base/clock.h"
#include "formats/elf/dynamic.h"
#include "formats/elf/file.h"

struct inspection *inspection_of_job(struct worker_job *job)
{
    return (struct inspection *)job;
}

static void run(struct worker_job *job, const atomic_bool *flag)
{
    struct inspection *i = inspection_of_job(job);
    const struct code_mapping *m = &i->mapping;
    const struct procfs_file file = code_mapping_file(m);
    const struct elf_stop stop = {.flag = flag, .deadline_ns = now_ns() + INSPECTION_NS};
    struct elf_dynamic dynamic;
    struct elf_file f;
    Elf64_Sym sym;

    i->fd = procfs_open_mapping(i->pid, m->address, m->address + m->length, m->path, &file);
    if (i->fd < 0)
        return;
    if (fstat(i->fd, &i->st)) {
        close(i->fd);
        i->fd = -1;
        return;
    }
    struct error *err = elf_file_open(i->fd, m->path, &stop, &f);
    if (!err)
        err = elf_identity_of(&f, &i->identity);
    error_destroy(err);
    if (i->identity.is_elf) {
        elf_identity_add_htlhash(&f, &i->identity);
        error_destroy(py_image_of(&f, &i->python));
        elf_dynamic_read(&f, &dynamic);
        i->is_glibc = elf_find_exported(&f, &dynamic, "gnu_get_libc_version", &sym);
    }
    elf_file_close(&f);
}

void inspection_destroy(struct inspection *i)
{
    if (!i)
        return;
    if (i->fd >= 0)
        close(i->fd);
    elf_identity_deinit(&i->identity);
    py_image_deinit(&i->python);
    free((char *)i->mapping.path);
    free(i);
}

static void destroy(struct worker_job *job)
{
    inspection_destroy(inspection_of_job(job));
}

struct inspection *inspection_create(uint32_t module, const struct module_asker *asker, const struct code_mapping *mapping)
{
    struct inspection *i = calloc(1, sizeof *i);
    char *path = strdup(mapping->path);

    if (!i || !path) {
        free(i);
        free(path);
        return NULL;
    }
    i->job = (struct worker_job){.process = asker->life, .owner = asker->owner, .number = module, .run = run, .destroy = destroy};
    i->pid = asker->pid;
    i->mapping = *mapping;
    i->mapping.path = path;
    i->mapping.module = NULL;
    i->fd = -1;
    return i;
}
