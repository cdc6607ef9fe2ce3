/* SPDX-License-Identifier: Apache-2.0 */
/* What a command says of itself: which lines are understood, what adds up, and what a hostile one gets. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/output/note_file.h"
#include "capture/session/command_note.h"

static struct command_note note;

/* The value of a key as text; NULL: the note does not have it. */
static const char *value(const char *key)
{
    static char number[24];

    for (uint32_t i = 0; i < note.fact_count; i++) {
        const struct note_fact *f = &note.facts[i];
        if (strcmp(f->key, key))
            continue;
        if (!f->has_value)
            return NULL;
        snprintf(number, sizeof number, "%llu", (unsigned long long)f->sum);
        return f->adds_up ? number : f->value;
    }
    return NULL;
}

static void parse(const char *text)
{
    command_note_parse(text, strlen(text), 0, &note);
}

TEST(facts)
{
    parse("work=20000\nbranch=main\n\n_a.b-C9=x = y\nempty=\n");
    assert_int_equal(note.fact_count, 4);
    assert_int_equal(note.refused_lines, 0);
    assert_string_equal(value("work"), "20000");
    assert_string_equal(value("branch"), "main");
    assert_string_equal(value("_a.b-C9"), "x = y");
    assert_string_equal(value("empty"), "");
    parse("");
    assert_int_equal(note.fact_count + note.refused_lines, 0);
    parse("work=7"); /* as printf writes it */
    assert_string_equal(value("work"), "7");
}

/* Work of several processes adds up, by kind; of other keys the last line counts. */
TEST(sums)
{
    parse("work=1\nseed=1\nwork=20\nseed=2\nwork.get=4\nwork.get=5\nworker=1\nworker=1\n");
    assert_string_equal(value("work"), "21");
    assert_string_equal(value("work.get"), "9");
    assert_string_equal(value("seed"), "2");
    assert_string_equal(value("worker"), "1");
    parse("work=0\n");
    assert_string_equal(value("work"), "0");
}

/* A sum that lacks something would be a wrong one. */
TEST(no_sum)
{
    static const char *const bad[] = {"", " 5", "5 ", "+5", "-5", "1.5", "1e6", "0x10", "many", "18446744073709551616",
                                      "9999999999999999999\nwork=9999999999999999999", "\x1b[31m5"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        snprintf(text, sizeof text, "work=5\nwork=%s\nwork=5\nother=1\n", bad[i]);
        parse(text);
        if (value("work") || note.refused_lines != 1)
            fail_msg("'%s': work is %s, %u lines refused", bad[i], value("work") ? "known" : "not known", note.refused_lines);
        assert_string_equal(value("other"), "1");
    }
}

TEST(refused)
{
    static const char *const bad[] = {"work", "=5", "1a=5", "a b=5", "a\t=5", "a=\t", "a=caf\xc3\xa9", "\xff\xfe", "a=\x7f",
                                      "a=5\r", ".a=1", " a=1", "a =1"};
    char text[400];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parse(bad[i]);
        if (note.fact_count || note.refused_lines != 1)
            fail_msg("'%s' is taken", bad[i]);
    }
    command_note_parse("a=1\0b=2\nc=3", 11, 0, &note);
    assert_int_equal(note.refused_lines, 1);
    assert_string_equal(value("c"), "3");
    assert_null(value("a"));
    /* The longest key and value, and what is longer by a byte. */
    for (int over = 0; over < 2; over++) {
        snprintf(text, sizeof text, "%0*d=1", NOTE_KEY_MAX + over, 0);
        *text = 'k';
        parse(text);
        assert_int_equal(note.fact_count, !over);
        snprintf(text, sizeof text, "k=%0*d", 256 + over, 0);
        parse(text);
        assert_int_equal(note.fact_count, !over);
    }
}

