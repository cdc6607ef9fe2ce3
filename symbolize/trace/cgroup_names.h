/* SPDX-License-Identifier: Apache-2.0 */
/* What the path of a cgroup says about a process beside its container (container.h): its Kubernetes pod and its systemd service. */
#ifndef SYMBOLIZE_TRACE_CGROUP_NAMES_H
#define SYMBOLIZE_TRACE_CGROUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/buf.h"

/*
 * Appends the UID of the pod: of a static pod 32 hexadecimal digits, else these with '-' among them. The kubelet names
 * cgroups after it, .../podUID with its driver cgroupfs, and ...-podUID.slice with '_' for '-' with systemd's. Of pods in
 * pods the innermost one counts. False, and nothing is appended: the path is not that of a pod.
 */
bool cgroup_put_pod_uid(const char *cgroup, struct buf *out);
/*
 * Appends the name of the innermost service, without ".service", of an instance with it (name@x), its escapes undone; any
 * bytes may be in it. Services that are containers do not count, nor does user@UID.service, which has all of a user's.
 * False, and nothing is appended: there is none.
 */
bool cgroup_put_unit(const char *cgroup, struct buf *out);

#endif
