/* SPDX-License-Identifier: Apache-2.0 */
/* Follows CPython's own parser of its command line (Python/initconfig.c and Python/getopt.c; Modules/main.c in 2.7). */
#include "capture/process/program.h"

#include <string.h>

#include "formats/base/path.h"
#include "formats/trace/program_name.h"

/* Modules of the standard library, of loky and of execnet that start a Python with `-c`: the text begins so. */
static const struct {
    const char *text, *name;
} known_commands[] = {
    {"from multiprocessing.spawn import spawn_main", "multiprocessing.spawn"},
    {"from multiprocessing.forkserver import main", "multiprocessing.forkserver"},
    {"from multiprocessing.resource_tracker import main", "multiprocessing.resource_tracker"},
    {"from multiprocessing.semaphore_tracker import main", "multiprocessing.semaphore_tracker"},
    {"from joblib.externals.loky.backend.resource_tracker import main", "joblib.externals.loky.backend.resource_tracker"},
    {"from loky.backend.resource_tracker import main", "loky.backend.resource_tracker"},
    {"import sys;exec(eval(sys.stdin.readline()))", "execnet"}, /* pytest-xdist's workers */
};

/*
 * CPython's options of one letter, alone and with a value, those of all versions: what a version does not know it refuses,
 * and then no program runs. After -c and -m it reads no more.
 */
static const char flags[] = "3bBdEhiIOPqRsStuUvVx?", with_value[] = "QWX";
static const char long_with_value[] = "--check-hash-based-pycs";

struct words {
    const char *at, *end;
    bool cut;   /* more follow */
    bool whole; /* the last word that was taken does not reach over the end */
};

/* The next word; NULL at the end. */
static const char *next(struct words *w)
{
    const char *word = w->at;

    if (word >= w->end)
        return NULL;
    w->at += strlen(word) + 1;
    w->whole = w->at <= w->end;
    return word;
}

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

static void set(struct program *out, enum trace_program_kind kind, const char *name, size_t len)
{
    if (len >= sizeof out->name)
        return;
    memcpy(out->name, name, len);
    out->name[len] = 0;
    out->kind = kind;
}

/* The last component of a path, or that of the folder if the file is its __main__.py, which `python FOLDER` runs. */
static void set_script(struct program *out, const char *path)
{
    static const char main_file[] = "/__main__.py";
    size_t len = strlen(path), start;

    if (len > sizeof main_file - 1 && !strcmp(path + len - (sizeof main_file - 1), main_file))
        len -= sizeof main_file - 1;
    while (len > 1 && path[len - 1] == '/')
        len--;
    for (start = len; start && path[start - 1] != '/';)
        start--;
    path += start;
    len -= start;
    if (!len || (len == 1 && *path == '.') || (len == 2 && !memcmp(path, "..", 2)))
        return; /* the folder's name is not in the path */
    set(out, TRACE_PROGRAM_SCRIPT, path, len);
    if (program_is_hash(out->name))
        *out = (struct program){.kind = TRACE_PROGRAM_UNKNOWN, .is_hashed = true};
}

static void set_command(struct program *out, const char *text)
{
    set(out, TRACE_PROGRAM_COMMAND, "", 0);
    for (size_t i = 0; i < sizeof known_commands / sizeof *known_commands; i++) {
        if (starts_with(text, known_commands[i].text))
            set(out, TRACE_PROGRAM_COMMAND, known_commands[i].name, strlen(known_commands[i].name));
    }
}

/* Whether it may be the name of a module or package: no other is found. A file may have a hyphen in its name. */
static bool is_module_name(const char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '-' && c < 0x80)
            return false;
    }
    return true;
}

/*
 * Reads one word of options, such as "-u", "-bWerror", "-m" or "-mhttp.server", and the next word if it is a value of
 * this one. Returns false when CPython reads no more: `out` is set, or the word is no option of CPython's.
 */
static bool read_option(struct words *words, const char *word, struct program *out)
{
    if (word[1] == '-')
        return !strcmp(word, long_with_value) && next(words);
    for (const char *letter = word + 1; *letter; letter++) {
        bool command = *letter == 'c', module = *letter == 'm';
        if (strchr(flags, *letter))
            continue;
        if (!command && !module && !strchr(with_value, *letter))
            return false;
        const char *value = letter[1] ? letter + 1 : next(words);
        if (!value)
            return false;
        if (command)
            set_command(out, value);
        else if (module && *value && words->whole && is_module_name(value))
            set(out, TRACE_PROGRAM_MODULE, value, strlen(value));
        return !command && !module;
    }
    return true;
}

