/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what the frame walk reads of a live interpreter: record_space PID OUT
 *
 * Walks the Python frames of the process's first thread (stopped with ptrace for
 * the moment), reads the names of their code objects, and writes every byte that was
 * read into OUT, with the configuration the walk had. tests/unit/test_walk.c plays
 * it back. Prints the frames: a person compares them with what the program says.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "bpf/python_retry.h"
#include "capture/binary/modules.h"
#include "capture/process/processes.h"
#include "formats/cpython/code.h"
#include "tests/tools/space.h"

struct live {
    pid_t pid;
    struct space *space;
};

static int read_and_keep(void *ctx, void *out, uint32_t len, uint64_t address)
{
    struct live *l = ctx;
    struct iovec to = {out, len}, from = {(void *)(uintptr_t)address, len};

    if (process_vm_readv(l->pid, &to, 1, &from, 1, 0) != (ssize_t)len)
        return 1;
    if (!space_add(l->space, address, out, len))
        abort();
    return 0;
}

static bool read_for_code(void *ctx, uint64_t address, void *out, uint64_t len)
{
    return !read_and_keep(ctx, out, (uint32_t)len, address);
}

int main(int argc, char **argv)
{
    static struct py_walk walk;
    static struct wire_python entries[WIRE_PYTHON_MAX];
    struct processes_options options = {0};
    struct processes *processes;
    struct modules *modules;
    struct space space = {0};
    struct buf storage = {0}, text = {0};
    uint32_t pid = argc == 3 ? (uint32_t)atoi(argv[1]) : 0;

    if (!pid) {
        fprintf(stderr, "usage: record_space PID OUT\n");
        return 2;
    }
    if (modules_create(&modules) || processes_create(&options, modules, &processes) ||
        processes_scan(processes, &pid, 1))
        return 1;
    struct process *p = processes_find(processes, pid);
    if (!p || !process_python(p, &walk.config.process)) {
        fprintf(stderr, "record_space: process %u is no interpreter that is known\n", pid);
        return 1;
    }
    const struct py_image *image = &p->python->python;
    struct user_regs_struct regs;
    if (ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid((pid_t)pid, NULL, 0) < 0 || ptrace(PTRACE_GETREGS, pid, 0, &regs)) {
        perror("record_space: ptrace");
        return 1;
    }
    struct live live = {.pid = (pid_t)pid, .space = &space};
    walk.config.layout = image->layout;
    walk.config.thread_pointer = regs.fs_base;
    walk.config.stack_pointer = regs.rsp;
    walk.memory = (struct walk_memory){.read = read_and_keep, .ctx = &live};
    space.layout = walk.config.layout;
    space.process = walk.config.process;
    space.thread_pointer = walk.config.thread_pointer;
    space.stack_pointer = walk.config.stack_pointer;

    /* The ways that the sampler takes, and the list besides, so that all can be played back. */
    int settled = walk_find_tstate(&walk);
    uint64_t quick = walk.result.tstate;
    walk.result.tstate = 0;
    if (!walk_list_begin(&walk, 4096)) {
        while (!walk_list_step(&walk)) {
        }
    }
    printf("# thread state %s; list %s\n", settled && quick ? "found quickly" : "not found quickly",
           walk.result.tstate ? (walk.result.tstate == quick ? "agrees" : "finds it") : "does not find it");
    if (!walk.result.tstate)
        walk.result.tstate = quick;
    walk_all(&walk, NULL, entries);
    struct py_code_limits limits = {.string_max_bytes = 65536, .line_table_max_bytes = 1 << 20};
    for (uint32_t i = 0; i < walk.result.entry_count; i++) {
        struct py_code code;
        bool exact;
        uint64_t address = entries[i].address & WIRE_ADDRESS;
        if (entries[i].address & WIRE_RUN) {
            printf("--\n");
            continue;
        }
        if (!py_code_read(&walk.config.layout, read_for_code, &live, address, &limits, &storage, &code)) {
            printf("?\n");
            continue;
        }
        struct py_position at = py_code_position(&code, entries[i].offset, &exact);
        buf_clear(&text);
        py_string_text(code.qualname.form ? &code.qualname : &code.name, &text);
        printf("%s\t%d\n", buf_cstr(&text), at.line);
    }
    printf("# %s\n", trace_loss_name(walk.result.end));
    ptrace(PTRACE_DETACH, pid, 0, 0);
    FILE *out = fopen(argv[2], "wb");
    if (!out || !space_write(&space, out) || fclose(out)) {
        perror(argv[2]);
        return 1;
    }
    return walk.result.end != LOSS_complete;
}
