/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses kernels in which sampling can hang the host, because of a bug of Linux 5.18 to 6.3.
 *
 * bpf_probe_read_user() ends in copy_from_user_nofault(), which checks the destination
 * under CONFIG_HARDENED_USERCOPY. Since 5.18 (0aef499f3172, "mm/usercopy: Detect vmalloc
 * overruns") that check looks a vmalloc address up under the spin lock vmap_area_lock, and
 * large BPF maps are such addresses. An interrupt that samples a CPU while it holds
 * that lock waits forever. Fixed in 6.4 (d319f344561d, "mm: Fix copy_from_user_nofault()"),
 * 6.3.10 and 6.1.36. The series 5.18, 5.19, 6.0 and 6.2 never got the fix.
 */
#ifndef CAPTURE_HOST_KERNEL_HANG_H
#define CAPTURE_HOST_KERNEL_HANG_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct kernel_version {
    uint32_t major, minor, patch;
    bool patch_known;
};
/*
 * Finds the upstream version that a kernel was built from. Distributions number their releases in their own way
 * ("6.1.0-50-amd64"). Debian has the upstream version in uname's version ("... Debian 6.1.176-1 (...)"), Ubuntu in
 * /proc/version_signature ("Ubuntu 6.1.0-1036.36-oem 6.1.57"; `signature` is "" elsewhere), the others in the release.
 * Returns false when none of them names a version.
 */
bool kernel_version_parse(const char *release, const char *version, const char *signature, struct kernel_version *out);

/* Returns an error for a kernel that has the bug, or that may have it when its exact version is not known. */
struct error *kernel_hang_check(const char *release, const char *version, const char *signature);

#endif
