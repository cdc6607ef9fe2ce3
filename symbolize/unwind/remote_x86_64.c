/* SPDX-License-Identifier: Apache-2.0 */
/* libunwind for x86-64 (libunwind-x86_64.so). */
#include <libunwind-x86_64.h>

#define REMOTE remote_x86_64
#define REMOTE_MACHINE "x86_64"
#include "symbolize/unwind/remote_libunwind.h"

_Static_assert(UNW_X86_64_RBP == 6 && UNW_X86_64_RSP == 7 && UNW_X86_64_RIP == 16, "libunwind's numbers are DWARF's");
