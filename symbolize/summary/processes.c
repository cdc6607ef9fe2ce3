/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/processes.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/columns.h"
#include "formats/base/map.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/base/sort.h"

/* A deeper tree is shown as if it ended there: a name would begin at the edge of the screen. */
enum { ROWS_SHOWN = 25, DEPTH_SHOWN = 12 };

/* ---- the tree ---- */

struct node {
    struct process_entry entry;
    uint64_t weight;               /* samples of the process and of what is below it */
    uint32_t parent;               /* SUMMARY_NO_ROW: none */
    uint32_t first_child, sibling; /* the same */
    bool is_listed;
};

struct tree {
    VEC(struct node) nodes;
    VEC(uint32_t) order; /* nodes, heaviest first */
};

static bool add_nodes(struct summary *s, struct tree *t)
{
    for (size_t i = 0; i < s->processes.count; i++) {
        const struct process_row *row = &s->processes.data[i];
        struct node node = {.entry = {.row = row, .name = row->name, .container = row->container},
                            .weight = row->sample_count, .parent = SUMMARY_NO_ROW, .first_child = SUMMARY_NO_ROW, .sibling = SUMMARY_NO_ROW};
        for (uint32_t f = row->first_file; f <= row->last_file && f < s->files.count; f++)
            node.entry.duration_ns += summary_duration_ns(&s->files.data[f]);
        if (!VEC_PUSH(&t->nodes, node))
            return false;
    }
    return true;
}

/* Adds what the model knows: names that stacks tell, and the threads with their time. */
static bool add_faces(struct summary *s, const struct emit_model *m, struct tree *t)
{
    struct map of_process = {0}; /* the model's number -> node */
    bool good = true;

    for (size_t i = 0; good && i < t->nodes.count; i++) {
        struct process_entry *entry = &t->nodes.data[i].entry;
        if (entry->row->thread == SUMMARY_NO_ROW)
            continue;
        uint32_t process = m->threads[entry->row->thread].process;
        entry->name = printable_keep(&s->texts, m->processes[process].name);
        good = entry->name && map_set(&of_process, process, i);
    }
    for (size_t i = 0; good && i < s->threads.count; i++) {
        const uint64_t *node = s->threads.data[i].sample_count ? map_get(&of_process, m->threads[i].process) : NULL;
        if (node) {
            t->nodes.data[*node].entry.thread_count++;
            t->nodes.data[*node].entry.time_ns += s->threads.data[i].time_ns;
        }
    }
    map_deinit(&of_process);
    return good;
}

static uint64_t pid_key(const struct process_row *row, uint32_t pid)
{
    return (uint64_t)row->boot << 32 | pid;
}

/*
 * Links each node to its parent. The last image of a pid is its children's parent; where that began after the child, the
 * pid went to another process, and the parent is not known.
 */
static bool link_parents(struct tree *t)
{
    struct map of_pid = {0};
    bool good = true;

    for (size_t i = 0; good && i < t->nodes.count; i++)
        good = map_set(&of_pid, pid_key(t->nodes.data[i].entry.row, t->nodes.data[i].entry.row->pid), i);
    for (size_t i = 0; good && i < t->nodes.count; i++) {
        struct node *node = &t->nodes.data[i];
        const struct process_row *row = node->entry.row;
        const uint64_t *parent = row->parent_pid ? map_get(&of_pid, pid_key(row, row->parent_pid)) : NULL;
        if (!parent || row->parent_pid == row->pid ||
            t->nodes.data[*parent].entry.row->start_boottime_ns > row->start_boottime_ns)
            continue;
        node->parent = (uint32_t)*parent;
    }
    map_deinit(&of_pid);
    return good;
}

/* A forged trace may have a circle, so the way up is bounded. */
static void add_weights(struct tree *t)
{
    for (size_t i = 0; i < t->nodes.count; i++) {
        uint32_t up = t->nodes.data[i].parent;
        for (int steps = 0; steps < DEPTH_SHOWN && up != SUMMARY_NO_ROW; steps++, up = t->nodes.data[up].parent)
            t->nodes.data[up].weight += t->nodes.data[i].entry.row->sample_count;
    }
}

static int compare_nodes(const void *a, const void *b)
{
    const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    if (x->entry.row->pid != y->entry.row->pid)
        return x->entry.row->pid < y->entry.row->pid ? -1 : 1;
    return strcmp(x->entry.row->comm, y->entry.row->comm);
}

/* Sorts the nodes, and gives each parent the list of its children in that order. */
static bool sort_nodes(struct tree *t)
{
    size_t count = t->nodes.count;
    struct node **sorted = malloc((count + 1) * sizeof *sorted);
    bool good = sorted != NULL;

    for (size_t i = 0; good && i < count; i++)
        sorted[i] = &t->nodes.data[i];
    good = good && sort_stable(sorted, count, sizeof *sorted, compare_nodes);
    for (size_t i = 0; good && i < count; i++)
        good = VEC_PUSH(&t->order, (uint32_t)(sorted[i] - t->nodes.data));
    for (size_t i = count; good && i--;) {
        struct node *node = sorted[i];
        if (node->parent != SUMMARY_NO_ROW) {
            node->sibling = t->nodes.data[node->parent].first_child;
            t->nodes.data[node->parent].first_child = (uint32_t)(node - t->nodes.data);
        }
    }
    free(sorted);
    return good;
}

