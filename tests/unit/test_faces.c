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
    uint32_t importing = PYTHON(&s, "_find_and_load", "<frozen importlib._bootstrap>", "<module>", "/l/encodings/__init__.py");

    assert_string_equal(thread_name(&s, sample(&s, 1, plain, 1)), "python3"); /* the first one */
    assert_string_equal(thread_name(&s, sample(&s, 2, 0, 2)), "python3");
    assert_string_equal(thread_name(&s, sample(&s, 2, plain, 3)), "worker (pool.py)");
    assert_string_equal(thread_name(&s, sample(&s, 2, threading, 4)), "worker (pool.py)"); /* stays */
    assert_string_equal(thread_name(&s, sample(&s, 3, plain, 5)), "OpenBLAS");
    assert_string_equal(thread_name(&s, sample(&s, 4, bare, 6)), "python3");
    assert_string_equal(thread_name(&s, sample(&s, 4, importing, 6)), "python3");
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

/* ---- workers, titles, hashes ---- */

/* A process with one thread of the same number; `id` is that of both. */
static void child(struct scene *s, uint32_t id, uint32_t pid, uint32_t parent, uint64_t start_ns, uint32_t kind, const char *name,
                  const char *comm_text)
{
    bool is_dash = kind == TRACE_PROGRAM_FILE && !strcmp(name, "dash");
    uint32_t comm = string(s, comm_text), text = *name ? string(s, name) : 0;
    uint32_t exe = string(s, is_dash ? "/usr/bin/dash" : "/usr/bin/python3.11");

    LOAD(s, process, .id = id, .tgid = pid, .parent_tgid = parent, .start_boottime_ns = start_ns, .comm = comm, .exe = exe,
         .program_kind = kind, .program = text);
    LOAD(s, thread, .id = id, .process = id, .tid = pid, .name = comm);
}

static const char *name_of(struct scene *s, uint32_t process)
{
    static struct buf text;

    buf_clear(&text);
    process_name_put_with_title(&s->epoch, process, &text);
    return buf_cstr(&text);
}

TEST(workers)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    child(&s, 1, 100, 1, 10, TRACE_PROGRAM_SCRIPT, "hypercorn", "hypercorn");
    child(&s, 2, 101, 100, 20, TRACE_PROGRAM_COMMAND, "multiprocessing.spawn", "python3");
    child(&s, 3, 102, 100, 20, TRACE_PROGRAM_COMMAND, "multiprocessing.forkserver", "python3");
    child(&s, 4, 103, 102, 30, TRACE_PROGRAM_COMMAND, "multiprocessing.forkserver", "acme: mail work");
    child(&s, 5, 104, 100, 5, TRACE_PROGRAM_COMMAND, "", "python3"); /* pid 100 was another process then */
    child(&s, 6, 105, 999, 30, TRACE_PROGRAM_COMMAND, "", "python3");
    child(&s, 7, 106, 106, 30, TRACE_PROGRAM_COMMAND, "", "python3");
    child(&s, 8, 107, 100, 30, TRACE_PROGRAM_MODULE, "joblib.externals.loky.backend.popen_loky_posix", "python3");
    child(&s, 9, 109, 108, 30, TRACE_PROGRAM_COMMAND, "execnet", "python3"); /* its parent comes later */
    child(&s, 10, 110, 1, 10, TRACE_PROGRAM_FILE, "dash", "sh"); /* no Python */
    child(&s, 11, 111, 110, 20, TRACE_PROGRAM_COMMAND, "", "python3");
    child(&s, 12, 112, 1, 10, TRACE_PROGRAM_FILE, "python3.11", "python3"); /* an interactive one */
    child(&s, 13, 113, 112, 20, TRACE_PROGRAM_COMMAND, "", "python3");
    assert_string_equal(name_of(&s, 11), "-c");
    assert_string_equal(name_of(&s, 13), "python3.11 (-c)");
    assert_string_equal(name_of(&s, 1), "hypercorn");
    assert_string_equal(name_of(&s, 2), "hypercorn (spawn)");
    assert_string_equal(name_of(&s, 3), "hypercorn (forkserver)");
    assert_string_equal(name_of(&s, 4), "hypercorn (forkserver) \"acme: mail work\"");
    assert_string_equal(name_of(&s, 5), "-c");
    assert_string_equal(name_of(&s, 6), "-c");
    assert_string_equal(name_of(&s, 7), "-c");
    assert_string_equal(name_of(&s, 8), "hypercorn (loky)");
    assert_string_equal(name_of(&s, 9), "execnet");
    sample(&s, 9, 0, 1);
    assert_string_equal(process_name(&s), "execnet");
    child(&s, 14, 108, 1, 15, TRACE_PROGRAM_MODULE, "pytest", "python3");
    sample(&s, 9, 0, 2);
    assert_string_equal(process_name(&s), "-m pytest (execnet)");
    /* What was known once stays, though the parent is not in the later epoch. */
    begin_epoch(&s, 1);
    event(&s);
    child(&s, 1, 101, 100, 20, TRACE_PROGRAM_COMMAND, "multiprocessing.spawn", "python3");
    assert_string_equal(name_of(&s, 1), "hypercorn (spawn)");
    teardown(&s);
}

