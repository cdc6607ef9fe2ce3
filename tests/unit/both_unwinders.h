/* SPDX-License-Identifier: Apache-2.0 */
/* The table unwinder, built for the host, and libunwind over the same stopped process: frame by frame. */
#ifndef TESTS_UNIT_BOTH_UNWINDERS_H
#define TESTS_UNIT_BOTH_UNWINDERS_H

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "bpf/native_unwind.h"
#include "formats/elf/identity.h"
#include "formats/elf/unwind_table.h"
#include "symbolize/unwind.h"
#include "tests/unit/stopped.h"

enum { FRAMES_MAX = 1024, MAPPINGS_MAX = 1024 };

/* ---- a process as both unwinders see it ---- */

struct module {
    char *path;
    struct unwind_module *by_libunwind;
    struct unwind_table *table;
    struct elf_identity identity;
};

struct subject {
    pid_t pid;
    struct unwind_mapping mappings[MAPPINGS_MAX];
    struct native_mapping native[MAPPINGS_MAX];
    struct module *modules[MAPPINGS_MAX]; /* by mapping; NULL: no file */
    struct module owned[MAPPINGS_MAX];
    uint32_t count, owned_count;
    uint64_t registers[17];
    uint8_t *stack, *vdso;
    uint64_t stack_address, stack_len;
    struct unwinder *libunwind;
    struct native_unwind native_unwind;
    uint64_t generation;
    uint64_t fail_from, fail_to; /* reading here fails */
    uint64_t reads;
};

static int read_for_unwind(void *ctx, void *out, uint32_t len_bytes, uint64_t address)
{
    struct subject *s = ctx;

    s->reads++;
    if (address < s->fail_to && address + len_bytes > s->fail_from)
        return -1;
    return read_memory(s->pid, address, out, len_bytes) ? 0 : -1;
}

static __u32 find_mapping(void *ctx, __u64 address, struct native_mapping *mapping, const struct unwind_table **table)
{
    struct subject *s = ctx;

    for (uint32_t i = 0; i < s->count; i++) {
        if (address < s->native[i].start || address >= s->native[i].end)
            continue;
        *mapping = s->native[i];
        *table = s->modules[i] ? s->modules[i]->table : NULL;
        return 0;
    }
    return LOSS_no_mapping;
}

static struct module *open_module(struct subject *s, const char *path, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < s->owned_count; i++)
        if (!strcmp(s->owned[i].path, path))
            return &s->owned[i];
    struct module *m = &s->owned[s->owned_count];
    if (path[0] == '/') {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        must(unwind_module_open(path, NULL, &m->by_libunwind));
        must(unwind_table_build(fd, path, &m->table));
        must(elf_identity_read(fd, path, &m->identity));
        close(fd);
    } else if (!strcmp(path, "[vdso]")) {
        s->vdso = malloc(end - start);
        assert_true(read_memory(s->pid, start, s->vdso, end - start));
        must(unwind_module_open_memory(s->vdso, end - start, &m->by_libunwind));
        must(unwind_table_build_memory(s->vdso, end - start, path, &m->table));
        must(elf_identity_read_memory(s->vdso, end - start, path, &m->identity));
    } else {
        return NULL;
    }
    m->path = strdup(path);
    s->owned_count++;
    return m;
}

static void add_mapping(struct subject *s, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    uint32_t i = s->count++;
    struct module *m = open_module(s, path, start, end);
    struct native_mapping *n = &s->native[i];

    assert_true(s->count < MAPPINGS_MAX);
    s->modules[i] = m;
    s->mappings[i] = (struct unwind_mapping){start, end - start, offset, m ? m->by_libunwind : NULL, i};
    *n = (struct native_mapping){.start = start, .end = end, .flags = m ? 0 : NATIVE_NO_TABLE};
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

/* The executable mappings; returns the end of the mapping that `sp` is in. */
static uint64_t read_maps(struct subject *s, uint64_t sp, bool add)
{
    char name[64], line[4096];
    uint64_t stack_end = 0;

    snprintf(name, sizeof name, "/proc/%d/maps", s->pid);
    FILE *maps = fopen(name, "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        uint64_t start, end, offset;
        char protection[5], path[4096] = "";
        assert_true(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
                           protection, &offset, path) >= 4);
        if (sp >= start && sp < end)
            stack_end = end;
        if (add && protection[2] == 'x' && strcmp(path, "[vsyscall]") != 0)
            add_mapping(s, start, end, offset, path);
    }
    fclose(maps);
    return stack_end;
}

