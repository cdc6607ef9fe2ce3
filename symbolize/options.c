/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"

enum {
    OPT_ARCHIVE = 256, OPT_SYMFS, OPT_SYSROOT, OPT_DEBUGINFOD, OPT_NOLINENO, OPT_FULL_FILENAMES, OPT_COLUMNS, OPT_SHOW_INTERPRETER,
    OPT_PYTHON_ONLY, OPT_LABELS, OPT_GIL, OPT_PID, OPT_TID, OPT_TIME, OPT_STRICT, OPT_TOP, OPT_VERSION,
};

static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"archive", required_argument, NULL, OPT_ARCHIVE},
    {"symfs", required_argument, NULL, OPT_SYMFS},
    {"sysroot", required_argument, NULL, OPT_SYSROOT},
    {"debuginfod", no_argument, NULL, OPT_DEBUGINFOD},
    {"threads", no_argument, NULL, 't'},
    {"function", no_argument, NULL, 'F'},
    {"nolineno", no_argument, NULL, OPT_NOLINENO},
    {"full-filenames", no_argument, NULL, OPT_FULL_FILENAMES},
    {"columns", no_argument, NULL, OPT_COLUMNS},
    {"show-interpreter", no_argument, NULL, OPT_SHOW_INTERPRETER},
    {"python-only", no_argument, NULL, OPT_PYTHON_ONLY},
    {"labels", no_argument, NULL, OPT_LABELS},
    {"gil", no_argument, NULL, OPT_GIL},
    {"pid", required_argument, NULL, OPT_PID},
    {"tid", required_argument, NULL, OPT_TID},
    {"time", required_argument, NULL, OPT_TIME},
    {"top", required_argument, NULL, OPT_TOP},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {0},
};

static const char help_head[] =
    "usage: pysym FILE... --format NAME [-o OUT] [options]\n"
    "\n"
    "Turns traces of pycap into stacks that a person can read. Needs no privilege and no\n"
    "running process. FILE or OUT may be - for standard input or output; several files,\n"
    "such as the parts of one capture, become one output.\n"
    "\n"
    "formats (default: by the extension of OUT):\n";
static const char help_tail[] =
    "\n"
    "output:\n"
    "  -f, --format NAME     one of the formats above\n"
    "  -o, --output OUT      file to write, complete or not at all (default: standard output)\n"
    "      --top N           rows of top (default: 10; 0 for all)\n"
    "\n"
    "where binaries and their debug files are looked for, besides this host's own paths:\n"
    "      --archive FILE    what pycap archive or perf archive made; before all else; may be repeated\n"
    "      --symfs DIR       a folder of binaries, by path or build ID; may be repeated\n"
    "      --sysroot DIR     before recorded paths and /usr/lib/debug\n"
    "      --debuginfod      ask the servers of DEBUGINFOD_URLS\n"
    "\n"
    "how frames are shown:\n"
    "  -t, --threads         keep threads (folded) and subinterpreters apart\n"
    "      --labels          keep subinterpreters and asyncio tasks apart\n"
    "  -F, --function        by function rather than by line\n"
    "      --nolineno        without line numbers\n"
    "      --columns         with columns, where the Python version has them\n"
    "      --full-filenames  file names in full\n"
    "      --show-interpreter  with the interpreter's own frames, which Python frames stand for otherwise\n"
    "      --python-only     Python frames only\n"
    "\n"
    "which samples:\n"
    "      --gil             of threads that held the GIL\n"
    "      --pid PID,...     of these processes\n"
    "      --tid TID,...     of these threads\n"
    "      --time FROM,TO    between these seconds since the start; either may be left out\n"
    "\n"
    "      --strict          exit with 3 when anything was lost, damaged or left without a name\n"
    "                        (unwind-check: when stacks differ)\n"
    "  -h, --help            this text\n"
    "      --version         the version\n"
    "\n"
    "exit status: 0 good, 1 failed, 2 wrong usage, 3 done but incomplete (with --strict)\n";

static const struct {
    enum output_kind kind;
    const char *name, *description;
} own_formats[] = {
    {OUTPUT_SUMMARY, "summary", "what the trace holds, how complete it is, what was lost"},
    {OUTPUT_DUMP, "dump", "every record of the trace as text"},
    {OUTPUT_UNWIND_CHECK, "unwind-check", "stacks unwound in the kernel beside snapshots (pycap record --unwind both)"},
};
enum { OWN_FORMAT_COUNT = sizeof own_formats / sizeof *own_formats };

