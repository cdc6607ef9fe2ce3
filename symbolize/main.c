/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pysym: turns traces of pycap into stacks that a person can read.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/program.h"
#include "formats/base/vec.h"
#include "symbolize/compare/inputs.h"
#include "symbolize/confine.h"
#include "symbolize/convert.h"
#include "symbolize/live_convert.h"
#include "symbolize/options.h"
#include "symbolize/output_files.h"
#include "symbolize/output_stream.h"
#include "symbolize/part_files.h"
#include "symbolize/push/push.h"
#include "symbolize/push/series.h"
#include "symbolize/push_convert.h"
#include "symbolize/source/notebook.h"
#include "symbolize/source/sources.h"
#include "symbolize/terminal.h"
#include "symbolize/trace/input.h"

static const char program[] = "pysym";

static int inform(const struct options *o)
{
    if (o->help)
        options_help(o, stdout);
    else
        printf("pysym " TOOL_VERSION "\n");
    return program_end_output(program);
}

/* A place that does not exist is an error: files would silently not be found there. */
static struct error *check_place(const char *path, bool folder, const char *what)
{
    struct stat st;

    if (stat(path, &st))
        return error_file(errno, path, "cannot be searched for %s", what);
    return folder && !S_ISDIR(st.st_mode) ? error_file(ENOTDIR, path, "cannot be searched for %s", what) : NULL;
}

static struct error *check_source_place(const char *place)
{
    size_t from_len;

    const char *path = source_folder(place, &from_len);

    return check_place(path, !notebook_is(path), "source files");
}

static struct error *check_places(const struct options *o)
{
    static const char binaries[] = "binaries";

    for (const char *const *path = o->symfs.data; *path; path++)
        TRY(check_place(*path, true, binaries));
    for (const char *const *path = o->archives.data; *path; path++)
        TRY(check_place(*path, false, binaries));
    for (size_t i = 0; i < o->sources.count; i++)
        TRY(check_source_place(o->sources.data[i]));
    if (o->compare.old_source) {
        TRY(check_source_place(o->compare.old_source));
        TRY(check_source_place(o->compare.new_source));
    }
    return o->sysroot ? check_place(o->sysroot, true, binaries) : NULL;
}

struct inputs {
    VEC(struct stat) list;
};

/* A path of NULL is none. */
static struct error *add_input(struct inputs *found, const char *path)
{
    struct stat st;

    return !path || stat(path, &st) || VEC_PUSH(&found->list, st) ? NULL : error_no_memory();
}

/* Adds the files that are read: writing over a trace or an archive would lose it. Runs may be added to a baseline, though. */
static struct error *find_inputs(const struct options *o, struct inputs *found)
{
    const struct compare_request *r = &o->compare;
    bool may_grow = o->command == COMMAND_BASELINE;

    for (size_t i = 0; i < o->inputs.count; i++)
        TRY(add_input(found, o->inputs.data[i]));
    for (const char *const *path = o->archives.data; *path; path++)
        TRY(add_input(found, *path));
    for (size_t i = 0; !may_grow && i < r->old_baselines.count; i++)
        TRY(add_input(found, r->old_baselines.data[i]));
    for (size_t i = 0; i < r->new_baselines.count; i++)
        TRY(add_input(found, r->new_baselines.data[i]));
    TRY(add_input(found, r->budget));
    return add_input(found, r->work);
}

/* 0: not known, as of a pipe. */
static uint64_t size_of(const struct options *o, const struct inputs *inputs)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < inputs->list.count; i++) {
        if (!S_ISREG(inputs->list.data[i].st_mode))
            return 0;
        sum += (uint64_t)inputs->list.data[i].st_size;
    }
    for (size_t i = 0; i < o->inputs.count; i++)
        sum = strcmp(o->inputs.data[i], "-") ? sum : 0;
    return sum;
}

/* The output as long as it is not complete, for remove_output(). */
static struct output_files *volatile unfinished;

static void remove_output(int signal_number)
{
    struct output_files *files = unfinished;

    if (files)
        output_files_remove(files);
    raise(signal_number); /* its default effect, when this function returns */
}

/* A signal that ends pysym leaves no half of an output. Those that are ignored stay so. */
static void receive_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
    struct sigaction act = {.sa_handler = remove_output, .sa_flags = (int)SA_RESETHAND}, before;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &act, NULL);
    }
}

/* Gives an emitter what it asks for. */
static struct error *arrange_files(struct options *o, struct output_files *files)
{
    const struct emitter *emitter = o->choice.emitter;
    bool needs = emitter && (emitter->needs_files || emitter->seeks);

    if (options_split(o))
        return NULL;
    if (needs || (emitter && emitter->uses_files))
        o->emit.files = output_files_beside(files);
    return o->emit.files || !needs ? NULL
                                   : error_create(ERROR_USAGE, "%s cannot be written to %s, which is no regular file: name another with -o",
                                                  emitter->name, o->output ? o->output : "standard output");
}

static int descriptor_of_messages(struct output_stream *stream)
{
    (void)stream;
    return STDERR_FILENO;
}

/* Standard error, for messages with names from traces. */
static struct error *open_messages(struct output_limit *none, struct output_stream *out)
{
    *none = (struct output_limit){.max_bytes = UINT64_MAX};
    *out = (struct output_stream){.limit = none, .descriptor = descriptor_of_messages};
    TRY(output_stream_open(out));
    setvbuf(out->file, NULL, _IOLBF, 0);
    return NULL;
}

/* Writes the parts of an output to files, and says how many there are. */
static struct error *convert_to_parts(const struct options *o, struct output_files *files, FILE *messages, struct convert_outcome *outcome)
{
    struct part_files parts;

