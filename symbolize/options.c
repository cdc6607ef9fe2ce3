/* SPDX-License-Identifier: Apache-2.0 */
/* The options of pysym, a row each (formats/base/options.h), and what they mean together. */
#include "symbolize/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/options.h"

enum { CONTEXT_LINES = 3 }; /* unless --context says otherwise */

/* ---- setters ---- */

static struct error *set_output(const struct option_row *row, const char *argument, void *target)
{
    struct options *o = target;

    TRY(option_set_text(row, argument, target));
    if (!strcmp(argument, "-"))
        o->output = NULL;
    return NULL;
}

/* In the order of enum emit_merge; the first cannot be asked for. */
static const char *const merge_names[] = {"", "all", "process", "thread", NULL};

/* In the order of enum parts_by, likewise. */
static const char *const split_names[] = {"", "process", "thread", NULL};

static const char *const sort_names[] = {"self", "total", NULL}; /* as in enum emit_sort and emit_by */
static const char *const by_names[] = {"function", "line", NULL};

static struct error *set_choice_but_first(const struct option_row *row, const char *argument, void *target)
{
    return *argument ? option_set_choice(row, argument, target) : option_refuse(row, argument);
}

static struct error *set_strict(const struct option_row *row, const char *argument, void *target)
{
    struct options *o = target;

    (void)row;
    return strict_parse(argument, &o->strict);
}

static struct error *set_show_interpreter(const struct option_row *row, const char *argument, void *target)
{
    struct options *o = target;

    (void)row, (void)argument;
    o->interpreter = MERGE_SHOW_ALL;
    return NULL;
}

/* In the order of enum merge_interpreter. */
static const char *const interpreter_names[] = {"hide", "calls", "show", NULL};

/* ---- the table ---- */

#define MEMBER(member) .offset = offsetof(struct options, member)

