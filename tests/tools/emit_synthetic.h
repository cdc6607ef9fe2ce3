/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up profiles for the emitters: a builder, and one profile with every kind of frame and the names that have
 * tripped consumers. Shared by the unit tests and emit_demo. Aborts when memory runs out.
 */
#ifndef TESTS_TOOLS_EMIT_SYNTHETIC_H
#define TESTS_TOOLS_EMIT_SYNTHETIC_H

#include <stdlib.h>
#include <string.h>

#include "formats/base/vec.h"
#include "formats/emit/emit.h"

struct synthetic {
    struct emit_model model;
    VEC(struct emit_frame) frames;
    VEC(struct emit_stack) stacks;
    VEC(struct emit_process) processes;
    VEC(struct emit_thread) threads;
    VEC(struct emit_event) events;
    VEC(struct emit_mapping) mappings;
    VEC(struct emit_sample) samples;
};

#define SYNTHETIC_ADD(s, list, list_count, item)                                                                       \
    (VEC_PUSH(&(s)->list, item) ? (void)0 : abort(), (s)->model.list = (s)->list.data,                                 \
     (s)->model.list_count = (uint32_t)(s)->list.count, (s)->model.list_count - 1)

static inline uint32_t synthetic_frame(struct synthetic *s, struct emit_frame f)
{
    f.function = f.function ? f.function : "";
    f.file = f.file ? f.file : "";
    f.module = f.module ? f.module : "";
    return SYNTHETIC_ADD(s, frames, frame_count, f);
}

static inline uint32_t synthetic_stack(struct synthetic *s, uint32_t parent, uint32_t frame)
{
    uint32_t depth = parent == EMIT_NO_STACK ? 1 : s->stacks.data[parent].depth + 1;

    return SYNTHETIC_ADD(s, stacks, stack_count,
                         ((struct emit_stack){.parent = parent, .frame = frame, .depth = depth}));
}

static inline uint32_t synthetic_process(struct synthetic *s, uint32_t pid, const char *comm)
{
    const struct emit_process process = {.pid = pid, .comm = comm, .name = comm, .container = "", .cgroup = "",
                                         .first_program = (uint32_t)s->processes.count};

    return SYNTHETIC_ADD(s, processes, process_count, process);
}

static inline uint32_t synthetic_thread(struct synthetic *s, uint32_t process, uint32_t tid, const char *name)
{
    return SYNTHETIC_ADD(s, threads, thread_count,
                         ((struct emit_thread){.process = process, .tid = tid, .name = name}));
}

static inline uint32_t synthetic_event(struct synthetic *s, const char *name, const char *unit, bool is_time)
{
    struct emit_event event = {.name = name, .unit = unit, .kind = is_time ? EVENT_CPU_TIME : EVENT_AMOUNT};

    return SYNTHETIC_ADD(s, events, event_count, event);
}

static inline void synthetic_sample(struct synthetic *s, struct emit_sample sample)
{
    if (!VEC_PUSH(&s->samples, sample))
        abort();
}

static inline uint32_t synthetic_python(struct synthetic *s, const char *function, const char *file, uint32_t line,
                                        uint32_t column, uint32_t function_line)
{
    return synthetic_frame(s, (struct emit_frame){.kind = EMIT_PYTHON,
                                                  .function = function,
                                                  .file = file,
                                                  .module = "/usr/bin/python3.12",
                                                  .mapping = EMIT_NO_MAPPING,
                                                  .line = line,
                                                  .column = column,
                                                  .function_line = function_line});
}

/* The binary of that path, of which nothing else is known. */
static inline uint32_t synthetic_mapping(struct synthetic *s, const char *path)
{
    for (uint32_t i = 0; i < s->model.mapping_count; i++) {
        if (!strcmp(s->mappings.data[i].path, path))
            return i;
    }
    return SYNTHETIC_ADD(s, mappings, mapping_count, ((struct emit_mapping){.path = path}));
}

static inline uint32_t synthetic_native(struct synthetic *s, const char *function, const char *module, uint64_t address,
                                        uint64_t offset)
{
    return synthetic_frame(s, (struct emit_frame){.kind = EMIT_NATIVE,
                                                  .function = function,
                                                  .module = module,
                                                  .mapping = synthetic_mapping(s, module),
                                                  .address = address,
                                                  .symbol_offset = offset});
}

