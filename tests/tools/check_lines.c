/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares our decoding of line tables with what CPython says of its whole library.
 *
 * usage: PYTHON tests/tools/line-truth.py | build/tools/check_lines
 * Prints how much was compared. Exit: 0, 1 something differs.
 */
#include "tests/tools/line_truth.h"

int main(void)
{
    static struct line_truth t;
    bool good = line_truth_check(&t, stdin);

    free(t.table);
    if (!good) {
        fprintf(stderr, "%s\n", t.wrong);
        return 1;
    }
    /* An instruction takes two bytes from 3.6 on. */
    printf("%" PRIu64 " code objects, %" PRIu64 " %s\n", t.code_objects,
           t.code.python_version >> 16 >= 0x0306 ? t.bytes / 2 : t.bytes,
           t.code.python_version >> 16 >= 0x0306 ? "code units" : "bytes of code");
    return 0;
}
