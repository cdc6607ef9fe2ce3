/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/host/system_calls.h"

#include <stddef.h>

static const char *const names[] = {
#define CALL(number, name) [number] = #name,
#if defined(__x86_64__)
#include "capture/host/system_calls_x86_64.def"
#else
#error "the names of system calls are known for x86-64 only"
#endif
#undef CALL
};

const char *system_call_name(int number)
{
    return number >= 0 && (size_t)number < sizeof names / sizeof *names ? names[number] : NULL;
}
