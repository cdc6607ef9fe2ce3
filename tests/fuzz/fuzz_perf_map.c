/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of symbols that a program wrote for perf: any bytes, and every boundary looked up. */
#include <stdlib.h>

#include "symbolize/stack/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct perf_map m = {0};

    if (!perf_map_add(&m, data, len_bytes / 2) || !perf_map_add(&m, data, len_bytes))
        abort();
    for (size_t i = 0; i < m.lines.count; i++) {
        const struct perf_map_line *line = perf_map_find(&m, m.lines.data[i].start);
        if (!line || line->start > m.lines.data[i].start)
            abort(); /* a line covers its own start, if not another that came later */
        perf_map_find(&m, m.lines.data[i].end);
    }
    perf_map_deinit(&m);
    return 0;
}