/* A circle of helpers ends, and one that is as long as a forged trace likes. */
TEST(workers_without_end)
{
    struct scene s;

    setup(&s, NULL);
    child(&s, 1, 100, 101, 10, TRACE_PROGRAM_COMMAND, "", "python3");
    child(&s, 2, 101, 100, 10, TRACE_PROGRAM_COMMAND, "", "python3");
    for (uint32_t i = 0; i < 100; i++)
        child(&s, 3 + i, 201 + i, 200 + i, 10, TRACE_PROGRAM_COMMAND, "", "python3");
    child(&s, 103, 200, 1, 10, TRACE_PROGRAM_SCRIPT, "app.py", "python3");
    assert_string_equal(name_of(&s, 1), "-c");
    assert_string_equal(name_of(&s, 3), "app.py (-c)");
    assert_string_equal(name_of(&s, 102), "-c");
    teardown(&s);
}

/* A master whose title stands where its command line was: its workers are called after it as soon as its name is known. */
TEST(workers_of_a_titled_master)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    child(&s, 1, 100, 1, 10, TRACE_PROGRAM_UNKNOWN, "", "acme: master");
    child(&s, 2, 101, 100, 20, TRACE_PROGRAM_COMMAND, "multiprocessing.spawn", "python3");
    child(&s, 3, 102, 100, 20, TRACE_PROGRAM_UNKNOWN, "", "acme: worker");
    assert_string_equal(name_of(&s, 1), "acme: master");
    assert_string_equal(name_of(&s, 2), "acme: master (spawn)");
    sample(&s, 2, 0, 1);
    assert_string_equal(process_name(&s), "acme: master (spawn)");
    sample(&s, 3, PYTHON(&s, "<module>", "<string>", "spawn_main", "/usr/lib/python3.11/multiprocessing/spawn.py"), 2);
    assert_string_equal(name_of(&s, 3), "acme: master (spawn) \"acme: worker\"");
    sample(&s, 1, PYTHON(&s, "<module>", "/srv/acme.py"), 3);
    assert_string_equal(name_of(&s, 1), "acme.py \"acme: master\"");
    assert_string_equal(process_name(&s), "acme.py (spawn)"); /* the first one that was sampled */
    assert_string_equal(name_of(&s, 3), "acme.py (spawn) \"acme: worker\"");
    teardown(&s);
}

/* Titles that change all the time cost no work for each worker: not of a master with a name, nor for long of one without. */
TEST(renames_without_end)
{
    enum { WORKERS = 200, RENAMES = 20000 };
    static const uint32_t kinds[] = {TRACE_PROGRAM_SCRIPT, TRACE_PROGRAM_UNKNOWN};

    for (size_t i = 0; i < 2; i++) {
        struct limits limits = {.memory_max = UINT64_MAX, .memory_used = 1 << 30, .work_max = UINT64_MAX};
        struct scene s;
        setup(&s, NULL);
        event(&s);
        child(&s, 1, 100, 1, 10, kinds[i], kinds[i] == TRACE_PROGRAM_SCRIPT ? "acme.py" : "", "first");
        for (uint32_t w = 0; w < WORKERS; w++)
            child(&s, 2 + w, 200 + w, 100, 20, TRACE_PROGRAM_COMMAND, "", "python3");
        const uint32_t titles[] = {string(&s, "one"), string(&s, "two"), string(&s, "three")};
        s.epoch.limits = &limits;
        for (uint32_t r = 0; r < RENAMES; r++)
            LOAD(&s, process_name, .process = 1, .comm = titles[r % 3]);
        s.epoch.limits = NULL;
        assert_true(limits.work_done < (uint64_t)RENAMES * WORKERS * 10);
        child(&s, 2 + WORKERS, 900, 100, 30, TRACE_PROGRAM_COMMAND, "", "python3");
        assert_string_equal(name_of(&s, 2), kinds[i] == TRACE_PROGRAM_SCRIPT ? "acme.py (-c)" : "two (-c)");
        assert_string_equal(name_of(&s, 2 + WORKERS), kinds[i] == TRACE_PROGRAM_SCRIPT ? "acme.py (-c)" : "two (-c)");
        teardown(&s);
    }
}