/* `words` stands behind the name of the interpreter. */
static void read_words(struct words *words, const char *interpreter, struct program *out)
{
    const char *word = next(words);

    while (word && word[0] == '-' && word[1]) {
        if (!strcmp(word, "--")) {
            word = next(words);
            break;
        }
        if (!read_option(words, word, out))
            return;
        word = next(words);
    }
    if (word && !words->whole)
        return;
    if (word && strcmp(word, "-"))
        set_script(out, word);
    else if (word || !words->cut)
        set(out, TRACE_PROGRAM_FILE, interpreter, strlen(interpreter));
}

/* The options of the dynamic loader that have a value in the next word; all others are one word. */
static const char *const loader_values[] = {"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0",
                                            "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"};
/* Of these, that with which it only shows what it would load. */
static const char *const loader_shows[] = {"--list", "--verify", "--list-tunables", "--list-diagnostics", "--help", "--version"};

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(word, words[i]))
            return true;
    }
    return false;
}

/* The program that the loader was called with; NULL: there is none. */
static const char *loaded_program(struct words *words)
{
    const char *word;

    while ((word = next(words)) && word[0] == '-' && word[1] == '-') {
        if (is_one_of(word, loader_shows, sizeof loader_shows / sizeof *loader_shows) ||
            (is_one_of(word, loader_values, sizeof loader_values / sizeof *loader_values) && !next(words)))
            return NULL;
    }
    return word;
}

/* The length of a program's base name without what /proc puts behind the path of a file that is gone. */
static size_t name_len(const char *base)
{
    static const char deleted[] = " (deleted)";
    size_t len = strlen(base), tail = sizeof deleted - 1;

    return len > tail && !strcmp(base + len - tail, deleted) ? len - tail : len;
}

/* The dynamic loader, called with a program as its argument. */
static bool names_loader(const char *name)
{
    return starts_with(name, "ld-") || starts_with(name, "ld.so") || starts_with(name, "ld64.so");
}

/* The program file's name; of kind UNKNOWN if it does not tell what the process runs. */
static void find_by_file(const struct program_facts *facts, struct program *out)
{
    *out = (struct program){.kind = TRACE_PROGRAM_UNKNOWN};
    if (!facts->exe)
        return;
    const char *base = path_base(facts->exe);
    set(out, TRACE_PROGRAM_FILE, base, name_len(base));
    if (names_loader(out->name) || !*out->name)
        *out = (struct program){.kind = TRACE_PROGRAM_UNKNOWN};
}

bool program_is_told_by_arguments(const struct program_facts *facts)
{
    struct program file;

    find_by_file(facts, &file);
    return facts->exe && !names_loader(path_base(facts->exe)) ? program_is_interpreter(file.name) : facts->is_python;
}

void program_find_by_main_file(const char *path, struct program *out)
{
    const char *helper = program_helper_of_file(path);

    *out = (struct program){.kind = TRACE_PROGRAM_UNKNOWN};
    if (helper)
        set(out, TRACE_PROGRAM_MODULE, helper, strlen(helper));
    else if (*path && *path != '<')
        set_script(out, path);
}

void program_find(const struct program_facts *facts, struct program *out)
{
    find_by_file(facts, out);
    if (!program_is_told_by_arguments(facts))
        return;
    *out = (struct program){.kind = TRACE_PROGRAM_UNKNOWN};
    bool made_by_exec = facts->len_bytes && (facts->cut || !facts->arguments[facts->len_bytes - 1]);
    if (!made_by_exec)
        return;
    struct words words = {.at = facts->arguments, .end = facts->arguments + facts->len_bytes, .cut = facts->cut};
    const char *first = next(&words);
    if (words.whole && names_loader(path_base(first)))
        first = loaded_program(&words);
    const char *interpreter = first ? path_base(first) : "";
    if (words.whole && program_is_interpreter(interpreter))
        read_words(&words, interpreter, out);
}
