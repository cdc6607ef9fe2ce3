/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the upstream version of a kernel, and whether that version has the fix. */
#include "capture/host/kernel_hang.h"

#include <stdio.h>
#include <string.h>

bool kernel_version_parse(const char *release, const char *version, const char *signature, struct kernel_version *out)
{
    const char *debian = strstr(version, "Debian "), *ubuntu = strrchr(signature, ' ');
    int end = 0;

    *out = (struct kernel_version){0};
    if (ubuntu && sscanf(ubuntu, " %u.%u.%u", &out->major, &out->minor, &out->patch) == 3) {
        out->patch_known = true;
        return true;
    }
    if (debian && sscanf(debian, "Debian %u.%u.%u", &out->major, &out->minor, &out->patch) == 3) {
        out->patch_known = true;
        return true;
    }
    *out = (struct kernel_version){0};
    if (sscanf(release, "%u.%u%n.%u%n", &out->major, &out->minor, &end, &out->patch, &end) < 2)
        return false;
    /* Only "6.1.0" and "6.1" mean the first release of 6.1. A distribution's "6.1.0-1036-oem" does not. */
    out->patch_known = out->patch || !release[end];
    return true;
}

static bool is(const struct kernel_version *v, uint32_t major, uint32_t minor)
{
    return v->major == major && v->minor == minor;
}

struct error *kernel_hang_check(const char *release, const char *version, const char *signature)
{
    struct kernel_version v;
    char name[300], upstream[40];

    if (!kernel_version_parse(release, version, signature, &v))
        return error_create(ERROR_UNSUPPORTED, "the kernel release '%s' cannot be parsed as a version of Linux", release);
    bool without_fix = is(&v, 5, 18) || is(&v, 5, 19) || is(&v, 6, 0) || is(&v, 6, 2);
    uint32_t fixed = is(&v, 6, 1) ? 36 : is(&v, 6, 3) ? 10 : 0;
    if (!without_fix && (!fixed || (v.patch_known && v.patch >= fixed)))
        return NULL;
    snprintf(upstream, sizeof upstream, "%u.%u.%u", v.major, v.minor, v.patch);
    if (v.patch_known && strncmp(release, upstream, strlen(upstream)))
        snprintf(name, sizeof name, "%s (%s)", release, upstream);
    else
        snprintf(name, sizeof name, "%s", release);
    return error_create(ERROR_UNSUPPORTED,
                        "Linux %s %s: an interrupt that reads user memory, as sampling does, can wait forever for a lock "
                        "of the code it interrupted. Use 6.1.36 or later of 6.1, 6.3.10, or 6.4 and later. If this kernel "
                        "carries the fix, \"mm: Fix copy_from_user_nofault()\", by its changelog, set "
                        "PYCAP_IGNORE_KERNEL_BUG=1",
                        name, without_fix || v.patch_known ? "can hang this host" : "does not tell whether it can hang this host");
}