/* Lists a node and what is below it. */
static bool list_node(struct tree *t, uint32_t at, uint32_t depth, struct process_list *out)
{
    struct node *node = &t->nodes.data[at];

    if (node->is_listed)
        return true;
    node->is_listed = true;
    if (!node->weight) {
        out->idle_count++;
    } else {
        node->entry.depth = depth;
        if (!VEC_PUSH(&out->entries, node->entry))
            return false;
    }
    for (uint32_t child = node->first_child; depth < DEPTH_SHOWN && child != SUMMARY_NO_ROW; child = t->nodes.data[child].sibling) {
        if (!list_node(t, child, depth + 1, out))
            return false;
    }
    return true;
}

/* Lists the trees of the roots; then what hangs on no root, which only a forged or a very deep tree has. */
static bool list_nodes(struct tree *t, struct process_list *out)
{
    for (size_t i = 0; i < t->order.count; i++) {
        if (t->nodes.data[t->order.data[i]].parent == SUMMARY_NO_ROW && !list_node(t, t->order.data[i], 0, out))
            return false;
    }
    for (size_t i = 0; i < t->order.count; i++) {
        if (!list_node(t, t->order.data[i], 0, out))
            return false;
    }
    return true;
}

struct error *processes_list(struct summary *s, const struct resolver *r, struct process_list *out)
{
    struct tree tree = {0};

    *out = (struct process_list){0};
    bool good = add_nodes(s, &tree) && (!r || add_faces(s, resolver_model(r), &tree)) && link_parents(&tree);
    if (good) {
        add_weights(&tree);
        good = sort_nodes(&tree) && list_nodes(&tree, out);
    }
    VEC_DEINIT(&tree.nodes);
    VEC_DEINIT(&tree.order);
    if (good)
        return NULL;
    processes_deinit(out);
    return error_no_memory();
}

void processes_deinit(struct process_list *list)
{
    VEC_DEINIT(&list->entries);
}

/* ---- the table ---- */

const char *processes_version(const struct process_row *row, char *text, size_t size)
{
    uint32_t v = row->version;

    if (v)
        snprintf(text, size, "%u.%u.%u%s%s", v >> 24, v >> 16 & 255, v >> 8 & 255,
                 row->flags & TRACE_CODE_FREE_THREADED ? "t" : "", row->flags & TRACE_CODE_DEBUG ? "d" : "");
    else
        *text = 0;
    return text;
}

int processes_name_columns(const char *name, int indent, int columns)
{
    int needed = indent + (int)columns_of(name, strnlen(name, PROCESSES_NAME_MOST));

    return needed < columns ? columns : needed < PROCESSES_NAME_MOST ? needed : PROCESSES_NAME_MOST;
}

/* `columns` are those of the name with what it is indented by. */
static struct error *print_entry(const struct summary *s, const struct process_entry *e, uint64_t samples, int columns,
                                 FILE *out)
{
    struct buf name = {0};
    struct number n;
    char version[32];
    int indent = 2 * (int)e->depth;

    columns_fill(&name, e->name, (size_t)(columns - indent));
    processes_version(e->row, version, sizeof version);
    fprintf(out, "  %8u  %*s%s  %-9s%10s", e->row->pid, indent, "", buf_cstr(&name), *version ? version : "-",
            grouped(e->row->sample_count, &n));
    fprintf(out, "%12s", share_text(e->row->sample_count, samples, &n));
    if (s->time_event)
        fprintf(out, "%13s", share_text(e->time_ns, e->duration_ns, &n));
    fprintf(out, "%9s", grouped(e->thread_count, &n));
    if (*e->container)
        fprintf(out, "  container %s", e->container);
    fputc('\n', out);
    if (e->row->cmdline)
        fprintf(out, "            %*s%s\n", indent, "", e->row->cmdline);
    struct error *err = name.bad ? error_no_memory() : NULL;
    buf_deinit(&name);
    return err;
}

static struct error *print_entries(const struct summary *s, const struct process_list *list, size_t count, FILE *out)
{
    int columns = PROCESSES_NAME_LEAST;
    uint64_t samples = 0;

    for (size_t i = 0; i < list->entries.count; i++)
        samples += list->entries.data[i].row->sample_count;
    for (size_t i = 0; i < count; i++)
        columns = processes_name_columns(list->entries.data[i].name, 2 * (int)list->entries.data[i].depth, columns);
    fprintf(out, "Processes\n  %8s  %-*s  %-9s%10s%12s%s%9s\n", "pid", columns, "name", "Python", "samples", "share",
            s->time_event ? "      running" : "", "threads");
    for (size_t i = 0; i < count; i++)
        TRY(print_entry(s, &list->entries.data[i], samples, columns, out));
    return NULL;
}

struct error *processes_print(struct summary *s, const struct resolver *r, bool all, FILE *out)
{
    struct process_list list;
    struct number n;

    TRY(processes_list(s, r, &list));
    size_t count = list.entries.count, shown = all || count < ROWS_SHOWN ? count : ROWS_SHOWN;
    struct error *err = count ? print_entries(s, &list, shown, out) : NULL;
    if (shown < count)
        fprintf(out, "  and %s more (-v)\n", grouped(count - shown, &n));
    if (count && list.idle_count)
        fprintf(out, "  and %s without a sample\n", grouped(list.idle_count, &n));
    if (count)
        fputc('\n', out);
    processes_deinit(&list);
    return err;
}
