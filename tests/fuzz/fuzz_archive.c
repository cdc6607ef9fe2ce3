/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of binaries. Seeds: small ones of pycap archive, packed and not. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/binary/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct archive_files *a = NULL;
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* All members, and those of which no name says that they are of no use. */
    for (int i = 0; i < 2; i++) {
        const struct named_ids none = {0};
        struct error *err = archive_files_open(path, i ? &none : NULL, &a);
        error_destroy(err);
        archive_files_close(err ? NULL : a);
    }
    close(fd);
    return 0;
}
