/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/tasks.h"

#include <string.h>

#include "formats/base/utf8.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/name_files.h"

enum {
    COMM_MAX_BYTES = 255, /* columns of reports are as wide as the longest name */
};

void tasks_init(struct tasks *t, const struct emit_model *model, struct limits *limits, struct records *records,
                const struct addresses *addresses, const struct emit_files *files)
{
    *t = (struct tasks){.model = model,
                        .limits = limits,
                        .records = records,
                        .addresses = addresses,
                        .files = files,
                        .pids.limits = limits,
                        .mapped.limits = limits,
                        .cgroups.limits = limits};
}

void tasks_deinit(struct tasks *t)
{
    VEC_DEINIT(&t->processes);
    VEC_DEINIT(&t->threads);
    map_deinit(&t->pids);
    map_deinit(&t->mapped);
    map_deinit(&t->cgroups);
    buf_deinit(&t->text);
}

/* A name of the target, made safe to print and cut to `max_bytes`. NULL: out of memory. Valid until the next call. */
static const char *clean(struct tasks *t, const char *name, size_t max_bytes)
{
    buf_clear(&t->text);
    name_plain(name, &t->text);
    if (t->text.bad)
        return NULL;
    if (t->text.len_bytes > max_bytes) {
        t->text.len_bytes = max_bytes;
        while (t->text.len_bytes && (t->text.data[t->text.len_bytes] & 0xc0) == 0x80) /* within a character */
            t->text.len_bytes--;
    }
    const char *text = buf_cstr(&t->text);
    return t->text.bad ? NULL : text;
}

static struct error *write_comm(struct tasks *t, const struct record_stamp *stamp, const char *name, bool is_exec)
{
    const char *text = clean(t, name, COMM_MAX_BYTES);

    return text ? records_comm(t->records, stamp, text, is_exec) : error_no_memory();
}

static struct error *find_cgroup(struct tasks *t, const struct record_stamp *stamp, const char *path, uint64_t *number)
{
    const uint64_t *known = map_get(&t->cgroups, (uintptr_t)path);

    *number = known ? *known : *path ? t->cgroups.count + 1 : 0;
    if (known || !*path)
        return NULL;
    const char *text = clean(t, path, RECORDS_NAME_MAX);
    if (!text || !map_set(&t->cgroups, (uintptr_t)path, *number))
        return error_no_memory();
    return records_cgroup(t->records, stamp, *number, text);
}

static struct error *name_of_process(struct tasks *t, uint32_t number, struct record_stamp stamp)
{
    const struct emit_process *process = &t->model->processes[number];
    struct task_process *known = &t->processes.data[number];

    if (known->comm == process->comm)
        return NULL;
    bool is_new = !known->comm, is_exec = is_new && map_get(&t->pids, process->pid);
    stamp.tid = process->pid;
    if (is_new)
        TRY(find_cgroup(t, &stamp, process->cgroup, &known->cgroup));
    known->comm = process->comm;
    if (!map_set(&t->pids, process->pid, 0))
        return error_no_memory();
    return write_comm(t, &stamp, process->comm, is_exec);
}

struct error *tasks_name(struct tasks *t, uint32_t thread, struct record_stamp *stamp, uint64_t *cgroup)
{
    const struct emit_thread *shown = &t->model->threads[thread];
    const struct emit_process *process = &t->model->processes[shown->process];

    stamp->pid = process->pid;
    stamp->tid = shown->tid;
    if (!VEC_EXTEND_COUNTED(t->limits, &t->processes, (size_t)shown->process + 1) ||
        !VEC_EXTEND_COUNTED(t->limits, &t->threads, (size_t)thread + 1))
        return error_no_memory();
    TRY(name_of_process(t, shown->process, *stamp));
    *cgroup = t->processes.data[shown->process].cgroup;
    /* The first thread's name is its process's: in Python all of them are called MainThread. */
    const char *name = shown->tid == process->pid || !*shown->name ? process->comm : shown->name;
    if (t->threads.data[thread] == name)
        return NULL;
    t->threads.data[thread] = name;
    return shown->tid == process->pid ? NULL : write_comm(t, stamp, name, false);
}

static struct error *map_image(struct tasks *t, const struct record_stamp *stamp, uint32_t number)
{
    buf_clear(&t->text);
    name_files_image_path(t->files, t->addresses->images, number, &t->text);
    /* Its build ID is known only when it is complete; the file's features have it. */
    const struct record_mapping mapping = {.start = ADDRESSES_IMAGE_BASE + number * (uint64_t)CODE_IMAGE_MAX_BYTES,
                                           .len_bytes = CODE_IMAGE_MAX_BYTES,
                                           .path = buf_cstr(&t->text)};

    return t->text.bad ? error_no_memory() : records_mapping(t->records, stamp, &mapping);
}

static struct error *map_binary(struct tasks *t, const struct record_stamp *stamp, uint32_t number)
{
    const struct emit_mapping *m = &t->model->mappings[number];
    const struct address_binary *binary = addresses_binary(t->addresses, number);

    buf_clear(&t->text);
    buf_put(&t->text, m->path, binary->path_len);
    for (uint32_t i = 0; i < binary->area_count; i++) {
        const struct address_area *area = &binary->areas[i];
        const struct record_mapping mapping = {.start = area->start,
                                               .len_bytes = area->len_bytes,
                                               .file_offset = area->file_offset,
                                               .path = buf_cstr(&t->text),
                                               .build_id = m->build_id,
                                               .build_id_len = m->build_id_len};
        if (t->text.bad)
            return error_no_memory();
        TRY(records_mapping(t->records, stamp, &mapping));
    }
    return NULL;
}

struct error *tasks_map(struct tasks *t, uint32_t process, const struct record_stamp *stamp,
                        const struct address *address)
{
    struct record_stamp leader = *stamp;

    if (address->kind != ADDRESS_IMAGE && address->kind != ADDRESS_BINARY)
        return NULL;
    bool is_image = address->kind == ADDRESS_IMAGE;
    /* Images are at the end of the numbers of binaries. */
    uint64_t key = (uint64_t)process << 32 | (is_image ? UINT32_MAX - address->number : address->number);
    if (map_get(&t->mapped, key))
        return NULL;
    if (!map_set(&t->mapped, key, 0))
        return error_no_memory();
    leader.tid = leader.pid;
    return is_image ? map_image(t, &leader, address->number) : map_binary(t, &leader, address->number);
}