TEST(titles)
{
    struct scene s;

    setup(&s, NULL);
    event(&s);
    child(&s, 1, 100, 1, 10, TRACE_PROGRAM_SCRIPT, "w.py", "python3");
    sample(&s, 1, 0, 1);
    const struct emit_model *m = resolver_model(s.resolver);
    assert_null(m->processes[0].title);
    struct trace_record titled = {.type = TRACE_process_name, .process_name = {.process = 1, .comm = string(&s, "\"acme\": mail")}};
    load(&s, titled);
    OK(resolver_record(s.resolver, &s.epoch, &titled));
    assert_string_equal(m->processes[0].name, "w.py");
    assert_string_equal(m->processes[0].title, "\"acme\": mail");
    assert_string_equal(name_of(&s, 1), "w.py \"'acme': mail\"");
    assert_string_equal(process_kernel_name(&s.epoch, 1, 0), "\"acme\": mail");
    assert_string_equal(process_kernel_name(&s.epoch, 1, 1), "python3");
    teardown(&s);
}

/* The folder that a pex unpacks itself into is a hash, which says nothing: what it runs does. */
TEST(pex)
{
#define HASH "1e249ab5a0dad43fb1c3c1c635ec403c7962c230"
#define MAIN "/root/.cache/pex/unzipped_pexes/4/" HASH "/__main__.py"
#define BOOT MAIN, "boot", MAIN, "execute", "/x/.bootstrap/pex/pex.py"
#define VENV "/pex/venvs/4/" HASH "/" HASH "/pex"
    static const struct {
        uint32_t kind;
        const char *program, *stack[16], *name;
    } rows[] = {
        {TRACE_PROGRAM_SCRIPT, HASH, {"<module>", BOOT}, HASH},
        {TRACE_PROGRAM_SCRIPT, HASH, {"<module>", BOOT, "run_module", "<frozen runpy>", "<module>", "/x/shop/__main__.py"}, "shop"},
        {TRACE_PROGRAM_SCRIPT, HASH, {"<module>", BOOT, "execute_entry_point", "/x/.bootstrap/pex/pex.py", "main", "/x/shop/cli.py"}, "cli.py"},
        {TRACE_PROGRAM_SCRIPT, HASH, {"<module>", BOOT, "execute_entry_point", "/x/.bootstrap/pex/pex.py", "import_module", "/l/importlib/__init__.py"}, HASH},
        {TRACE_PROGRAM_SCRIPT, HASH, {"<module>", BOOT, "read", "/l/zipfile.py"}, HASH},
        {TRACE_PROGRAM_SCRIPT, "pex", {"<module>", VENV, "boot", VENV, "run_module", "<frozen runpy>", "<module>", "/x/shop/__main__.py"}, "shop"},
        {TRACE_PROGRAM_SCRIPT, "pex", {"<module>", "/usr/bin/pex", "main", "/l/pex/bin/pex.py"}, "pex"},
        {TRACE_PROGRAM_UNKNOWN, "", {"<module>", BOOT, "run_module", "<frozen runpy>", "<module>", "/root/.cache/pex/unzipped_pexes/4/" HASH "/app.py"}, "app.py"},
        {TRACE_PROGRAM_SCRIPT, "cafe", {"<module>", "/x/cafe/__main__.py", "f", "/x/y.py"}, "cafe"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        setup(&s, NULL);
        program(&s, rows[i].kind, rows[i].program);
        sample(&s, 1, python_tuple(&s, LOSS_complete, rows[i].stack), 1);
        if (strcmp(process_name(&s), rows[i].name))
            fail_msg("%zu: %s, not %s", i, process_name(&s), rows[i].name);
        teardown(&s);
    }
}

/* The first thread of a Python is the main thread, whatever the kernel calls it; of other programs it has the kernel's name. */
TEST(first_thread)
{
    static const struct {
        uint32_t kind, version;
        const char *given, *shown;
    } rows[] = {
        {TRACE_PROGRAM_SCRIPT, 0x030b02f0, "", "MainThread"},      {TRACE_PROGRAM_UNKNOWN, 0x030b02f0, "", "MainThread"},
        {TRACE_PROGRAM_SCRIPT, 0x030b02f0, "django", "django"},    {TRACE_PROGRAM_FILE, 0, "", "[celeryd: celer"},
        {TRACE_PROGRAM_UNRECORDED, 0x030b02f0, "", "[celeryd: celer"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        setup(&s, NULL);
        event(&s);
        uint32_t title = string(&s, "[celeryd: celer");
        LOAD(&s, process, .id = 1, .tgid = PID, .comm = title, .program_kind = rows[i].kind, .python_version = rows[i].version);
        LOAD(&s, thread, .id = 1, .process = 1, .tid = PID, .name = title);
        if (*rows[i].given)
            LOAD(&s, thread_name, .thread = 1, .python_name = string(&s, rows[i].given));
        assert_string_equal(thread_name(&s, sample(&s, 1, 0, 1)), rows[i].shown);
        teardown(&s);
    }
}

/* A title that came after a thread had begun is no name that somebody gave to the thread, nor is what exec() gave it. */
TEST(inherited_names)
{
    static const struct {
        const char *comm, *shown;
    } rows[] = {{"granian asgi 12", "work (pool.py)"}, {"granian", "work (pool.py)"}, {"python3.11", "work (pool.py)"},
                {"a-very-long-na", "a-very-long-na"},  {"a-very-long-nam", "work (pool.py)"}, {"python-worker", "python-worker"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        setup(&s, NULL);
        event(&s);
        uint32_t title = string(&s, "granian asgi 12"), program = string(&s, "granian"), exe = string(&s, "/opt/a-very-long-name");
        LOAD(&s, process, .id = 1, .tgid = PID, .comm = title, .exe = exe, .program_kind = TRACE_PROGRAM_SCRIPT, .program = program);
        thread(&s, 1, rows[i].comm);
        assert_string_equal(thread_name(&s, sample(&s, 1, PYTHON(&s, "work", "/srv/pool.py"), 1)), rows[i].shown);
        teardown(&s);
    }
}

enum { MODULES = 13 };

/* Modules 1 to MODULES: the interpreter first. */
static void modules(struct scene *s)
{
    static const char *const paths[MODULES] = {
        "/opt/lib/libpython3.11.so.1.0", "/lib/libc.so.6", "/lib/libstdc++.so.6.0.30", "/w/numpy.libs/libscipy_openblas64_-ff651d7f.so",
        "/w/libgomp-24e2ab19.so.1.0.0", "/w/_granian.cpython-311-x86_64-linux-gnu.so", "/lib/libffi.so.8", "/w/_ctypes.cpython-311.so",
        "/usr/bin/host", "/w/polars.abi3.so (deleted)", "/w/libarrow.so.2200", "", "/usr/lib/libopenblasp-r0.3.21.so"};

    for (uint32_t i = 0; i < MODULES; i++)
        LOAD(s, module, .id = i + 1, .path = string(s, paths[i]), .kind = TRACE_MODULE_ELF);
}

/* A native stack by modules, outermost first, that ends with 0. */
static uint32_t native(struct scene *s, const uint32_t *of)
{
    uint32_t frames[8], count = 0;

    for (; of[count]; count++) {
        LOAD(s, native_frame, .id = ++s->frames, .module = of[count], .offset = 16);
        frames[count] = s->frames;
    }
    return stack(s, frames, count);
}

TEST(threads_of_libraries)
{
    enum { LIBC = 2, CPP, OPENBLAS, GOMP, GRANIAN, FFI, CTYPES, HOST, POLARS, ARROW, NAMELESS, BLASP };
    static const struct {
        uint32_t native[8], end;
        const char *shown;
    } rows[] = {
        {{LIBC, LIBC, OPENBLAS, OPENBLAS}, LOSS_complete, "libscipy_openblas64"},
        {{LIBC, LIBC, GOMP, OPENBLAS}, LOSS_complete, "libgomp"},
        {{LIBC, LIBC, CPP, ARROW, LIBC}, LOSS_complete, "libarrow"},
        {{LIBC, LIBC, GRANIAN, 1, 1}, LOSS_complete, "_granian"},
        {{LIBC, POLARS}, LOSS_complete, "polars"},
        {{LIBC, BLASP}, LOSS_complete, "libopenblasp-r0"},
        {{LIBC, LIBC, 1, 1, OPENBLAS}, LOSS_complete, "work (pool.py)"},
        {{LIBC, LIBC, FFI, CTYPES, 1, GOMP}, LOSS_complete, "work (pool.py)"},
        {{LIBC, LIBC, HOST, GOMP}, LOSS_complete, "work (pool.py)"},
        {{LIBC, LIBC, NAMELESS, GOMP}, LOSS_complete, "work (pool.py)"},
        {{OPENBLAS, OPENBLAS}, LOSS_no_unwind_info, "work (pool.py)"},
        {{LIBC, LIBC}, LOSS_complete, "work (pool.py)"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        setup(&s, NULL);
        event(&s);
        uint32_t comm = string(&s, "python3"), exe = string(&s, "/usr/bin/host");
        LOAD(&s, process, .id = 1, .tgid = PID, .comm = comm, .exe = exe, .program_kind = TRACE_PROGRAM_SCRIPT);
        thread(&s, 1, "python3");
        thread(&s, 2, "OpenBLAS");
        modules(&s);
        uint32_t frame = python(&s, "work", "/srv/pool.py", 1, 0);
        struct trace_tuple t = {.python_stack = stack(&s, &frame, 1), .python_end = LOSS_complete, .native_end = rows[i].end,
                                .native_stack = native(&s, rows[i].native)};
        uint32_t id = tuple(&s, t);
        assert_string_equal(thread_name(&s, sample(&s, 1, id, 1)), rows[i].shown);
        assert_string_equal(thread_name(&s, sample(&s, 2, id, 1)), "OpenBLAS");
        teardown(&s);
    }
}

/* The order of samples tells nothing: a library's name stands in for that of a function which came first. */
TEST(library_comes_first)
{
    struct scene s;
    struct trace_tuple t = {.python_end = LOSS_complete, .native_end = LOSS_no_unwind_info};

    setup(&s, NULL);
    program(&s, TRACE_PROGRAM_SCRIPT, "app.py");
    thread(&s, 2, "python3");
    modules(&s);
    uint32_t frame = python(&s, "callback", "/srv/app.py", 1, 0), other = python(&s, "work", "/srv/pool.py", 1, 0);
    t.python_stack = stack(&s, &frame, 1);
    t.native_stack = native(&s, (const uint32_t[]){6, 0});
    assert_string_equal(thread_name(&s, sample(&s, 2, tuple(&s, t), 1)), "callback (app.py)");
    t.python_stack = stack(&s, &other, 1);
    assert_string_equal(thread_name(&s, sample(&s, 2, tuple(&s, t), 2)), "callback (app.py)");
    t.native_stack = native(&s, (const uint32_t[]){2, 6, 0});
    t.native_end = LOSS_complete;
    assert_string_equal(thread_name(&s, sample(&s, 2, tuple(&s, t), 3)), "_granian");
    t.native_stack = native(&s, (const uint32_t[]){2, 1, 0});
    assert_string_equal(thread_name(&s, sample(&s, 2, tuple(&s, t), 4)), "_granian");
    teardown(&s);
}

TEST(executor)
{
    struct scene s;

    setup(&s, NULL);
    program(&s, TRACE_PROGRAM_SCRIPT, "app.py");
    thread(&s, 2, "python3");
    uint32_t id = PYTHON(&s, "Thread.run", "/l/threading.py", "_worker", "/l/python3.11/concurrent/futures/thread.py");
    assert_string_equal(thread_name(&s, sample(&s, 2, id, 1)), "ThreadPoolExecutor (_worker)");
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
