/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process runs, by a command line that it may have made up: the first byte says what else is known of it. The name
 * has no folder, and is one that stands in the command line.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/process/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct program out;

    if (!len_bytes)
        return 0;
    char *arguments = malloc(len_bytes); /* with the NUL behind it, and no more, so that reading on is seen */
    if (!arguments)
        abort();
    memcpy(arguments, data + 1, len_bytes - 1);
    arguments[len_bytes - 1] = 0;
    program_find(&(struct program_facts){.exe = data[0] & 1 ? "/usr/bin/python3.11" : NULL,
                                         .is_python = data[0] & 2,
                                         .arguments = arguments,
                                         .len_bytes = len_bytes - 1,
                                         .cut = data[0] & 4},
                 &out);
    size_t len = strnlen(out.name, sizeof out.name);
    if (len == sizeof out.name || out.kind < TRACE_PROGRAM_UNKNOWN || out.kind > TRACE_PROGRAM_COMMAND ||
        (out.kind == TRACE_PROGRAM_UNKNOWN && len) || (out.kind == TRACE_PROGRAM_SCRIPT && strchr(out.name, '/')) ||
        (len && out.kind != TRACE_PROGRAM_COMMAND && !memmem(arguments, len_bytes, out.name, len)))
        abort();
    free(arguments);
    return 0;
}
