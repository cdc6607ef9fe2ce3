/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pycap: the command line. Chooses the command, reads its options, calls it, prints errors, gives the exit code.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/arch.h"
#include "capture/archive/archive.h"
#include "capture/info.h"
#include "capture/output/files.h"
#include "capture/session/dump_options.h"
#include "capture/session/record_options.h"
#include "capture/session/session.h"
#include "capture/session/top_options.h"
#include "capture/view/view.h"
#include "formats/base/program.h"
#include "formats/cpython/version.h"
#include "formats/elf/machine.h"

static const char program[] = "pycap";

/* One screen: what most people need. */
static void print_help(void)
{
    fputs("usage: pycap record [OPTIONS] [COMMAND [ARG...]]\n"
          "       pycap top [OPTIONS] [COMMAND [ARG...]]\n"
          "       pycap dump -p PID[,PID...] [OPTIONS]\n"
          "       pycap archive TRACE... [-o FILE]\n"
          "       pycap info [--events [PATTERN]]\n"
          "\n"
          "pycap records where running CPython programs spend their time; pysym shows it.\n"
          "\n"
          "  pycap record python3 app.py     a program, from start to end\n"
          "  pycap record -p 1234 -d 10      a process that runs, and its children, for 10 s\n"
          "  pycap record -d 30              every Python process of this host, for 30 s\n"
          "\n"
          "Each writes trace.bin. Then:\n"
          "\n"
          "  pysym trace.bin                  a first look\n"
          "  pysym trace.bin -o profile.html  a page for any browser\n"
          "\n"
          "pycap top shows it at once, on the terminal: of the host, of -p 1234, or of a command.\n"
          "pycap dump -p 1234 shows where each thread of a process is now, without stopping it.\n"
          "pycap info says what this host allows and which Python processes it runs. pycap\n"
          "archive packs the binaries of a trace, to read it on another machine.\n"
          "\n"
          "All options: pycap record --help, and so on, and man pycap.\n",
          stdout);
}

static void print_record_help(void)
{
    fputs("usage: pycap record [OPTIONS] [COMMAND [ARG...]]\n"
          "\n"
          "Samples CPython processes and writes a trace, which pysym reads. Options end where the command\n"
          "begins; -- may stand before it.\n",
          stdout);
    options_print(record_option_rows, stdout);
    printf("\nCPython %s\non %s Linux 5.10 or later. See pycap(1).\n", py_versions_known(),
           machine_by_name(ARCH_NAME)->title);
}

static int print_version(void)
{
    printf("pycap %s\n", TOOL_VERSION);
    return program_end_output(program);
}

/* ---- record ---- */

static int cmd_record(int argc, char **argv)
{
    struct record_options o;
    struct error *err = record_options_read(&o, argc, argv);
    int code = EXIT_GOOD;

    if (err) {
        code = program_usage(program, "pycap record", err);
    } else if (o.help) {
        print_record_help();
        code = program_end_output(program);
    } else if (o.version) {
        code = print_version();
    } else {
        err = session_run(&o.session, &code);
        if (err)
            code = program_fail(program, err);
    }
    record_options_deinit(&o);
    return code;
}

/* ---- top ---- */

static int print_top_help(void)
{
    fputs("usage: pycap top [OPTIONS] [COMMAND [ARG...]]\n"
          "\n"
          "Shows on the terminal where CPython processes spend their time this second. Keys: ? lists them, q ends.\n"
          "\n",
          stdout);
    top_options_print(stdout);
    return program_end_output(program);
}

static int cmd_top(int argc, char **argv)
{
    struct top_options o;
    struct error *err = top_options_read(&o, argc, argv);
    int code = EXIT_GOOD;

    if (err) {
        code = program_usage(program, "pycap top", err);
    } else if (o.record.help) {
        code = print_top_help();
    } else if (o.record.version) {
        code = print_version();
    } else {
        err = view_run(&(struct view_options){.session = &o.record.session, .arguments = o.shown, .screen = true}, &code);
        if (err)
            code = program_fail(program, err);
    }
    top_options_deinit(&o);
    return code;
}