static const struct option_row option_rows[] = {
    OPTION_HEADING("output"),
    {"format", 'f', "NAME", "one of the formats above", option_set_text, MEMBER(format)},
    {"output", 'o', "OUT", "file to write, complete or not at all (default: standard output)", set_output, MEMBER(output)},
    {"split", 0, "BY", "a file for each process or thread, named after it: process or thread", set_choice_but_first,
     MEMBER(split), .names = split_names, .wants = "process or thread"},
    {"window", 0, "DURATION", "a file for each 15s, 1m or 500ms of real time", option_set_duration, MEMBER(window_ns), .wants =
     "a length of time, like 15s, 1m or 500ms"},
    {"wall", 0, NULL, "cpu-clock and off-cpu as one event: all the time that threads existed", option_set_true,
     MEMBER(filters.wall)},
    {"verbose", 'v', NULL, "summary: every figure, with the losses by name and all modules", option_set_true, MEMBER(verbose)},
    {"top", 0, "N", "rows of top, gil and diff, files of annotate (default: 10; 0 for all)", option_set_u32, MEMBER(emit.top_count), 0, UINT32_MAX,
     "a number of rows, 0 for all"},
    {"sort", 0, "WHAT", "order of top: self (default) or total", option_set_choice, MEMBER(emit.sort),
     .names = sort_names, .wants = "self or total"},
    {"by", 0, "WHAT", "rows of top and gil, calls of tree and svg: function (default) or line", option_set_choice, MEMBER(emit.by), .names = by_names,
     .wants = "function or line"},
    {"source", 0, "PLACE", "a folder in which source files are looked for: DIR, by the ends of their paths,\n"
     "or FROM=TO, where TO has what the trace calls FROM; may be repeated", option_add_text, MEMBER(sources)},
    {"embed-source", 0, NULL, "html: the source files found go into the output", option_set_true, MEMBER(emit.embed_source),
     .with = "source"},
    {"all-lines", 0, NULL, "annotate: whole files and functions, not only what is hot in them", option_set_true,
     MEMBER(emit.all_lines)},
    {"context", 0, "N", "annotate: lines around each hot one (default: 3)", option_set_u32, MEMBER(emit.context_lines), 0,
     UINT32_MAX, "a number of lines"},
    {"json", 0, NULL, "top, gil, annotate and summary as JSON, for scripts", option_set_true, MEMBER(emit.json)},
    {"native-names", 0, NULL, "perf-data: native functions have their names, lines and what was\n"
     "inlined from here, so that perf needs no binaries", option_set_true, MEMBER(emit.native_names)},

    OPTION_HEADING("which samples (RE: an extended regular expression, found anywhere in a name, or a whole name)"),
    {"pid", 0, "PID,...", "of these processes", filter_add_numbers, MEMBER(filters.pids), 0, UINT32_MAX,
     "numbers of processes, like 123,456"},
    {"tid", 0, "TID,...", "of these threads", filter_add_numbers, MEMBER(filters.tids), 0, UINT32_MAX,
     "numbers of threads, like 123,456"},
    {"comm", 0, "RE", "of processes by name", filter_add_name_pattern, MEMBER(filters.comms)},
    {"exe", 0, "RE", "of processes by program file", filter_add_pattern, MEMBER(filters.exes)},
    {"cgroup", 0, "PATH", "of processes in this cgroup and below it", filter_add_text, MEMBER(filters.cgroups),
     .wants = "the path of a cgroup"},
    {"container", 0, "ID", "of processes in this container; the beginning of its ID is enough", filter_add_text,
     MEMBER(filters.containers), .wants = "the ID of a container, or how it begins"},
    {"thread", 0, "RE", "of threads by name", filter_add_name_pattern, MEMBER(filters.threads)},
    {"cpu", 0, "LIST", "on these CPUs, like 0,4-7", filter_add_ranges, MEMBER(filters.cpus),
     .wants = "numbers of CPUs, like 0,4-7"},
    {"task", 0, "RE", "of asyncio tasks by name", filter_add_name_pattern, MEMBER(filters.tasks)},
    {"subinterpreter", 0, "N,...", "of these subinterpreters; 0 is the main one", filter_add_numbers,
     MEMBER(filters.subinterpreters), 0, UINT32_MAX, "numbers of subinterpreters, like 0,1"},
    {"event", 0, "NAME", "of this event", filter_add_text, MEMBER(filters.events), .wants = "the name of an event"},
    {"gil", 0, NULL, "of threads that held the GIL", filter_set_true, MEMBER(filters.gil)},
    {"time", 0, "FROM,TO", "in this range: seconds since the start, 50%, 14:05:00 or a date (UTC)", filter_set_time,
     .wants = "FROM,TO, the earlier one first: seconds since the start, 50%, 14:05:00 or 2026-11-22T14:05:00"},
    {"around", 0, "RE", "from the first to the last with a match on its stack", filter_add_frame_pattern,
     MEMBER(stacks.patterns[STACK_AROUND])},
    {"focus", 0, "RE", "with a function, file or module that matches (file:RE: a file)", filter_add_frame_pattern,
     MEMBER(stacks.patterns[STACK_FOCUS])},
    {"ignore", 0, "RE", "without any such frame", filter_add_frame_pattern, MEMBER(stacks.patterns[STACK_IGNORE])},

    OPTION_HEADING("which part of the stacks"),
    {"root-at", 0, "RE", "begin stacks at the outermost match", filter_add_frame_pattern,
     MEMBER(stacks.patterns[STACK_ROOT_AT])},
    {"callers-of", 0, "RE", "end stacks at the innermost match", filter_add_frame_pattern,
     MEMBER(stacks.patterns[STACK_CALLERS_OF])},
    {"hide", 0, "RE", "leave out frames; their time goes to the caller", filter_add_frame_pattern,
     MEMBER(stacks.patterns[STACK_HIDE])},
    {"show", 0, "RE", "leave out all other frames", filter_add_frame_pattern, MEMBER(stacks.patterns[STACK_SHOW])},
    {"layer", 0, "LAYER,...", "only python, native or kernel frames", filter_add_layers, .wants =
     "layers: python, native or kernel, with commas between them"},
    {"group", 0, "BY", "one frame for neighbours of one module, package, file or layer", filter_set_group,
     .wants = "module, package, file or layer"},
    {"min", 0, "PERCENT", "folded, tree, svg, top, gil, annotate: join or leave out what takes less,\n"
     "like 1% (default: tree 0.5%, svg 0.2%)", filter_set_share,
     MEMBER(emit.min_share), .wants = "a share of the whole, like 0.5%"},
    {"collapse-recursion", 0, NULL, "show a cycle of calls once", filter_set_true, MEMBER(stacks.collapse_recursion)},

    OPTION_HEADING("how frames are shown"),
    {"merge", 0, "WHAT", "add up the samples of all, of each process or of each thread:\n"
     "all, process, thread (default: folded process, top all,\n"
     "speedscope first all, then each thread)",
     set_choice_but_first, MEMBER(emit.merge), .names = merge_names, .wants = "all, process or thread"},
    {"threads", 't', NULL, "--merge thread, and keep subinterpreters apart", option_set_true, MEMBER(emit.threads)},
    {"labels", 0, NULL, "keep subinterpreters, asyncio tasks, and system calls and wakers of waits apart", option_set_true, MEMBER(stacks.labels)},
    {"function", 'F', NULL, "add up lines of a function, which folded and speedscope tell apart", option_set_true,
     MEMBER(stacks.by_function)},
    {"nolineno", 0, NULL, "without line numbers", option_set_true, MEMBER(stacks.no_lines)},
    {"columns", 0, NULL, "with columns, where the Python version has them", option_set_true, MEMBER(emit.columns)},
    {"qualify", 0, NULL, "pprof: names of Python functions with their module", option_set_true, MEMBER(emit.qualify)},
    {"label-cpu", 0, NULL, "pprof: tell samples apart by their CPU", option_set_true, MEMBER(emit.label_cpu)},
    {"full-filenames", 0, NULL, "file names in full", option_set_true, MEMBER(emit.full_paths)},
    {"interpreter", 0, "WHAT", "the interpreter's own frames: hide (default), show,\n"
     "or calls (hide only those that pass a call on)",
     option_set_choice, MEMBER(interpreter), .names = interpreter_names, .wants = "hide, calls or show"},
    {"show-interpreter", 0, NULL, "the same as --interpreter show", set_show_interpreter},
    {"python-only", 0, NULL, "Python frames only", option_set_true, MEMBER(python_only)},

    OPTION_HEADING("where binaries and debug files are looked for, for native names (by default on this host)"),
    {"archive", 0, "FILE", "what pycap archive made; searched first; may be repeated", option_add_text,
     MEMBER(archives)},
    {"symfs", 0, "DIR", "a folder of binaries, by path or build ID; may be repeated", option_add_text, MEMBER(symfs)},
    {"sysroot", 0, "DIR", "before recorded paths and /usr/lib/debug", option_set_text, MEMBER(sysroot)},
    {"no-host", 0, NULL, "look at nothing but the places named here", option_set_true, MEMBER(no_host)},
    {"debuginfod", 0, NULL, "ask the servers of DEBUGINFOD_URLS", option_set_true, MEMBER(debuginfod)},

    OPTION_HEADING("what a trace may cost"),
    {"max-memory", 0, "SIZE", "memory for what it unpacks to (96M, and 112 times its size up to 8G)", option_set_size,
     MEMBER(max_memory_bytes), 1 << 20, UINT64_MAX, "an amount of memory: 1M at least, like 512M"},
    {"max-output", 0, "SIZE", "length of the output (4G where each sample is written, else 1G)", option_set_size,
     MEMBER(max_output_bytes), 1, UINT64_MAX, "an amount of bytes, like 512M"},

    OPTION_HEADING("other"),
    {"quiet", 'q', NULL, "do not say on a terminal how far it is", option_set_true, MEMBER(quiet)},
    {"strict", 0, "LIST",
     "exit with 3 when more is missing than LIST allows, which changes\n"
     STRICT_DEFAULT "; unwind-check: when stacks differ",
     set_strict, .may_be_bare = true},
    {"help", 'h', NULL, "this text", option_set_true, MEMBER(help)},
    {"version", 0, NULL, "the version", option_set_true, MEMBER(version)},
    {NULL},
};

