/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files, as far as leaving out their code reads and changes them. */
#include <stdlib.h>
#include <string.h>

#include "formats/elf/strip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct elf_strip strip;
    struct elf_file f;
    uint8_t *image = malloc(len_bytes + 1);

    if (!image)
        abort();
    if (len_bytes)
        memcpy(image, data, len_bytes);
    error_destroy(elf_file_open_memory(data, len_bytes, "", &f));
    error_destroy(elf_strip(&f, &strip));
    elf_file_close(&f);
    for (size_t i = 0; i < strip.left_out.list.count; i++)
        if (strip.left_out.list.data[i].start >= strip.left_out.list.data[i].end ||
            strip.left_out.list.data[i].end > len_bytes)
            abort();
    /* In pieces of any length. */
    for (size_t at = 0, n = len_bytes % 97 + 1; at < len_bytes; at += n)
        elf_strip_apply(&strip, at, image + at, len_bytes - at < n ? len_bytes - at : n);
    elf_strip_deinit(&strip);
    free(image);
    return 0;
}
