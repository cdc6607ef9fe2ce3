/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pysym: turns traces of pycap into stacks that a person can read.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "formats/base/output.h"
#include "formats/base/program.h"
#include "symbolize/confine.h"
#include "symbolize/convert.h"
#include "symbolize/trace/input.h"
#include "symbolize/options.h"
#include "symbolize/terminal.h"

static const char program[] = "pysym";

static int inform(const struct options *o)
{
    if (o->help)
        options_help(stdout);
    else
        printf("pysym " TOOL_VERSION "\n");
    return program_end_output(program);
}

static bool is_file(const char *path, const struct stat *file)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Writing over a trace or an archive would lose it. */
static struct error *check_output(const struct options *o)
{
    struct stat out;
    bool is_input = false;

    if (!o->output || stat(o->output, &out) < 0 || !S_ISREG(out.st_mode))
        return NULL;
    for (size_t i = 0; i < o->inputs.count; i++)
        is_input |= is_file(o->inputs.data[i], &out);
    for (const char *const *path = o->archives.data; *path; path++)
        is_input |= is_file(*path, &out);
    return is_input ? error_create(ERROR_USAGE, "%s is an input and cannot be the output too", o->output) : NULL;
}

/* A place that does not exist is an error: files would silently not be found there. */
static struct error *check_place(const char *path, bool folder)
{
    struct stat st;

    if (stat(path, &st))
        return error_file(errno, path, "cannot be searched for binaries");
    return folder && !S_ISDIR(st.st_mode) ? error_file(ENOTDIR, path, "cannot be searched for binaries") : NULL;
}

static struct error *check_places(const struct options *o)
{
    for (const char *const *path = o->symfs.data; *path; path++)
        TRY(check_place(*path, true));
    for (const char *const *path = o->archives.data; *path; path++)
        TRY(check_place(*path, false));
    return o->sysroot ? check_place(o->sysroot, true) : NULL;
}

static struct error *run(struct options *o, struct convert_outcome *outcome)
{
    struct output output;

    TRY(check_output(o));
    TRY(check_places(o));
    TRY(output_open(o->output, &output));
    struct error *err = confine(o);
    if (!err)
        err = output_blame(&output, convert_run(o, output.file, stderr, outcome));
    if (!err)
        err = output_finish(&output);
    output_deinit(&output);
    return err;
}

int main(int argc, char **argv)
{
    struct options o;
    struct convert_outcome outcome = {0};
    struct error *err = options_parse(argc, argv, &o);
    int status = EXIT_GOOD;

    signal(SIGXFSZ, SIG_IGN); /* a file that grew to the limit of ulimit -f is an error of write() */
    if (err) {
        status = program_usage(program, program, err);
    } else if (o.help || o.version) {
        status = inform(&o);
    } else {
        /* libdwfl would use the network whenever this is set, without --debuginfod too. */
        if (!o.debuginfod)
            unsetenv("DEBUGINFOD_URLS");
        o.emit.name = input_title(o.inputs.data[0]);
        o.emit.exporter = "pysym " TOOL_VERSION;
        if (!o.output)
            o.emit.terminal = terminal_of_output();
        err = run(&o, &outcome);
        if (err)
            status = program_fail(program, err);
        else if (o.strict.is_on && outcome.differs) {
            fprintf(stderr, "pysym: stacks unwound in the kernel differ from those of a witness; the report says "
                            "which\n");
            status = EXIT_INCOMPLETE;
        } else if (outcome.incomplete) {
            status = EXIT_INCOMPLETE;
        }
    }
    options_deinit(&o);
    return status;
}