void options_help(const struct options *o, FILE *out)
{
    if (o->command == COMMAND_PUSH) {
        options_push_help(option_rows, out);
        return;
    }
    if (o->command != COMMAND_CONVERT) {
        options_compare_help(option_rows, o->command, out);
        return;
    }
    fputs("usage: pysym FILE... [-f FORMAT] [-o OUT] [options]\n"
          "\n"
          "  pysym trace.bin                             a first page: how complete it is, and what is hot\n"
          "  pysym trace.bin -o profile.html             a page for any browser; it needs no network\n"
          "  pysym trace.bin -f summary                  processes, threads, what is missing and why\n"
          "  pysym annotate [FILE|FUNCTION] trace.bin    source lines with their time (see --source)\n"
          "  pysym diff OLD... -- NEW...                 what surely got slower between two sets of recordings\n"
          "  pysym baseline OLD... -o main.pyb           what pysym diff needs of recordings, in a small file\n"
          "  pysym push --pyroscope URL FILE|DIR...      send profiles to a store that a fleet asks (or --parca URL)\n"
          "\n"
          "Reads traces of pycap, on any machine and without privileges. FILE or OUT may be - for\n"
          "standard input or output; several files become one output.\n"
          "\n"
          "formats (default: by the extension of OUT):\n",
          out);
    format_print(out);
    options_print(option_rows, out);
    fputs("\nexit status: 0 good, 1 failed, 2 wrong usage, 3 done but incomplete (with --strict); of diff also\n"
          "4 a rule is surely broken, 5 undecided where that fails\n", out);
}

