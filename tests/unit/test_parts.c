/* SPDX-License-Identifier: Apache-2.0 */
/* An output in parts: which part a sample goes to, when a part is complete, what it knows of itself, what its file is called. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/buf.h"
#include "symbolize/part_files.h"
#include "symbolize/pass/parts.h"
#include "tests/tools/emit_synthetic.h"
#include "tests/unit/folder_fixture.h"

#define S UINT64_C(1000000000)
#define MIDNIGHT (UINT64_C(1700006400) * S) /* 2023-11-15 */

/* ---- an emitter that writes what its part is told, and a sink that keeps it ---- */

struct told {
    const struct emit_model *model;
    const struct emit_options *options;
    FILE *out;
    uint64_t value, last_ns;
};

static struct error *told_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    struct told *t = calloc(1, sizeof *t);

    *t = (struct told){.model = model, .options = options, .out = out};
    *state = t;
    return NULL;
}

static struct error *told_sample(void *state, const struct emit_sample *s)
{
    struct told *t = state;

    t->value += s->value;
    t->last_ns = s->time_ns;
    return NULL;
}

static struct error *told_end(void *state)
{
    struct told *t = state;
    const struct emit_part *p = t->options->part;

    assert_int_equal(t->model->totals[0].shown_value, t->value);
    assert_int_equal(t->model->totals[0].all_samples, 0);
    fprintf(t->out, "%d/%d", (int)p->process, (int)p->thread);
    if (p->window_end_ns)
        fprintf(t->out, " [%d,%d)", (int)((p->window_begin_ns - MIDNIGHT) / S), (int)((p->window_end_ns - MIDNIGHT) / S));
    if (p->end_ns)
        fprintf(t->out, " %d..%d", (int)((p->begin_ns - MIDNIGHT) / S), (int)((p->end_ns - MIDNIGHT) / S));
    fprintf(t->out, " %llu x %llu%s\n", (unsigned long long)t->model->totals[0].shown_samples, (unsigned long long)t->value,
            p->weights_differ[0] ? " weighed" : "");
    return NULL;
}

static const char *told_remark(const void *state)
{
    (void)state;
    return "told";
}

static const struct emitter told = {
    .name = "told", .begin = told_begin, .sample = told_sample, .end = told_end, .remark = told_remark, .destroy = free};

struct memory_sink {
    struct part_sink sink;
    unsigned open, closed;
    struct buf text; /* of the parts that were closed, in that order */
};

struct memory_part {
    char *data;
    size_t len;
};

static struct error *memory_open(struct part_sink *sink, struct part_output *out)
{
    struct memory_part *part = calloc(1, sizeof *part);

    ((struct memory_sink *)sink)->open++;
    out->own = part;
    out->file = open_memstream(&part->data, &part->len);
    return NULL;
}

static struct error *memory_close(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                                  struct part_output *out)
{
    struct memory_sink *s = (struct memory_sink *)sink;
    struct memory_part *memory = out->own;

    (void)model, (void)part;
    fclose(out->file);
    buf_put(&s->text, memory->data, memory->len);
    free(memory->data);
    free(memory);
    s->closed++;
    return NULL;
}

/* ---- a scene: two processes, three threads, captures with clocks ---- */

struct scene {
    struct synthetic s;
    struct emit_capture captures[2];
    struct memory_sink sink;
    struct weigh_result weighed;
    struct emit_options emit;
    struct parts *parts;
};

static void scene_init(struct scene *c, enum parts_by by, uint64_t window_ns, uint32_t inputs)
{
    *c = (struct scene){.sink = {.sink = {memory_open, memory_close}}};
    synthetic_event(&c->s, "cpu-clock", "ns", true);
    uint32_t one = synthetic_process(&c->s, 10, "one"), two = synthetic_process(&c->s, 20, "two");
    synthetic_thread(&c->s, one, 10, "main");
    synthetic_thread(&c->s, one, 11, "worker");
    synthetic_thread(&c->s, two, 20, "main");
    for (uint32_t i = 0; i < 2; i++) /* the second host was started later, and its clocks were read 5 s after the start */
        c->captures[i] = (struct emit_capture){.name = "c", .monotonic_ns = (1000 - 500 * i) * S + 5 * S, .realtime_ns = MIDNIGHT + 5 * S,
                                               .start_ns = (1000 - 500 * i) * S, .start_realtime_ns = MIDNIGHT, .duration_ns = 25 * S};
    c->s.model.captures = c->captures;
    c->s.model.capture_count = inputs;
    c->s.model.filters = "";
    const struct parts_options options = {by, window_ns, inputs, &c->weighed, &c->sink.sink};
    OK(parts_create(&options, &told, &c->s.model, &c->emit, &c->parts));
}

