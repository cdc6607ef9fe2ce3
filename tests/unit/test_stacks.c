/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may have of new stacks: made-up samples of this process, written by the trace builder and read back. All
 * frames are of one made-up code object in the test's own memory, at differing instructions.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/host.h"
#include "capture/trace/stacks.h"
#include "capture/trace/trace_builder.h"
#include "formats/cpython/layout_find.h"
#include "tests/unit/trace_fixture.h"

enum {
    PYTHON_3_11 = 0x030b02f0,
    CODE_TYPE = 0x1230,
    RUNS = 20,       /* activations of the eval loop in each stack */
    FRAMES = 10,     /* Python frames of each */
    ENTRIES = RUNS * (FRAMES + 1),
    KEPT = 32,       /* entries and native frames that are kept of a cut stack */
    FRAME_BYTES = 0x100, /* of the native stack */
    SAMPLES_MAX = 20000,
    STACKS_MAX = 1 << 22,
};
#define STACK_ADDRESS UINT64_C(0x7fff00000000)
#define SECOND UINT64_C(1000000000)

static const uint64_t burst = 0
#define QUOTA(name, loss, unit, per_second, burst, pool, first) + (QUOTA_##name == QUOTA_stack_bytes ? (burst) : 0)
#include "capture/host/quotas.def"
#undef QUOTA
    ;

struct message {
    struct wire_sample head;
    struct wire_python python[ENTRIES];
    struct native_frame native[RUNS * KEPT];
};

struct world {
    struct host host;
    struct settings settings;
    struct processes *processes;
    struct process *process;
    struct module python;
    struct codes *codes;
    struct trace_writer *writer;
    struct trace_builder *builder;
    uint8_t code[1024], name[256], table[256];
    struct message message;
    uint64_t samples; /* that were sent */
    int fd;
};

static void put(uint8_t *object, uint16_t offset, uint64_t value, size_t len_bytes)
{
    memcpy(object + offset, &value, len_bytes);
}

static void make_code(struct world *w)
{
    const struct py_layout *l = &w->python.python.layout;

    assert_true(l->code_len_bytes <= sizeof w->code);
    put(w->name, l->str_length, 1, 8);
    put(w->name, l->str_state, 1u << l->str_kind_shift | 1u << l->str_compact_shift | 1u << l->str_ascii_shift, 4);
    w->name[l->str_ascii_data] = 'f';
    put(w->code, l->code_type, CODE_TYPE, 8);
    put(w->code, l->code_first_line, 7, 4);
    put(w->code, l->code_name, (uintptr_t)w->name, 8);
    put(w->code, l->code_qualname, (uintptr_t)w->name, 8);
    put(w->code, l->code_filename, (uintptr_t)w->name, 8);
    put(w->code, l->code_line_table, (uintptr_t)w->table, 8);
    put(w->table, l->bytes_size, 100, 8);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct event_list events = {.list = {{.source = event_source("cpu-clock"), .frequency_hz = 99}}, .count = 1};

    assert_non_null(w);
    OK(py_layout_find(PYTHON_3_11, false, NULL, 0, &w->python.python.layout));
    w->python.python.code_type_vaddr = CODE_TYPE;
    make_code(w);
    w->fd = memory_file();
    OK(processes_create(&(struct processes_options){.whole_host = true, .include_non_python = true}, NULL, &w->processes));
    OK(processes_begin(w->processes, (uint32_t)getpid(), 1, &w->process));
    process_select(w->process, true, true);
    processes_set_owner(w->processes, w->process, &(struct owner_facts){.uid = 1000});
    w->process->python = &w->python;
    w->process->configured = true;
    OK(codes_create(&w->codes));
    OK(trace_writer_create(w->fd, "t", NULL, 1, &w->writer));
    const struct trace_builder_options options = {.writer = w->writer, .host = &w->host, .processes = w->processes,
        .codes = w->codes, .settings = &w->settings, .events = events, .whole_host = true, .include_non_python = true};
    OK(trace_builder_create(&options, &w->builder));
    OK(trace_builder_begin_epoch(w->builder, 1));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->process->python = NULL;
    trace_builder_destroy(w->builder);
    trace_writer_destroy(w->writer);
    processes_destroy(w->processes);
    codes_destroy(w->codes);
    close(w->fd);
    free(w);
    return 0;
}