static void take_snapshot(struct subject *s, pid_t tid)
{
    read_registers(tid, s->registers);
    uint64_t sp = s->registers[7] - WIRE_RED_ZONE; /* as pycap's copies begin */
    bool first = !s->count;
    if (!first && sp >= s->stack_address && sp < s->stack_address + s->stack_len) {
        s->stack_len = s->stack_address + s->stack_len - sp;
    } else {
        uint64_t end = read_maps(s, sp, first);
        assert_true(end > sp);
        s->stack_len = end - sp;
    }
    if (first)
        s->generation++;
    free(s->stack);
    s->stack_address = sp;
    s->stack = malloc(s->stack_len);
    assert_true(read_memory(s->pid, sp, s->stack, s->stack_len));
}

static void subject_deinit(struct subject *s)
{
    for (uint32_t i = 0; i < s->owned_count; i++) {
        unwind_module_close(s->owned[i].by_libunwind);
        unwind_table_destroy(s->owned[i].table);
        elf_identity_deinit(&s->owned[i].identity);
        free(s->owned[i].path);
    }
    free(s->stack);
    free(s->vdso);
    unwinder_destroy(s->libunwind);
    free(s);
}

static struct subject *subject_create(pid_t pid)
{
    struct subject *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->pid = pid;
    must(unwinder_create(&s->libunwind));
    return s;
}

/* ---- both, and what differs ---- */

static void run_native(struct subject *s, struct native_frame *frames)
{
    struct native_unwind *u = &s->native_unwind;

    for (int i = 0; i < 17; i++)
        u->registers[i] = s->registers[i];
    u->memory = (struct walk_memory){read_for_unwind, s};
    u->host = (struct native_host){find_mapping, s, NULL};
    native_begin(u);
    while (!native_step(u, frames))
        ;
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
                      i < their_count && theirs[i].mapping != UINT32_MAX && s->modules[theirs[i].mapping]
                          ? s->modules[theirs[i].mapping]->path : "");
    print_message("end %u other %u | %u\n", u->end, u->other, their_end);
}

struct tally {
    uint32_t stacks, frames, complete, unsupported;
    uint32_t differing;
    uint32_t wide, by_rbx; /* frames over wide rows, and of those with RBX as base */
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
        tally->by_rbx += t->wide[row.cfa8].cfa.base == NATIVE_RBX;
    }
}

static void compare(struct subject *s, struct tally *tally)
{
    static struct native_frame ours[NATIVE_MAX];
    static struct unwind_frame theirs[FRAMES_MAX];
    struct native_unwind *u = &s->native_unwind;
    uint32_t end;

    unwinder_set_mappings(s->libunwind, s->mappings, s->count, s->generation);
    uint32_t count = unwinder_run(s->libunwind, s->registers, s->stack, s->stack_address, s->stack_len, theirs,
                                  FRAMES_MAX, &end);
    run_native(s, ours);
    /* Where we cannot go on and say so, what there is must be right. */
    bool unsupported = u->end == LOSS_register_unsupported && end != u->end;
    bool same = unsupported ? u->count <= count : u->count == count && u->end == end;
    for (uint32_t i = 0; same && i < u->count; i++) {
        same = (ours[i].ip & NATIVE_ADDRESS) == theirs[i].ip && !(ours[i].ip & NATIVE_EXACT) == theirs[i].return_address &&
               ours[i].sp == theirs[i].sp;
        if (i + 1 < u->count)
            same = same && ours[i + 1].sp == theirs[i].cfa;
    }
    if (same && !unsupported && u->last_cfa != UINT64_MAX)
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
                  "wide rows, %u of them by RBX\n", name, t->stacks, t->frames, t->differing, t->complete, t->unsupported,
                  t->wide, t->by_rbx);
}

/* ---- places to be stopped at ---- */

#endif