static void sample(struct scene *c, uint32_t thread, uint32_t capture, uint64_t since_start_ms)
{
    struct emit_sample s = {.time_ns = c->captures[capture].start_ns + since_start_ms * 1000000, .value = 3, .thread = thread,
                            .stack = EMIT_NO_STACK, .capture = capture};

    OK(parts_emitter.sample(c->parts, &s));
}

static void assert_parts(struct scene *c, const char *expected)
{
    OK(parts_emitter.end(c->parts));
    assert_string_equal(buf_cstr(&c->sink.text), expected);
    assert_int_equal(c->sink.open, c->sink.closed);
    assert_string_equal(parts_emitter.remark(c->parts), "told");
    parts_emitter.destroy(c->parts);
    buf_deinit(&c->sink.text);
    intern_deinit(&c->weighed.differ);
    synthetic_deinit(&c->s);
}

TEST(owners)
{
    struct scene c;

    scene_init(&c, PARTS_BY_PROCESS, 0, 1);
    intern_id(&c.weighed.differ, "", 0, NULL);
    sample(&c, 2, 0, 1);
    sample(&c, 0, 0, 2);
    sample(&c, 1, 0, 3);
    assert_parts(&c, "1/-1 0..25 1 x 3 weighed\n0/-1 0..25 2 x 6 weighed\n");
    scene_init(&c, PARTS_BY_THREAD, 0, 1);
    intern_id(&c.weighed.differ, "cpu-clock", 9, NULL); /* another event: those of time are "" */
    sample(&c, 2, 0, 1);
    sample(&c, 0, 0, 2);
    sample(&c, 1, 0, 3);
    assert_parts(&c, "1/2 0..25 1 x 3\n0/0 0..25 1 x 3\n0/1 0..25 1 x 3\n");
}

TEST(windows)
{
    struct scene c;

    scene_init(&c, PARTS_BY_NOTHING, 10 * S, 1);
    sample(&c, 0, 0, 0);
    sample(&c, 0, 0, 9999);
    sample(&c, 1, 0, 10000);
    sample(&c, 0, 0, 9000); /* within two seconds */
    sample(&c, 0, 0, 11999);
    assert_int_equal(c.sink.closed, 0);
    sample(&c, 0, 0, 12000);
    assert_int_equal(c.sink.closed, 1);
    sample(&c, 0, 0, 5000); /* too late: it counts in the newest */
    assert_int_equal(parts_late_count(c.parts), 1);
    sample(&c, 0, 0, 24000);
    assert_int_equal(c.sink.closed, 2);
    assert_parts(&c, "-1/-1 [0,10) 0..10 3 x 9\n-1/-1 [10,20) 10..20 4 x 12\n-1/-1 [20,30) 20..25 1 x 3\n");
}

/* Windows of two hosts are those of real time, and the first file's wait for the second. */
TEST(clocks)
{
    struct scene c;

    scene_init(&c, PARTS_BY_THREAD, 10 * S, 2);
    sample(&c, 0, 0, 1000);
    sample(&c, 0, 0, 21000);
    sample(&c, 0, 1, 1000);
    assert_int_equal(c.sink.closed, 0);
    sample(&c, 2, 1, 24000);
    assert_int_equal(c.sink.closed, 1);
    assert_parts(&c, "0/0 [0,10) 0..10 2 x 6\n0/0 [20,30) 20..25 1 x 3\n1/2 [20,30) 20..25 1 x 3\n");

    scene_init(&c, PARTS_BY_NOTHING, S, 1);
    c.captures[0].realtime_ns = 0;
    struct emit_sample s = {.thread = 0, .stack = EMIT_NO_STACK};
    struct error *err = parts_emitter.sample(c.parts, &s);
    assert_string_equal(error_text(err), "c: does not say what time it was: --window cannot cut it");
    error_destroy(err);
    parts_emitter.destroy(c.parts);
    synthetic_deinit(&c.s);
}