TEST(too_much)
{
    char text[NOTE_BYTES_MAX];
    size_t len = 0;

    /* Too many keys: the first ones stay, and go on counting. */
    for (int i = 0; i < NOTE_FACTS_MAX + 10; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "k%d=%d\n", i, i);
    len += (size_t)snprintf(text + len, sizeof text - len, "k0=last\n");
    command_note_parse(text, len, 0, &note);
    assert_int_equal(note.fact_count, NOTE_FACTS_MAX);
    assert_int_equal(note.refused_lines, 10);
    assert_string_equal(value("k0"), "last");
    /* A file that goes on: half a number is none, and sums are not known. */
    static const char cut[] = "branch=main\nwork=5\nwork.get=5\nseed=12";
    command_note_parse(cut, strlen(cut), 3, &note);
    assert_int_equal(note.cut_bytes, 3);
    assert_int_equal(note.refused_lines, 0);
    assert_string_equal(value("branch"), "main");
    assert_null(value("seed"));
    assert_null(value("work"));
    assert_null(value("work.get"));
}

/* ---- the file ---- */

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* What is read of the file, at most `most` bytes of it. */
static const char *content(const struct note_file *n, size_t most, uint64_t *more)
{
    static char text[64];

    text[note_file_read(n, text, most, more)] = 0;
    return text;
}

TEST(file)
{
    struct note_file *n;
    struct stat st;
    uint64_t more;

    mode_t mask = umask(0777);
    OK(note_file_create(true, &n));
    umask(mask);
    char *path = strdup(note_file_path(n));
    assert_int_equal(*path, '/');
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(st.st_uid, geteuid());
    assert_string_equal(content(n, 9, &more), "");
    put(path, "work=");
    put(path, "20");
    assert_string_equal(content(n, 9, &more), "work=20");
    assert_int_equal(more, 0);
    assert_string_equal(content(n, 7, &more), "work=20");
    assert_int_equal(more, 0);
    assert_string_equal(content(n, 5, &more), "work=");
    assert_int_equal(more, 2);
    note_file_destroy(n);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    note_file_destroy(NULL);
}

/* What lies at the path by then is not read, but removed. */
TEST(another_file_at_its_path)
{
    char folder[] = "/tmp/test_note.XXXXXX", secret[64];

    assert_non_null(mkdtemp(folder));
    snprintf(secret, sizeof secret, "%s/secret", folder);
    put(secret, "secret=1\n");
    for (int kind = 0; kind < 4; kind++) {
        struct note_file *n;
        uint64_t more;
        OK(note_file_create(true, &n));
        const char *path = note_file_path(n);
        put(path, "work=1\n");
        assert_int_equal(unlink(path), 0);
        if (kind == 0)
            assert_int_equal(symlink(secret, path), 0);
        else if (kind == 1)
            assert_int_equal(mkfifo(path, 0600), 0);
        else if (kind == 2)
            assert_int_equal(link(secret, path), 0);
        else
            put(path, "work=2\n");
        assert_string_equal(content(n, 63, &more), "work=1\n");
        char *gone = strdup(path);
        note_file_destroy(n);
        assert_int_equal(access(gone, F_OK), -1);
        free(gone);
    }
    assert_int_equal(access(secret, F_OK), 0);
    unlink(secret);
    rmdir(folder);
}

/* TMPDIR is where the file lies, unless others could replace it there. */
TEST(folder)
{
    static const struct {
        mode_t mode;
        bool used;
    } cases[] = {{0700, true}, {0755, true}, {0777, false}, {0770, false}, {01777, true}};
    char folder[] = "/tmp/test_note.XXXXXX";
    struct note_file *n;

    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(chmod(folder, cases[i].mode), 0);
        OK(note_file_create(false, &n));
        assert_int_equal(!strncmp(note_file_path(n), folder, strlen(folder)), cases[i].used);
        note_file_destroy(n);
    }
    assert_int_equal(rmdir(folder), 0); /* nothing was left */
    static const char *const others[] = {"", "relative", "/nowhere/at/all", "/dev/null"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        setenv("TMPDIR", others[i], 1);
        OK(note_file_create(false, &n));
        assert_int_equal(strncmp(note_file_path(n), "/tmp/pycap-note-", strlen("/tmp/pycap-note-")), 0);
        note_file_destroy(n);
    }
    unsetenv("TMPDIR");
}