/* ---- dump ---- */

static int print_dump_help(void)
{
    fputs("usage: pycap dump -p PID[,PID...] [OPTIONS]\n"
          "\n"
          "Shows where each thread of a process is now, also of those that wait, without stopping it.\n"
          "\n",
          stdout);
    dump_options_print(stdout);
    return program_end_output(program);
}

static int cmd_dump(int argc, char **argv)
{
    struct dump_options o;
    struct error *err = dump_options_read(&o, argc, argv);
    int code = EXIT_GOOD;

    if (err) {
        code = program_usage(program, "pycap dump", err);
    } else if (o.record.help) {
        code = print_dump_help();
    } else if (o.record.version) {
        code = print_version();
    } else {
        const struct view_options view = {.session = &o.record.session, .arguments = o.shown};
        err = o.record.session.output ? session_run(&o.record.session, &code) : view_run(&view, &code);
        if (err)
            code = program_fail(program, err);
    }
    dump_options_deinit(&o);
    return code;
}

/* ---- archive ---- */

struct archive_command {
    struct archive_options archive;
    bool strict, help;
};

#define MEMBER(member) .offset = offsetof(struct archive_command, member)
static const struct option_row archive_rows[] = {
    {"output", 'o', "FILE",
     "the archive (TRACE.tar.zst); packed as its name says: .tar, .tar.gz, .tar.bz2,\n"
     ".tar.xz, else zstd; - for standard output",
     option_set_text, MEMBER(archive.output)},
    {"strip-code", 0, NULL, "leave out what neither unwinding nor naming needs: code and data", option_set_true,
     MEMBER(archive.strip_code)},
    {"strict", 0, NULL, "exit with 3 when something is missing from the archive", option_set_true, MEMBER(strict)},
    {"quiet", 'q', NULL, "report only what is missing", option_set_true, MEMBER(archive.quiet)},
    {"help", 'h', NULL, "this", option_set_true, MEMBER(help)},
    {NULL},
};

static int print_archive_help(void)
{
    fputs("usage: pycap archive TRACE... [-o FILE]\n"
          "\n"
          "Gathers the binaries that a trace refers to, with their debug files, from this host into one\n"
          "file for 'pysym --archive'. Unpacked into ~/.debug it serves perf, too.\n"
          "\n",
          stdout);
    options_print(archive_rows, stdout);
    return program_end_output(program);
}

/* "trace.bin" becomes "trace.tar.zst". */
static char *archive_name(const char *trace)
{
    size_t len = strlen(trace);
    char *name;

    if (len > 4 && !strcmp(trace + len - 4, ".bin"))
        len -= 4;
    return asprintf(&name, "%.*s.tar.zst", (int)len, trace) < 0 ? NULL : name;
}

static struct error *read_archive_options(struct archive_command *c, int argc, char **argv)
{
    struct archive_options *o = &c->archive;
    int rest;

    TRY(options_read(archive_rows, argc, argv, false, c, &rest));
    if (c->help)
        return NULL;
    if (rest == argc)
        return error_create(ERROR_USAGE, "name a trace, such as trace.bin");
    o->inputs = (const char *const *)argv + rest;
    o->input_count = (uint32_t)(argc - rest);
    if (!o->output && !strcmp(o->inputs[0], "-"))
        return error_create(ERROR_USAGE, "name the archive with -o");
    if (o->output && !strcmp(o->output, "-") && isatty(STDOUT_FILENO))
        return error_create(ERROR_USAGE, "an archive is not for the terminal: name a file with -o, or redirect");
    for (uint32_t i = 0; o->output && i < o->input_count; i++) {
        if (files_are_one(o->output, o->inputs[i]))
            return error_create(ERROR_USAGE, "%s is a trace and cannot be the archive too", o->output);
    }
    return NULL;
}

