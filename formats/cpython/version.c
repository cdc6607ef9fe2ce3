/* SPDX-License-Identifier: Apache-2.0 */
/* The versions that versions.def has rows for, and how a version is written. */
#include "formats/cpython/version.h"

#include <stdio.h>

const char *py_versions_known(void)
{
    static const char known[] =
#define PYTHON(ma, mi, ...) " " #ma "." #mi
#define VARIANT(...)
#include "formats/cpython/versions.def"
#undef PYTHON
#undef VARIANT
        ;
    return known + 1;
}

const char *py_version_text(uint32_t version_hex, char buf[32])
{
    unsigned level = version_hex >> 4 & 0xf, serial = version_hex & 0xf;
    const char *name = level == 0xa ? "a" : level == 0xb ? "b" : level == 0xc ? "rc" : level == 0xf ? "" : "?";
    int n = snprintf(buf, 32, "%u.%u.%u%s", version_hex >> 24, version_hex >> 16 & 0xff, version_hex >> 8 & 0xff, name);

    if (level != 0xf)
        snprintf(buf + n, 32 - (size_t)n, "%u", serial);
    return buf;
}
