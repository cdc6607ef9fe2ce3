/* SPDX-License-Identifier: Apache-2.0 */
/* What a process runs, as its program file and its command line tell; and that no argument of its own gets into it. */
#include "tests/unit/test.h"

#include <string.h>

#include "capture/process/program.h"
#include "formats/trace/program_name.h"

#define PYTHON "/usr/bin/python3.11"
#define LOADER "/lib/ld-linux-x86-64.so.2"

/* `words`: a command line with '|' for the NULs between its words. */
static struct program find(const char *exe, bool is_python, const char *words)
{
    char text[1024];
    struct program out;
    size_t len = strlen(words);

    memcpy(text, words, len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == '|' ? 0 : text[i];
    text[len + 1] = 0;
    program_find(&(struct program_facts){exe, is_python, text, len ? len + 1 : 0, false}, &out);
    return out;
}

static void check(const char *what, struct program found, enum trace_program_kind kind, const char *name)
{
    if (found.kind != kind || strcmp(found.name, name))
        fail_msg("%s: %d \"%s\"", what, (int)found.kind, found.name);
}

static const struct {
    const char *words;
    enum trace_program_kind kind;
    const char *name;
} command_lines[] = {
    {"python3|app.py", TRACE_PROGRAM_SCRIPT, "app.py"},
    {"python3|/srv/shop/app.py|secret", TRACE_PROGRAM_SCRIPT, "app.py"},
    {"/usr/bin/python3|/usr/bin/gunicorn|app:api|-w|4", TRACE_PROGRAM_SCRIPT, "gunicorn"},
    {"/usr/bin/python3|-sP|/usr/bin/dnf|install|secret", TRACE_PROGRAM_SCRIPT, "dnf"},
    {"python3|-u|-X|dev|-W|ignore|script.py|secret", TRACE_PROGRAM_SCRIPT, "script.py"},
    {"python3|-uB|-Xdev|-Werror|-bWdefault|-O|script.py", TRACE_PROGRAM_SCRIPT, "script.py"},
    {"python3|-uW|ignore|script.py", TRACE_PROGRAM_SCRIPT, "script.py"},
    {"python3|--check-hash-based-pycs|always|script.py", TRACE_PROGRAM_SCRIPT, "script.py"},
    {"python|-Q|new|-3|script.py", TRACE_PROGRAM_SCRIPT, "script.py"}, /* 2.7 */
    {"python3|--|script.py|--secret", TRACE_PROGRAM_SCRIPT, "script.py"},
    {"python3|--|-script.py", TRACE_PROGRAM_SCRIPT, "-script.py"},
    {"python3|/home/J. Doe/my script.py", TRACE_PROGRAM_SCRIPT, "my script.py"},
    {"/home/J. Doe/venv/bin/python|app.py", TRACE_PROGRAM_SCRIPT, "app.py"},
    {"python3|shop/__main__.py", TRACE_PROGRAM_SCRIPT, "shop"},
    {"python3|/srv/shop/", TRACE_PROGRAM_SCRIPT, "shop"},
    {"python3|__main__.py", TRACE_PROGRAM_SCRIPT, "__main__.py"},
    {"python3|./__main__.py", TRACE_PROGRAM_UNKNOWN, ""}, /* the folder's name is not there */
    {"python3|.", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3|../..", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3|/", TRACE_PROGRAM_UNKNOWN, ""},
    {"/venv/bin/python|-m|http.server|8000", TRACE_PROGRAM_MODULE, "http.server"},
    {"python3|-mpytest|-k|secret", TRACE_PROGRAM_MODULE, "pytest"},
    {"python3|-Im|pip|install|secret", TRACE_PROGRAM_MODULE, "pip"},
    {"python3|-m", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3|-c|print('secret')|secret", TRACE_PROGRAM_COMMAND, ""},
    {"python3|-cprint('secret')", TRACE_PROGRAM_COMMAND, ""},
    {"python3|-c|from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)|--multiprocessing-fork",
     TRACE_PROGRAM_COMMAND, "multiprocessing.spawn"},
    {"python3|-s|-c|from multiprocessing.resource_tracker import main;main(6)", TRACE_PROGRAM_COMMAND,
     "multiprocessing.resource_tracker"},
    {"python3|-c|from multiprocessing.forkserver import main; main(8, 9, ['secret'], **{})", TRACE_PROGRAM_COMMAND,
     "multiprocessing.forkserver"},
    {"python3|-u|-c|import sys;exec(eval(sys.stdin.readline()))", TRACE_PROGRAM_COMMAND, "execnet"},
    {"python3", TRACE_PROGRAM_FILE, "python3"},
    {"/opt/py/bin/python3.13t", TRACE_PROGRAM_FILE, "python3.13t"},
    {"python3.11-dbg|-i", TRACE_PROGRAM_FILE, "python3.11-dbg"},
    {"python3|-|secret", TRACE_PROGRAM_FILE, "python3"},
    /* Of what CPython would refuse nothing is known. */
    {"python3|-y|secret", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3|--unknown|secret", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3|-X", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3||secret", TRACE_PROGRAM_UNKNOWN, ""},
    /* Titles. */
    {"gunicorn: master [app:api]", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3 app.py secret", TRACE_PROGRAM_UNKNOWN, ""},
    {"python3: secret", TRACE_PROGRAM_UNKNOWN, ""},
    {"python|||", TRACE_PROGRAM_UNKNOWN, ""}, /* and the rest of the old words overwritten */
    {"celeryd: secret|secret.py", TRACE_PROGRAM_UNKNOWN, ""},
    {"pythonista|secret.py", TRACE_PROGRAM_UNKNOWN, ""},
    {"worker|app.py|secret", TRACE_PROGRAM_UNKNOWN, ""}, /* only the first word was replaced */
    {"", TRACE_PROGRAM_UNKNOWN, ""},
};

TEST(command_lines)
{
    for (size_t i = 0; i < sizeof command_lines / sizeof *command_lines; i++) {
        const char *words = command_lines[i].words;
        check(words, find(PYTHON, true, words), command_lines[i].kind, command_lines[i].name);
        /* Before its interpreter is known, it is a Python by the name of its file; then by the interpreter alone. */
        check(words, find(PYTHON " (deleted)", false, words), command_lines[i].kind, command_lines[i].name);
        check(words, find(NULL, true, words), command_lines[i].kind, command_lines[i].name);
    }
}

/* A program that is no Python has the name of its file, whatever its arguments are. */
TEST(program_files)
{
    static const char line[] = "python3|secret.py";

    check("embedding", find("/usr/bin/uwsgi-core", true, line), TRACE_PROGRAM_FILE, "uwsgi-core");
    check("deleted", find("/opt/vim.basic (deleted)", true, line), TRACE_PROGRAM_FILE, "vim.basic");
    check("no Python", find("/bin/bash", false, line), TRACE_PROGRAM_FILE, "bash");
    check("nothing", find(NULL, false, line), TRACE_PROGRAM_UNKNOWN, "");
    check("a loader", find(LOADER, true, "ld.so|/usr/bin/python3|app.py|secret"), TRACE_PROGRAM_SCRIPT, "app.py");
    check("its options", find(LOADER, true, LOADER "|--inhibit-cache|--library-path|/secret|--argv0|x|python3|-m|pip|secret"),
          TRACE_PROGRAM_MODULE, "pip");
    check("its list", find(LOADER, true, LOADER "|--list|/usr/bin/python3|app.py"), TRACE_PROGRAM_UNKNOWN, "");
    check("of another", find(LOADER, true, LOADER "|/usr/bin/vim|app.py"), TRACE_PROGRAM_UNKNOWN, "");
    check("nothing to load", find(LOADER, true, LOADER "|--preload"), TRACE_PROGRAM_UNKNOWN, "");
    check("no Python yet", find(LOADER, false, LOADER "|python3|app.py"), TRACE_PROGRAM_UNKNOWN, "");
    check("no name", find("/", true, line), TRACE_PROGRAM_UNKNOWN, "");
    assert_true(program_is_told_by_arguments(&(struct program_facts){.exe = PYTHON}));
    assert_false(program_is_told_by_arguments(&(struct program_facts){.exe = "/bin/uwsgi", .is_python = true}));
}

/* A folder whose name is a hash tells nobody what runs; it is known that it is one. */
TEST(program_hashes)
{
    static const char sha1[] = "1e249ab5a0dad43fb1c3c1c635ec403c7962c230";
    struct program found = find(PYTHON, true, "python3|/root/.pex/unzipped_pexes/1/1e249ab5a0dad43fb1c3c1c635ec403c7962c230|secret");

    check("a hash", found, TRACE_PROGRAM_UNKNOWN, "");
    assert_true(found.is_hashed);
    assert_true(program_is_hash(sha1));
    assert_true(program_is_hash(sha1 + 8));
    assert_false(program_is_hash(sha1 + 9));
    assert_false(program_is_hash(""));
    assert_false(program_is_hash("1e249ab5a0dad43fb1c3c1c635ec403c7962c230.py"));
    assert_false(find(PYTHON, true, "python3|app.py").is_hashed);
}

TEST(program_main_files)
{
    struct program found;

    program_find_by_main_file("/srv/shop/app.py", &found);
    check("a file", found, TRACE_PROGRAM_SCRIPT, "app.py");
    program_find_by_main_file("/usr/lib/python3/dist-packages/celery/__main__.py", &found);
    check("a package", found, TRACE_PROGRAM_SCRIPT, "celery");
    program_find_by_main_file("<stdin>", &found);
    check("none", found, TRACE_PROGRAM_UNKNOWN, "");
    program_find_by_main_file("", &found);
    check("empty", found, TRACE_PROGRAM_UNKNOWN, "");
    program_find_by_main_file("/x/1e249ab5a0dad43fb1c3c1c635ec403c7962c230/__main__.py", &found);
    check("a hash", found, TRACE_PROGRAM_UNKNOWN, "");
    program_find_by_main_file("/x/joblib/externals/loky/backend/popen_loky_posix.py", &found);
    check("a worker of loky", found, TRACE_PROGRAM_MODULE, "joblib.externals.loky.backend.popen_loky_posix");
}

/* What cannot be the name of a module was not given to exec, or is refused by Python. */
TEST(program_module_names)
{
    check("a hyphen", find(PYTHON, true, "python3|-m|my-tool.cli|x"), TRACE_PROGRAM_MODULE, "my-tool.cli");
    check("letters", find(PYTHON, true, "python3|-m|caf\xc3\xa9"), TRACE_PROGRAM_MODULE, "caf\xc3\xa9");
    check("a text", find(PYTHON, true, "python3|-m|SECRET token=abc"), TRACE_PROGRAM_UNKNOWN, "");
}

/* Text that exec() did not make, and text that was read in part. */
TEST(ends)
{
    char text[600] = "python3";
    struct program_facts facts = {PYTHON, true, text, 0, false};
    struct program out;

    memcpy(text + 8, "app.py", 7);
    facts.len_bytes = 14; /* the last NUL overwritten: a title that goes on in the environment */
    program_find(&facts, &out);
    check("no NUL", out, TRACE_PROGRAM_UNKNOWN, "");
    facts.cut = true; /* "app.pyc" */
    program_find(&facts, &out);
    check("half a word", out, TRACE_PROGRAM_UNKNOWN, "");
    facts.len_bytes = 15;
    program_find(&facts, &out);
    check("cut behind it", out, TRACE_PROGRAM_SCRIPT, "app.py");
    facts.len_bytes = 8;
    program_find(&facts, &out);
    check("cut before it", out, TRACE_PROGRAM_UNKNOWN, "");
    facts.len_bytes = 5;
    text[5] = 0;
    program_find(&facts, &out);
    check("half of the first", out, TRACE_PROGRAM_UNKNOWN, "");

    memcpy(text, "python3\0-c", 11);
    memset(text + 11, 'x', sizeof text - 12);
    facts.len_bytes = sizeof text - 1;
    program_find(&facts, &out);
    check("a long command", out, TRACE_PROGRAM_COMMAND, "");
    facts.cut = false;
    text[9] = 'm';
    text[400] = 0;
    text[facts.len_bytes - 1] = 0;
    program_find(&facts, &out);
    check("a long module", out, TRACE_PROGRAM_UNKNOWN, "");
    text[11 + PROGRAM_NAME_MAX - 1] = 0;
    program_find(&facts, &out);
    assert_int_equal(out.kind, TRACE_PROGRAM_MODULE);
    assert_int_equal(strlen(out.name), PROGRAM_NAME_MAX - 1);
}
