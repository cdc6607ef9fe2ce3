/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files, as far as leaving out their code reads and changes them. */
#include <stdlib.h>
#include <string.h>

#include "formats/elf/strip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct elf_extents extents;
    uint8_t *image = malloc(len_bytes + 1);

    if (!image)
        abort();
    if (len_bytes)
        memcpy(image, data, len_bytes);
    error_destroy(elf_strip(image, len_bytes, &extents));
    for (size_t i = 0; i < extents.list.count; i++)
        if (extents.list.data[i].start >= extents.list.data[i].end || extents.list.data[i].end > len_bytes)
            abort();
    VEC_DEINIT(&extents.list);
    free(image);
    return 0;
}