/* The output grows while traces are read, and does not appear at their end. */
static bool writes_each_sample(const struct options *o)
{
    return o->choice.kind == OUTPUT_DUMP || (o->choice.emitter && o->choice.emitter->writes_each_sample);
}

/*
 * Of a trace of a program a byte may become some thousand: that of a sample of a deep stack that was met before. A trace of equal
 * samples, which no program leaves, packs better by a factor of hundreds.
 */
#define OUTPUT_FREE (UINT64_C(64) << 20)
#define OUTPUT_FACTOR 4096

uint64_t options_max_output(const struct options *o, uint64_t input_bytes, bool *by_size)
{
    uint64_t most = (writes_each_sample(o) ? UINT64_C(4) : UINT64_C(1)) << 30;

    *by_size = false;
    if (o->max_output_bytes)
        return o->max_output_bytes;
    if (!input_bytes || input_bytes > (most - OUTPUT_FREE) / OUTPUT_FACTOR)
        return most;
    *by_size = true;
    return OUTPUT_FREE + OUTPUT_FACTOR * input_bytes;
}

enum job_text_syntax options_syntax(const struct options *o)
{
    const struct report_format *report = o->compare.report;
    const struct emitter *emitter = o->choice.emitter;

    if (o->choice.kind == OUTPUT_BASELINE || (emitter && emitter->binary))
        return JOB_TEXT_AS_IS;
    if (o->emit.json)
        return JOB_TEXT_JSON;
    return report ? report->syntax : emitter ? emitter->syntax : JOB_TEXT_PLAIN;
}

bool options_shows_progress(const struct options *o)
{
    return !o->quiet && o->choice.kind != OUTPUT_LIVE && o->command != COMMAND_PUSH && (o->output || !writes_each_sample(o) || !isatty(STDOUT_FILENO));
}

void options_deinit(struct options *o)
{
    VEC_DEINIT(&o->inputs);
    VEC_DEINIT(&o->archives);
    VEC_DEINIT(&o->symfs);
    VEC_DEINIT(&o->sources);
    sample_filter_options_deinit(&o->filters);
    stack_map_options_deinit(&o->stacks);
    VEC_DEINIT(&o->given);
    VEC_DEINIT(&o->compare.old_baselines);
    VEC_DEINIT(&o->compare.new_baselines);
    VEC_DEINIT(&o->compare.rules);
    VEC_DEINIT(&o->push.labels);
    buf_deinit(&o->push_state);
    buf_deinit(&o->filter_text);
}

/* Not all filters apply to the outputs that are no emitters. */
static struct error *check_filters(const struct options *o)
{
    const char *first = o->given.count ? o->given.data[0].name : NULL;
    bool changes_stacks = o->stacks.layers || o->stacks.group || o->stacks.collapse_recursion;

    for (int i = 0; i < STACK_PATTERN_COUNT; i++)
        changes_stacks |= o->stacks.patterns[i].count;
    if (o->choice.kind == OUTPUT_LIVE && (o->filters.around || time_range_has_share(&o->filters.time)))
        return error_create(ERROR_USAGE, "live shows a trace as it comes: it takes no --around, and no --time in percent, which need its end");
    if (first && o->choice.kind == OUTPUT_DUMP)
        return error_create(ERROR_USAGE, "dump writes every record: it takes no filter such as --%s", first);
    if (o->emit.min_share > 0 && !(o->choice.emitter && o->choice.emitter->joins_thin))
        return error_create(ERROR_USAGE, "--min is for folded, tree, svg, top, gil and annotate alone: other formats hold "
                                         "every stack");
    if (changes_stacks && o->choice.kind == OUTPUT_UNWIND_CHECK)
        return error_create(ERROR_USAGE, "unwind-check compares stacks as they were recorded: of the filters it takes "
                                         "those by process, thread, event and time");
    return NULL;
}

/* What can be several files, and where. */
static struct error *check_split(const struct options *o)
{
    const struct emitter *emitter = o->choice.emitter;
    const char *option = o->split ? "--split" : "--window";

