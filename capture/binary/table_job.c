/* SPDX-License-Identifier: Apache-2.0 */
/* A file that breaks its format has no table, and its samples say so. */
#include "capture/binary/table_job.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "bpf/arch.h"
#include "capture/host/procfs.h"
#include "formats/elf/read.h"

/* Opens the module's file; it has to be the one that was inspected. */
static void open_file(struct table_job *j)
{
    const struct code_mapping *m = &j->mapping;
    const struct procfs_file file = code_mapping_file(m);
    struct stat st;

    j->fd = procfs_open_mapping(j->pid, m->address, m->address + m->length, m->path, &file);
    if (j->fd >= 0 && (fstat(j->fd, &st) || st.st_dev != j->device || st.st_ino != j->inode)) {
        close(j->fd);
        j->fd = -1;
    }
    j->fd_is_own = j->fd >= 0;
}

static uint64_t hash_of(const struct unwind_table *t)
{
    XXH3_state_t *state = XXH3_createState();

    if (!state)
        return 0; /* others without a hash are compared, too */
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, t->rows, t->row_count * sizeof *t->rows);
    XXH3_64bits_update(state, t->index, t->index_count * sizeof *t->index);
    XXH3_64bits_update(state, t->wide, t->wide_count * sizeof *t->wide);
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

static void build_from_file(struct table_job *j, const atomic_bool *flag)
{
    const struct elf_stop stop = {.flag = flag};
    const struct unwind_limits limits = {.rows_max = j->rows_max, .over_rows_max = &j->too_large, .stop = &stop};

    error_destroy(unwind_table_build(j->fd, j->mapping.path, &limits, &j->table));
}

static void run(struct worker_job *job, const atomic_bool *flag)
{
    struct table_job *j = table_job_of(job);

    if (!j->image && j->fd < 0)
        open_file(j);
    if (j->image)
        error_destroy(unwind_table_build_memory(j->image, j->image_len_bytes, j->mapping.path, &j->table));
    else if (j->fd >= 0)
        build_from_file(j, flag);
    if (j->table)
        j->hash = hash_of(j->table);
}

struct table_job *table_job_of(struct worker_job *job)
{
    return (struct table_job *)job;
}

void table_job_destroy(struct table_job *j)
{
    if (!j)
        return;
    if (j->fd >= 0 && j->fd_is_own)
        close(j->fd);
    unwind_table_destroy(j->table);
    free((char *)j->mapping.path);
    free(j->image);
    free(j);
}

static void destroy(struct worker_job *job)
{
    table_job_destroy(table_job_of(job));
}

struct table_job *table_job_create(uint32_t number, const struct module_asker *asker, const struct code_mapping *mapping,
                                   const struct module *module)
{
    struct table_job *j = calloc(1, sizeof *j);
    char *path = strdup(mapping->path);

    if (j && module->image)
        j->image = malloc(module->image_len_bytes);
    if (!j || !path || (module->image && !j->image)) {
        free(path);
        if (j)
            free(j->image);
        free(j);
        return NULL;
    }
    j->job = (struct worker_job){.process = asker->life, .owner = asker->owner, .number = number, .run = run, .destroy = destroy};
    j->pid = asker->pid;
    j->mapping = *mapping;
    j->mapping.path = path;
    j->mapping.module = NULL;
    j->device = module->device;
    j->inode = module->inode;
    j->fd = module->held_fd;
    if (module->image) {
        memcpy(j->image, module->image, module->image_len_bytes);
        j->image_len_bytes = module->image_len_bytes;
    }
    return j;
}

bool table_base(const struct module *module, const struct code_mapping *m, uint64_t *base)
{
    uint64_t bias;

    if (module->kind == TRACE_MODULE_VDSO)
        bias = m->address - (module->identity.segments.count ? module->identity.segments.data[0].vaddr : 0);
    else if (!elf_load_bias(&module->identity.segments, m->address, m->file_offset, m->length, ARCH_PAGE_BYTES, &bias))
        return false;
    *base = bias + elf_base_vaddr(&module->identity.segments, ARCH_PAGE_BYTES);
    return true;
}