/* A trace of a few samples over a thousand years does not make a million files. */
TEST(too_many)
{
    struct scene c;
    struct error *err = NULL;
    uint32_t i;

    scene_init(&c, PARTS_BY_NOTHING, S, 1);
    struct limits limits = {.memory_max = 1 << 20, .work_max = UINT64_MAX};
    parts_emitter.destroy(c.parts);
    c.emit.limits = &limits;
    const struct parts_options options = {PARTS_BY_NOTHING, S, 1, &c.weighed, &c.sink.sink};
    OK(parts_create(&options, &told, &c.s.model, &c.emit, &c.parts));
    for (i = 0; !err; i++)
        err = parts_emitter.sample(c.parts, &(struct emit_sample){.time_ns = 1000 * S + 3 * i * S, .value = 1, .stack = EMIT_NO_STACK});
    assert_int_equal(i, PARTS_MAX + 1);
    assert_int_equal(err->code, ERROR_LIMIT);
    assert_non_null(strstr(error_text(err), "more than 65536 parts"));
    error_destroy(err);
    /* Few were open at once, and memory is counted. */
    assert_true(c.sink.closed >= PARTS_MAX - 2 && !limits.exceeded);
    OK(parts_emitter.end(c.parts));
    parts_emitter.destroy(c.parts);
    assert_int_equal(limits.memory_used, 0);
    buf_deinit(&c.sink.text);
    synthetic_deinit(&c.s);
}

/* What each part keeps of all events counts in the limits. */
TEST(many_events)
{
    struct scene c;
    struct limits limits = {.memory_max = 1 << 20, .work_max = UINT64_MAX};

    scene_init(&c, PARTS_BY_THREAD, 0, 1);
    parts_emitter.destroy(c.parts);
    for (int i = 0; i < 15000; i++)
        synthetic_event(&c.s, "e", "", false);
    c.emit.limits = &limits;
    const struct parts_options options = {PARTS_BY_THREAD, 0, 1, &c.weighed, &c.sink.sink};
    OK(parts_create(&options, &told, &c.s.model, &c.emit, &c.parts));
    sample(&c, 0, 0, 1);
    struct error *err = parts_emitter.sample(c.parts, &(struct emit_sample){.thread = 1, .stack = EMIT_NO_STACK});
    assert_true(err && limits.exceeded);
    error_destroy(err);
    OK(parts_emitter.end(c.parts));
    parts_emitter.destroy(c.parts);
    assert_int_equal(limits.memory_used, 0);
    buf_deinit(&c.sink.text);
    synthetic_deinit(&c.s);
}

/* ---- series and losses ---- */

/* Threads of one name are a series, whatever process they are of. */
static struct error *find_by_name(struct part_sink *sink, const struct emit_model *model, const struct emit_sample *sample,
                                  uint64_t window_begin_ns, uint32_t *series)
{
    (void)sink;
    assert_true(window_begin_ns >= MIDNIGHT && window_begin_ns % (10 * S) == 0);
    *series = !strcmp(model->threads[sample->thread].name, "main") ? 7 : 8;
    return NULL;
}

static struct error *memory_losses(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                                   const struct window_losses *losses)
{
    struct buf *text = &((struct memory_sink *)sink)->text;

    (void)model;
    buf_printf(text, "lost [%d,%d) %d..%d last %d, %u:", (int)((part->window_begin_ns - MIDNIGHT) / S),
               (int)((part->window_end_ns - MIDNIGHT) / S), (int)((part->begin_ns - MIDNIGHT) / S), (int)((part->end_ns - MIDNIGHT) / S),
               (int)((part->last_ns - MIDNIGHT) / S), losses->capture);
    for (uint32_t i = 0; i < losses->count; i++)
        buf_printf(text, " %llu %s%s%s", (unsigned long long)losses->losses[i].count, losses->losses[i].name,
                   *losses->losses[i].event ? " of " : "", losses->losses[i].event);
    buf_put_str(text, "\n");
    return NULL;
}

