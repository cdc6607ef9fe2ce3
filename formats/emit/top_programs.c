/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/top_programs.h"

#include <stdlib.h>

#include "formats/emit/names.h"

enum { PARENTS_MAX = 32 }; /* a forged trace may have a circle */

/* Processes are numbered as in the model, and one that ran several programs as the newest of them. */
struct finding {
    const struct emit_model *model;
    struct map newest;  /* the first program of a process -> the newest */
    struct map weights; /* process -> weight */
    struct map of_pid;  /* pid -> the last process of it */
    struct map trees;   /* the process at a root -> weight of its tree */
};

static uint64_t weight_of(const struct map *m, uint64_t key)
{
    const uint64_t *weight = map_get(m, key);

    return weight ? *weight : 0;
}

static bool add_weight(struct map *m, uint64_t key, uint64_t weight)
{
    return map_set(m, key, weight_of(m, key) + weight);
}

/* The parent of a process, if it has samples, too; else the process itself. */
static uint32_t parent_of(const struct finding *f, uint32_t process)
{
    const struct emit_process *p = &f->model->processes[process];
    const uint64_t *parent = p->parent_pid ? map_get(&f->of_pid, p->parent_pid) : NULL;

    return parent ? (uint32_t)*parent : process;
}

static uint32_t root_of(const struct finding *f, uint32_t process)
{
    uint32_t parent = parent_of(f, process);

    for (int i = 0; i < PARENTS_MAX && parent != process; i++) {
        process = parent;
        parent = parent_of(f, process);
    }
    return process;
}

/* All in the model's order, which a map has not. */
static bool find_trees(struct finding *f, const struct map *weights)
{
    const struct emit_process *processes = f->model->processes;
    uint32_t count = f->model->process_count;
    bool ok = true;

    for (uint32_t i = 0; ok && i < count; i++)
        ok = !map_get(weights, i) || map_set(&f->newest, processes[i].first_program, i);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = !map_get(weights, i) ||
             add_weight(&f->weights, weight_of(&f->newest, processes[i].first_program), weight_of(weights, i));
    for (uint32_t i = 0; ok && i < count; i++)
        ok = !map_get(&f->weights, i) || map_set(&f->of_pid, processes[i].pid, i);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = !map_get(&f->weights, i) || add_weight(&f->trees, root_of(f, i), weight_of(&f->weights, i));
    return ok;
}

/* Adds a process, whose name others may have, too. */
static bool add_process(const struct finding *f, uint32_t process, struct top_programs *out)
{
    const struct emit_process *p = &f->model->processes[process];
    uint32_t root = root_of(f, process);
    struct buf name = {0};
    bool added;

    name_plain(p->name, &name);
    if (!name.len_bytes)
        buf_put_str(&name, "unknown");
    uint32_t id = name.bad ? INTERN_NONE : intern_id(&out->names, name.data, (uint32_t)name.len_bytes, &added);
    buf_deinit(&name);
    if (id == INTERN_NONE || (added && !VEC_PUSH(&out->list, ((struct top_program){.name = id, .pid = p->pid}))))
        return false;
    struct top_program *program = &out->list.data[id];
    uint64_t tree = weight_of(&f->trees, root);
    program->count++;
    program->weight += weight_of(&f->weights, process);
    program->tree_weight = tree > program->tree_weight ? tree : program->tree_weight;
    program->is_root |= root == process;
    out->process_count++;
    return true;
}

static int compare_programs(const void *a, const void *b)
{
    const struct top_program *pa = a, *pb = b;

    if (pa->tree_weight != pb->tree_weight)
        return pa->tree_weight > pb->tree_weight ? -1 : 1;
    if (pa->is_root != pb->is_root)
        return pa->is_root ? -1 : 1;
    if (pa->weight != pb->weight)
        return pa->weight > pb->weight ? -1 : 1;
    return (pa->name > pb->name) - (pa->name < pb->name);
}

struct error *top_programs_find(struct top_programs *p, const struct emit_model *model, struct limits *limits, const struct map *weights)
{
    struct finding f = {.model = model, .newest.limits = limits, .weights.limits = limits, .of_pid.limits = limits, .trees.limits = limits};

    p->names.arena.limits = limits;
    bool ok = limits_work(limits, 100 * (uint64_t)model->process_count) && find_trees(&f, weights);
    for (uint32_t i = 0; ok && i < model->process_count; i++)
        ok = !map_get(&f.weights, i) || add_process(&f, i, p);
    map_deinit(&f.newest);
    map_deinit(&f.weights);
    map_deinit(&f.of_pid);
    map_deinit(&f.trees);
    if (ok && p->list.count)
        qsort(p->list.data, p->list.count, sizeof *p->list.data, compare_programs);
    return ok ? NULL : error_no_memory();
}

void top_programs_deinit(struct top_programs *p)
{
    VEC_DEINIT(&p->list);
    intern_deinit(&p->names);
}
