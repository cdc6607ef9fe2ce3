/* SPDX-License-Identifier: Apache-2.0 */
/* What processes and threads are called: as recorded, as their stacks tell, and as before there were such names. */
#include "tests/unit/test.h"
#include "tests/unit/scene_fixture.h"

enum { PID = 100 };

/* A process of that kind. Thread 1 is its first; further threads have the number of their record. */
static void program(struct scene *s, uint32_t kind, const char *name)
{
    uint32_t comm = string(s, "python3"), text = *name ? string(s, name) : 0;

    event(s);
    LOAD(s, process, .id = 1, .tgid = PID, .start_boottime_ns = 77, .comm = comm, .program_kind = kind, .program = text);
    LOAD(s, thread, .id = 1, .process = 1, .tid = PID, .name = comm);
}

static void thread(struct scene *s, uint32_t id, const char *name)
{
    uint32_t text = string(s, name);

    LOAD(s, thread, .id = id, .process = 1, .tid = PID + id, .name = text);
}

/* A whole stack of up to six "function file" pairs, outermost first, that end with NULL. */
static uint32_t python_tuple(struct scene *s, uint32_t end, const char *const *pairs)
{
    uint32_t frames[16], count = 0;

    for (; pairs[2 * count]; count++)
        frames[count] = python(s, pairs[2 * count], pairs[2 * count + 1], 1, 0);
    return tuple(s, (struct trace_tuple){.python_stack = stack(s, frames, count), .python_end = end});
}
#define PYTHON(s, ...) python_tuple(s, LOSS_complete, (const char *const[]){__VA_ARGS__, NULL})

static const char *process_name(struct scene *s)
{
    return resolver_model(s->resolver)->processes[0].name;
}

static const char *thread_name(struct scene *s, struct emit_sample sample)
{
    return resolver_model(s->resolver)->threads[sample.thread].name;
}

