/* SPDX-License-Identifier: Apache-2.0 */
/* Notebooks, and names of their cells: each cell is found by the hash of what ran, and its name is read as it was written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/code_file.h"
#include "symbolize/source/notebook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct notebooks n = {0};
    struct buf name = {0};
    uint32_t hash, again;

    buf_put(&name, data, len_bytes);
    error_destroy(notebooks_parse(&n, "fuzz.ipynb", &name));
    for (size_t i = 0; i < n.cells.count; i++) {
        const struct notebook_cell *cell = &n.cells.data[i];
        if (strlen(cell->text) != cell->len_bytes || !notebooks_find(&n, cell->hash))
            abort();
    }
    notebooks_deinit(&n);
    buf_clear(&name);
    buf_put(&name, data, len_bytes);
    if (code_file_is_of_ipykernel(buf_cstr(&name), &hash)) {
        buf_clear(&name);
        code_file_put_cell(hash, &name);
        if (!code_file_is_cell(buf_cstr(&name), &again) || again != hash || code_file_is_path(buf_cstr(&name)))
            abort();
    }
    buf_deinit(&name);
    return 0;
}
