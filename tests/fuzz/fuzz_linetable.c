/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables of every encoding. Seeds: any bytes will do; the first six choose version, offset and cut. */
#include <stddef.h>
#include <stdint.h>

#include "formats/cpython/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    if (len_bytes < 6)
        return 0;
    bool exact;
    struct py_code code = {.python_version = data[0] % 2 ? 0x03000000u | (uint32_t)(data[1] % 16) << 16 : 0x02070000u,
                           .first_line = data[2],
                           .code_len_bytes = (uint32_t)data[3] << 8,
                           .line_table = {1, len_bytes - 6 + (data[5] & 1), data + 6, len_bytes - 6}};
    /* Each look-up reads the table from its start, so only some: side by side, and spread out. */
    int64_t step = 1 + data[4] * 16;
    for (int64_t i = 0, offset = -1; i < 64; i++, offset += i % 2 ? 1 : step)
        py_code_position(&code, offset, &exact);
    py_code_last_line(&code);
    return 0;
}