TEST(recorded_names)
{
    static const struct {
        uint32_t kind;
        const char *program, *shown;
    } rows[] = {
        {TRACE_PROGRAM_SCRIPT, "gunicorn", "gunicorn"},
        {TRACE_PROGRAM_MODULE, "http.server", "-m http.server"},
        {TRACE_PROGRAM_COMMAND, "", "-c"},
        {TRACE_PROGRAM_COMMAND, "multiprocessing.spawn", "multiprocessing.spawn"},
        {TRACE_PROGRAM_FILE, "uwsgi", "uwsgi"},
        {TRACE_PROGRAM_UNKNOWN, "", "python3"},
        {TRACE_PROGRAM_UNRECORDED, "", "python3"},
        {77, "of a later version", "python3"},
        {TRACE_PROGRAM_SCRIPT, "", "python3"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        setup(&s, NULL);
        program(&s, rows[i].kind, rows[i].program);
        sample(&s, 1, 0, 1);
        assert_string_equal(process_name(&s), rows[i].shown);
        assert_string_equal(resolver_model(s.resolver)->processes[0].comm, "python3");
        teardown(&s);
    }
}

TEST(other_facts)
{
    struct scene s;

    setup(&s, NULL);
    uint32_t comm = string(&s, "python3");
    uint32_t cgroup = string(&s, "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    event(&s);
    LOAD(&s, process, .id = 1, .tgid = PID, .parent_tgid = 7, .comm = comm, .cgroup = cgroup);
    LOAD(&s, thread, .id = 1, .process = 1, .tid = PID, .name = comm);
    LOAD(&s, process, .id = 2, .tgid = PID + 1, .comm = comm);
    LOAD(&s, thread, .id = 2, .process = 2, .tid = PID + 1, .name = comm);
    sample(&s, 1, 0, 1);
    sample(&s, 2, 0, 1);

    const struct emit_process *p = resolver_model(s.resolver)->processes;
    assert_int_equal(p->pid, PID);
    assert_int_equal(p->parent_pid, 7);
    assert_string_equal(p->container, "0123456789ab");
    assert_string_equal(p[1].container, "");
    assert_string_equal(p->cgroup, "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    assert_string_equal(p[1].cgroup, "");
    assert_int_equal(p[1].parent_pid, 0);
    teardown(&s);
}

TEST(main_module)
{
    static const struct {
        const char *stack[9], *name;
    } rows[] = {
        {{"<module>", "/usr/bin/gunicorn", "run", "/x/wsgiapp.py"}, "gunicorn"},
        {{"<module>", "app.py"}, "app.py"},
        {{"<module>", "/srv/shop/__main__.py"}, "shop"},
        {{"<module>", "__main__.py"}, "__main__.py"},
        {{"<module>", "/__main__.py"}, "__main__.py"},
        {{"_run_module_as_main", "<frozen runpy>", "_run_code", "<frozen runpy>", "<module>", "/l/pytest/__main__.py"},
         "pytest"},
        {{"_run_module_as_main", "/usr/lib/python3.8/runpy.py", "_run_code", "/usr/lib/python3.8/runpy.py", "<module>",
          "/usr/lib/python3.8/http/server.py"},
         "server.py"},
        {{"<module>", "<string>"}, "-c"},
        {{"<module>", "<stdin>"}, "python3"},
        {{"<module>", ""}, "python3"},
        /* While the interpreter or runpy imports something the main module is not there yet. */
        {{"_find_and_load", "<frozen importlib._bootstrap>", "<module>", "/usr/lib/python3.11/site.py"}, "python3"},
        {{"_run_module_as_main", "<frozen runpy>", "_get_module_details", "<frozen runpy>"}, "python3"},
        {{"run", "/x/threading.py"}, "python3"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        setup(&s, NULL);
        program(&s, TRACE_PROGRAM_UNKNOWN, "");
        thread(&s, 2, "python3");
        sample(&s, 2, PYTHON(&s, "<module>", "/not/the/first/thread.py"), 1);
        sample(&s, 1, 0, 2);
        sample(&s, 1, python_tuple(&s, LOSS_python_torn, (const char *const[]){"<module>", "/torn.py", NULL}), 3);
        assert_string_equal(process_name(&s), "python3");
        sample(&s, 1, python_tuple(&s, LOSS_complete, rows[i].stack), 4);
        assert_string_equal(process_name(&s), rows[i].name);
        teardown(&s);
    }
}

/* A name that was found once stays, in later epochs and when the kernel's changes; one that is recorded comes first. */
TEST(main_module_stays)
{
    struct scene s;

    setup(&s, NULL);
    program(&s, TRACE_PROGRAM_UNKNOWN, "");
    sample(&s, 1, PYTHON(&s, "_find_and_load", "<frozen importlib._bootstrap>"), 1);
    sample(&s, 1, PYTHON(&s, "<module>", "/srv/app.py"), 2);
    sample(&s, 1, PYTHON(&s, "<module>", "/srv/other.py"), 3);
    assert_string_equal(process_name(&s), "app.py");
    struct trace_record renamed = {.type = TRACE_process_name,
                                   .process_name = {.process = 1, .comm = string(&s, "renamed")}};
    load(&s, renamed);
    OK(resolver_record(s.resolver, &s.epoch, &renamed));
    assert_string_equal(process_name(&s), "app.py");
    assert_string_equal(resolver_model(s.resolver)->processes[0].comm, "renamed");
    begin_epoch(&s, 1);
    program(&s, TRACE_PROGRAM_UNKNOWN, "");
    sample(&s, 1, 0, 4);
    assert_string_equal(process_name(&s), "app.py");
    begin_epoch(&s, 2);
    program(&s, TRACE_PROGRAM_MODULE, "app");
    sample(&s, 1, 0, 5);
    assert_string_equal(process_name(&s), "-m app");
    teardown(&s);
}

TEST(nameless_threads)
{
    struct scene s;

    setup(&s, NULL);
    program(&s, TRACE_PROGRAM_SCRIPT, "app.py");
    thread(&s, 2, "python3");
    thread(&s, 3, "OpenBLAS");
    thread(&s, 4, "python3");
    thread(&s, 5, "python3");
    uint32_t plain = PYTHON(&s, "worker", "/srv/pool.py", "work", "/srv/pool.py");
    uint32_t threading = PYTHON(&s, "Thread._bootstrap", "/l/threading.py", "Thread._bootstrap_inner", "/l/threading.py",
                                "Thread.run", "/l/threading.py", "Pool.serve", "/srv/pool.py");
    uint32_t bare = PYTHON(&s, "Thread._bootstrap", "/l/threading.py");

    assert_string_equal(thread_name(&s, sample(&s, 1, plain, 1)), "python3"); /* the first one */
    assert_string_equal(thread_name(&s, sample(&s, 2, 0, 2)), "python3");
    assert_string_equal(thread_name(&s, sample(&s, 2, plain, 3)), "worker (pool.py)");
    assert_string_equal(thread_name(&s, sample(&s, 2, threading, 4)), "worker (pool.py)"); /* stays */
    assert_string_equal(thread_name(&s, sample(&s, 3, plain, 5)), "OpenBLAS");
    assert_string_equal(thread_name(&s, sample(&s, 4, bare, 6)), "python3");
    assert_string_equal(thread_name(&s, sample(&s, 4, threading, 7)), "Pool.serve (pool.py)");

    struct trace_record named = {.type = TRACE_thread_name,
                                 .thread_name = {.thread = 4, .python_name = string(&s, "Pool-1")}};
    load(&s, named);
    OK(resolver_record(s.resolver, &s.epoch, &named));
    assert_string_equal(thread_name(&s, sample(&s, 4, plain, 8)), "Pool-1");
    struct trace_record early = {.type = TRACE_thread_name,
                                 .thread_name = {.thread = 5, .python_name = string(&s, "Pool-2")}};
    load(&s, early);
    assert_string_equal(thread_name(&s, sample(&s, 5, plain, 9)), "Pool-2");

    begin_epoch(&s, 1);
    program(&s, TRACE_PROGRAM_SCRIPT, "app.py");
    thread(&s, 2, "python3");
    assert_string_equal(thread_name(&s, sample(&s, 2, 0, 10)), "worker (pool.py)");
    teardown(&s);
}

/* Traces from before there were names of programs look as they always did. */
TEST(old_traces)
{
    struct scene s;

    setup(&s, NULL);
    program(&s, TRACE_PROGRAM_UNRECORDED, "");
    thread(&s, 2, "python3");
    uint32_t id = PYTHON(&s, "<module>", "/srv/app.py");
    sample(&s, 1, id, 1);
    assert_string_equal(process_name(&s), "python3");
    assert_string_equal(thread_name(&s, sample(&s, 2, id, 2)), "python3");
    teardown(&s);
}

/* A stack as deep as a forged trace likes: only its outermost frames count. */
TEST(deep_stack)
{
    struct scene s;
    uint32_t frames[64];

    setup(&s, NULL);
    program(&s, TRACE_PROGRAM_UNKNOWN, "");
    frames[0] = python(&s, "<module>", "/srv/app.py", 1, 0);
    for (uint32_t i = 1; i < 64; i++)
        frames[i] = python(&s, "<module>", "/srv/inner.py", 1, 0);
    uint32_t id = tuple(&s, (struct trace_tuple){.python_stack = stack(&s, frames, 64), .python_end = LOSS_complete});
    sample(&s, 1, id, 1);
    assert_string_equal(process_name(&s), "app.py");
    teardown(&s);
}
