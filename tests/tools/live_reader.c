/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_reader PID: prints the Python stacks of a process, innermost frame first, read from outside with
 * nothing but formats/cpython. For checking by hand (tests/tools/live-names.py does) that layouts and code
 * objects are read right on a live interpreter; it neither stops the process nor validates as the real walk does.
 *
 *   gcc -std=gnu17 -D_GNU_SOURCE -I. tests/tools/live_reader.c $(ls formats/cpython/?*.c formats/base/?*.c) -lelf
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "formats/cpython/code.h"
#include "formats/cpython/image.h"
#include "formats/cpython/version.h"

struct target {
    pid_t pid;
    struct py_image image;
    uint64_t bias;
};

static bool read_memory(void *ctx, uint64_t address, void *out, uint64_t len_bytes)
{
    const struct target *t = ctx;
    struct iovec local = {out, len_bytes}, remote = {(void *)(uintptr_t)address, len_bytes};

    return process_vm_readv(t->pid, &local, 1, &remote, 1, 0) == (ssize_t)len_bytes;
}

static uint64_t read_u64(struct target *t, uint64_t address)
{
    uint64_t v = 0;

    if (!read_memory(t, address, &v, sizeof v)) {
        fprintf(stderr, "cannot read %" PRIx64 "\n", address);
        exit(1);
    }
    return v;
}

/* The interpreter among the mappings; the load bias from where the mapping of file offset 0 begins. */
static bool find_image(struct target *t)
{
    char path[64], line[4400];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)t->pid);
    FILE *maps = fopen(path, "r");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uint64_t start, end, offset;
        char file[96];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3 || offset ||
            !strchr(line, '/'))
            continue;
        snprintf(file, sizeof file, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)t->pid, start, end);
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        uint16_t type = 0;
        struct error *err = py_image_read(fd, file, &t->image);
        if (err) {
            fprintf(stderr, "%s\n", error_text(err));
            error_destroy(err);
        } else if (t->image.is_python && pread(fd, &type, 2, 16) == 2) {
            found = true;
            t->bias = type == 3 ? start : 0;
        }
        close(fd);
    }
    if (maps)
        fclose(maps);
    return found;
}

static void print_string(const char *label, const struct py_string *string)
{
    struct buf text = {0};

    py_string_text(string, &text);
    printf("\t%s=%s", label, buf_cstr(&text));
    buf_deinit(&text);
}

static void print_frame(struct target *t, uint64_t code_address, uint64_t instruction)
{
    static const struct py_code_limits limits = {65536, 1 << 20};
    const struct py_layout *l = &t->image.layout;
    struct buf storage = {0};
    struct py_code code;
    uint32_t first_traceable = 0;
    bool exact;

    if (!py_code_read(l, read_memory, t, code_address, &limits, &storage, &code)) {
        printf("?\n");
        return;
    }
    int64_t offset = (int64_t)(instruction - code_address - l->code_bytecode);
    read_memory(t, code_address + l->code_first_traceable, &first_traceable, sizeof first_traceable);
    struct py_position p = py_code_position(&code, offset, &exact);
    printf("frame\tline=%d\tfirst=%d\tcomplete=%d\texact=%d\tstarted=%d\tflags=%x\tlen=%u", (int)p.line,
           (int)code.first_line, py_code_complete(&code), exact, offset >= 2 * (int64_t)first_traceable,
           code.co_flags, code.code_len_bytes);
    print_string("name", &code.name);
    print_string("qualname", &code.qualname);
    print_string("file", &code.filename);
    printf("\n");
    buf_deinit(&storage);
}

static void print_thread(struct target *t, uint64_t tstate)
{
    const struct py_layout *l = &t->image.layout;
    uint64_t frame = read_u64(t, tstate + l->tstate_frame), code_type = t->image.code_type_vaddr + t->bias;

    if (l->tstate_root_cframe != PY_NONE)
        frame = read_u64(t, frame + l->cframe_current_frame);
    printf("thread\tnative=%" PRIu64 "\n", read_u64(t, tstate + l->tstate_native_thread_id));
    for (unsigned depth = 0; frame && depth < 10000; depth++, frame = read_u64(t, frame + l->frame_previous)) {
        uint64_t code = read_u64(t, frame + l->frame_code);
        uint8_t owner = 0;
        read_memory(t, frame + l->frame_owner, &owner, 1);
        if (l->frame_kind == PY_FRAMES_SHIM && owner >= 3)
            printf("shim\n");
        else if (read_u64(t, code + l->code_type) != code_type)
            printf("no code object\n");
        else
            print_frame(t, code, read_u64(t, frame + l->frame_instr));
    }
}

int main(int argc, char **argv)
{
    struct target t = {.pid = argc == 2 ? atoi(argv[1]) : 0};
    char text[32];

    if (t.pid <= 0) {
        fprintf(stderr, "usage: live_reader PID\n");
        return 2;
    }
    if (!find_image(&t)) {
        fprintf(stderr, "process %d runs no Python\n", (int)t.pid);
        return 1;
    }
    if (t.image.refused) {
        fprintf(stderr, "process %d: %s\n", (int)t.pid, t.image.refused);
        return 1;
    }
    const struct py_layout *l = &t.image.layout;
    if (l->frame_kind == PY_FRAMES_OBJECT) {
        fprintf(stderr, "process %d: frames of 3.10 and older are not read here; see record_space\n", (int)t.pid);
        return 1;
    }
    uint32_t key = UINT32_MAX;
    if (l->runtime_tss_key != PY_NONE)
        read_memory(&t, t.image.runtime_vaddr + t.bias + l->runtime_tss_key, &key, sizeof key);
    printf("python\t%s\tkey=%d\ttls=%u\n", py_version_text(t.image.version_hex, text), (int)key,
           t.image.tls_tstate.kind);
    uint64_t interp = read_u64(&t, t.image.runtime_vaddr + t.bias + l->runtime_interpreters_head);
    for (; interp; interp = read_u64(&t, interp + l->interp_next)) {
        uint64_t tstate = read_u64(&t, interp + l->interp_threads_head);
        printf("interpreter\t%" PRId64 "\n", (int64_t)read_u64(&t, interp + l->interp_id));
        for (; tstate; tstate = read_u64(&t, tstate + l->tstate_next)) {
            if (read_u64(&t, tstate + l->tstate_interp) != interp)
                printf("thread of another interpreter\n");
            print_thread(&t, tstate);
        }
    }
    py_image_deinit(&t.image);
    return 0;
}
