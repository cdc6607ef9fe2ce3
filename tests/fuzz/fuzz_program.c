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
    static const char *const files[] = {NULL, "/usr/bin/python3.11", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/python3.11"};
    program_find_by_main_file(arguments, &out);
    if (strnlen(out.name, sizeof out.name) == sizeof out.name || strchr(out.name, '/') || !strstr(arguments, out.name))
        abort();
    program_find(&(struct program_facts){.exe = files[(data[0] & 1) + (data[0] >> 3 & 1) * 2],
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
