/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files, as far as recognising an interpreter reads them. Seeds: small interpreters, or none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/cpython/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct py_image img;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    struct error *err = py_image_read(fd, "fuzz", &img);
    if (!err)
        py_image_deinit(&img);
    error_destroy(err);
    close(fd);
    return 0;
}
