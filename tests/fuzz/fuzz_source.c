/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of sources as a trace names them, and texts of any encoding: what comes out is a path below a folder, and UTF-8. */
#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "formats/emit/source_lines.h"
#include "symbolize/source/source_path.h"
#include "symbolize/source/source_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check_text(const uint8_t *data, size_t len)
{
    struct buf text = {0};
    struct source_lines lines;
    size_t sum = 0;

    source_text_decode(data, len, &text);
    if (text.bad || text.len_bytes > 4 * len || strlen(buf_cstr(&text)) != text.len_bytes || memchr(text.data ? text.data : data, '\r', text.len_bytes))
        abort();
    for (size_t i = 0, n; i < text.len_bytes; i += n) {
        uint32_t code;
        n = utf8_decode(text.data + i, text.len_bytes - i, &code);
        if (!n)
            abort();
    }
    if (!source_lines_init(&lines, buf_cstr(&text), text.len_bytes))
        abort();
    for (uint32_t number = 1; number <= source_lines_count(&lines); number++) {
        size_t line_len;
        const char *line = source_lines_get(&lines, number, &line_len);
        if (!line || memchr(line, '\n', line_len))
            abort();
        sum += line_len + 1;
    }
    if (sum != text.len_bytes && sum != text.len_bytes + 1)
        abort();
    source_lines_deinit(&lines);
    buf_deinit(&text);
}

/* No part of a clean path is "..", and each shorter one is an end of it. */
static void check_path(const uint8_t *data, size_t len)
{
    char *path = strndup((const char *)data, len);
    struct buf clean = {0}, again = {0};

    if (!path)
        abort();
    const char *whole = source_path_clean(path, &clean) ? buf_cstr(&clean) : "";
    for (const char *part = *whole == '/' ? whole + 1 : whole; part && *part; part = source_path_shorter(part)) {
        size_t part_len = strcspn(part, "/");
        if (!part_len || (part_len == 1 && *part == '.') || (part_len == 2 && !memcmp(part, "..", 2)))
            abort();
    }
    /* ("x/../<y" is a file of that name; "<y" alone is none.) */
    if (*whole && *whole != '<' && (!source_path_clean(whole, &again) || strcmp(buf_cstr(&again), whole)))
        abort();
    free(path);
    buf_deinit(&clean);
    buf_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    check_text(data, len_bytes);
    check_path(data, len_bytes);
    return 0;
}