/* The native frame, counted from the innermost, that a run's record lies in. */
static uint32_t native_of(uint32_t run, uint32_t native_each)
{
    return run * native_each + 2;
}

/* Sends a sample with RUNS activations of `native_each` native frames. Another `number` makes other stacks. */
static void send(struct world *w, uint32_t number, uint32_t native_each, uint64_t time_ns)
{
    struct message *m = &w->message;
    uint32_t count = 0, native_count = RUNS * native_each;
    uint8_t *end;

    assert_true(native_each <= KEPT);
    for (uint32_t run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < FRAMES; i++)
            m->python[count++] = (struct wire_python){.address = (uintptr_t)w->code, .offset = (int)(2 * (number + run + i))};
        m->python[count++].address = WIRE_RUN | (STACK_ADDRESS + native_of(run, native_each) * FRAME_BYTES + 8);
    }
    end = (uint8_t *)m->python + count * sizeof *m->python;
    for (uint32_t i = 0; i < native_count; i++, end += sizeof *m->native) {
        struct native_frame frame = {.ip = 0x1000 + 16 * (number + i), .sp = STACK_ADDRESS + i * FRAME_BYTES};
        memcpy(end, &frame, sizeof frame);
    }
    m->head = (struct wire_sample){
        .type = WIRE_SAMPLE, .tgid = (uint32_t)getpid(), .tid = (uint32_t)getpid(), .time_ns = time_ns,
        .start_boottime_ns = 1, .exec_generation = 1, .period = 1, .interpreter_id = WIRE_INTERPRETER_ID_NONE,
        .python_count = count, .python_end = LOSS_complete, .native_count = native_count, .native_end = LOSS_complete,
        .native_last_cfa = STACK_ADDRESS + native_count * FRAME_BYTES,
    };
    OK(trace_builder_sample(w->builder, &m->head, (uint32_t)(end - (uint8_t *)m)));
    w->samples++;
}

static uint64_t refused(const struct world *w, enum quota kind)
{
    uint64_t counts[QUOTA_COUNT] = {0};

    quotas_refused(w->processes->quotas, w->process->slot, counts);
    return counts[kind];
}

/* ---- what the trace says ---- */

struct join {
    uint64_t runs[2 * RUNS], count;
};
struct found {
    uint16_t *depth; /* by stack id */
    uint32_t stacks, joins, tuples, samples;
    struct join *join;            /* by id - 1 */
    struct trace_tuple *tuple;    /* by id - 1 */
    uint32_t *sample;             /* tuple ids, in the order they were sent */
};

static void take_samples(struct found *f, const struct trace_samples *record)
{
    struct trace_sample_iter it;
    struct trace_sample s;

    trace_samples_begin(&it, record, 1);
    while (trace_samples_next(&it, &s))
        f->sample[f->samples++] = s.tuple;
}

static void take_record(struct found *f, const struct trace_record *rec)
{
    if (rec->type == TRACE_stack) {
        uint16_t depth = rec->stack.parent ? f->depth[rec->stack.parent] : 0;
        for (uint64_t i = 0; i < rec->stack.frames.count; i++)
            f->depth[++f->stacks] = ++depth;
        assert_true(f->stacks < STACKS_MAX - 4096);
    } else if (rec->type == TRACE_join) {
        struct join *j = &f->join[f->joins++];
        j->count = rec->join.runs.count;
        assert_int_equal(rec->join.kind, TRACE_JOIN_INDEX);
        assert_in_range(j->count, 1, RUNS);
        memcpy(j->runs, rec->join.runs.values, j->count * 2 * sizeof *j->runs);
    } else if (rec->type == TRACE_tuple) {
        f->tuple[f->tuples++] = rec->tuple;
    } else if (rec->type == TRACE_samples) {
        take_samples(f, &rec->samples);
    }
}

