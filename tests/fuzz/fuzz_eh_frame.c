/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables of arbitrary bytes: as an ELF file, read and in memory, and as .eh_frame and .debug_frame with a file
 * made around them. Seeds: small libraries and their sections.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/check_table.h"
#include "tests/fuzz/elf_around.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void read_memory(const uint8_t *data, size_t len_bytes)
{
    struct unwind_table *t = NULL;

    error_destroy(unwind_table_build_memory(data, len_bytes, "fuzz", &t));
    if (t)
        check_table(t);
    unwind_table_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct unwind_table *t = NULL;
    size_t around_len;

    if (len_bytes > 4 && !memcmp(data, "\177ELF", 4)) {
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        check(fd >= 0 && write(fd, data, len_bytes) == (ssize_t)len_bytes);
        error_destroy(unwind_table_build(fd, "fuzz", NULL, &t));
        if (t)
            check_table(t);
        unwind_table_destroy(t);
        close(fd);
        read_memory(data, len_bytes);
        return 0;
    }
    for (int debug_frame = 0; debug_frame < 2; debug_frame++) {
        uint8_t *around = elf_around(data, len_bytes, debug_frame, &around_len);
        read_memory(around, around_len);
        free(around);
    }
    return 0;
}
