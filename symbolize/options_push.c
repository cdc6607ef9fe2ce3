/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `pysym push`. See options.h. */
#include "symbolize/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/cpus.h"
#include "symbolize/push/converter.h"
#include "symbolize/push/series.h"
#include "symbolize/push/store.h"
#include "symbolize/push/store_url.h"

enum { SERIES_DEFAULT = 500, SERIES_MOST = 100000, JOBS_DEFAULT_MOST = 16 };
#define WINDOW_DEFAULT_NS (15 * NS_PER_S)
#define WINDOW_MOST_NS (600 * NS_PER_S) /* Pyroscope refuses what is older than an hour */
#define RETRY_DEFAULT_NS (300 * NS_PER_S)

/* ---- setters ---- */

/* Is there nothing that would end a line of a header, or a line of the log? */
static bool is_plain(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    }
    return true;
}

/* Arguments are in the list of processes for all to see, and in the log of whoever started them. */
static struct error *refuse_secret(const struct option_row *row, const char *instead)
{
    return error_create(ERROR_USAGE, "--%s: a secret never stands in arguments, which every process of the host can read: %s", row->name,
                        instead);
}

/* Options that would be taken for --token-file and --password-file. */
static struct error *refuse_token(const struct option_row *row, const char *argument, void *target)
{
    (void)argument, (void)target;
    return refuse_secret(row, "say --token-file FILE, or set PYSYM_TOKEN");
}

static struct error *refuse_password(const struct option_row *row, const char *argument, void *target)
{
    (void)argument, (void)target;
    return refuse_secret(row, "say --password-file FILE, or set PYSYM_PASSWORD");
}

/* A URL, of which `instead` says how its user and password are given. */
static struct error *set_url(const struct option_row *row, const char *argument, void *target, const char *instead)
{
    struct store_url url;
    char option[32];

    if (strchr(argument, '@'))
        return refuse_secret(row, instead);
    snprintf(option, sizeof option, "--%s", row->name);
    TRY(store_url_read(option, argument, &url));
    return option_set_text(row, argument, target);
}

static struct error *set_store(const struct option_row *row, const char *argument, void *target)
{
    struct push_request *r = &((struct options *)target)->push;

    for (size_t i = 0; store_kinds[i]; i++) {
        if (!strcmp(store_kinds[i]->name, row->name))
            r->store = store_kinds[i];
    }
    return set_url(row, argument, target, "say --user NAME with --password-file FILE, or --token-file FILE, or set PYSYM_PASSWORD or PYSYM_TOKEN");
}

static struct error *set_proxy(const struct option_row *row, const char *argument, void *target)
{
    return set_url(row, argument, target, "set https_proxy=http://NAME:PASSWORD@HOST:PORT in the environment");
}

static struct error *set_user(const struct option_row *row, const char *argument, void *target)
{
    if (strchr(argument, ':'))
        return refuse_secret(row, "say --user NAME, and --password-file FILE or set PYSYM_PASSWORD");
    return is_plain(argument) ? option_set_text(row, argument, target) : option_refuse(row, argument);
}

static struct error *set_plain(const struct option_row *row, const char *argument, void *target)
{
    return is_plain(argument) ? option_set_text(row, argument, target) : option_refuse(row, argument);
}

/* ---- the table ---- */

#define MEMBER(member) .offset = offsetof(struct options, push.member)

const struct option_row options_push_rows[] = {
    OPTION_HEADING("where to, and until when"),
    {"pyroscope", 0, "URL", "Grafana Pyroscope, such as http://HOST:4040", set_store, MEMBER(url),
     .without = "parca"},
    {"parca", 0, "URL", "Parca, such as http://HOST:7070", set_store, MEMBER(url)},
    {"follow", 0, NULL, "go on with what comes into the folders, until SIGTERM or Ctrl-C", option_set_true, MEMBER(follow)},
    {"retry-for", 0, "TIME", "give up when nothing was accepted or refused for so long (default: 5m)", option_set_duration,
     MEMBER(retry_for_ns), .wants = "a length of time, like 90s or 5m", .without = "follow"},
    {"jobs", 'j', "N", "traces that are read at a time (default: as many as CPUs, 16 at most; with --follow 1)", option_set_u32,
     MEMBER(jobs), 1, CONVERTERS_MAX, "a number of traces, 1 to 64"},
    {"window", 0, "TIME", "real time that one profile holds, 1s to 10m (default: 15s)", option_set_duration, MEMBER(window_ns),
     .wants = "a length of time, 1s to 10m"},
    {"state", 0, "FILE", "remembers what was sent, so that nothing is sent twice after a restart\n"
     "(default under systemd: push.state in its StateDirectory=)", option_set_text, MEMBER(state)},
    {"status", 0, "FILE", "rewrites this file with figures for Prometheus", option_set_text, MEMBER(status)},
    {"verbose", 'v', NULL, "a line for each profile", option_set_true, MEMBER(verbose)},

    OPTION_HEADING("which series a sample belongs to"),
    {"label", 0, "NAME=RULE", "a label, like app={comm}-{python}; may be repeated; NAME= leaves one out\n"
     "fields: host program comm exe unit container pod_uid cgroup python pid tid\n"
     "thread event, what --label-map gives, and {a|b} for the first that is known", option_add_text, MEMBER(labels),
     .wants = "NAME=RULE"},
    {"label-map", 0, "FILE", "names that only the cluster knows: lines of pod:UID, container:ID, unit:NAME\n"
     "or host:NAME, and label=value ...", option_set_text, MEMBER(label_map)},
    {"max-series", 0, "N", "series of one window; the others count for one called other (default: 500)", option_set_u32,
     MEMBER(max_series), 1, SERIES_MOST, "a number of series, 1 to 100000"},

    OPTION_HEADING("how the store is reached (secrets: in files, or in PYSYM_TOKEN or PYSYM_PASSWORD)"),
    {"token-file", 0, "FILE", "a token that is sent as Authorization: Bearer", option_set_text, MEMBER(token_file),
     .without = "user password-file"},
    {"user", 0, "NAME", "a user of HTTP's basic authentication", set_user, MEMBER(user), .wants = "the name of a user"},
    {"password-file", 0, "FILE", "and the password", option_set_text, MEMBER(password_file), .with = "user"},
    {"token", 0, "TOKEN", NULL, refuse_token},
    {"password", 0, "PASSWORD", NULL, refuse_password},
    {"tenant", 0, "NAME", "sent as X-Scope-OrgID, for a Pyroscope with several tenants", set_plain, MEMBER(tenant),
     .wants = "the name of a tenant, without blanks"},
    {"cacert", 0, "FILE", "authorities that may vouch for the store, instead of this host's", option_set_text, MEMBER(ca_file)},
    {"cert", 0, "FILE", "a certificate that is shown to the store", option_set_text, MEMBER(cert_file)},
    {"key", 0, "FILE", "and its key, if it is in a file of its own", option_set_text, MEMBER(key_file), .with = "cert"},
    {"proxy", 0, "URL", "instead of https_proxy or http_proxy of the environment", set_proxy, MEMBER(proxy)},
    {NULL},
};

