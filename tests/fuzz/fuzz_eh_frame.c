/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files, as far as unwind tables read them, from a file and from memory. Seeds: small libraries, the vdso. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/elf/unwind_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct unwind_table *tables[2] = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes)
        abort();
    error_destroy(unwind_table_build(fd, "fuzz", &tables[0]));
    error_destroy(unwind_table_build_memory(data, len_bytes, "fuzz", &tables[1]));
    for (int i = 0; i < 2; i++) {
        for (uint64_t at = 0; tables[i] && at < 0x10000; at += 7)
            unwind_table_lookup(tables[i], tables[i]->base_vaddr + at);
        unwind_table_destroy(tables[i]);
    }
    close(fd);
    return 0;
}
