/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/push_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/base/landlock.h"

struct error *push_drop_privileges(bool *was_privileged)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    *was_privileged = false;
    if (syscall(SYS_capget, &head, data))
        return error_os(errno, "the capabilities cannot be read");
    *was_privileged = data[0].permitted || data[1].permitted;
    memset(data, 0, sizeof data);
    if (syscall(SYS_capset, &head, data))
        return error_os(errno, "the capabilities cannot be dropped");
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? error_os(errno, "no_new_privs cannot be set") : NULL;
}

/* -1: there is none. */
static int open_folder_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char *folder = !path ? NULL : slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    free(folder);
    return fd;
}

struct error *push_confine(const struct push_request *request)
{
    const struct landlock_place all[] = {
        {open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), LANDLOCK_READ},
        {open_folder_of(request->state), LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_RENAME},
        {open_folder_of(request->status), LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_RENAME},
    };
    struct landlock_place places[sizeof all / sizeof *all];
    size_t count = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].fd >= 0)
            places[count++] = all[i];
    }
    landlock_enter_with_network(places, count);
    for (size_t i = 0; i < count; i++)
        close(places[i].fd);
    return NULL;
}