    if (o->choice.kind == OUTPUT_PAGE || (o->choice.kind == OUTPUT_EMITTER && !o->output))
        return error_create(ERROR_USAGE, "%s writes several files: say how their names begin and end, like -o profile%s", option,
                            o->choice.kind == OUTPUT_PAGE ? ".folded" : emitter->extension);
    if (o->choice.kind != OUTPUT_EMITTER || emitter->needs_files)
        return error_create(ERROR_USAGE, "%s: %s is always one output, of all samples%s", option,
                            emitter ? emitter->name : o->format,
                            !emitter ? "" : o->split ? "; --pid or --tid chooses some" : "; --time chooses some");
    return o->window_ns && o->window_ns < NS_PER_MS ? error_create(ERROR_USAGE, "--window wants 1ms at least") : NULL;
}

/* Outputs that a terminal or a pipe cannot take. */
static struct error *check_output(const struct options *o)
{
    const struct emitter *emitter = o->choice.emitter;

    if (options_split(o))
        return check_split(o);
    if (o->output || !emitter)
        return NULL;
    if (emitter->needs_files || emitter->seeks)
        return error_create(ERROR_USAGE, "%s cannot be written to standard output: name a file, like -o profile%s",
                            emitter->name, emitter->extension);
    if (emitter->binary && isatty(STDOUT_FILENO))
        return error_create(ERROR_USAGE, "%s is not written to a terminal: name a file, like -o profile%s",
                            emitter->name, emitter->extension);
    return NULL;
}

static struct error *check_live(const struct options *o)
{
    if (o->choice.kind != OUTPUT_LIVE)
        return NULL;
    if (o->output || o->strict.is_on || o->inputs.count > 1)
        return error_create(ERROR_USAGE, "live is a view on the terminal, of one trace: it takes no %s",
                            o->output ? "-o" : o->strict.is_on ? "--strict" : "second one");
    return NULL;
}

/* What the members of filters say about each other. */
static struct error *end_filters(struct options *o)
{
    o->filters.given = o->stacks.given = &o->given;
    o->filters.around = o->stacks.patterns[STACK_AROUND].count;
    /* A comparison is of one event, which its report names: runs of which all events are kept compare with those of that one. */
    given_put_but(&o->given, o->command == COMMAND_DIFF || o->command == COMMAND_BASELINE ? "event" : NULL, &o->filter_text);
    o->filters_given = buf_cstr(&o->filter_text);
    return o->filter_text.bad ? error_no_memory() : check_filters(o);
}

static struct error *check_pprof(const struct options *o)
{
    const char *given = o->emit.qualify ? "qualify" : o->emit.label_cpu ? "label-cpu" : NULL;

    if (given && !(o->choice.emitter && o->choice.emitter->qualifies))
        return error_create(ERROR_USAGE, "--%s is for --format pprof", given);
    return NULL;
}

static struct error *check_native_names(const struct options *o)
{
    if (o->emit.native_names && !(o->choice.emitter && o->choice.emitter->takes_native_names))
        return error_create(ERROR_USAGE, "--native-names is for --format perf-data: what other formats name is in them");
    return NULL;
}

static struct error *check_top(const struct options *o)
{
    if (o->emit.json && o->choice.kind != OUTPUT_SUMMARY && (o->choice.kind != OUTPUT_EMITTER || !o->choice.emitter->writes_json))
        return error_create(ERROR_USAGE, "--json is for --format top, gil, threads, annotate and summary");
    if (o->emit.by == EMIT_BY_LINE && (o->stacks.by_function || o->stacks.no_lines))
        return error_create(ERROR_USAGE, "--by line needs the lines that --function and --nolineno leave out");
    return NULL;
}

static struct error *check_source(const struct options *o)
{
    const struct emitter *emitter = o->choice.emitter;
    bool shows_lines = o->choice.kind == OUTPUT_EMITTER && emitter->shows_source;

    if (o->emit.embed_source && !(emitter && emitter->embeds_source))
        return error_create(ERROR_USAGE, "--embed-source is for --format html");
    if (o->sources.count && !shows_lines && !o->emit.embed_source)
        return error_create(ERROR_USAGE, "--source is for pysym annotate, and for --format html with --embed-source");
    if (!shows_lines && (o->emit.all_lines || o->emit.context_lines != CONTEXT_LINES))
        return error_create(ERROR_USAGE, "--%s is for pysym annotate", o->emit.all_lines ? "all-lines" : "context");
    if (shows_lines && (o->stacks.by_function || o->stacks.no_lines || o->stacks.group))
        return error_create(ERROR_USAGE, "annotate needs the lines that --function, --nolineno and --group leave out");
    return NULL;
}

