/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libdebuginfod at run time, only with --debuginfod: pysym works without the library. A static pysym has it linked in.
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

/* Uses the servers of DEBUGINFOD_URLS; it is an error if the variable names no server. */
struct error *debuginfod_open(struct debuginfod *d);
void debuginfod_close(struct debuginfod *d);

#endif