static void begin_series(struct scene *c, struct limits *limits)
{
    scene_init(c, PARTS_BY_NOTHING, 10 * S, 1);
    parts_emitter.destroy(c->parts);
    c->sink.sink.find_series = find_by_name;
    c->sink.sink.losses = memory_losses;
    c->emit.limits = limits;
    const struct parts_options options = {PARTS_BY_SERIES, 10 * S, 1, NULL, &c->sink.sink};
    OK(parts_create(&options, &told, &c->s.model, &c->emit, &c->parts));
}

static void lose(struct scene *c, uint64_t since_start_ms, const char *name, const char *event, uint64_t count)
{
    const struct emit_loss loss = {.name = name, .meaning = "", .event = event, .count = count};

    OK(parts_lose(c->parts, 0, c->captures[0].start_ns + since_start_ms * 1000000, &loss));
}

/* Windows end in their order, whichever part began first, and each is followed by what was lost in it. */
TEST(series)
{
    struct limits limits = {.memory_max = 1 << 20, .work_max = UINT64_MAX};
    struct scene c;

    begin_series(&c, &limits);
    sample(&c, 1, 0, 10500);
    sample(&c, 0, 0, 9000);
    sample(&c, 2, 0, 9500);
    lose(&c, 9600, "ring_full", "cpu-clock", 5);
    lose(&c, 9700, "string_cut", "", 1);
    lose(&c, 9650, "ring_full", "cpu-clock", 2);
    lose(&c, 9700, "ring_full", "off-cpu", 1);
    sample(&c, 2, 0, 20500);
    assert_int_equal(c.sink.closed, 1);
    sample(&c, 2, 0, 22000);
    assert_int_equal(c.sink.closed, 2);
    lose(&c, 15000, "tick_skipped", "cpu-clock", 9); /* its window is gone: it counts in the newest */
    assert_parts(&c, "-1/-1 [0,10) 0..10 2 x 6\n"
                     "lost [0,10) 0..10 last 9, 0: 7 ring_full of cpu-clock 1 string_cut 1 ring_full of off-cpu\n"
                     "-1/-1 [10,20) 10..20 1 x 3\n"
                     "-1/-1 [20,30) 20..25 2 x 6\n"
                     "lost [20,30) 20..25 last 22, 0: 9 tick_skipped of cpu-clock\n");
    assert_int_equal(limits.memory_used, 0);
}

/* Of a window without samples the losses come all the same; memory for them is counted. */
TEST(losses)
{
    struct limits limits = {.memory_max = 1 << 20, .work_max = UINT64_MAX};
    struct scene c;

    begin_series(&c, &limits);
    sample(&c, 0, 0, 1000);
    lose(&c, 15000, "ring_full", "", 1);
    lose(&c, 5000, "ring_full", "", 2);
    assert_parts(&c, "-1/-1 [0,10) 0..10 1 x 3\nlost [0,10) 0..10 last 5, 0: 2 ring_full\nlost [10,20) 10..20 last 15, 0: 1 ring_full\n");
    assert_int_equal(limits.memory_used, 0);

    begin_series(&c, &limits);
    struct error *err = NULL;
    for (uint64_t i = 0; !err && i < 100000; i++)
        err = parts_lose(c.parts, 0, i * 10 * S, &(struct emit_loss){.name = "n", .meaning = "", .event = "", .count = 1});
    assert_true(err && limits.exceeded);
    error_destroy(err);
    parts_emitter.destroy(c.parts);
    assert_int_equal(limits.memory_used, 0);
    synthetic_deinit(&c.s);
}

/* ---- names ---- */

static void write_part(struct part_files *p, const struct synthetic *s, struct emit_part part)
{
    struct part_output out;

    OK(p->sink.open(&p->sink, &out));
    fputs("x", out.file);
    OK(p->sink.close(&p->sink, &s->model, &part, &out));
}

