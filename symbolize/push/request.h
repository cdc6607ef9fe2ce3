/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line asks of `pysym push`. Texts are borrowed from it. */
#ifndef SYMBOLIZE_PUSH_REQUEST_H
#define SYMBOLIZE_PUSH_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/options.h"

struct store_kind;

struct push_request {
    const struct store_kind *store; /* what --pyroscope or --parca named */
    const char *url;                /* of it: http:// or https://, without a user or a password */
    struct option_texts inputs;     /* files and folders, as given */
    bool follow;                    /* goes on with files that come into the folders, until a signal ends it */
    uint64_t window_ns;             /* of a profile; windows are multiples of it since 1970 */
    uint64_t retry_for_ns;          /* without `follow`: how long to try while the store does not answer */
    uint32_t jobs;                  /* traces that are read at a time, 1 to CONVERTERS_MAX */
    const char *state;              /* file that remembers what was sent; NULL: none */
    const char *status;             /* file of figures as Prometheus text; NULL: none */
    struct option_texts labels;     /* --label NAME=TEMPLATE, as given: series.h */
    const char *label_map;          /* file of names for pods, containers and units; NULL: none */
    uint32_t max_series;            /* of one window; what is more counts for a series "other" */
    /* How the store is reached. Secrets stand in files or the environment (PYSYM_TOKEN, PYSYM_PASSWORD), never in arguments. */
    const char *token_file, *user, *password_file;
    const char *tenant;             /* header X-Scope-OrgID */
    const char *ca_file, *cert_file, *key_file;
    const char *proxy;              /* NULL: as https_proxy and no_proxy say */
    bool verbose;                   /* a line for each profile */
};

#endif
