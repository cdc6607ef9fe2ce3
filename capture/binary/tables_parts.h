/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of tables.h share: tables.c has tables built and lays them in, tables_room.c finds room and takes them out. */
#ifndef CAPTURE_BINARY_TABLES_PARTS_H
#define CAPTURE_BINARY_TABLES_PARTS_H

#include "capture/binary/table_job.h"
#include "capture/binary/table_numbers.h"
#include "capture/binary/table_space.h"
#include "capture/binary/table_wants.h"
#include "capture/binary/worker.h"
#include "formats/base/vec.h"

/*
 * A table that was used since is not taken out for another: they would take turns for ever. Each time it is wanted again after it
 * was taken out it stays for twice as long, up to COLD_S << COLD_DOUBLINGS.
 */
#define COLD_S 10
#define COLD_DOUBLINGS 6

enum table_state {
    ENTRY_OUT,     /* no table, none asked for */
    ENTRY_WAITING, /* the worker has it, or will */
    ENTRY_IN,      /* laid in */
    ENTRY_TOO_LARGE, /* it can never be laid in */
    ENTRY_NONE,    /* the module has no call frame information, or cannot be read */
};

struct table_entry {
    struct module *module;  /* NULL: no file has the number now */
    enum table_state state;
    uint64_t not_before_ns; /* ENTRY_OUT: there was no room */
    uint64_t words, hash;   /* of the table when it was last built; 0: it was not */
    pid_t pid;              /* ENTRY_IN: the process that wanted it built */
    bool at_least;          /* it has more words: it was not built to its end */
    bool lacks;             /* it is wanted, and has had no room since */
    bool gave;              /* ENTRY_OUT: it was taken out for another */
    uint8_t returns;        /* how often it was wanted then, COLD_DOUBLINGS at most */
    uint32_t place;         /* ENTRY_IN: number of the entry whose place in the arrays this one uses; its own: it holds it */
    bool stays;             /* in tables_reclaim() alone */
};

enum lane { LANE_SMALL, LANE_LARGE, LANES };

struct tables {
    struct tables_memory memory;
    struct modules *modules;
    struct table_space space;
    struct table_wants wants;
    VEC(struct table_entry) entries;   /* by number */
    struct table_numbers numbers; /* of files */
    struct worker *workers[LANES];
    int poll_fd;                 /* epoll: of both workers */
    VEC(struct table_job *) ready; /* built, and not laid in yet: there may be no room */
    uint64_t waited_ns, waited_at_ns; /* how long tables were waited for, less what has been forgotten since */
};

/* tables_room.c */
/* What the sampler finds changes from now on, or did up to now. */
void tables_note_change(struct tables *t);
/* The sampler finds no table from now on. */
void tables_hide(struct tables *t, uint32_t number);
/* Call after tables_hide(): whoever sees the new generation no longer finds the table (bpf/native_rows.h). */
void tables_new_generation(struct tables *t);
/* The table lacks room; or it does not any more: it has room, or nobody wants it. */
void tables_lack(struct tables *t, uint32_t number);
void tables_lack_no_more(struct tables *t, uint32_t number);
/* Whether there is room for a table of so many words, or can be made, for which `make` takes out others: it is there a little later. */
struct error *tables_find_room(struct tables *t, uint64_t words, pid_t pid, uint64_t time_ns, bool make, bool *room);

#endif
