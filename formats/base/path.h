/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of paths. */
#ifndef FORMATS_BASE_PATH_H
#define FORMATS_BASE_PATH_H

#include <string.h>

/* The last component, a part of `path`; "" where the path ends with a slash. */
static inline const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

#endif
