/* SPDX-License-Identifier: Apache-2.0 */
/* A condition of --when. What is accepted can be judged, and its reason is a short line. */
#include <stdlib.h>
#include <string.h>

#include "capture/when/condition.h"

#define LINE_MAX_BYTES 80

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char *text = malloc(len_bytes + 1); /* nothing behind it, so that reading on is seen */
    struct when_condition c;
    struct buf reason = {0};

    if (!text)
        abort();
    if (len_bytes)
        memcpy(text, data, len_bytes);
    text[len_bytes] = 0;
    struct error *err = when_read(text, &c);
    if (!err) {
        if (c.fact >= WHEN_FACTS || !(c.limit > 0) || c.limit > 1e5 || !c.for_ns || !c.every_ns)
            abort();
        when_put_reason(&c, c.limit, &reason);
        if (reason.bad || reason.len_bytes > LINE_MAX_BYTES)
            abort();
    }
    error_destroy(err);
    buf_deinit(&reason);
    free(text);
    return 0;
}
