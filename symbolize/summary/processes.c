/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/processes.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/sort.h"

/* A deeper tree is shown as if it ended there: a name would begin at the edge of the screen. */
enum { ROWS_SHOWN = 25, DEPTH_SHOWN = 12, TITLE_LEAST = 15, VERSION_LEAST = 9 };

/* ---- the tree ---- */

struct node {
    struct process_entry entry;
    uint64_t weight;               /* samples of the process and of what is below it */
    uint32_t parent;               /* SUMMARY_NO_ROW: none */
    uint32_t first_child, sibling; /* the same */
    uint32_t number;               /* of its entry, when it has one */
    bool is_listed;
    bool has_main;                 /* its main thread was counted */
};

struct tree {
    VEC(struct node) nodes;
    VEC(uint32_t) order;   /* nodes, heaviest first */
    VEC(uint32_t) of_row;  /* the node of each row of the summary */
};

static uint64_t pid_key(const struct process_row *row, uint32_t pid)
{
    return (uint64_t)row->boot << 32 | pid;
}

/* Adds a row to that of the same process before exec: the newest program that has samples is what it is called by. */
static void add_image(struct node *node, const struct process_row *row)
{
    if (row->sample_count || !node->weight)
        node->entry.row = row;
    node->weight += row->sample_count;
}

/* A node for each process, whichever programs it ran. */
static bool add_nodes(const struct summary *s, struct tree *t)
{
    struct map of_pid = {0}; /* the newest node */
    bool good = true;

    for (size_t i = 0; good && i < s->processes.count; i++) {
        const struct process_row *row = &s->processes.data[i];
        struct node made = {.entry.row = row, .weight = row->sample_count, .parent = SUMMARY_NO_ROW, .first_child = SUMMARY_NO_ROW,
                            .sibling = SUMMARY_NO_ROW, .number = SUMMARY_NO_ROW};
        const uint64_t *known = map_get(&of_pid, pid_key(row, row->pid));
        bool is_same = known && t->nodes.data[*known].entry.row->start_boottime_ns == row->start_boottime_ns;
        uint32_t node = is_same ? (uint32_t)*known : (uint32_t)t->nodes.count;
        if (is_same)
            add_image(&t->nodes.data[node], row);
        else
            good = VEC_PUSH(&t->nodes, made) && map_set(&of_pid, pid_key(row, row->pid), node);
        good = good && VEC_PUSH(&t->of_row, node);
    }
    map_deinit(&of_pid);
    return good;
}

/* Completes the entries when all rows are in their nodes. */
static void complete_nodes(const struct summary *s, struct tree *t)
{
    for (size_t i = 0; i < t->nodes.count; i++) {
        struct process_entry *entry = &t->nodes.data[i].entry;
        const struct process_row *row = entry->row;
        entry->name = row->name;
        entry->title = row->title;
        entry->name_and_title = row->name_and_title;
        entry->container = row->container;
        entry->sample_count = t->nodes.data[i].weight;
        for (uint32_t f = row->first_file; f <= row->last_file && f < s->files.count; f++)
            entry->duration_ns += summary_duration_ns(&s->files.data[f]);
    }
}

/* The model's numbers of processes lead to their nodes. */
static bool find_nodes(const struct summary *s, const struct emit_model *m, const struct tree *t, struct map *of_process)
{
    bool good = true;

    for (size_t i = 0; good && i < s->processes.count; i++) {
        uint32_t thread = s->processes.data[i].thread;
        good = thread == SUMMARY_NO_ROW || map_set(of_process, m->threads[thread].process, t->of_row.data[i]);
    }
    return good;
}

/* Adds the threads with their time. The main thread is the same one before and after exec. */
static bool add_threads(const struct summary *s, const struct emit_model *m, struct tree *t, struct map *of_process)
{
    bool good = find_nodes(s, m, t, of_process);

    for (size_t i = 0; good && i < s->threads.count; i++) {
        const uint64_t *number = s->threads.data[i].sample_count ? map_get(of_process, m->threads[i].process) : NULL;
        struct node *node = number ? &t->nodes.data[*number] : NULL;
        if (!node)
            continue;
        bool is_main = m->threads[i].tid == node->entry.row->pid;
        node->entry.thread_count += !(is_main && node->has_main);
        node->has_main |= is_main;
        node->entry.time_ns += s->threads.data[i].time_ns;
    }
    return good;
}

/*
 * Links each node to its parent. Where the last process of a pid began after the child, the pid went to another one, and the
 * parent is not known.
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
            t->nodes.data[up].weight += t->nodes.data[i].entry.sample_count;
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
        node->number = (uint32_t)out->entries.count;
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

/* What only the entries tell: how many have samples; and what only the model does: that another CPython ran. */
static void complete_entries(const struct resolver *r, struct process_list *out)
{
    for (size_t i = 0; i < out->entries.count; i++) {
        struct process_entry *e = &out->entries.data[i];
        const struct emit_model *m = r && e->row->thread != SUMMARY_NO_ROW ? resolver_model(r) : NULL;
        out->sampled_count += e->sample_count != 0;
        e->other_version = m ? m->processes[m->threads[e->row->thread].process].other_version : 0;
    }
}

/* Lets the model's numbers of processes lead to their entries instead. */
static void find_entries(const struct tree *t, struct map *of_process)
{
    for (uint64_t i = 0; i < of_process->slot_count; i++) {
        if (of_process->slots[i].used)
            of_process->slots[i].value = t->nodes.data[of_process->slots[i].value].number;
    }
}

