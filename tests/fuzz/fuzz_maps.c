/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /proc/PID/maps: whatever they hold, what is taken from them is in order. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct procfs_mapping m;

    for (size_t at = 0; at < len_bytes;) {
        const uint8_t *newline = memchr(data + at, '\n', len_bytes - at);
        size_t len = newline ? (size_t)(newline - data) - at : len_bytes - at;
        char *line = malloc(len ? len : 1); /* no NUL behind it, so that reading on is seen */
        if (!line)
            abort();
        memcpy(line, data + at, len);
        if (procfs_parse_mapping(line, len, &m) && (m.end <= m.start || strnlen(m.path, sizeof m.path) > len))
            abort();
        free(line);
        at += len + 1;
    }
    return 0;
}
