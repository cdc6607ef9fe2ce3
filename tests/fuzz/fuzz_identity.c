/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files that are so long that parts of them identify them: the head is the input, the rest a hole. Seeds: as for fuzz_image. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/elf/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct elf_identity id;
    struct elf_file f;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes || ftruncate(fd, ELF_HASHED_BYTES_MAX + 1 + len_bytes % 97))
        abort();
    error_destroy(elf_file_open(fd, "fuzz", NULL, &f));
    error_destroy(elf_identity_of(&f, &id));
    /* Nobody cuts it, so every ELF file has an identity. */
    if (id.is_elf ? id.id_kind != ELF_ID_PARTS_HASH && id.id_kind != ELF_ID_BUILD_ID : id.id_kind != ELF_ID_NONE)
        abort();
    elf_identity_add_htlhash(&f, &id);
    if (!id.htlhash_len)
        abort();
    elf_identity_deinit(&id);
    elf_file_close(&f);
    close(fd);
    return 0;
}