void options_help(FILE *out)
{
    fputs(help_head, out);
    for (const struct emitter *const *e = emitters; *e; e++)
        fprintf(out, "  %-20s  %s\n", (*e)->name, (*e)->description);
    for (int i = 0; i < OWN_FORMAT_COUNT; i++)
        fprintf(out, "  %-20s  %s\n", own_formats[i].name, own_formats[i].description);
    fputs(help_tail, out);
}

void options_deinit(struct options *o)
{
    VEC_DEINIT(&o->inputs);
    VEC_DEINIT(&o->archives);
    VEC_DEINIT(&o->symfs);
    VEC_DEINIT(&o->pids);
    VEC_DEINIT(&o->tids);
}

static struct error *usage_formats(const char *what, const char *name)
{
    struct buf names = {0};

    for (const struct emitter *const *e = emitters; *e; e++)
        buf_printf(&names, "%s ", (*e)->name);
    for (int i = 0; i < OWN_FORMAT_COUNT; i++)
        buf_printf(&names, "%s%s", i ? " " : "", own_formats[i].name);
    struct error *err = error_create(ERROR_USAGE, "%s%s%s; formats are: %s", what, name ? " " : "", name ? name : "",
                                     buf_cstr(&names));
    buf_deinit(&names);
    return err;
}

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), end_len = strlen(end);

    return end_len && len > end_len && !strcmp(s + len - end_len, end);
}

/* By the extension of the output: a usual one, else the longest that a format calls its own. */
static struct error *guess_format(struct options *o)
{
    static const char *const usual[][2] = {{".json", "speedscope"}, {".txt", "folded"}, {".collapsed", "folded"},
                                           {".perf", "perf-script"}};

    if (!o->output)
        return usage_formats("say which --format", NULL);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (ends_with(o->output, usual[i][0]))
            o->emitter = emitter_find(usual[i][1]);
    }
    const struct emitter *own = NULL;
    for (const struct emitter *const *e = emitters; *e; e++) {
        if (ends_with(o->output, (*e)->extension) && (!own || strlen((*e)->extension) > strlen(own->extension)))
            own = *e;
    }
    if (!o->emitter)
        o->emitter = own;
    return o->emitter ? NULL : usage_formats("say which --format; none is known by the name", o->output);
}

static struct error *find_format(struct options *o, const char *name)
{
    for (int i = 0; i < OWN_FORMAT_COUNT; i++) {
        if (!strcmp(name, own_formats[i].name)) {
            o->kind = own_formats[i].kind;
            return NULL;
        }
    }
    o->emitter = emitter_find(name);
    return o->emitter ? NULL : usage_formats("unknown format", name);
}

static bool parse_u32(const char *text, char **end, uint32_t *out)
{
    errno = 0;
    unsigned long v = strtoul(text, end, 10);
    *out = (uint32_t)v;
    return *end != text && *text >= '0' && *text <= '9' && !errno && v <= UINT32_MAX;
}

static struct error *parse_ids(const char *option, const char *text, struct options_ids *ids)
{
    uint32_t id;
    char *end;

    for (;; text = end + 1) {
        if (!parse_u32(text, &end, &id) || (*end && *end != ','))
            return error_create(ERROR_USAGE, "--%s wants numbers, not %s", option, text);
        if (!VEC_PUSH(ids, id))
            return error_no_memory();
        if (!*end)
            return NULL;
    }
}

static bool parse_seconds(const char *text, char **end, uint64_t *ns)
{
    double seconds = strtod(text, end);

    if (*end == text || !isfinite(seconds) || seconds < 0 || seconds > 1e9)
        return false;
    *ns = (uint64_t)(seconds * 1e9 + 0.5);
    return true;
}

static struct error *parse_time(struct options *o, const char *text)
{
    const char *comma = strchr(text, ',');
    char *end = NULL;

