/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdebuginfod, opened only when it is asked for: nobody needs it installed to read a trace.
 */
#ifndef SYMBOLIZE_BINARY_DEBUGINFOD_H
#define SYMBOLIZE_BINARY_DEBUGINFOD_H

#include "formats/base/err.h"

/* {0} is closed. */
struct debuginfod {
    void *client; /* NULL: closed */
    void *(*begin)(void);
    void (*end)(void *client);
    /* A descriptor and the path in libdebuginfod's cache (malloc'd), or a negative errno. */
    int (*find_executable)(void *client, const unsigned char *build_id, int len, char **path);
    int (*find_debuginfo)(void *client, const unsigned char *build_id, int len, char **path);
};

/* The servers are those of DEBUGINFOD_URLS; none there is an error. */
struct error *debuginfod_open(struct debuginfod *d);
void debuginfod_close(struct debuginfod *d);

#endif
