/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/debuginfod.h"

#include <stdlib.h>

#ifdef LIBRARIES_LINKED
#include <debuginfod.h>
#include <errno.h>

#include "symbolize/binary/certificates.h"
#else
#include <dlfcn.h>
#endif

/* The library is never unloaded: it uses curl, whose global state would leak. */
void debuginfod_close(struct debuginfod *d)
{
    if (d->client)
        d->end(d->client);
    *d = (struct debuginfod){0};
}

#ifdef LIBRARIES_LINKED
/* libdw would load the shared library, whose C library is another one: what it asks, pysym asks itself. */
int __libdwfl_debuginfod_find_executable(void *dwfl, const unsigned char *build_id, size_t len);
int __libdwfl_debuginfod_find_debuginfo(void *dwfl, const unsigned char *build_id, size_t len);
void __libdwfl_debuginfod_end(void *client);

int __libdwfl_debuginfod_find_executable(void *dwfl, const unsigned char *build_id, size_t len)
{
    (void)dwfl, (void)build_id, (void)len;
    return -ENOSYS;
}

int __libdwfl_debuginfod_find_debuginfo(void *dwfl, const unsigned char *build_id, size_t len)
{
    (void)dwfl, (void)build_id, (void)len;
    return -ENOSYS;
}

void __libdwfl_debuginfod_end(void *client)
{
    (void)client;
}

static void *begin(void)
{
    certificates_find();
    return debuginfod_begin();
}

static struct error *load(struct debuginfod *d)
{
    *d = (struct debuginfod){.begin = begin,
                             .end = (void (*)(void *))debuginfod_end,
                             .find_executable = (int (*)(void *, const unsigned char *, int, char **))debuginfod_find_executable,
                             .find_debuginfo = (int (*)(void *, const unsigned char *, int, char **))debuginfod_find_debuginfo};
    return NULL;
}
#else
static struct error *load(struct debuginfod *d)
{
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_create(ERROR_UNSUPPORTED, "debuginfod was asked for, but libdebuginfod.so.1 is not installed");
    d->begin = (void *(*)(void))dlsym(library, "debuginfod_begin");
    d->end = (void (*)(void *))dlsym(library, "debuginfod_end");
    d->find_executable = (int (*)(void *, const unsigned char *, int, char **))
        dlsym(library, "debuginfod_find_executable");
    d->find_debuginfo = (int (*)(void *, const unsigned char *, int, char **))
        dlsym(library, "debuginfod_find_debuginfo");
    if (d->begin && d->end && d->find_executable && d->find_debuginfo)
        return NULL;
    return error_create(ERROR_UNSUPPORTED, "libdebuginfod.so.1 cannot be used");
}
#endif

struct error *debuginfod_open(struct debuginfod *d)
{
    const char *urls = getenv("DEBUGINFOD_URLS");

    if (!urls || !*urls)
        return error_create(ERROR_USAGE, "debuginfod was asked for, but DEBUGINFOD_URLS names no server");
    TRY(load(d));
    d->client = d->begin();
    return d->client ? NULL : error_create(ERROR_UNSUPPORTED, "libdebuginfod cannot be used");
}