    if (comma && (comma == text || (parse_seconds(text, &end, &o->from_ns) && end == comma)) &&
        (!comma[1] || (parse_seconds(comma + 1, &end, &o->to_ns) && !*end)) && o->from_ns < o->to_ns)
        return NULL;
    return error_create(ERROR_USAGE, "--time wants FROM,TO in seconds since the start, not %s", text);
}

static struct error *parse_option(struct options *o, int option, const char *arg, const char **format)
{
    char *end;

    switch (option) {
    case 'f':
        *format = arg;
        return NULL;
    case 'o':
        o->output = strcmp(arg, "-") ? arg : NULL;
        return *arg ? NULL : error_create(ERROR_USAGE, "--output wants the name of a file");
    case 't':
        o->emit.threads = true;
        return NULL;
    case 'F':
        o->emit.by_function = true;
        return NULL;
    case 'h':
        o->help = true;
        return NULL;
    case OPT_VERSION:
        o->version = true;
        return NULL;
    case OPT_ARCHIVE:
        return VEC_PUSH(&o->archives, arg) ? NULL : error_no_memory();
    case OPT_SYMFS:
        return VEC_PUSH(&o->symfs, arg) ? NULL : error_no_memory();
    case OPT_SYSROOT:
        o->sysroot = arg;
        return NULL;
    case OPT_DEBUGINFOD:
        o->debuginfod = true;
        return NULL;
    case OPT_NOLINENO:
        o->emit.no_lines = true;
        return NULL;
    case OPT_FULL_FILENAMES:
        o->emit.full_paths = true;
        return NULL;
    case OPT_COLUMNS:
        o->emit.columns = true;
        return NULL;
    case OPT_SHOW_INTERPRETER:
        o->show_interpreter = true;
        return NULL;
    case OPT_PYTHON_ONLY:
        o->python_only = true;
        return NULL;
    case OPT_LABELS:
        o->labels = true;
        return NULL;
    case OPT_GIL:
        o->gil = true;
        return NULL;
    case OPT_STRICT:
        o->strict = true;
        return NULL;
    case OPT_PID:
        return parse_ids("pid", arg, &o->pids);
    case OPT_TID:
        return parse_ids("tid", arg, &o->tids);
    case OPT_TIME:
        return parse_time(o, arg);
    case OPT_TOP:
        return parse_u32(arg, &end, &o->emit.top_count) && !*end
                   ? NULL
                   : error_create(ERROR_USAGE, "--top wants a number, not %s", arg);
    default:
        return error_create(ERROR_USAGE, "see pysym --help");
    }
}

struct error *options_parse(int argc, char **argv, struct options *o)
{
    const char *format = NULL;
    int option;

    *o = (struct options){.to_ns = UINT64_MAX, .emit = {.top_count = 10}};
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":f:o:tFh", long_options, NULL)) != -1) {
        const char *what = optind > 0 && optind <= argc ? argv[optind - 1] : "";
        if (option == '?') {
            /* For a long option with a value that it does not take, getopt_long() puts its short one here. */
            if (!strncmp(what, "--", 2) && strchr(what, '='))
                return error_create(ERROR_USAGE, optopt ? "%.*s takes no argument" : "unknown option %.*s",
                                    (int)strcspn(what, "="), what);
            return optopt && optopt < 256 ? error_create(ERROR_USAGE, "unknown option -%c", optopt)
                                          : error_create(ERROR_USAGE, "unknown option %s", what);
        }
        if (option == ':')
            return error_create(ERROR_USAGE, "%s wants an argument", what);
        TRY(parse_option(o, option, optarg, &format));
    }
    if (o->help || o->version)
        return NULL;
    for (int i = optind; i < argc; i++) {
        if (!VEC_PUSH(&o->inputs, argv[i]))
            return error_no_memory();
    }
    if (!VEC_PUSH(&o->symfs, NULL) || !VEC_PUSH(&o->archives, NULL))
        return error_no_memory();
    if (!o->inputs.count)
        return error_create(ERROR_USAGE, "name a trace, such as trace.bin");
    size_t from_stdin = 0;
    for (size_t i = 0; i < o->inputs.count; i++)
        from_stdin += !strcmp(o->inputs.data[i], "-");
    if (from_stdin > 1)
        return error_create(ERROR_USAGE, "standard input (-) can be read but once");
    return format ? find_format(o, format) : guess_format(o);
}
