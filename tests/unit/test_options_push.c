/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `pysym push`: what is meant, and what is refused in which words. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/options.h"
#include "symbolize/push/store.h"

enum { WORDS_MAX = 32 };

/* Reads a command line behind "pysym", words apart by spaces; `copy` must live as long as the options. */
static struct error *parse(const char *line, char *copy, struct options *o)
{
    static char program[] = "pysym";
    char *argv[WORDS_MAX + 2] = {program};
    int argc = 1;

    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word && argc <= WORDS_MAX; word = strtok(NULL, " "))
        argv[argc++] = word;
    return options_parse(argc, argv, o);
}

#define HTTP "push --pyroscope http://h:4040 "

TEST(defaults)
{
    struct options o;
    char copy[400];

    OK(parse(HTTP "a.bin folder", copy, &o));
    assert_int_equal(o.command, COMMAND_PUSH);
    assert_string_equal(options_command_name(&o), "pysym push");
    assert_string_equal(o.push.store->name, "pyroscope");
    assert_string_equal(o.push.url, "http://h:4040");
    assert_int_equal(o.push.inputs.count, 2);
    assert_string_equal(o.push.inputs.data[1], "folder");
    assert_int_equal(o.push.window_ns, UINT64_C(15000000000));
    assert_int_equal(o.push.retry_for_ns, UINT64_C(300000000000));
    assert_int_equal(o.push.max_series, 500);
    assert_in_range(o.push.jobs, 1, 16);
    assert_false(o.push.follow || o.push.verbose || o.push.state || o.push.status || o.push.token_file || o.push.proxy);
    assert_string_equal(o.choice.emitter->name, "pprof");
    assert_false(options_split(&o)); /* that is of output files */
    options_deinit(&o);
}

TEST(values)
{
    struct options o;
    char copy[400];

    OK(parse("push a.bin --parca https://h/x/ -v --window 60s --follow --state s --status t --label a={comm} --label host=", copy, &o));
    assert_string_equal(o.push.store->name, "parca");
    assert_string_equal(o.push.url, "https://h/x/");
    assert_true(o.push.follow && o.push.verbose);
    assert_int_equal(o.push.jobs, 1);
    assert_int_equal(o.push.window_ns, UINT64_C(60000000000));
    assert_int_equal(o.window_ns, 0);
    assert_string_equal(o.push.state, "s");
    assert_string_equal(o.push.status, "t");
    assert_int_equal(o.push.labels.count, 2);
    options_deinit(&o);
    OK(parse(HTTP "--user u --password-file p --tenant t --cacert c --cert d --key k --proxy http://p:3128 a.bin", copy, &o));
    assert_string_equal(o.push.user, "u");
    assert_string_equal(o.push.password_file, "p");
    assert_string_equal(o.push.tenant, "t");
    assert_string_equal(o.push.ca_file, "c");
    assert_string_equal(o.push.cert_file, "d");
    assert_string_equal(o.push.key_file, "k");
    assert_string_equal(o.push.proxy, "http://p:3128");
    options_deinit(&o);
    OK(parse(HTTP "-j 5 --token-file t --retry-for 90s --max-series 7 --label-map m --label a={app} --pid 7 --python-only --no-host -F d", copy, &o));
    assert_string_equal(o.push.token_file, "t");
    assert_int_equal(o.push.retry_for_ns, UINT64_C(90000000000));
    assert_int_equal(o.push.max_series, 7);
    assert_int_equal(o.push.jobs, 5);
    assert_string_equal(o.push.label_map, "m");
    assert_true(o.python_only && o.no_host && o.stacks.by_function);
    assert_string_equal(o.filters_given, "--pid 7");
    options_deinit(&o);
}

/* The state of a systemd unit; a variable of several folders names them with colons. */
TEST(state)
{
    struct options o;
    char copy[400];

    setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two", 1);
    OK(parse(HTTP "--follow d", copy, &o));
    assert_string_equal(o.push.state, "/var/lib/one/push.state");
    options_deinit(&o);
    OK(parse(HTTP "--follow --state here d", copy, &o));
    assert_string_equal(o.push.state, "here");
    options_deinit(&o);
    OK(parse(HTTP "d", copy, &o));
    assert_null(o.push.state);
    options_deinit(&o);
    unsetenv("STATE_DIRECTORY");
}

