/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads bytes of a file that other users may own and change meanwhile. It is read with pread() and never mapped: a
 * mapping of a file that is cut ends the process with SIGBUS.
 *
 * A read can take long (a disk, a network) or for ever (a file system in user space), so what reads much asks between
 * two reads whether it should stop. A read that has begun cannot be ended from here.
 */
#ifndef FORMATS_ELF_READ_H
#define FORMATS_ELF_READ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When to stop reading a file. {0}: never. */
struct elf_stop {
    const atomic_bool *flag; /* another thread sets it; NULL: nobody does */
    uint64_t deadline_ns;    /* CLOCK_MONOTONIC; 0: none */
};
/* `stop` may be NULL: never. */
bool elf_stop_reached(const struct elf_stop *stop);

/*
 * Reads `len_bytes` at `offset`; false if the file does not have them all, or if it is time to stop. `stop` may be NULL.
 * May block in the kernel for ever if the file lies in a file system in user space.
 */
bool elf_read(int fd, const struct elf_stop *stop, uint64_t offset, void *out, size_t len_bytes);

#endif