/* ---- reading ---- */

struct error *options_push_read(struct options *o, const struct option_row *own, int argc, char **argv)
{
    struct option_table table;
    int rest;

    o->push = (struct push_request){.window_ns = WINDOW_DEFAULT_NS, .retry_for_ns = RETRY_DEFAULT_NS, .max_series = SERIES_DEFAULT};
    options_table_init(&table, own, o->command);
    /* The command stands where programs have their names. */
    TRY(options_read(table.rows, argc - 1, argv + 1, false, o, &rest));
    for (int i = rest + 1; i < argc; i++) {
        if (!VEC_PUSH(&o->inputs, argv[i]))
            return error_no_memory();
    }
    return NULL;
}

static struct error *check_inputs(const struct options *o)
{
    const struct push_request *r = &o->push;

    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *word = o->inputs.data[i];
        if (!strcmp(word, "-"))
            return error_create(ERROR_USAGE, "pysym push reads files and folders: what comes by standard input (-) could not be sent again");
        if (!r->store && (!strncmp(word, "http://", 7) || !strncmp(word, "https://", 8)))
            return error_create(ERROR_USAGE, "say which store the URL is of: --pyroscope URL or --parca URL");
    }
    if (!r->store)
        return error_create(ERROR_USAGE, "say where to: pysym push --pyroscope http://HOST:4040 %s, or --parca http://HOST:7070",
                            o->inputs.count == 1 ? o->inputs.data[0] : "FILE|DIR...");
    return o->inputs.count ? NULL
                           : error_create(ERROR_USAGE, "name what to send: traces, or the folder that pycap records into: pysym push --%s %s DIR",
                                          r->store->name, r->url);
}

/* Without --state that of systemd's unit, if there is one. STATE_DIRECTORY may name several folders: the first one is it. */
static struct error *find_state(struct options *o)
{
    const char *folders = getenv("STATE_DIRECTORY");
    struct push_request *r = &o->push;

    if (r->state || !r->follow)
        return NULL;
    if (!folders || *folders != '/')
        return error_create(ERROR_USAGE, "--follow needs a file that remembers what was sent, or all is sent again after a restart: "
                                         "add --state FILE, such as --state ~/.local/state/pysym-push.state");
    buf_printf(&o->push_state, "%.*s/push.state", (int)strcspn(folders, ":"), folders);
    r->state = buf_cstr(&o->push_state);
    return o->push_state.bad ? error_no_memory() : NULL;
}

struct error *options_push_check(struct options *o)
{
    struct push_request *r = &o->push;

    TRY(check_inputs(o));
    if (r->window_ns < NS_PER_S || r->window_ns > WINDOW_MOST_NS)
        return error_create(ERROR_USAGE, "--window wants 1s to 10m: stores show profiles by such times, and refuse old ones");
    if (r->state && r->status && !strcmp(r->state, r->status))
        return error_create(ERROR_USAGE, "--state and --status name one file: figures would be written over what was sent");
    TRY(series_check_rules(r));
    TRY(find_state(o));
    r->inputs = o->inputs;
    if (!r->jobs)
        r->jobs = r->follow ? 1 : cpus_allowed() < JOBS_DEFAULT_MOST ? cpus_allowed() : JOBS_DEFAULT_MOST;
    return format_choose("pprof", NULL, &o->choice);
}

/* ---- --help ---- */

void options_push_help(const struct option_row *own, FILE *out)
{
    struct option_table table;

    options_table_init(&table, own, COMMAND_PUSH);
    fputs("usage: pysym push --pyroscope URL | --parca URL [--follow] FILE|DIR... [options]\n"
          "\n"
          "  pysym push --pyroscope http://HOST:4040 trace.bin\n"
          "  pysym push --parca http://HOST:7070 --follow --state push.state /var/lib/pycap\n"
          "\n"
          "Sends the profiles of traces to a store of profiles: of each window of real time one for each series\n"
          "and event, as pprof. Of a DIR it sends the traces in it; pycap record --rotate records into one.\n"
          "What recordings lost becomes a series pycap_lost of service_name pycap.\n",
          out);
    options_print(table.rows, out);
    fputs("\nexit status: 0 all was accepted (with --follow: it was ended by SIGTERM), 1 failed, 2 wrong usage,\n"
          "3 something was refused, unreadable or not sent in time; the last lines say what\n",
          out);
}