static inline uint32_t synthetic_kernel(struct synthetic *s, const char *function, const char *module, uint64_t address,
                                        uint64_t offset)
{
    return synthetic_frame(s, (struct emit_frame){.kind = EMIT_KERNEL,
                                                  .function = function,
                                                  .module = module,
                                                  .mapping = synthetic_mapping(s, module),
                                                  .address = address,
                                                  .symbol_offset = offset});
}

static inline uint32_t synthetic_mark(struct synthetic *s, const char *text)
{
    return synthetic_frame(s, (struct emit_frame){.kind = EMIT_MARK, .function = text, .mapping = EMIT_NO_MAPPING});
}

static inline void synthetic_deinit(struct synthetic *s)
{
    VEC_DEINIT(&s->frames);
    VEC_DEINIT(&s->stacks);
    VEC_DEINIT(&s->processes);
    VEC_DEINIT(&s->threads);
    VEC_DEINIT(&s->events);
    VEC_DEINIT(&s->mappings);
    VEC_DEINIT(&s->samples);
}

/*
 * Runs an emitter over the samples made so far, which have no labels and are of one capture, unless
 * the model has some. *remark becomes what the emitter remarks at its end, or NULL; the caller frees it.
 */
static inline struct error *synthetic_emit_remark(const struct synthetic *s, const struct emitter *emitter,
                                                  const struct emit_options *options, FILE *out, char **remark)
{
    static const struct emit_label_set no_labels = {0};
    static const struct emit_capture capture = {
        .name = "test", .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "", .recorder = ""};
    struct emit_model model = s->model;
    void *state = NULL;

    if (!model.label_sets) {
        model.label_sets = &no_labels;
        model.label_set_count = 1;
    }
    if (!model.captures) {
        model.captures = &capture;
        model.capture_count = 1;
    }
    if (!model.filters)
        model.filters = "";
    struct error *err = emitter->begin(&model, options, out, &state);
    for (size_t i = 0; !err && i < s->samples.count; i++)
        err = emitter->sample(state, &s->samples.data[i]);
    if (!err)
        err = emitter->end(state);
    if (!err && remark)
        *remark = emitter->remark && emitter->remark(state) ? strdup(emitter->remark(state)) : NULL;
    emitter->destroy(state);
    return err;
}

/* The same without the remark. */
static inline struct error *synthetic_emit(const struct synthetic *s, const struct emitter *emitter,
                                           const struct emit_options *options, FILE *out)
{
    return synthetic_emit_remark(s, emitter, options, out, NULL);
}

