/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour rows of versions.def as a table, and versions as text. */
#include "formats/cpython/version.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct version {
    uint8_t major, minor;
    struct py_behaviour behaviour;
} versions[] = {
#define PYTHON(...)
#define VARIANT(...)
#define TASKS(...)
#define BEHAVIOUR(ma, mi, lines, state, qualname, dicts, instances, ints, keys, name, larger, asyncio, awaits, number, \
                  runs)                                                                                               \
    {ma, mi, {PY_LINES_##lines, PY_STATE_##state, qualname, PY_DICTS_##dicts, PY_INSTANCES_##instances,             \
              PY_INTS_##ints, keys, name, larger, asyncio, PY_AWAITS_##awaits, number, runs}},
#include "formats/cpython/versions.def"
#undef PYTHON
#undef BEHAVIOUR
};

/* Every version with a layout must have a behaviour, or this does not compile. */
enum {
#define PYTHON(...)
#define BEHAVIOUR(ma, mi, ...) BEHAVIOUR_##ma##_##mi,
#include "formats/cpython/versions.def"
#undef PYTHON
#undef BEHAVIOUR
    BEHAVIOUR_COUNT
};
#define BEHAVIOUR(...)
#define PYTHON(ma, mi, ...) static_assert(BEHAVIOUR_##ma##_##mi < BEHAVIOUR_COUNT, "");
#include "formats/cpython/versions.def"
#undef PYTHON

const struct py_behaviour *py_behaviour_of(uint32_t version_hex)
{
    uint8_t major = version_hex >> 24, minor = version_hex >> 16;

    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (versions[i].major == major && versions[i].minor == minor)
            return &versions[i].behaviour;
    }
    return NULL;
}

static const struct task_row {
    uint8_t major, minor;
    struct py_task_fields fields;
} task_rows[] = {
#define PYTHON(...)
#undef TASKS
#define TASKS(ma, mi, ...) {ma, mi, {__VA_ARGS__}},
#include "formats/cpython/versions.def"
#undef PYTHON
#undef TASKS
#define TASKS(...)
};

const struct py_task_fields *py_task_fields_of(uint32_t version_hex)
{
    uint8_t major = version_hex >> 24, minor = version_hex >> 16;

    for (size_t i = 0; i < sizeof task_rows / sizeof *task_rows; i++) {
        if (task_rows[i].major == major && task_rows[i].minor == minor)
            return &task_rows[i].fields;
    }
    return NULL;
}

const char *py_versions_known(void)
{
    static const char known[] =
#define PYTHON(ma, mi, ...) " " #ma "." #mi
#include "formats/cpython/versions.def"
#undef PYTHON
        ;
    return known + 1;
}

const char *py_version_text(uint32_t version_hex, char buf[32])
{
    unsigned level = version_hex >> 4 & 0xf, serial = version_hex & 0xf;
    const char *name = level == 0xa ? "a" : level == 0xb ? "b" : level == 0xc ? "rc" : level == 0xf ? "" : "?";
    if (!version_hex)
        return strcpy(buf, "?");
    int n = snprintf(buf, 32, "%u.%u.%u%s", version_hex >> 24, version_hex >> 16 & 0xff, version_hex >> 8 & 0xff, name);

    if (level != 0xf)
        snprintf(buf + n, 32 - (size_t)n, "%u", serial);
    return buf;
}
