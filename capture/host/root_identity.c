/* SPDX-License-Identifier: Apache-2.0 */
/* The folder's device and inode do not suffice: with bind mounts the same folder has other things below it elsewhere. */
#include "capture/host/root_identity.h"

#include <stdio.h>
#include <sys/stat.h>

#include "capture/host/procfs.h"
#include "capture/host/procfs_calls.h"

bool root_identify(pid_t pid, struct root_identity *out)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/root/.", pid);
    if (procfs_call_lstat(-pid, path, &st))
        return false;
    *out = (struct root_identity){procfs_namespace(pid, "mnt"), st.st_dev, st.st_ino};
    return out->mount_namespace != 0;
}
