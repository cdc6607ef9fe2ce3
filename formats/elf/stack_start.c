/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greenlet's inner_bootstrap() calls the function of a new greenlet and never returns. g_initialstub() calls it after the
 * switch, in the new greenlet; what g_initialstub() does before is still on the stack of the greenlet that switches.
 */
#include "formats/elf/stack_start.h"

#include <stddef.h>

#include "formats/elf/dynamic.h"

struct stack_start stack_start_find(const struct elf_file *f)
{
    /* greenlet/src/greenlet/TUserGreenlet.cpp: void UserGreenlet::inner_bootstrap(), with its arguments of 3.x and of 2.x. */
    static const char *const names[] = {
        "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object",
        "_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs14_OwnedGreenletI9_greenletXadL_ZNS1_15GreenletCheckerEPvEEEE"
        "RNS1_14OwnedReferenceI7_objectXadL_ZNS1_11NoOpCheckerES4_EEEE",
    };
    struct elf_dynamic dynamic;
    Elf64_Sym sym;

    elf_dynamic_read(f, &dynamic);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (elf_find_exported(f, &dynamic, names[i], &sym) && sym.st_size && sym.st_value < UINT64_MAX - sym.st_size)
            return (struct stack_start){sym.st_value, sym.st_value + sym.st_size};
    }
    return (struct stack_start){0};
}

bool stack_start_holds(struct stack_start s, uint64_t vaddr)
{
    return vaddr >= s.start && vaddr < s.end;
}
