/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/debuginfod.h"

#include <dlfcn.h>
#include <stdlib.h>

/* The library is never unloaded: it uses curl, whose global state would leak. */
void debuginfod_close(struct debuginfod *d)
{
    if (d->client)
        d->end(d->client);
    *d = (struct debuginfod){0};
}

struct error *debuginfod_open(struct debuginfod *d)
{
    const char *urls = getenv("DEBUGINFOD_URLS");

    if (!urls || !*urls)
        return error_create(ERROR_USAGE, "debuginfod was asked for, but DEBUGINFOD_URLS names no server");
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_create(ERROR_UNSUPPORTED, "debuginfod was asked for, but libdebuginfod.so.1 is not installed");
    d->begin = (void *(*)(void))dlsym(library, "debuginfod_begin");
    d->end = (void (*)(void *))dlsym(library, "debuginfod_end");
    d->find_executable = (int (*)(void *, const unsigned char *, int, char **))
        dlsym(library, "debuginfod_find_executable");
    d->find_debuginfo = (int (*)(void *, const unsigned char *, int, char **))
        dlsym(library, "debuginfod_find_debuginfo");
    if (d->begin && d->end && d->find_executable && d->find_debuginfo && (d->client = d->begin()))
        return NULL;
    debuginfod_close(d);
    return error_create(ERROR_UNSUPPORTED, "libdebuginfod.so.1 cannot be used");
}