static struct found finish(struct world *w)
{
    struct found f = {
        .depth = calloc(STACKS_MAX, sizeof *f.depth),
        .join = calloc(SAMPLES_MAX, sizeof *f.join),
        .tuple = calloc(SAMPLES_MAX, sizeof *f.tuple),
        .sample = calloc(SAMPLES_MAX, sizeof *f.sample),
    };
    struct trace_reader *r;
    struct trace_record rec;
    bool more;

    assert_true(f.depth && f.join && f.tuple && f.sample && w->samples <= SAMPLES_MAX);
    OK(trace_writer_finish(w->writer));
    lseek(w->fd, 0, SEEK_SET);
    OK(trace_reader_open_fd(w->fd, "t", &r));
    for (;;) {
        OK(trace_reader_next(r, &rec, &more));
        if (!more)
            break;
        take_record(&f, &rec);
    }
    assert_int_equal(trace_reader_stats(r)->damage_count, 0);
    trace_reader_close(r);
    assert_int_equal(f.samples, w->samples);
    return f;
}

static void found_deinit(struct found *f)
{
    free(f->depth);
    free(f->join);
    free(f->tuple);
    free(f->sample);
}

static void assert_whole(const struct found *f, uint64_t sample, uint32_t native_each)
{
    const struct trace_tuple *t = &f->tuple[f->sample[sample] - 1];
    const struct join *j = &f->join[t->join - 1];

    assert_int_equal(t->python_end, LOSS_complete);
    assert_int_equal(t->native_end, LOSS_complete);
    assert_int_equal(f->depth[t->python_stack], RUNS * FRAMES);
    assert_int_equal(f->depth[t->native_stack], RUNS * native_each);
    assert_int_equal(j->count, RUNS);
    for (uint32_t run = 0; run < RUNS; run++) {
        assert_int_equal(j->runs[2 * (RUNS - 1 - run)], RUNS * native_each - native_of(run, native_each));
        assert_int_equal(j->runs[2 * (RUNS - 1 - run) + 1], 0);
    }
}

/* The innermost frames are there; of the three runs that have any the outermost is cut in its middle. */
static void assert_cut(const struct found *f, uint64_t sample, uint32_t native_each)
{
    const struct trace_tuple *t = &f->tuple[f->sample[sample] - 1];
    const struct join *j = &f->join[t->join - 1];
    bool kept = native_of(1, native_each) < KEPT;

    assert_int_equal(t->python_end, LOSS_python_too_deep);
    assert_int_equal(t->native_end, LOSS_native_too_deep);
    assert_int_equal(f->depth[t->python_stack], KEPT - 2);
    assert_int_equal(f->depth[t->native_stack], KEPT);
    assert_int_equal(j->count, 3);
    assert_int_equal(j->runs[0], 0);
    assert_int_equal(j->runs[1], LOSS_join_no_record);
    assert_int_equal(j->runs[2], kept ? KEPT - native_of(1, native_each) : 0);
    assert_int_equal(j->runs[3], kept ? 0 : LOSS_join_no_native);
    assert_int_equal(j->runs[4], KEPT - native_of(0, native_each));
    assert_int_equal(j->runs[5], 0);
}

