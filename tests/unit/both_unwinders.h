/* SPDX-License-Identifier: Apache-2.0 */
/* The table unwinder, built for the host, and libunwind over the same stopped process: frame by frame. */
#ifndef TESTS_UNIT_BOTH_UNWINDERS_H
#define TESTS_UNIT_BOTH_UNWINDERS_H

#include "tests/unit/test.h"

#include <elf.h>
#include <fcntl.h>

#include "bpf/native_rows.h"
#include "formats/elf/identity.h"
#include "formats/elf/unwind_table.h"
#include "tests/unit/snapshot.h"

enum { FRAMES_MAX = 1024 };

/* ---- a process as both unwinders see it ---- */

/* Beside what libunwind has of it. */
struct module {
    struct unwind_table *table;
    struct elf_identity identity;
};

struct subject {
    struct snapshot snapshot;
    struct native_mapping native[MAPPINGS_MAX]; /* as the snapshot's */
    struct module modules[MODULES_MAX];         /* likewise */
    uint32_t module_count;
    struct unwinder *libunwind;
    struct native_unwind native_unwind;
    struct native_row rows[NATIVE_ROWS]; /* a cache of all stacks that were compared */
    uint64_t fail_from, fail_to; /* reading here fails */
    uint64_t reads;
};

static int read_for_unwind(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct subject *s = ctx;

    s->reads++;
    if (address < s->fail_to && address + len_bytes > s->fail_from)
        return -1;
    return read_memory(s->snapshot.pid, address, out, len_bytes) ? 0 : -1;
}

static struct module *module_of(struct subject *s, uint32_t mapping)
{
    const struct snapshot_module *m = s->snapshot.module_of[mapping];

    return m ? &s->modules[m - s->snapshot.modules] : NULL;
}

static __u32 find_mapping(void *ctx, __u64 address, struct native_mapping *mapping, const struct unwind_table **table)
{
    struct subject *s = ctx;

    for (uint32_t i = 0; i < s->snapshot.count; i++) {
        if (address < s->native[i].start || address >= s->native[i].end)
            continue;
        *mapping = s->native[i];
        const struct module *m = module_of(s, i);
        *table = m ? m->table : NULL;
        return 0;
    }
    return LOSS_no_mapping;
}

