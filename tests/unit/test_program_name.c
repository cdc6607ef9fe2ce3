/* SPDX-License-Identifier: Apache-2.0 */
/* What processes are called by what a trace says of them. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/trace/program_name.h"

TEST(names)
{
    static const struct {
        enum trace_program_kind kind;
        const char *program, *name, *begun_by;
    } names[] = {
        {TRACE_PROGRAM_UNRECORDED, "x", "", NULL},
        {TRACE_PROGRAM_UNKNOWN, NULL, "", NULL},
        {TRACE_PROGRAM_FILE, "python3", "python3", NULL},
        {TRACE_PROGRAM_SCRIPT, "app.py", "app.py", NULL},
        {TRACE_PROGRAM_SCRIPT, "multiprocessing.spawn", "multiprocessing.spawn", NULL}, /* somebody's script */
        {TRACE_PROGRAM_MODULE, "http.server", "-m http.server", NULL},
        {TRACE_PROGRAM_MODULE, "joblib.externals.loky.backend.popen_loky_posix", "joblib.externals.loky.backend.popen_loky_posix", "loky"},
        {TRACE_PROGRAM_COMMAND, "", "-c", "-c"},
        {TRACE_PROGRAM_COMMAND, NULL, "-c", "-c"},
        {TRACE_PROGRAM_COMMAND, "multiprocessing.spawn", "multiprocessing.spawn", "spawn"},
        {TRACE_PROGRAM_COMMAND, "execnet", "execnet", "execnet"},
        {TRACE_PROGRAM_COMMAND, "of a later pycap", "of a later pycap", NULL},
        {(enum trace_program_kind)99, "x", "", NULL},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf text = {0};
        const char *begun_by = program_begun_by(names[i].kind, names[i].program);
        assert_int_equal(program_put(names[i].kind, names[i].program, &text), *names[i].name != 0);
        assert_string_equal(buf_cstr(&text), names[i].name);
        assert_true(begun_by == names[i].begun_by || !strcmp(begun_by, names[i].begun_by));
        buf_deinit(&text);
    }
}

TEST(helpers)
{
    static const char *const files[][2] = {
        {"/usr/lib/python3.11/multiprocessing/spawn.py", "multiprocessing.spawn"},
        {"/srv/site-packages/joblib/externals/loky/backend/popen_loky_posix.py", "joblib.externals.loky.backend.popen_loky_posix"},
        {"/srv/site-packages/loky/backend/popen_loky_posix.py", "loky.backend.popen_loky_posix"},
        {"/srv/my_multiprocessing/spawn.py", NULL},
        {"/srv/multiprocessing/spawn.pyc", NULL},
        {"multiprocessing/spawn.py", NULL}, /* no path */
        {"/multiprocessing.spawn.py", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *found = program_helper_of_file(files[i][0]);
        assert_true(found == files[i][1] || (found && files[i][1] && !strcmp(found, files[i][1])));
    }
}

TEST(is_python)
{
    assert_true(program_is_python(TRACE_PROGRAM_SCRIPT, NULL));
    assert_true(program_is_python(TRACE_PROGRAM_COMMAND, "/srv/odd"));
    assert_true(program_is_python(TRACE_PROGRAM_FILE, "/usr/bin/python3.13t"));
    assert_false(program_is_python(TRACE_PROGRAM_FILE, "/usr/bin/bash"));
    assert_false(program_is_python(TRACE_PROGRAM_UNRECORDED, NULL));
}

TEST(workers)
{
    struct buf text = {0};

    program_put_worker("hypercorn", "spawn", &text);
    assert_string_equal(buf_cstr(&text), "hypercorn (spawn)");
    buf_deinit(&text);
}

TEST(kernel_names)
{
    assert_true(program_is_comm("python3", "python3"));
    assert_false(program_is_comm("python3", "python3.11"));
    assert_false(program_is_comm("python3", "python"));
    assert_false(program_is_comm("python3", ""));
    assert_true(program_is_comm("a-name-longer-than-that", "a-name-longer-t")); /* as the kernel cuts it */
    assert_true(program_is_comm("a-name-longer-t", "a-name-longer-t"));
    assert_false(program_is_comm("a-name-longer-x", "a-name-longer-t"));
}

TEST(titles)
{
    static const struct {
        const char *comm, *exe, *program;
        bool is_title;
    } titles[] = {
        {"", "/usr/bin/python3.11", "app.py", false},
        {"python3", "/usr/bin/python3.11", "app.py", false},
        {"python3.11", "/usr/bin/python3.11 (deleted)", NULL, false},
        {"shopbin", "/srv/shopbin", NULL, false},
        {"shopbin", "/srv/shopbin (deleted)", NULL, false},
        {"a-very-long-pro", "/srv/a-very-long-program", NULL, false},
        {"a-very", "/srv/a-very-long-program", NULL, true},
        {"celery", "/usr/bin/python3.11", "celery", false}, /* begun by the #! of its script */
        {"[celeryd: celer", "/usr/bin/python3.11", "celery", true},
        {"ray::Counter", "/usr/bin/python3.11", "default_worker.py", true},
        {"python worker", "/usr/bin/python3.11", "app.py", true},
        {"x", NULL, NULL, true},
    };

    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (program_is_title(titles[i].comm, titles[i].exe, titles[i].program) != titles[i].is_title)
            fail_msg("%s", titles[i].comm);
    }
}