struct error *processes_list(const struct summary *s, const struct resolver *r, struct process_list *out)
{
    struct tree tree = {0};

    *out = (struct process_list){0};
    bool good = add_nodes(s, &tree);
    complete_nodes(s, &tree);
    good = good && (!r || add_threads(s, resolver_model(r), &tree, &out->of_process)) && link_parents(&tree);
    if (good) {
        add_weights(&tree);
        good = sort_nodes(&tree) && list_nodes(&tree, out);
        complete_entries(r, out);
        find_entries(&tree, &out->of_process);
    }
    VEC_DEINIT(&tree.nodes);
    VEC_DEINIT(&tree.order);
    VEC_DEINIT(&tree.of_row);
    if (good)
        return NULL;
    processes_deinit(out);
    return error_no_memory();
}

void processes_deinit(struct process_list *list)
{
    VEC_DEINIT(&list->entries);
    map_deinit(&list->of_process);
}

/* ---- the table ---- */

const char *processes_version(const struct process_entry *entry, char *text, size_t size)
{
    uint32_t v = entry->row->version, other = entry->other_version;
    int n = 0;

    *text = 0;
    if (v)
        n = snprintf(text, size, "%u.%u.%u%s%s", v >> 24, v >> 16 & 255, v >> 8 & 255,
                     entry->row->flags & TRACE_CODE_FREE_THREADED ? "t" : "", entry->row->flags & TRACE_CODE_DEBUG ? "d" : "");
    if (v && other)
        snprintf(text + n, size - (size_t)n, ", %u.%u.%u", other >> 24, other >> 16 & 255, other >> 8 & 255);
    return text;
}

int processes_name_columns(const char *name, int indent, int columns)
{
    int needed = indent + (int)columns_of(name, strnlen(name, PROCESSES_NAME_MOST));

    return needed < columns ? columns : needed < PROCESSES_NAME_MOST ? needed : PROCESSES_NAME_MOST;
}

/* Widths of columns. `title` is 0 where no process has one. */
struct columns {
    int name, title, version;
};

static struct error *print_names(const struct process_entry *e, const struct columns *c, FILE *out)
{
    int indent = 2 * (int)e->depth;
    struct buf names = {0};
    char version[64];

    columns_fill(&names, e->name, (size_t)(c->name - indent));
    if (c->title) {
        buf_put_str(&names, "  ");
        columns_fill(&names, e->title, (size_t)c->title);
    }
    processes_version(e, version, sizeof version);
    fprintf(out, "  %8u  %*s%s  %-*s", e->row->pid, indent, "", buf_cstr(&names), c->version, *version ? version : "-");
    struct error *err = names.bad ? error_no_memory() : NULL;
    buf_deinit(&names);
    return err;
}

/* A process without a sample stands for what it began. */
static struct error *print_entry(const struct summary *s, const struct process_entry *e, uint64_t samples, const struct columns *c,
                                 FILE *out)
{
    bool has_samples = e->sample_count;
    struct number n;

    TRY(print_names(e, c, out));
    fprintf(out, "%10s", has_samples ? grouped(e->sample_count, &n) : "-");
    fprintf(out, "%12s", has_samples ? share_text(e->sample_count, samples, &n) : "-");
    if (s->time_event)
        fprintf(out, "%13s", has_samples ? share_text(e->time_ns, e->duration_ns, &n) : "-");
    fprintf(out, "%9s", has_samples ? grouped(e->thread_count, &n) : "-");
    if (*e->container)
        fprintf(out, "  container %s", e->container);
    fputc('\n', out);
    if (e->row->cmdline)
        fprintf(out, "            %*s%s\n", 2 * (int)e->depth, "", e->row->cmdline);
    return NULL;
}

static struct columns columns_needed(const struct process_list *list, size_t count)
{
    struct columns c = {.name = PROCESSES_NAME_LEAST, .version = VERSION_LEAST};
    char version[64];

    for (size_t i = 0; i < count; i++) {
        const struct process_entry *e = &list->entries.data[i];
        int len = (int)strlen(processes_version(e, version, sizeof version));
        c.version = len > c.version ? len : c.version;
        c.name = processes_name_columns(e->name, 2 * (int)e->depth, c.name);
        if (*e->title)
            c.title = processes_name_columns(e->title, 0, c.title ? c.title : TITLE_LEAST);
    }
    return c;
}

static struct error *print_entries(const struct summary *s, const struct process_list *list, size_t count, FILE *out)
{
    const struct columns c = columns_needed(list, count);
    uint64_t samples = 0;

    for (size_t i = 0; i < list->entries.count; i++)
        samples += list->entries.data[i].sample_count;
    fprintf(out, "Processes\n  %8s  %-*s", "pid", c.name, "name");
    if (c.title)
        fprintf(out, "  %-*s", c.title, "title");
    fprintf(out, "  %-*s%10s%12s%s%9s\n", c.version, "Python", "samples", "share", s->time_event ? "      running" : "", "threads");
    for (size_t i = 0; i < count; i++)
        TRY(print_entry(s, &list->entries.data[i], samples, &c, out));
    return NULL;
}

struct error *processes_print(const struct summary *s, const struct resolver *r, bool all, FILE *out)
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
