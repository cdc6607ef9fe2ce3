/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over traces: what consumers are told and in which order. */
#include "tests/unit/scene_fixture.h"

#include <sys/mman.h>

#include "symbolize/pass/pass.h"

/* ---- consumers ---- */

struct listener {
    char name;
    char *log; /* of all listeners */
    uint32_t samples, enough;
    uint64_t since_start_ns, value;
    bool fails;
};

static void note(struct listener *l, const char *what)
{
    size_t len = strlen(l->log);

    snprintf(l->log + len, 256 - len, "%c:%s ", l->name, what);
}

static struct error *begin_file(void *state, const struct consumer_file *file)
{
    note(state, file->number ? "begin-1" : "begin-0");
    return NULL;
}

static struct error *take_record(void *state, const struct consumer_file *file, const struct trace_record *rec)
{
    assert_int_equal(file->epoch->begun, true);
    if (rec->type == TRACE_process) /* it was loaded */
        assert_int_equal(file->epoch->processes.count, 2);
    if (rec->type == TRACE_samples)
        note(state, "samples");
    return NULL;
}

static struct error *take_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    struct listener *l = state;

    assert_null(sample->shown);
    assert_string_equal(epoch_text(file->epoch, file->epoch->events.data[sample->event].def.name), "cpu-clock");
    l->samples++;
    l->value = sample->raw->value;
    l->since_start_ns = consumer_since_start_ns(file, sample->raw);
    return l->fails ? error_create(ERROR_LIMIT, "no more") : NULL;
}

static struct error *end_epoch(void *state, const struct consumer_file *file)
{
    if (file->epoch->begun)
        note(state, "end-epoch");
    return NULL;
}

static struct error *end_file(void *state, const struct consumer_file *file)
{
    assert_int_equal(trace_reader_stats(file->reader)->ended, true);
    note(state, "end-file");
    return NULL;
}

static struct error *end(void *state)
{
    note(state, "end");
    return NULL;
}

static void destroy(void *state)
{
    note(state, "destroy");
}

static bool has_enough(const void *state)
{
    const struct listener *l = state;

    return l->enough && l->samples >= l->enough;
}

static const struct consumer listening = {CONSUMER_SAMPLES, begin_file, take_record, take_sample, end_epoch,
                                          end_file,         end,        destroy,     has_enough};

/* Two samples that stand for the event's period and one with a value of its own. */
static void write_trace(char path[64], int *fd)
{
    struct trace_writer *w;

    *fd = memfd_create("trace", MFD_CLOEXEC);
    assert_true(*fd >= 0);
    snprintf(path, 64, "/proc/self/fd/%d", *fd);
    OK(trace_writer_create(*fd, path, NULL, 5000, &w));
    struct trace_event ev = {
        .name = trace_writer_cstr(w, "cpu-clock"), .unit = trace_writer_cstr(w, "ns"), .period = 7};
    trace_writer_put(w, TRACE_event, &ev);
    struct trace_process p = {.tgid = 100};
    trace_writer_put(w, TRACE_process, &p);
    struct trace_thread t = {.process = p.id, .tid = 100};
    trace_writer_put(w, TRACE_thread, &t);
    struct trace_tuple tuple = {.python_end = 0};
    uint32_t id = trace_writer_intern(w, TRACE_tuple, &tuple);
    for (uint32_t i = 0; i < 3; i++) {
        struct trace_sample sample = {.time_ns = 5010 + i, .thread = t.id, .tuple = id};
        if (i == 2) {
            sample.flags = TRACE_SAMPLE_VALUE;
            sample.value = 9;
        }
        trace_writer_sample(w, ev.id, &sample);
    }
    trace_writer_flush(w);
    struct trace_end finish = {.time_ns = 5020, .reason = 1, .sample_count = 3};
    trace_writer_put(w, TRACE_end, &finish);
    OK(trace_writer_finish(w));
    trace_writer_destroy(w);
}

static const struct sample_filter_options all = {0};

TEST(order_of_calls)
{
    char path[64], log[256] = "";
    struct listener a = {.name = 'a', .log = log}, b = {.name = 'b', .log = log};
    struct input inputs[2];
    struct pass p;
    int fd;

    write_trace(path, &fd);
    input_init(&inputs[0], path);
    input_init(&inputs[1], path);
    OK(pass_init(&p, inputs, 2, &all, NULL));
    OK(pass_add(&p, &listening, &a));
    OK(pass_add(&p, &listening, &b));
    OK(pass_run(&p));
    pass_deinit(&p);
    assert_string_equal(log, "a:begin-0 b:begin-0 a:samples b:samples a:end-epoch b:end-epoch a:end-file b:end-file "
                             "a:begin-1 b:begin-1 a:samples b:samples a:end-epoch b:end-epoch a:end-file b:end-file "
                             "a:end b:end a:destroy b:destroy ");
    assert_int_equal(a.samples, 6);
    assert_int_equal(b.samples, 6);
    assert_int_equal(a.value, 9);
    assert_int_equal(a.since_start_ns, 12);
    close(fd);
}

