/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of resolved samples share: an epoch made by hand, and a snapshot of the test
 * itself with the modules that it was taken in.
 */
#ifndef TESTS_UNIT_SCENE_FIXTURE_H
#define TESTS_UNIT_SCENE_FIXTURE_H

#include "tests/unit/test.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "symbolize/trace/epoch.h"
#include "symbolize/trace/process_names.h"
#include "symbolize/stack/resolve.h"

enum { REGISTERS = 17 };

/* ---- an epoch by hand ---- */

struct scene {
    struct epoch epoch;
    struct process_names names;
    struct resolver *resolver;
    uint32_t strings, frames, stacks, tuples, codes;
};

static inline void load(struct scene *s, struct trace_record rec)
{
    OK(epoch_load(&s->epoch, &rec));
    OK(process_names_record(&s->names, &s->epoch, &rec, 1));
}
#define LOAD(s, name_, ...) load(s, (struct trace_record){.type = TRACE_##name_, .name_ = {__VA_ARGS__}})

static inline void begin_epoch(struct scene *s, uint64_t number)
{
    if (s->epoch.begun)
        resolver_end_epoch(s->resolver);
    s->strings = s->frames = s->stacks = s->tuples = s->codes = 0;
    LOAD(s, epoch, .number = number);
}

/* Of records that lie in no file. */
static const struct input made_up_input = {.path = "-", .fd = -1};

static inline void setup(struct scene *s, const struct resolver_options *options)
{
    static const struct resolver_options none = {0};

    *s = (struct scene){0};
    OK(resolver_create(options ? options : &none, &s->resolver));
    OK(resolver_begin_file(s->resolver, &made_up_input));
    begin_epoch(s, 0);
}

static inline void teardown(struct scene *s)
{
    resolver_destroy(s->resolver);
    process_names_deinit(&s->names);
    epoch_deinit(&s->epoch);
}

static inline struct trace_bytes bytes_of_text(const char *text)
{
    return (struct trace_bytes){.data = (const uint8_t *)text, .len_bytes = strlen(text)};
}

static inline uint32_t string(struct scene *s, const char *text)
{
    LOAD(s, string, .id = ++s->strings, .data = bytes_of_text(text));
    return s->strings;
}

static inline uint32_t python(struct scene *s, const char *name, const char *file, int64_t line, uint32_t flags)
{
    LOAD(s, code, .id = ++s->codes, .python_version = 0x030b02f0, .first_line = line, .name_form = 1,
         .name_len = strlen(name), .name = bytes_of_text(name), .filename_form = 1, .filename_len = strlen(file),
         .filename = bytes_of_text(file), .line_table_form = 1);
    LOAD(s, python_frame, .id = ++s->frames, .code = s->codes, .flags = flags);
    return s->frames;
}

static inline uint32_t stack(struct scene *s, const uint32_t *frames, uint32_t count)
{
    uint64_t values[64];

    for (uint32_t i = 0; i < count; i++)
        values[i] = frames[i];
    LOAD(s, stack, .first_id = s->stacks + 1, .frames = {.values = values, .count = count});
    s->stacks += count;
    return s->stacks;
}

static inline uint32_t tuple(struct scene *s, struct trace_tuple t)
{
    t.id = ++s->tuples;
    load(s, (struct trace_record){.type = TRACE_tuple, .tuple = t});
    return t.id;
}

/* A process with one thread of the same number. */
static inline void process(struct scene *s, uint32_t id, uint32_t pid, const char *exe)
{
    uint32_t exe_id = string(s, exe), comm = string(s, "python3");

    LOAD(s, process, .id = id, .tgid = pid, .start_boottime_ns = 77, .exe = exe_id, .comm = comm);
    LOAD(s, thread, .id = id, .process = id, .tid = pid, .name = comm);
}

static inline void event(struct scene *s)
{
    uint32_t name = string(s, "cpu-clock"), unit = string(s, "ns");

    LOAD(s, event, .id = 1, .name = name, .unit = unit, .period = 100);
}

static inline struct emit_sample sample(struct scene *s, uint32_t thread, uint32_t tuple_id, uint64_t time_ns)
{
    struct trace_sample in = {.time_ns = time_ns, .thread = thread, .tuple = tuple_id, .value = 7};
    struct emit_sample out;
    bool kept;

    OK(process_names_sample(&s->names, &s->epoch, &in, 1));
    OK(resolver_sample(s->resolver, &s->epoch, 1, &in, &out, &kept));
    assert_true(kept);
    return out;
}