static int cmd_archive(int argc, char **argv)
{
    struct archive_command c = {.archive.messages = stderr};
    struct error *err = read_archive_options(&c, argc, argv);
    char *name = NULL;
    bool complete;

    if (err)
        return program_usage(program, "pycap archive", err);
    if (c.help)
        return print_archive_help();
    if (!c.archive.output)
        c.archive.output = name = archive_name(c.archive.inputs[0]);
    signal(SIGUSR1, SIG_IGN); /* an event for recordings, which may be reported to all that are called pycap */
    signal(SIGXFSZ, SIG_IGN); /* a file that grew to the limit of ulimit -f is an error of write() */
    err = c.archive.output ? archive_run(&c.archive, &complete) : error_no_memory();
    free(name);
    if (err)
        return program_fail(program, err);
    return c.strict && !complete ? EXIT_INCOMPLETE : EXIT_GOOD;
}

/* ---- info ---- */

struct info_command {
    bool verbose, events, help;
};

static const struct option_row info_rows[] = {
    {"verbose", 'v', NULL, "also how the state of a process's threads is found", option_set_true,
     .offset = offsetof(struct info_command, verbose)},
    {"events", 0, NULL, "list the events that can be sampled here, for pycap record -e; a word behind it,\nlike openat, chooses those that contain it, a pattern like 'sched:*' those that fit it",
     option_set_true, .offset = offsetof(struct info_command, events)},
    {"help", 'h', NULL, "this", option_set_true, .offset = offsetof(struct info_command, help)},
    {NULL},
};

static int cmd_info(int argc, char **argv)
{
    struct info_command c = {0};
    int rest;
    struct error *err = options_read(info_rows, argc, argv, false, &c, &rest);

    signal(SIGUSR1, SIG_IGN); /* as above */
    if (!err && rest + c.events < argc)
        err = error_create(ERROR_USAGE, "info takes %s, such as '%s'", c.events ? "one pattern, and nothing else" : "no arguments",
                           argv[rest + c.events]);
    if (err)
        return program_usage(program, "pycap info", err);
    if (c.help) {
        fputs("usage: pycap info [-v]\n"
              "       pycap info --events [PATTERN]\n"
              "\n"
              "Tells what this host offers for recording, and which Python processes it runs.\n"
              "\n",
              stdout);
        options_print(info_rows, stdout);
    } else {
        err = c.events ? info_list_events(rest < argc ? argv[rest] : NULL, stdout) : info_print(c.verbose, stdout);
    }
    return err ? program_fail(program, err) : program_end_output(program);
}

/* ---- which command ---- */

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"record", cmd_record},
    {"top", cmd_top},
    {"dump", cmd_dump},
    {"archive", cmd_archive},
    {"info", cmd_info},
};

/* What other profilers call what pysym does. */
static const struct {
    const char *name, *instead;
} foreign[] = {
    {"report", "pysym trace.bin"},
    {"stat", "pysym trace.bin"},
    {"script", "pysym trace.bin -f perf-script"},
    {"flamegraph", "pysym trace.bin -f folded | flamegraph.pl"},
};

static struct error *refuse_verb(const char *verb)
{
    if (!*verb)
        return error_create(ERROR_USAGE, "say what to do: record, top, dump, archive or info");
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (!strcmp(verb, foreign[i].name))
            return error_create(ERROR_USAGE, "pycap only records: for '%s', record first, then %s", verb, foreign[i].instead);
    }
    if (*verb == '-')
        return error_create(ERROR_USAGE, "say what to do before %s: record, top, dump, archive or info", verb);
    return error_create(ERROR_USAGE, "'%s' is not known: record, top, dump, archive or info; a program is recorded by pycap record %s",
                        verb, verb);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!strcmp(verb, commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    }
    if (!strcmp(verb, "-h") || !strcmp(verb, "--help") || !strcmp(verb, "help")) {
        print_help();
        return program_end_output(program);
    }
    if (!strcmp(verb, "--version") || !strcmp(verb, "version"))
        return print_version();
    return program_usage(program, program, refuse_verb(verb));
}
