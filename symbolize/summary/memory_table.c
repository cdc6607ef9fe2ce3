/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/memory_table.h"

#include <stdlib.h>

#include "formats/base/buf.h"
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/size_text.h"
#include "symbolize/summary/process_memory.h"
#include "symbolize/summary/processes.h"

enum { PROCESSES_SHOWN = 10 };

static const char *signed_size(int64_t bytes, char text[40])
{
    struct size_text size;

    snprintf(text, 40, "%s%s", bytes > 0 ? "+" : bytes < 0 ? "-" : "",
             size_text(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, &size));
    return text;
}

static void print_account(const struct memory_account *a, FILE *out)
{
    static const char *const why[] = {
        [MEMORY_FILES] = "pages of files or shared memory are among them",
        [MEMORY_RETURNED] = "the rest was given back, so which of them stayed cannot be told from page faults",
        [MEMORY_COPIED] = "the rest was given back, or copied after a fork: which of them stayed cannot be told from page faults",
        [MEMORY_FILLED] = "the kernel filled memory at once (MAP_POPULATE, mlock), and where cannot be told from page faults",
        [MEMORY_LOST] = "samples were lost",
        [MEMORY_HUGE] = "faults brought more than a page each (huge pages), or another process filled memory: who grew "
                        "cannot be told from page faults",
    };
    const bool mapped = a->event->memory == MEMORY_MAPPED;
    const char *what = mapped ? "private writable mappings" : "anonymous memory";
    const char *reason = mapped && a->finding == MEMORY_RETURNED ? "the rest was unmapped again" : why[a->finding];
    int64_t more = (int64_t)(a->bytes - (uint64_t)a->growth_bytes);
    struct size_text size, by;

    fprintf(out, "            %s: %s", a->event->name, size_text(a->bytes, &size));
    if (a->finding == MEMORY_AGREES) /* a tenth apart may be chance where samples are few */
        fprintf(out, ", as much as %s grew%s\n", what,
                (more < 0 ? -more : more) > (int64_t)(a->bytes / 10) ? ", as far as so few samples can tell" : "");
    else if (a->finding == MEMORY_UNKNOWN)
        fputs("\n", out);
    else
        fprintf(out, ", %s %s than %s grew: %s\n", size_text(more < 0 ? -(uint64_t)more : (uint64_t)more, &by),
                more < 0 ? "less" : "more", what, reason);
}

static int compare_rows(const void *a, const void *b)
{
    const struct memory_row *x = *(const struct memory_row *const *)a, *y = *(const struct memory_row *const *)b;

    if (x->change.anonymous != y->change.anonymous)
        return x->change.anonymous > y->change.anonymous ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

static struct error *print_row(const struct summary *s, const struct resolver *r, const struct memory_row *row,
                               const char *process, int columns, FILE *out)
{
    const struct memory_change *c = &row->change;
    struct buf name = {0};
    struct size_text size;
    char text[40];

    columns_fill(&name, process, (size_t)columns);
    struct error *err = name.bad ? error_no_memory() : NULL;
    fprintf(out, "  %8u  %s%9.1f s%14s", s->processes.data[row->process].pid, buf_cstr(&name), (double)c->time_ns / 1e9,
            size_text(row->last.anonymous_bytes, &size));
    fprintf(out, "%14s", signed_size(c->anonymous, text));
    fprintf(out, "%14s", signed_size(c->swapped, text));
    fprintf(out, "%14s", signed_size(c->file, text));
    fprintf(out, "%14s", signed_size(c->shared, text));
    fprintf(out, "%14s\n", signed_size(c->data, text));
    buf_deinit(&name);
    for (uint32_t i = 0; i < row->event_count; i++) {
        struct memory_account account = process_memory_account(s, r, row, i);
        print_account(&account, out);
    }
    return err;
}

static struct error *print_rows(const struct summary *s, const struct resolver *r, const struct memory_row **rows, size_t count,
                                FILE *out)
{
    int columns = PROCESSES_NAME_LEAST;

    for (size_t i = 0; i < count; i++)
        columns = processes_name_columns(s->processes.data[rows[i]->process].name_and_title, 0, columns);
    fprintf(out, "Memory of processes, as the kernel counts it, and how it changed\n  %8s  %-*s%11s%14s%14s%14s%14s%14s%14s\n", "pid",
            columns, "name", "within", "anonymous", "change", "swapped", "files", "shared", "mappings");
    for (size_t i = 0; i < count; i++)
        TRY(print_row(s, r, rows[i], s->processes.data[rows[i]->process].name_and_title, columns, out));
    return NULL;
}

struct error *memory_table_print(const struct summary *s, const struct resolver *r, bool all, FILE *out)
{
    const struct memory_row **rows = malloc((s->memory.count + 1) * sizeof *rows);
    size_t count = 0;
    struct number n;

    if (!rows)
        return error_no_memory();
    for (size_t i = 0; i < s->memory.count; i++) {
        if (s->memory.data[i].change.time_ns)
            rows[count++] = &s->memory.data[i];
    }
    qsort(rows, count, sizeof *rows, compare_rows);
    size_t shown = all || count < PROCESSES_SHOWN ? count : PROCESSES_SHOWN;
    struct error *err = shown ? print_rows(s, r, rows, shown, out) : NULL;
    if (shown < count && !err)
        fprintf(out, "  and %s more (-v)\n", grouped(count - shown, &n));
    if (count && !err)
        fputc('\n', out);
    free(rows);
    return err;
}