TEST(enough_and_errors)
{
    char path[64], log[256] = "";
    struct listener greedy = {.name = 'g', .log = log}, modest = {.name = 'm', .log = log, .enough = 1};
    struct input inputs[2];
    struct pass p;
    int fd;

    write_trace(path, &fd);
    input_init(&inputs[0], path);
    input_init(&inputs[1], path);
    /* Alone it ends the pass within the first file; beside one that wants all it does not. */
    OK(pass_init(&p, inputs, 2, &all, NULL));
    OK(pass_add(&p, &listening, &modest));
    OK(pass_run(&p));
    pass_deinit(&p);
    assert_null(strstr(log, "begin-1"));
    assert_non_null(strstr(log, "m:end m:destroy"));
    modest.samples = 0;
    OK(pass_init(&p, inputs, 2, &all, NULL));
    OK(pass_add(&p, &listening, &modest));
    OK(pass_add(&p, &listening, &greedy));
    OK(pass_run(&p));
    pass_deinit(&p);
    assert_int_equal(greedy.samples, 6);
    /* An error ends it: nothing is ended, all is destroyed. */
    log[0] = 0;
    greedy.fails = true;
    OK(pass_init(&p, inputs, 2, &all, NULL));
    OK(pass_add(&p, &listening, &greedy));
    struct error *err = pass_run(&p);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_LIMIT);
    error_destroy(err);
    pass_deinit(&p);
    assert_string_equal(log, "g:begin-0 g:samples g:destroy ");
    close(fd);
}

/* Whoever wants no stacks gets an epoch without them; samples are resolved for whoever does. */
static struct error *check_epoch(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    uint32_t *wants = state;

    assert_int_equal(file->epoch->tuples.count, *wants == CONSUMER_SAMPLES ? 1 : 2);
    assert_int_equal(sample->shown != NULL, *wants == CONSUMER_STACKS);
    if (sample->shown)
        assert_int_equal(sample->shown->stack, EMIT_NO_STACK);
    return NULL;
}

static void leave(void *state)
{
    (void)state;
}

TEST(wants)
{
    const struct resolver_options options = {0};
    struct resolver *resolver;
    struct input input;
    char path[64];
    int fd;

    write_trace(path, &fd);
    input_init(&input, path);
    OK(resolver_create(&options, &resolver));
    for (uint32_t wants = CONSUMER_SAMPLES; wants <= CONSUMER_STACKS; wants *= 2) {
        const struct consumer consumer = {.wants = wants, .sample = check_epoch, .destroy = leave};
        struct pass p;
        OK(pass_init(&p, &input, 1, &all, resolver));
        OK(pass_add(&p, &consumer, &wants));
        OK(pass_run(&p));
        pass_deinit(&p);
    }
    assert_int_equal(resolver_stats(resolver)->sample_count, 3);
    resolver_destroy(resolver);
    close(fd);
}

static struct error *no_sample(void *state, const struct consumer_file *file, const struct consumer_sample *sample)
{
    (void)state;
    (void)file;
    (void)sample;
    return NULL;
}

static struct error *count_epoch(void *own, struct pass *p)
{
    (void)p;
    ++*(uint32_t *)own;
    return NULL;
}

/* Who reads a stream for days makes resolvers one after the other, which have to leave nothing in the account of memory. */
TEST(memory_is_given_back)
{
    static const char *const traces[] = {"testdata/waiting/flaskr.trace", "testdata/traces/3.13-shared.trace"};
    const struct consumer consumer = {.wants = CONSUMER_STACKS, .sample = no_sample, .destroy = leave};

    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        struct file_limits limits;
        struct resolver *resolver;
        struct input input;
        struct pass p;
        uint32_t epochs = 0;
        file_limits_init(&limits, 0);
        const struct resolver_options options = {.binaries = {.no_host = true}, .limits = &limits.limits};
        input_init(&input, traces[i]);
        OK(resolver_create(&options, &resolver));
        OK(pass_init(&p, &input, 1, &all, resolver));
        p.limits = &limits;
        p.renew = count_epoch;
        p.renew_own = &epochs;
        OK(pass_add(&p, &consumer, NULL));
        OK(pass_run(&p));
        assert_true(epochs > 0);
        assert_true(resolver_model(resolver)->stack_count > 20);
        assert_true(limits.limits.memory_used > 0);
        pass_deinit(&p);
        resolver_destroy(resolver);
        assert_int_equal(limits.limits.memory_used, 0);
    }
}
