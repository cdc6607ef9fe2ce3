/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_tasks PID [LOOKS]: prints the asyncio tasks of a process as JSON, one object a line, as the reader of
 * capture/asyncio/ finds them from outside; of several looks, 100 ms apart, the last one. Frames are innermost first, each
 * [qualified name, byte offset of its instruction]. The last line has the loops, and how long each look took.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/asyncio/task_reader.h"
#include "capture/host/target_memory.h"
#include "formats/base/clock.h"
#include "formats/cpython/code.h"

#define BUDGET_NS 2000000000ull

/* Takes what a mapped file says of the interpreter and of asyncio, as the table of processes does. */
static void look_at(struct process *p, struct module *python, const char *path, uint64_t start)
{
    struct py_image image;
    uint16_t type = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct error *err = fd < 0 ? NULL : py_image_read(fd, path, &image);

    if (fd < 0)
        return;
    if (err) {
        error_destroy(err);
    } else {
        if (image.asyncio.running_task && !p->asyncio.running_task)
            p->asyncio = image.asyncio;
        if (image.is_python && !p->python && pread(fd, &type, 2, 16) == 2) {
            python->python = image;
            p->python = python;
            p->python_bias = type == 3 ? start : 0;
        }
    }
    close(fd);
}

static bool find_python(struct process *p, struct module *python)
{
    char path[64], line[4400], file[96];

    snprintf(path, sizeof path, "/proc/%u/maps", p->tgid);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        uint64_t start, end, offset;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3 || offset || !strchr(line, '/'))
            continue;
        snprintf(file, sizeof file, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, p->tgid, start, end);
        look_at(p, python, file, start);
    }
    if (maps)
        fclose(maps);
    return p->python != NULL;
}

static void print_text(const char *text, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c == '"' || c == '\\')
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_frame(const struct process *p, pid_t pid, const struct wire_python *f)
{
    static struct buf storage, text;
    const struct py_code_limits limits = {4096, 1 << 20};
    struct py_code code;

    buf_clear(&text);
    if (py_code_read(&p->python->python.layout, target_read_fn, &pid, f->address & WIRE_ADDRESS, &limits, &storage, &code))
        py_string_text(&code.qualname, &text);
    printf("[");
    print_text((const char *)text.data, text.len_bytes);
    printf(", %d]", f->offset);
}

static void print_task(const struct process *p, const struct task_table *t, const struct task *task)
{
    static const char *const states[] = {"task", "future", "ready", "running", "changed"};

    printf("{\"address\": %" PRIu64 ", \"name\": ", task->address);
    print_text((const char *)t->names.data + task->name, task->name_len_bytes);
    printf(", \"state\": \"%s\", \"awaits\": %" PRIu64 ", \"awaiter\": ", states[task->state], task->awaits);
    if (task->awaiter == TASK_NONE)
        printf("null");
    else
        printf("%" PRIu64, t->tasks.data[task->awaiter].address);
    printf(", \"awaiters\": %u, \"loop_tid\": %u, \"loop_handle\": %" PRIu64 ", \"frames\": [", task->awaiters,
           t->loops.data[task->loop].tid, t->loops.data[task->loop].thread_handle);
    for (uint32_t i = 0; i < task->frame_count; i++) {
        printf("%s", i ? ", " : "");
        print_frame(p, (pid_t)p->tgid, &t->frames.data[task->first_frame + i]);
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    static const char *const support[] = {"no asyncio", "too old", "unknown", "readable"};
    static struct module python;
    struct task_table table = {0};
    struct task_reader *reader;
    struct process p = {.life = 1, .tgid = argc > 1 ? (uint32_t)atoi(argv[1]) : 0};
    int looks = argc > 2 ? atoi(argv[2]) : 1;
    struct error *err = NULL;
    uint64_t took_ns = 0, first_ns = 0, cpu_ns = 0;

    if (argc < 2 || !find_python(&p, &python)) {
        fprintf(stderr, "usage: read_tasks PID [LOOKS], of a process that runs Python\n");
        return 2;
    }
    if (task_reader_support(&p) != TASKS_READABLE) {
        fprintf(stderr, "tasks cannot be read: %s\n", support[task_reader_support(&p)]);
        return 1;
    }
    err = task_reader_create(&reader);
    for (int i = 0; i < looks && !err; i++) {
        if (i)
            usleep(100000);
        uint64_t begin_ns = now_ns(), cpu_begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        err = task_reader_read(reader, &p, BUDGET_NS, &table);
        took_ns = now_ns() - begin_ns;
        uint64_t look_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin_ns;
        cpu_ns = i < 2 || look_ns < cpu_ns ? look_ns : cpu_ns; /* the least of those after the first: neighbours slow others */
        first_ns = i ? first_ns : took_ns;
    }
    if (err) {
        fprintf(stderr, "%s\n", error_text(err));
        return 1;
    }
    for (size_t i = 0; i < table.tasks.count; i++)
        print_task(&p, &table, &table.tasks.data[i]);
    printf("{\"unread\": %" PRIu64 ", \"changed\": %" PRIu64 ", \"first_us\": %" PRIu64 ", \"us\": %" PRIu64 ", \"cpu_us\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"loops\": [", table.unread, table.changed, first_ns / 1000, took_ns / 1000, cpu_ns / 1000,
           task_reader_bytes(reader));
    for (size_t i = 0; i < table.loops.count; i++)
        printf("%s{\"tid\": %u, \"handle\": %" PRIu64 ", \"interpreter\": %" PRIu64 "}", i ? ", " : "",
               table.loops.data[i].tid, table.loops.data[i].thread_handle, table.loops.data[i].interpreter_id);
    printf("]}\n");
    task_table_deinit(&table);
    task_reader_destroy(reader);
    py_image_deinit(&python.python);
    return 0;
}