static struct error *check_wall(const struct options *o)
{
    if (!o->filters.wall || (o->choice.emitter && !o->choice.emitter->tells_waits))
        return NULL;
    return error_create(ERROR_USAGE, "--wall is for stacks: %s has each event by itself", o->format);
}

/* `pysym annotate [FILE|FUNCTION] TRACE...`: with one word behind it, that is the trace. */
static struct error *take_command(struct options *o, int argc, char **argv, int *rest)
{
    static const char annotate[] = "annotate";

    if (*rest == argc || strcmp(argv[*rest], annotate))
        return NULL;
    if (o->format && strcmp(o->format, annotate))
        return error_create(ERROR_USAGE, "pysym annotate is a format of its own: it cannot be --format %s", o->format);
    if (argc - *rest == 1)
        return error_create(ERROR_USAGE, "pysym annotate: name a trace, such as trace.bin, and before it a file or function "
                                         "to see only that (a trace called annotate is ./annotate)");
    size_t len = strlen(argv[*rest + 1]);
    if (argc - *rest == 2 && len > 3 && !strcmp(argv[*rest + 1] + len - 3, ".py"))
        return error_create(ERROR_USAGE, "pysym annotate %s: name the trace behind it, such as trace.bin", argv[*rest + 1]);
    o->format = annotate;
    ++*rest;
    if (argc - *rest > 1)
        o->emit.annotate = argv[(*rest)++];
    return NULL;
}

/* Reads options and words of a conversion. */
static struct error *read_conversion(struct options *o, int argc, char **argv)
{
    struct option_table table;
    int rest;

    options_table_init(&table, option_rows, COMMAND_CONVERT);
    TRY(options_read(table.rows, argc, argv, false, o, &rest));
    if (o->help || o->version)
        return NULL;
    TRY(take_command(o, argc, argv, &rest));
    if (rest < argc)
        TRY(options_check_word(argv[rest]));
    for (int i = rest; i < argc; i++) {
        if (!VEC_PUSH(&o->inputs, argv[i]))
            return error_no_memory();
    }
    return NULL;
}

static struct error *check_conversion(struct options *o)
{
    if (!o->inputs.count)
        return error_create(ERROR_USAGE, "name a trace, such as trace.bin");
    TRY(format_choose(o->format, o->output, &o->choice));
    TRY(check_output(o));
    TRY(check_live(o));
    TRY(check_top(o));
    TRY(check_native_names(o));
    TRY(check_pprof(o));
    TRY(check_wall(o));
    return check_source(o);
}

/* Reads options and words as the command takes them. */
static struct error *read_command(struct options *o, int argc, char **argv)
{
    switch (o->command) {
    case COMMAND_CONVERT:
        return read_conversion(o, argc, argv);
    case COMMAND_PUSH:
        return options_push_read(o, option_rows, argc, argv);
    case COMMAND_DIFF:
    case COMMAND_BASELINE:
        return options_compare_read(o, option_rows, argc, argv);
    }
    return NULL;
}

/* What they mean together. */
static struct error *check_command(struct options *o)
{
    switch (o->command) {
    case COMMAND_CONVERT:
        return check_conversion(o);
    case COMMAND_PUSH:
        return options_push_check(o);
    case COMMAND_DIFF:
    case COMMAND_BASELINE:
        return options_compare_check(o);
    }
    return NULL;
}

struct error *options_parse(int argc, char **argv, struct options *o)
{
    size_t from_stdin = 0;

    *o = (struct options){.command = options_command_of(argc, argv),
                          .emit = {.top_count = 10, .context_lines = CONTEXT_LINES, .min_share = -1}};
    TRY(read_command(o, argc, argv));
    if (o->help || o->version)
        return NULL;
    if (!VEC_PUSH(&o->symfs, NULL) || !VEC_PUSH(&o->archives, NULL))
        return error_no_memory();
    for (size_t i = 0; i < o->inputs.count; i++)
        from_stdin += !strcmp(o->inputs.data[i], "-");
    if (from_stdin > 1)
        return error_create(ERROR_USAGE, "standard input (-) can be read but once");
    TRY(check_command(o));
    return end_filters(o);
}
