/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a summary as a tree: children below their parents, those with most samples first. The text and the
 * JSON list them from here.
 */
#ifndef SYMBOLIZE_SUMMARY_PROCESSES_H
#define SYMBOLIZE_SUMMARY_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"
#include "symbolize/summary/summary_data.h"

/* The columns of names in tables: as wide as the widest needs, within these. */
enum { PROCESSES_NAME_LEAST = 22, PROCESSES_NAME_MOST = 40 };

/* A process that was sampled, or that has a child that was. Texts are printable. */
struct process_entry {
    const struct process_row *row; /* of several programs that it ran the newest with samples */
    uint64_t sample_count;         /* of all of them */
    const char *name;      /* what it runs; the kernel's name if that is unknown */
    const char *title;     /* that it gave itself; "" for none */
    const char *name_and_title; /* as outputs have them in one text: gunicorn "shop: worker" */
    const char *container; /* "" for none */
    uint32_t thread_count; /* that were sampled */
    uint64_t time_ns;      /* of its samples, by the clock that the summary goes by */
    uint64_t duration_ns;  /* of the files that it is in */
    uint32_t other_version; /* of another CPython that ran in it; 0: none was seen */
    uint32_t depth;        /* in the tree; 0 for a root */
};

struct process_list {
    VEC(struct process_entry) entries;
    uint64_t sampled_count; /* processes with a sample */
    uint64_t idle_count; /* processes without a sample that are not in the list */
    struct map of_process; /* the model's number of a process that was sampled -> its entry */
};

/* `r` may be NULL. `s` must outlive the list. */
struct error *processes_list(const struct summary *s, const struct resolver *r, struct process_list *out);
void processes_deinit(struct process_list *list);
/* Prints the list as a table: `all` of it, or its first rows. */
struct error *processes_print(const struct summary *s, const struct resolver *r, bool all, FILE *out);
/* The columns that a table needs with another name in it, which is indented; `columns` without it. */
int processes_name_columns(const char *name, int indent, int columns);
/* "3.13.0t" into `text`, "3.11.2, 3.9.18" of a process in which two interpreters ran; "" if unknown. */
const char *processes_version(const struct process_entry *entry, char *text, size_t size);

#endif