/* The functions of a stack, outermost first, with ";" between. */
static inline const char *functions(struct scene *s, uint32_t number)
{
    static char text[4096]; /* of the last call */
    const struct emit_model *m = resolver_model(s->resolver);
    uint32_t frames[256], depth = number == EMIT_NO_STACK ? 0 : m->stacks[number].depth;

    for (uint32_t i = depth; i; number = m->stacks[number].parent)
        frames[--i] = m->stacks[number].frame;
    text[0] = 0;
    for (uint32_t i = 0; i < depth; i++) {
        strcat(text, i ? ";" : "");
        strcat(text, m->frames[frames[i]].function);
    }
    return text;
}

/* ---- a snapshot of this very program ---- */

enum { STACK_BYTES = 1 << 16 };
struct shot {
    uint64_t registers[REGISTERS];
    uint8_t *stack;
    uint64_t stack_address, stack_len, stack_end;
    uint64_t records[2]; /* addresses in the frames of the two eval loops */
};

static inline uint64_t stack_end(void)
{
    char line[256];
    unsigned long long from, to, end = 0;
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (strstr(line, "[stack]") && sscanf(line, "%llx-%llx", &from, &to) == 2)
            end = to;
    }
    fclose(maps);
    return end;
}

__attribute__((noinline)) static void made_up_leaf(struct shot *shot)
{
    static const int order[REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                         REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    ucontext_t context;

    getcontext(&context);
    for (int i = 0; i < REGISTERS; i++)
        shot->registers[i] = (uint64_t)context.uc_mcontext.gregs[order[i]];
    shot->stack_address = shot->registers[7];
    shot->stack_len = shot->stack_end - shot->stack_address;
    if (shot->stack_len > STACK_BYTES)
        shot->stack_len = STACK_BYTES;
    /* Not memcpy(): a sanitizer would object to reading other frames. */
    for (uint64_t i = 0; i < shot->stack_len; i += 8)
        *(volatile uint64_t *)(shot->stack + i) = __extension__({
            uint64_t word;
            __asm__ volatile("mov (%1), %0" : "=r"(word) : "r"(shot->stack_address + i) : "memory");
            word;
        });
}

__attribute__((noinline)) static void made_up_inner_eval(struct shot *shot)
{
    shot->records[1] = (uint64_t)__builtin_frame_address(0);
    made_up_leaf(shot);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

__attribute__((noinline)) static void made_up_callback(struct shot *shot)
{
    made_up_inner_eval(shot);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline, unused)) static void made_up_outer_eval(struct shot *shot)
{
    shot->records[0] = (uint64_t)__builtin_frame_address(0);
    made_up_callback(shot);
    __asm__ volatile("" ::: "memory");
}

struct loader {
    struct scene *scene;
    uint32_t modules;
};

/* Tells the epoch of a loaded file: its path, build ID, and executable segments. */
static inline int tell_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct loader *l = data;
    char path[4096];
    struct trace_bytes build_id = {0};

    (void)size;
    snprintf(path, sizeof path, "%s", info->dlpi_name);
    if (!*path) {
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        path[n > 0 ? n : 0] = 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uint8_t *note = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);
        for (size_t at = 0; p->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= p->p_memsz;) {
            const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)(note + at);
            size_t desc = at + sizeof *n + ((n->n_namesz + 3) & ~3u);
            if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4)
                build_id = (struct trace_bytes){.data = note + desc, .len_bytes = n->n_descsz};
            at = desc + ((n->n_descsz + 3) & ~3u);
        }
    }
    uint32_t path_id = string(l->scene, path);
    LOAD(l->scene, module, .id = ++l->modules, .path = path_id, .id_kind = TRACE_ID_BUILD_ID, .build_id = build_id);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t skew = p->p_vaddr & 4095;
        if (p->p_type == PT_LOAD && p->p_flags & PF_X)
            LOAD(l->scene, mapping, .process = 1, .address = info->dlpi_addr + p->p_vaddr - skew,
                 .length = p->p_memsz + skew, .file_offset = p->p_offset - skew, .protection = 5, .module = l->modules);
    }
    return 0;
}

#endif
