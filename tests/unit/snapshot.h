/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What unwinders are given of a thread that ptrace has stopped: its registers, a copy of its stack, and the executable
 * mappings of its process, with each file (and the vdso) opened once for libunwind.
 */
#ifndef TESTS_UNIT_SNAPSHOT_H
#define TESTS_UNIT_SNAPSHOT_H

#include "tests/unit/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "symbolize/unwind/unwind.h"
#include "tests/unit/stopped.h"

enum { MAPPINGS_MAX = 1024, MODULES_MAX = 256 };

struct snapshot_module {
    char *path; /* or [vdso] */
    uint8_t *vdso;
    uint64_t vdso_len;
    struct unwind_module *by_libunwind;
};

/* Stays where it is: its parts point to each other. All zero, but for `pid` and `below_bytes`, before the first time. */
struct snapshot {
    pid_t pid;
    uint32_t below_bytes; /* the copy of the stack begins so far below the stack pointer */
    struct unwind_mapping mappings[MAPPINGS_MAX];
    struct snapshot_module *module_of[MAPPINGS_MAX]; /* by mapping; NULL: no file */
    struct snapshot_module modules[MODULES_MAX];
    uint32_t count, module_count;
    uint64_t registers[17];
    uint8_t *stack;
    uint64_t stack_address, stack_len;
};

static bool read_memory(pid_t pid, uint64_t address, void *out, size_t len_bytes)
{
    struct iovec local = {out, len_bytes}, remote = {(void *)(uintptr_t)address, len_bytes};

    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len_bytes;
}

/* In DWARF's order. */
static void read_registers(pid_t tid, uint64_t out[17])
{
    struct user_regs_struct r;

    assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &r), 0);
    const uint64_t values[17] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                 r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
    memcpy(out, values, sizeof values);
}

static struct snapshot_module *snapshot_open(struct snapshot *s, const char *path, uint64_t start, uint64_t end)
{
    bool vdso = !strcmp(path, "[vdso]");

    if (path[0] != '/' && !vdso)
        return NULL;
    for (uint32_t i = 0; i < s->module_count; i++)
        if (!strcmp(s->modules[i].path, path))
            return &s->modules[i];
    assert_true(s->module_count < MODULES_MAX);
    struct snapshot_module *m = &s->modules[s->module_count++];
    m->path = strdup(path);
    assert_non_null(m->path);
    if (vdso) {
        m->vdso_len = end - start;
        m->vdso = malloc(m->vdso_len);
        assert_true(read_memory(s->pid, start, m->vdso, m->vdso_len));
        OK(unwind_module_open_memory(m->vdso, m->vdso_len, &m->by_libunwind));
    } else {
        OK(unwind_module_open(path, NULL, &m->by_libunwind));
    }
    return m;
}

/* The end of the mapping that `sp` is in. The first time, takes the executable mappings. */
static uint64_t snapshot_read_maps(struct snapshot *s, uint64_t sp)
{
    char name[64], line[4096];
    uint64_t stack_end = 0;
    bool first = !s->count;

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
        if (!first || protection[2] != 'x' || !strcmp(path, "[vsyscall]"))
            continue;
        assert_true(s->count < MAPPINGS_MAX);
        struct snapshot_module *m = snapshot_open(s, path, start, end);
        s->module_of[s->count] = m;
        s->mappings[s->count] = (struct unwind_mapping){start, end - start, offset, m ? m->by_libunwind : NULL, s->count};
        s->count++;
    }
    fclose(maps);
    return stack_end;
}

/* The thread as it stands now. Mappings are those of the first time. */
static void snapshot_take(struct snapshot *s, pid_t tid)
{
    read_registers(tid, s->registers);
    uint64_t sp = s->registers[7] - s->below_bytes, end = s->stack_address + s->stack_len;
    if (sp < s->stack_address || sp >= end)
        end = snapshot_read_maps(s, sp);
    assert_true(end > sp);
    free(s->stack);
    s->stack_address = sp;
    s->stack_len = end - sp;
    s->stack = malloc(s->stack_len);
    assert_true(read_memory(s->pid, sp, s->stack, s->stack_len));
}

/* The file of a mapping, for messages and comparisons. */
static const char *snapshot_path(const struct snapshot *s, uint32_t mapping)
{
    return mapping < s->count && s->module_of[mapping] ? s->module_of[mapping]->path : "";
}

static void snapshot_deinit(struct snapshot *s)
{
    for (uint32_t i = 0; i < s->module_count; i++) {
        unwind_module_close(s->modules[i].by_libunwind);
        free(s->modules[i].vdso);
        free(s->modules[i].path);
    }
    free(s->stack);
    *s = (struct snapshot){0};
}

#endif