static void build_table(struct module *m, const struct snapshot_module *of)
{
    if (of->vdso) {
        OK(unwind_table_build_memory(of->vdso, of->vdso_len, of->path, &m->table));
        OK(elf_identity_read_memory(of->vdso, of->vdso_len, of->path, &m->identity));
        return;
    }
    int fd = open(of->path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    OK(unwind_table_build(fd, of->path, NULL, &m->table));
    OK(elf_identity_read(fd, of->path, &m->identity));
    close(fd);
}

static void lay_out(struct subject *s, uint32_t mapping)
{
    const struct unwind_mapping *from = &s->snapshot.mappings[mapping];
    const struct module *m = module_of(s, mapping);
    struct native_mapping *n = &s->native[mapping];
    uint64_t start = from->address, offset = from->file_offset;

    *n = (struct native_mapping){.start = start, .end = start + from->length, .flags = m ? 0 : NATIVE_NO_TABLE};
    if (!m)
        return;
    for (size_t k = 0; k < m->identity.segments.count; k++) {
        const struct elf_segment *seg = &m->identity.segments.data[k];
        if ((seg->flags & PF_X) && offset >= (seg->offset & ~4095ull) && offset < seg->offset + seg->file_size)
            n->base = start - offset + seg->offset - seg->vaddr + m->table->base_vaddr;
    }
    n->row_count = m->table->row_count;
    n->index_first = m->table->index_first;
    n->index_count = m->table->index_count;
    n->wide_count = m->table->wide_count;
}

static void take_snapshot(struct subject *s, pid_t tid)
{
    bool first = !s->snapshot.count;

    snapshot_take(&s->snapshot, tid);
    for (; s->module_count < s->snapshot.module_count; s->module_count++)
        build_table(&s->modules[s->module_count], &s->snapshot.modules[s->module_count]);
    for (uint32_t i = 0; first && i < s->snapshot.count; i++)
        lay_out(s, i);
}

static struct subject *subject_create(pid_t pid)
{
    struct subject *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->snapshot.pid = pid;
    s->snapshot.below_bytes = ARCH_RED_ZONE_BYTES; /* as pycap's copies begin */
    OK(unwinder_create(machine_by_name("x86_64"), &s->libunwind));
    return s;
}

static void subject_destroy(struct subject *s)
{
    for (uint32_t i = 0; i < s->module_count; i++) {
        unwind_table_destroy(s->modules[i].table);
        elf_identity_deinit(&s->modules[i].identity);
    }
    snapshot_deinit(&s->snapshot);
    unwinder_destroy(s->libunwind);
    free(s);
}

/* ---- both, and what differs ---- */

static void begin_native(struct subject *s)
{
    struct native_unwind *u = &s->native_unwind;

    for (int i = 0; i < 17; i++)
        u->registers[i] = s->snapshot.registers[i];
    u->memory = (struct walk_memory){read_for_unwind, s};
    u->host = (struct native_host){find_mapping, s, NULL};
    native_begin(u);
}

static void run_native(struct subject *s, struct native_frame *frames)
{
    begin_native(s);
    while (!native_step(&s->native_unwind, frames))
        ;
}

/* Unwinds by cached rows, the second time with all that can be cached, which must come to the same. */
static void check_cached(struct subject *s, const struct native_frame *frames)
{
    static struct native_frame cached[NATIVE_MAX];
    struct native_unwind *u = &s->native_unwind;
    const struct native_unwind plain = *u;

    for (int round = 0; round < 2; round++) {
        begin_native(s);
        native_use_rows(u, 1, 0);
        native_unwind_by_rows(u, cached, s->rows);
        assert_int_equal(u->count, plain.count);
        assert_int_equal(u->end, plain.end);
        assert_int_equal(u->other, plain.other);
        assert_int_equal(u->guesses, plain.guesses);
        assert_int_equal(u->last_cfa, plain.last_cfa);
        assert_memory_equal(cached, frames, plain.count * sizeof *cached);
    }
}

static void print_frames(const struct subject *s, const struct native_frame *ours, const struct unwind_frame *theirs,
                         uint32_t their_count, uint32_t their_end)
{
    const struct native_unwind *u = &s->native_unwind;

    for (uint32_t i = 0; i < u->count || i < their_count; i++)
        print_message("%2u: %12llx%s sp %12llx | libunwind %12" PRIx64 "%s sp %12" PRIx64 " cfa %12" PRIx64 " %s\n", i,
                      i < u->count ? ours[i].ip & NATIVE_ADDRESS : 0, i < u->count && ours[i].ip & NATIVE_EXACT ? "!" : " ",
                      i < u->count ? ours[i].sp : 0, i < their_count ? theirs[i].ip : 0,
                      i < their_count && !theirs[i].return_address ? "!" : " ", i < their_count ? theirs[i].sp : 0,
                      i < their_count ? theirs[i].cfa : 0,
                      i < their_count ? snapshot_path(&s->snapshot, theirs[i].mapping) : "");
    print_message("end %u other %u | %u\n", u->end, u->other, their_end);
}

struct tally {
    uint32_t stacks, frames, complete, unsupported;
    uint32_t differing;
    uint32_t wide, by_rbx; /* frames over wide rows, and of those with RBX as base */
    uint32_t cached;       /* frames over cached rows */
};

/* How many frames needed more than a plain row. */
static void count_wide(struct subject *s, const struct native_frame *frames, struct tally *tally)
{
    for (uint32_t i = 0; i < s->native_unwind.count; i++) {
        struct native_mapping mapping;
        const struct unwind_table *t;
        uint64_t at = (frames[i].ip & NATIVE_ADDRESS) - !(frames[i].ip & NATIVE_EXACT);
        if (find_mapping(s, at, &mapping, &t) || !t)
            continue;
        struct unwind_row row = unwind_table_lookup(t, at - mapping.base + t->base_vaddr);
        if (UNWIND_TYPE(row.type) != UNWIND_WIDE)
            continue;
        tally->wide++;
        tally->by_rbx += t->wide[row.cfa8].cfa.base == ARCH_BX;
    }
}

static void compare(struct subject *s, struct tally *tally)
{
    static struct native_frame ours[NATIVE_MAX];
    static struct unwind_frame theirs[FRAMES_MAX];
    struct native_unwind *u = &s->native_unwind;
    uint32_t end;

    const struct snapshot *of = &s->snapshot;
    unwinder_set_mappings(s->libunwind, of->mappings, of->count, 1);
    uint32_t count = unwinder_run(s->libunwind, of->registers, of->stack, of->stack_address, of->stack_len, theirs,
                                  FRAMES_MAX, &end);
    run_native(s, ours);
    check_cached(s, ours);
    tally->cached += u->cached;
    /* Where we cannot go on and say so, what there is must be right. */
    bool unsupported = u->end == LOSS_register_unsupported && end != u->end;
    bool same = unsupported ? u->count <= count : u->count == count && u->end == end;
    for (uint32_t i = 0; same && i < u->count; i++) {
        same = (ours[i].ip & NATIVE_ADDRESS) == theirs[i].ip && !(ours[i].ip & NATIVE_EXACT) == theirs[i].return_address &&
               ours[i].sp == theirs[i].sp;
        if (i + 1 < u->count)
            same = same && ours[i + 1].sp == theirs[i].cfa;
    }
    if (same && !unsupported && u->last_cfa != WIRE_CFA_NONE)
        same = u->last_cfa == theirs[count - 1].cfa;
    count_wide(s, ours, tally);
    tally->stacks++;
    tally->frames += u->count;
    tally->complete += u->end == LOSS_complete;
    tally->unsupported += unsupported;
    tally->differing += !same;
    if (!same && tally->differing < 4)
        print_frames(s, ours, theirs, count, end);
}

static void print_tally(const char *name, const struct tally *t)
{
    print_message("%s: %u stacks, %u frames, %u differ from libunwind's, %u complete, %u end at an unsupported row; %u frames over "
                  "wide rows, %u of them by RBX; %u over cached rows\n", name, t->stacks, t->frames, t->differing, t->complete, t->unsupported,
                  t->wide, t->by_rbx, t->cached);
}

#endif