/* Names of files of processes and threads with this name, of a window; without what -o gives. */
static void assert_name(struct fixture *f, const char *called, const char *expected)
{
    struct synthetic s = {0};
    struct output_files *files;
    struct part_files p;
    char out[256], command[512], text[512] = "";

    synthetic_thread(&s, synthetic_process(&s, 7, called), 8, called);
    snprintf(out, sizeof out, "%s/o.data", f->dir);
    OK(output_files_open(&(struct output_files_options){.path = out, .parts = true, .max_bytes = 100}, &files));
    OK(part_files_init(&p, files, out, ".data", S));
    write_part(&p, &s, (struct emit_part){.process = 0, .thread = 0});
    OK(output_files_finish(files, NULL));
    output_files_destroy(files);
    part_files_deinit(&p);
    snprintf(command, sizeof command, "cd %s && find . -type f | tr -d '\\n' && find . -type f -delete", f->dir);
    FILE *pipe = popen(command, "r");
    assert_non_null(fgets(text, sizeof text, pipe));
    pclose(pipe);
    snprintf(command, sizeof command, "./o.%s-7.%s-8.data", expected, expected);
    assert_string_equal(text, command);
    synthetic_deinit(&s);
}

TEST_WITH(names, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    char longer[300], cut[80];

    static const char *const names[][2] = {
        {"gunicorn", "gunicorn"},
        {"../x", ".._x"},
        {"/etc/passwd", "_etc_passwd"},
        {"-m http.server", "-m_http.server"},
        {"..", ".."},
        {"", "_"},
        {"a\nb\x1b[2Jc", "a_b_2Jc"},
        {"`rm -rf $HOME`; *", "_rm_-rf_HOME_"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"bad\xff\xfe", "bad_"},
        {"rtl\xe2\x80\xaexyz", "rtl_xyz"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_name(f, names[i][0], names[i][1]);
    memset(longer, 'n', sizeof longer);
    longer[299] = 0;
    snprintf(cut, sizeof cut, "%.64s", longer);
    assert_name(f, longer, cut);
    /* A character is not cut in two. */
    memcpy(longer + 63, "\xc3\xa9", 2);
    snprintf(cut, sizeof cut, "%.63s", longer);
    assert_name(f, longer, cut);
}

/* Equal names, windows of parts of a second, an extension that is not the format's, and the longest name. */
TEST_WITH(files, fixture_init, fixture_deinit)
{
    struct fixture *f = *state;
    struct synthetic s = {0};
    struct output_files *files;
    struct part_files p;
    char out[512], said[256] = "";

    synthetic_process(&s, 7, "a/b");
    synthetic_process(&s, 7, "a:b");
    synthetic_process(&s, 7, "a_b");
    snprintf(out, sizeof out, "%s/o.txt", f->dir);
    OK(output_files_open(&(struct output_files_options){.path = out, .parts = true, .max_bytes = 100}, &files));
    OK(part_files_init(&p, files, out, ".folded", S / 2));
    for (uint32_t i = 0; i < 3; i++)
        write_part(&p, &s, (struct emit_part){.process = i, .thread = EMIT_PART_ALL});
    write_part(&p, &s, (struct emit_part){EMIT_PART_ALL, EMIT_PART_ALL, .window_begin_ns = MIDNIGHT + S / 2, .window_end_ns = MIDNIGHT + S});
    struct part_output never;
    OK(p.sink.open(&p.sink, &never));
    OK(output_files_finish(files, NULL));
    FILE *text = fmemopen(said, sizeof said, "w");
    part_files_print(&p, text);
    fclose(text);
    char expected[256];
    snprintf(expected, sizeof expected, "pysym: wrote 4 files: %s/o.*.txt\n", f->dir);
    assert_string_equal(said, expected);
    output_files_destroy(files);
    part_files_deinit(&p);
    assert_true(fixture_run(f, "[ \"$(LC_ALL=C ls -A | tr '\\n' ' ')\" = 'o.20231115T000000.500Z.txt o.a_b-7.2.txt o.a_b-7.3.txt o.a_b-7.txt ' ]"));

    static char name[256];
    memset(name, 'l', 255);
    struct error *err = part_files_init(&p, NULL, name, ".folded", 0);
    assert_int_equal(err->code, ERROR_USAGE);
    error_destroy(err);
    synthetic_deinit(&s);
}
