/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends made-up profiles to a store, and prints what came of each, a line of JSON: for tests of symbolize/push/store.h
 * without a trace.
 *
 * usage: store_send KIND URL [NAME=VALUE...]
 *     token-file, user, password-file, tenant, cacert, cert, key, proxy: as options of pysym push
 *     count=N          profiles; before each but the first a line of standard input is waited for
 *     slots=N          so many at a time instead, and no waiting for lines; with input=wait until standard input ends
 *     bytes=N          of a profile
 *     connect-ms=N request-ms=N
 * SIGTERM stops the request. Exit: 0, 1 failed, 2 usage.
 */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/base/program.h"
#include "symbolize/push/store.h"

struct arguments {
    struct push_request request;
    uint64_t count, len_bytes, slots;
    bool wait_for_input;
    uint32_t connect_ms, request_ms;
};

static struct store *store; /* for the signal's handler */

static void stop(int number)
{
    (void)number;
    store_stop(store);
}

static bool read_text(struct push_request *r, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"token-file", &r->token_file}, {"user", &r->user},        {"password-file", &r->password_file}, {"tenant", &r->tenant},
        {"cacert", &r->ca_file},        {"cert", &r->cert_file},   {"key", &r->key_file},                {"proxy", &r->proxy},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i].name, name) == 0) {
            *texts[i].to = value;
            return true;
        }
    }
    return false;
}

static bool read_argument(struct arguments *a, char *word)
{
    char *value = strchr(word, '=');

    if (!value)
        return false;
    *value++ = 0;
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(word, "count") == 0)
        a->count = number;
    else if (strcmp(word, "bytes") == 0)
        a->len_bytes = number;
    else if (strcmp(word, "slots") == 0)
        a->slots = number < STORE_SLOTS ? number : STORE_SLOTS;
    else if (strcmp(word, "input") == 0)
        a->wait_for_input = strcmp(value, "wait") == 0;
    else if (strcmp(word, "connect-ms") == 0)
        a->connect_ms = (uint32_t)number;
    else if (strcmp(word, "request-ms") == 0)
        a->request_ms = (uint32_t)number;
    else
        return read_text(&a->request, word, value);
    return true;
}

static bool read_arguments(struct arguments *a, int argc, char **argv)
{
    bool good = argc >= 3;

    for (const struct store_kind *const *k = store_kinds; good && *k; k++) {
        if (strcmp((*k)->name, argv[1]) == 0)
            a->request.store = *k;
    }
    a->request.url = good ? argv[2] : NULL;
    for (int i = 3; i < argc && good; i++)
        good = read_argument(a, argv[i]);
    return good && a->request.store;
}

static void print_answer(const struct store_answer *answer)
{
    static const char *const verdicts[] = {
        [STORE_ACCEPTED] = "accepted", [STORE_REFUSED] = "refused", [STORE_LATER] = "later", [STORE_UNANSWERED] = "unanswered",
        [STORE_FAULT] = "fault", [STORE_DENIED] = "denied",
    };
    json_t *line = json_pack("{s:s, s:s, s:i, s:f, s:s, s:I}", "verdict", verdicts[answer->verdict], "reason", answer->reason,
                             "status", answer->status, "retry_after_s", (double)answer->retry_after_ns / (double)NS_PER_S,
                             "text", answer->text, "sent_bytes", (json_int_t)store_sent_bytes(store));
    char *text = line ? json_dumps(line, 0) : NULL;

    puts(text ? text : "out of memory, or not UTF-8");
    fflush(stdout);
    free(text);
    json_decref(line);
}

/* One after the other. */
static struct error *send_by_line(const struct arguments *a, const struct push_profile *profile)
{
    struct store_answer answer;
    char line[8];
    uint32_t slot;
    bool came;

    for (uint64_t i = 0; i < a->count && (!i || fgets(line, sizeof line, stdin)); i++) {
        TRY(store_begin(store, profile, 0, UINT32_MAX));
        TRY(store_next(store, NULL, 0, UINT64_MAX, &slot, &answer, &came));
        print_answer(&answer);
    }
    return NULL;
}

static struct error *send_at_once(const struct arguments *a, const struct push_profile *profile)
{
    const int input = STDIN_FILENO;
    struct store_answer answer;
    uint64_t begun = 0;
    uint32_t slot;
    bool came;

    for (uint32_t i = 0; i < a->slots && begun < a->count; i++, begun++)
        TRY(store_begin(store, profile, i, UINT32_MAX));
    for (uint64_t ended = 0; ended < a->count;) {
        TRY(store_next(store, &input, a->wait_for_input, UINT64_MAX, &slot, &answer, &came));
        if (!came)
            return NULL;
        print_answer(&answer);
        ended++;
        if (begun++ < a->count)
            TRY(store_begin(store, profile, slot, UINT32_MAX));
    }
    return NULL;
}

static struct error *send_all(const struct arguments *a)
{
    static const struct profile_label labels[] = {{"__name__", "process_cpu"}, {"service_name", "shop"}};
    uint8_t *data = calloc(1, a->len_bytes + 1);
    struct push_profile profile = {.labels = labels, .label_count = 2, .data = data, .len_bytes = a->len_bytes,
                                   .window_end_ns = clock_ns(CLOCK_REALTIME)};

    if (!data)
        return error_no_memory();
    struct error *err = a->slots ? send_at_once(a, &profile) : send_by_line(a, &profile);
    free(data);
    return err;
}

int main(int argc, char **argv)
{
    struct arguments a = {.count = 1, .len_bytes = 100};

    if (!read_arguments(&a, argc, argv)) {
        fputs("usage: store_send KIND URL [NAME=VALUE...]\n", stderr);
        return EXIT_USAGE;
    }
    struct error *err = store_open(&a.request, &store);
    if (err)
        return program_fail("store_send", err);
    if (a.connect_ms || a.request_ms)
        store_set_patience(store, a.connect_ms, a.request_ms);
    signal(SIGTERM, stop);
    puts("ready");
    fflush(stdout);
    err = send_all(&a);
    signal(SIGTERM, SIG_DFL);
    store_close(store);
    return err ? program_fail("store_send", err) : EXIT_GOOD;
}