/* `count` samples at 99 Hz and more of odd names than a real host would have. */
static inline void synthetic_demo(struct synthetic *s, uint32_t count)
{
    static const uint64_t period_ns = 10101010;
    static const char libc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    uint32_t python = synthetic_process(s, 100, "python3"), odd = synthetic_process(s, 207, "my app 12;\xff");
    uint32_t one = synthetic_process(s, 9, "p");
    uint32_t main_thread = synthetic_thread(s, python, 100, "MainThread");
    uint32_t worker = synthetic_thread(s, python, 101, "ThreadPoolExecutor-0_0");
    uint32_t threads[] = {
        main_thread,
        main_thread,
        main_thread,
        worker,
        worker,
        synthetic_thread(s, odd, 207, "spaced name 3"),
        synthetic_thread(s, odd, 208, ""),
        synthetic_thread(s, one, 9, "p"),
    };
    synthetic_event(s, "cpu-clock", "ns", true);

    const uint32_t none = EMIT_NO_STACK;
    uint32_t start = synthetic_stack(s, none, synthetic_native(s, "_start", "/usr/bin/python3.12", 0x401000, 0x25));
    uint32_t module = synthetic_stack(s, start, synthetic_python(s, "<module>", "/srv/app/main.py", 12, 1, 1));
    uint32_t serve = synthetic_stack(s, module, synthetic_python(s, "Server.serve", "/srv/app/server.py", 42, 9, 30));
    uint32_t serve2 = synthetic_stack(s, module, synthetic_python(s, "Server.serve", "/srv/app/server.py", 47, 9, 30));
    uint32_t lambda =
        synthetic_stack(s, serve, synthetic_python(s, "route.<locals>.<lambda>", "/srv/app/a b (1)/views.py", 7, 3, 7));
    uint32_t same_base = synthetic_stack(s, serve2, synthetic_python(s, "index", "/srv/app/blog/views.py", 19, 5, 11));
    uint32_t dumps =
        synthetic_stack(s, lambda, synthetic_python(s, "dumps", "/usr/lib/python3.12/json/__init__.py", 231, 12, 183));
    uint32_t encode =
        synthetic_stack(s, dumps,
                        synthetic_native(s, "py_encode_basestring_ascii", "/usr/lib/python3.12/lib-dynload/_json.so",
                                         0x7f0000001000, 0x1c));
    uint32_t escape = synthetic_native(s, "ascii_escape_unichar", "/usr/lib/python3.12/lib-dynload/_json.so", 0x7f0000001000, 0);
    s->frames.data[escape].file = "/build/Modules/_json.c";
    s->frames.data[escape].line = 120;
    s->frames.data[escape].inlined = true;
    uint32_t inlined = synthetic_stack(s, encode, escape);
    uint32_t unknown =
        synthetic_stack(s, serve, synthetic_native(s, "", "/opt/my libs (x)/libodd.so", 0x7f0000002000, 0));
    uint32_t arrow = synthetic_stack(s, unknown,
                                     synthetic_native(s, "std::unique_ptr<A>::operator->() const",
                                                      "/opt/my libs (x)/libodd.so", 0x7f0000002100, 0x10));
    uint32_t anon = synthetic_stack(s, arrow,
                                    synthetic_native(s, "(anonymous namespace)::work(int, char*)",
                                                     "/opt/my libs (x)/libodd.so", 0x7f0000002200, 0x44));
    uint32_t vdso = synthetic_stack(s, anon, synthetic_native(s, "", "[vdso]", 0x7ffc00000123, 0));
    uint32_t read = synthetic_stack(s, serve2, synthetic_native(s, "__read", libc, 0x7f0000100000, 0x14));
    uint32_t sys =
        synthetic_stack(s, read, synthetic_kernel(s, "do_syscall_64", "[kernel.kallsyms]", 0xffffffff81000000, 0x5c));
    uint32_t ext4 =
        synthetic_stack(s, sys, synthetic_kernel(s, "ext4_file_read_iter", "[ext4]", 0xffffffffc0400000, 0x7));
    uint32_t torn = synthetic_stack(s, none, synthetic_mark(s, "[torn]"));
    uint32_t fib = synthetic_python(s, "fib", "/srv/app/main.py", 3, 16, 2);
    uint32_t rec = synthetic_stack(s, torn, fib);
    for (int i = 0; i < 6; i++)
        rec = synthetic_stack(s, rec, fib);
    uint32_t number = synthetic_stack(s, serve, synthetic_native(s, "handler 12", libc, 0x7f0000101000, 1));
    uint32_t semicolon = synthetic_stack(s, number, synthetic_python(s, "a;b\nc\x1b[31m", "/srv/app/x;y.py", 5, 0, 0));
    uint32_t bytes = synthetic_stack(s, semicolon, synthetic_python(s, "caf\xc3\xa9_\xff\xfe", "<string>", 1, 0, 0));
    uint32_t nameless = synthetic_stack(s, module, synthetic_python(s, "", "", 0, 0, 0));
    uint32_t leaves[] = {inlined, inlined, encode, vdso,  anon,  arrow,     ext4, ext4,     sys,
                         rec,     rec,     number, bytes, dumps, same_base, read, nameless, none};
    uint32_t random = 1;

    for (uint32_t i = 0; i < count; i++) {
        random = random * 1103515245 + 12345;
        uint32_t thread = threads[(random >> 16) % (sizeof threads / sizeof *threads)];
        random = random * 1103515245 + 12345;
        /* Mostly the same stack for a while, as real programs have it. */
        uint32_t leaf = leaves[(i / 7 + (random >> 16) % 3) % (sizeof leaves / sizeof *leaves)];
        synthetic_sample(s, (struct emit_sample){.time_ns = 5000000000000 + i * period_ns / 4,
                                                 .value = period_ns,
                                                 .thread = thread,
                                                 .cpu = i % 4,
                                                 .stack = leaf});
    }
}

#endif
