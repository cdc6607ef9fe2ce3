/* SPDX-License-Identifier: Apache-2.0 */
/* Looks libarchive's functions up by name. A static pycap has them linked in. */
#include "capture/archive/libarchive.h"

#include <dlfcn.h>
#include <string.h>

#ifdef LIBRARIES_LINKED
struct error *libarchive_load(const struct libarchive **out)
{
#define LIBARCHIVE_MEMBER(name) .name = name,
    static const struct libarchive linked = {LIBARCHIVE_FUNCTIONS(LIBARCHIVE_MEMBER)};
#undef LIBARCHIVE_MEMBER

    *out = &linked;
    return NULL;
}
#else
#define LIBARCHIVE_FILE "libarchive.so.13" /* the name of all versions since 3.0 */

static struct error *find(void *library, const char *name, void *to)
{
    void *function = dlsym(library, name);

    if (!function)
        return error_create(ERROR_UNSUPPORTED, "%s has no %s()", LIBARCHIVE_FILE, name);
    memcpy(to, &function, sizeof function);
    return NULL;
}

struct error *libarchive_load(const struct libarchive **out)
{
    static struct libarchive loaded;
    static void *library;

    *out = &loaded;
    if (library)
        return NULL;
    void *opened = dlopen(LIBARCHIVE_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!opened)
        return error_create(ERROR_UNSUPPORTED, "archives need libarchive: %s", dlerror());
#define LIBARCHIVE_MEMBER(name) TRY(find(opened, #name, &loaded.name));
    LIBARCHIVE_FUNCTIONS(LIBARCHIVE_MEMBER)
#undef LIBARCHIVE_MEMBER
    library = opened;
    return NULL;
}
#endif
