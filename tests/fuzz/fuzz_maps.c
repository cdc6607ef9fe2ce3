/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps: whatever it holds, what is taken from it is in order. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct procfs_mappings m;
    uint32_t bad;
    size_t lines = 1;
    char *text = malloc(len_bytes + 1); /* no NUL behind it, so that reading on is seen */

    if (!text)
        abort();
    memcpy(text, data, len_bytes);
    for (size_t i = 0; i < len_bytes; i++)
        lines += text[i] == '\n';
    text = realloc(text, len_bytes ? len_bytes : 1);
    struct error *err = procfs_parse_mappings(text, len_bytes, &m, &bad);
    if (err || m.list.count + bad > lines)
        abort();
    for (size_t i = 0; i < m.list.count; i++)
        if (m.list.data[i].end <= m.list.data[i].start || !m.list.data[i].path || strlen(m.list.data[i].path) > len_bytes)
            abort();
    procfs_mappings_deinit(&m);
    free(text);
    return 0;
}