/* Sends ever new stacks until one is cut, and ten more. Returns how many were whole. */
static uint64_t send_until_cut(struct world *w, uint32_t native_each)
{
    uint64_t whole = 0;

    while (!refused(w, QUOTA_stack_bytes)) {
        assert_true(w->samples < SAMPLES_MAX - 100);
        whole = w->samples;
        send(w, (uint32_t)(1000 * (1 + w->samples)), native_each, SECOND);
    }
    for (int i = 0; i < 10; i++) {
        send(w, (uint32_t)(1000 * (1 + w->samples)), native_each, SECOND);
        assert_int_equal(refused(w, QUOTA_stack_bytes), 1);
    }
    return whole;
}

/* ---- tests ---- */

static void assert_new_stacks_are_cut(struct world *w, uint32_t native_each)
{
    uint64_t whole = send_until_cut(w, native_each);
    uint64_t bytes = trace_writer_epoch_bytes(w->writer), cut_until = w->samples;

    assert_in_range(whole, 100, SAMPLES_MAX);
    assert_in_range(bytes, burst, burst + burst / 4);
    send(w, 1000 * 1, native_each, SECOND); /* the first one again: known */
    assert_int_equal(refused(w, QUOTA_stack_bytes), 0);
    send(w, 7, native_each, 60 * SECOND); /* new, when the bucket has run empty */
    assert_int_equal(refused(w, QUOTA_stack_bytes), 0);
    struct found f = finish(w);
    for (uint64_t i = 0; i < whole; i++)
        assert_whole(&f, i, native_each);
    for (uint64_t i = whole; i < cut_until; i++)
        assert_cut(&f, i, native_each);
    assert_int_equal(f.sample[cut_until], f.sample[0]);
    assert_whole(&f, cut_until + 1, native_each);
    found_deinit(&f);
}

TEST_WITH(join_of_a_cut_stack, set_up, tear_down)
{
    assert_new_stacks_are_cut(*state, 5);
}

/* The cut takes the native frame that the second run's record lies in. */
TEST_WITH(record_is_cut_off, set_up, tear_down)
{
    assert_new_stacks_are_cut(*state, KEPT - 1);
}

/* A known stack stays whole also if the sample has nothing of the other kind. */
TEST_WITH(known_stack_of_one_kind, set_up, tear_down)
{
    struct world *w = *state;
    struct message *m = &w->message;

    send(w, 1, 5, SECOND);
    uint32_t python_bytes = (uint32_t)(sizeof m->head + m->head.python_count * sizeof *m->python);
    send_until_cut(w, 5);
    send(w, 1, 5, SECOND);
    m->head.native_count = m->head.native_end = 0;
    OK(trace_builder_sample(w->builder, &m->head, python_bytes));
    w->samples++;
    assert_int_equal(refused(w, QUOTA_stack_bytes), 0);
    m->head.native_count = 5 * RUNS;
    m->head.native_end = LOSS_complete;
    m->head.python_count = m->head.python_end = 0;
    memmove(m->python, (uint8_t *)m + python_bytes, m->head.native_count * sizeof *m->native);
    OK(trace_builder_sample(w->builder, &m->head, (uint32_t)sizeof *m));
    w->samples++;
    assert_int_equal(refused(w, QUOTA_stack_bytes), 0);
    struct found f = finish(w);
    const struct trace_tuple *first = &f.tuple[f.sample[0] - 1];
    assert_int_equal(f.tuple[f.sample[w->samples - 2] - 1].python_stack, first->python_stack);
    assert_int_equal(f.tuple[f.sample[w->samples - 1] - 1].native_stack, first->native_stack);
    found_deinit(&f);
}

/* What the sampler cut itself counts for the process. */
TEST_WITH(the_sampler_cuts, set_up, tear_down)
{
    struct world *w = *state;
    struct message *m = &w->message;

    send(w, 1, 5, SECOND);
    assert_int_equal(refused(w, QUOTA_ring_bytes), 0);
    m->head.flags |= WIRE_CUT;
    OK(trace_builder_sample(w->builder, &m->head, (uint32_t)sizeof *m));
    assert_int_equal(refused(w, QUOTA_ring_bytes), 1);
}
