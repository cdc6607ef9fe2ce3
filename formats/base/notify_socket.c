/* SPDX-License-Identifier: Apache-2.0 */
/* An abstract address begins with a NUL byte and is not terminated by one. */
#include "formats/base/notify_socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/base/helper_process.h"

int notify_socket_open(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);

    if (*name != '/' && *name != '@') {
        errno = EAFNOSUPPORT;
        return -1;
    }
    if (len >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, name, len);
    if (*name == '@')
        address.sun_path[0] = 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*name == '/'));
    int fd = helper_descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0 || !connect(fd, (const struct sockaddr *)&address, size))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}
