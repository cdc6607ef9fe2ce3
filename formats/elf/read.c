/* SPDX-License-Identifier: Apache-2.0 */
/* pread() in pieces, with a look at the clock and the flag before each. */
#include "formats/elf/read.h"

#include <errno.h>
#include <unistd.h>

#include "formats/base/clock.h"

enum { PIECE_BYTES = 1 << 20 /* read by one system call, at most */ };

bool elf_stop_reached(const struct elf_stop *stop)
{
    if (!stop)
        return false;
    return (stop->flag && atomic_load_explicit(stop->flag, memory_order_relaxed)) ||
           (stop->deadline_ns && now_ns() >= stop->deadline_ns);
}

bool elf_read(int fd, const struct elf_stop *stop, uint64_t offset, void *out, size_t len_bytes)
{
    if (len_bytes > INT64_MAX || offset > INT64_MAX - len_bytes)
        return false;
    for (size_t done = 0; done < len_bytes;) {
        size_t piece = len_bytes - done < PIECE_BYTES ? len_bytes - done : PIECE_BYTES;
        if (elf_stop_reached(stop))
            return false;
        ssize_t n = pread(fd, (char *)out + done, piece, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}