TEST(refused)
{
    static const struct {
        const char *line, *error;
    } cases[] = {
        {"push", "say where to: pysym push --pyroscope http://HOST:4040 FILE|DIR..., or --parca http://HOST:7070"},
        {"push t.bin", "say where to: pysym push --pyroscope http://HOST:4040 t.bin, or --parca"},
        {"push http://h:1 t.bin", "say which store the URL is of: --pyroscope URL or --parca URL"},
        {"push http://n:hunter2@h:1 t.bin", "say which store the URL is of"},
        {"push --parca n:hunter2@h:1 t.bin", "--parca: a secret never stands in arguments"},
        {HTTP "--token hunter2 d", "--token: a secret never stands in arguments"},
        {HTTP "--password=hunter2 d", "--password: a secret never stands in arguments"},
        {HTTP, "name what to send: traces, or the folder that pycap records into: pysym push --pyroscope http://h:4040 DIR"},
        {HTTP "-", "what comes by standard input (-) could not be sent again"},
        {HTTP "--parca http://h:1 d", "--pyroscope and --parca exclude each other"},
        {"push --pyroscope h:4040 d", "--pyroscope wants a URL that begins with https:// or http://"},
        {"push --pyroscope http:// d", "--pyroscope wants a URL"},
        {"push --pyroscope http:///x d", "--pyroscope wants a URL"},
        {"push --parca ftp://h d", "--parca wants a URL"},
        {"push --parca http://h\x7f d", "--parca wants a URL"},
        {"push --parca http://h/?a=b d", "--parca wants a URL without"},
        {"push --parca http://name:hunter2@h:1 d", "--parca: a secret never stands in arguments"},
        {"push --parca http://h/a --window 1s d", NULL},
        {HTTP "--user n:hunter2 d", "--user: a secret never stands in arguments"},
        {HTTP "--proxy n:hunter2@h:1 d", "--proxy: a secret never stands in arguments"},
        {HTTP "--proxy http://n:hunter2@h:1/ d", "set https_proxy=http://NAME:PASSWORD@HOST:PORT in the environment"},
        {HTTP "--proxy http:// d", "--proxy wants a URL"},
        {HTTP "--proxy h:3128 d", "--proxy wants a URL"},
        {HTTP "--password-file f d", "--password-file needs --user"},
        {HTTP "--token-file f --user u d", "--token-file and --user exclude each other"},
        {HTTP "--key f d", "--key needs --cert"},
        {HTTP "--tenant a\rb d", "--tenant wants the name of a tenant, without blanks"},
        {HTTP "--follow d", "add --state FILE"},
        {HTTP "--follow --retry-for 1s --state s d", "--retry-for and --follow exclude each other"},
        {HTTP "--state s --status s d", "--state and --status name one file"},
        {HTTP "--window 999ms d", "--window wants 1s to 10m"},
        {HTTP "--window 11m d", "--window wants 1s to 10m"},
        {HTTP "--max-series 0 d", "--max-series wants a number of series"},
        {HTTP "--jobs 0 d", "--jobs wants a number of traces, 1 to 64"},
        {HTTP "--jobs 65 d", "--jobs wants a number of traces, 1 to 64"},
        {"diff --jobs 2 a -- b", "--jobs is for pysym push"},
        {HTTP "--label a={nope} d", "there is no field nope"},
        {HTTP "--label __name__=x d", "names that begin with __"},
        {HTTP "-f pprof d", "pysym push takes no --format: it sends pprof"},
        {HTTP "--split process d", "pysym push takes no --split: --label pid={pid}"},
        {HTTP "--debuginfod d", "pysym push takes no --debuginfod: traces are read in a process without a network"},
        {HTTP "--strict d", "pysym push takes no --strict: it exits with 3"},
        {HTTP "--budget b d", "--budget is for pysym diff"},
        {"d --parca http://h:1", "--parca is for pysym push --pyroscope URL|--parca URL FILE|DIR..."},
        {"diff --parca http://h:1 a -- b", "--parca is for pysym push"},
        {"diff --window 1s a -- b", "pysym diff takes no --window: it writes one report"},
        {"t.bin --label a=b", "--label is for pysym push"},
        {"-F push", "write push first, before options: pysym push"},
        {"posh", "there is no file posh: did you mean pysym push"},
    };

    unsetenv("STATE_DIRECTORY");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        char copy[400];
        struct error *err = parse(cases[i].line, copy, &o);
        const char *text = err ? error_text(err) : "";
        if (!cases[i].error ? err != NULL : !err || err->code != ERROR_USAGE || !strstr(text, cases[i].error))
            fail_msg("%s: '%s'", cases[i].line, text);
        if (strstr(text, "hunter2"))
            fail_msg("%s: the message repeats the password", cases[i].line);
        error_destroy(err);
        options_deinit(&o);
    }
}

/* Every option that push takes is shown, and no other. */
TEST(help)
{
    static const char *const shown[] = {"--pyroscope URL", "--follow", "--label NAME=RULE", "--password-file FILE", "--focus RE", "--max-memory SIZE"};
    static const char *const not_shown[] = {"--debuginfod", "--format", "--split", "--budget", "--strict", "a file for each 15s"};
    struct options o;
    char copy[400], *text = NULL;
    size_t len;

    OK(parse("push --help", copy, &o));
    assert_true(o.help);
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    options_help(&o, out);
    fclose(out);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (!strstr(text, shown[i]))
            fail_msg("no %s", shown[i]);
    }
    for (size_t i = 0; i < sizeof not_shown / sizeof *not_shown; i++) {
        if (strstr(text, not_shown[i]))
            fail_msg("%s", not_shown[i]);
    }
    free(text);
    options_deinit(&o);
}