    struct error *err = part_files_init(&parts, files, o->output, o->choice.emitter->extension, o->window_ns);
    if (!err)
        err = convert_run(o, &(struct convert_output){.parts = &parts.sink}, messages, outcome);
    err = output_files_finish(files, err);
    if (!err)
        part_files_print(&parts, messages);
    part_files_deinit(&parts);
    return err;
}

static struct error *convert_to_one(const struct options *o, struct output_files *files, FILE *messages, struct convert_outcome *outcome)
{
    const struct convert_output out = {.file = output_files_first(files)};

    return output_files_finish(files, convert_run(o, &out, messages, outcome));
}

static struct error *convert_to(struct options *o, const struct inputs *inputs, struct convert_outcome *outcome)
{
    bool by_size;
    struct output_files_options options = {.path = o->output,
                                                 .parts = options_split(o),
                                                 .max_bytes = options_max_output(o, size_of(o, inputs), &by_size),
                                                 .binary = o->choice.kind == OUTPUT_BASELINE || (o->choice.emitter && o->choice.emitter->binary),
                                                 .syntax = options_syntax(o),
                                                 .inputs = inputs->list.data,
                                                 .input_count = inputs->list.count};
    struct output_files *files;
    struct output_limit none;
    struct output_stream messages = {0};

    options.by_size = by_size;
    TRY(output_files_open(&options, &files));
    unfinished = files;
    receive_signals();
    struct error *err = arrange_files(o, files);
    if (!err)
        err = confine(o);
    if (!err)
        err = open_messages(&none, &messages);
    if (!err)
        err = (options_split(o) ? convert_to_parts : convert_to_one)(o, files, messages.file, outcome);
    output_stream_close(&messages);
    output_files_remove(files); /* while remove_output() still would */
    unfinished = NULL;
    output_files_destroy(files);
    return err;
}

static struct error *run(struct options *o, struct convert_outcome *outcome)
{
    struct inputs inputs = {0};

    TRY(check_places(o));
    if (o->command != COMMAND_CONVERT)
        TRY(compare_sort_inputs(&o->compare, o->inputs.data, &o->inputs.count));
    if (o->choice.kind == OUTPUT_LIVE)
        return live_convert(o, outcome);
    struct error *err = find_inputs(o, &inputs);
    if (!err)
        err = convert_to(o, &inputs, outcome);
    VEC_DEINIT(&inputs.list);
    return err;
}

/* The file of figures is replaced: not if it is one that is read. */
static struct error *check_status(const struct options *o)
{
    struct inputs inputs = {0};
    struct stat st;
    struct error *err = NULL;

    if (!o->push.status || stat(o->push.status, &st))
        return NULL;
    err = find_inputs(o, &inputs);
    for (size_t i = 0; !err && i < inputs.list.count; i++) {
        if (inputs.list.data[i].st_dev == st.st_dev && inputs.list.data[i].st_ino == st.st_ino)
            err = error_path(ERROR_USAGE, o->push.status, "is read: figures would be written over it");
    }
    VEC_DEINIT(&inputs.list);
    return err;
}

static struct error *push(struct options *o, struct convert_outcome *outcome)
{
    struct push_outcome pushed = {0};

    TRY(check_places(o));
    TRY(check_status(o));
    TRY(series_check_map(&o->push)); /* else no trace could be read */
    TRY(push_run(&o->push, push_convert, o, &pushed));
    outcome->incomplete = pushed.incomplete;
    return NULL;
}

/* The exit code of a run that succeeded, as far as it got. */
static int judge(const struct options *o, const struct convert_outcome *outcome)
{
    if (o->strict.is_on && outcome->differs)
        fprintf(stderr, "pysym: stacks unwound in the kernel differ from those of a witness; the report says which\n");
    else if (outcome->verdict == GATE_BROKEN)
        fprintf(stderr, "pysym: a rule is surely broken; the report says which\n");
    else if (!outcome->incomplete && outcome->verdict == GATE_UNDECIDED)
        fprintf(stderr, "pysym: the runs do not tell whether a rule is broken; the report says which, and what would tell\n");
    if (outcome->verdict == GATE_BROKEN)
        return EXIT_BROKEN;
    if (outcome->incomplete || (o->strict.is_on && outcome->differs))
        return EXIT_INCOMPLETE;
    return outcome->verdict == GATE_UNDECIDED ? EXIT_UNDECIDED : EXIT_GOOD;
}

int main(int argc, char **argv)
{
    struct options o;
    struct convert_outcome outcome = {0};
    struct error *err = options_parse(argc, argv, &o);
    int status = EXIT_GOOD;

    signal(SIGXFSZ, SIG_IGN); /* a file that grew to the limit of ulimit -f is an error of write() */
    if (err) {
        status = program_usage(program, options_command_name(&o), err);
    } else if (o.help || o.version) {
        status = inform(&o);
    } else {
        /* libdwfl would use the network whenever this is set, without --debuginfod too. */
        if (!o.debuginfod)
            unsetenv("DEBUGINFOD_URLS");
        o.emit.name = o.inputs.count ? input_title(o.inputs.data[0]) : "";
        o.emit.exporter = "pysym " TOOL_VERSION;
        if (!o.output)
            o.emit.terminal = terminal_of_output();
        err = (o.command == COMMAND_PUSH ? push : run)(&o, &outcome);
        status = err ? program_fail(program, err) : judge(&o, &outcome);
        if (outcome.abandoned)
            _exit(status);
    }
    options_deinit(&o);
    return status;
}
